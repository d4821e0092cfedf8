// Shows a long list by the rows around what is looked at: a list of any length has some hundred rows in the document.

const AROUND = 14; // rows kept above and below those that are seen: to draw all anew must take no more than a frame or two
const MOST = 120;
const NEAR_END = 60; // pixels from the end within which the list follows what is new

export class WindowedList {
  /**
   * `scroll` scrolls, `list` takes the rows, `above` and `below` take the place of those that are left out.
   * `draw(item, row)` fills a row, or makes one where none is given.
   */
  constructor({ scroll, list, above, below, draw, onTop, onFollow }) {
    Object.assign(this, { scroll, list, above, below, draw, onTop, onFollow });
    this.items = [];
    this.byId = new Map();
    this.rows = new Map();
    this.changed = new Set();
    this.usual = 70;
    this.following = true;
    this.scheduled = false;
    scroll.addEventListener("scroll", () => this.scrolled(), { passive: true });
    new ResizeObserver(() => {
      this.seen = scroll.clientHeight;
      this.resized = true;
      this.update();
      if (scroll.clientWidth === this.width) return;
      this.width = scroll.clientWidth;
      for (const item of this.items) item.height = 0;
    }).observe(scroll);
    this.width = scroll.clientWidth;
    this.seen = scroll.clientHeight;
  }

  /** Add an item where it belongs, or take over what is new about one. Returns what happened to it. */
  put(fresh) {
    const known = this.byId.get(fresh.id);
    if (!known) {
      this.byId.set(fresh.id, fresh);
      this.items.splice(this.placeOf(fresh), 0, fresh);
      this.update();
      return fresh.before === undefined ? "new" : "late";
    }
    const moves = fresh.before !== undefined && known.before !== fresh.before;
    if (fresh.before === undefined && known.before !== undefined) fresh.before = known.before;
    Object.assign(known, fresh);
    known.height = 0;
    if (moves) {
      this.items.splice(this.items.lastIndexOf(known), 1);
      this.items.splice(this.placeOf(known), 0, known);
    }
    this.changed.add(known.id);
    this.update();
    return moves ? "moved" : "same";
  }

  /** Take an item out, if it is there. */
  remove(id) {
    const known = this.byId.get(id);
    if (!known) return;
    this.items.splice(this.items.lastIndexOf(known), 1);
    this.byId.delete(id);
    this.update();
  }

  /** The nearest item before another one that is wanted. */
  before(item, wanted) {
    for (let place = this.items.lastIndexOf(item) - 1; place >= 0; place--) {
      if (wanted(this.items[place])) return this.items[place];
    }
    return undefined;
  }

  /** The nearest item after another one that is wanted, among those that may be drawn. */
  after(item, wanted) {
    const place = this.items.lastIndexOf(item);
    return this.items.slice(place + 1, place + 1 + MOST).find(wanted);
  }

  placeOf(item) {
    const items = this.items;
    if (item.before !== undefined) {
      const next = this.byId.get(item.before);
      const place = next ? items.lastIndexOf(next) : -1;
      if (place >= 0) return place;
    }
    let place = items.length;
    while (place && (items[place - 1].id > item.id || (items[place - 1].before !== undefined && this.isBehind(place - 1, item)))) {
      if (items.length - place > 64 && items[place - 1].id > item.id) return this.search(item.id);
      place--;
    }
    return place;
  }

  /** Whether the late item at a place stands among later ones, so that an earlier one has to pass it. */
  isBehind(place, item) {
    return this.rank(this.items[place]) > item.id;
  }

  /** The id of the item in order that a late one stands before, maybe behind other late ones; else its own. */
  rank(item) {
    while (item.before !== undefined && this.byId.has(item.before)) item = this.byId.get(item.before);
    return item.before ?? item.id;
  }

  search(id) {
    let [low, high] = [0, this.items.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rank(this.items[middle]) < id) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Draw an item anew, though it did not change. */
  redraw(id) {
    if (!this.rows.has(id)) return;
    this.changed.add(id);
    this.update();
  }

  update() {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      this.render();
    });
  }

  scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroll;
    const hasOtherSize = this.resized || this.scroll.clientWidth !== this.width || clientHeight !== this.seen;
    if (!hasOtherSize) this.follow(scrollHeight - scrollTop - clientHeight < NEAR_END);
    if (scrollTop < 1500) this.onTop?.();
    this.update();
  }

  follow(following) {
    if (following === this.following) return;
    this.following = following;
    this.onFollow?.(following);
    if (following) this.update();
  }

  /** Scroll to an item, if it is there. */
  show(id) {
    const place = this.items.indexOf(this.byId.get(id));
    if (place < 0) return false;
    this.follow(false);
    let top = 0;
    for (let i = 0; i < place; i++) top += this.items[i].height || this.usual;
    this.scroll.scrollTop = Math.max(0, top - this.scroll.clientHeight / 3);
    this.render();
    const row = this.rows.get(id)?.getBoundingClientRect();
    if (row) {
      const seen = this.scroll.getBoundingClientRect(); // the list alone moves, not the page around it
      this.scroll.scrollTop += row.top + row.height / 2 - seen.top - seen.height / 2;
    }
    this.update();
    return true;
  }

  range() {
    const { items, scroll } = this;
    const seen = scroll.clientHeight;
    let first = items.length;
    let last = items.length;
    if (this.following) {
      for (let height = 0; first && height < seen; ) height += items[--first].height || this.usual;
    } else {
      let top = this.list.offsetTop - this.above.offsetHeight - scroll.scrollTop;
      for (first = 0; first < items.length; first++) {
        const height = items[first].height || this.usual;
        if (top + height > 0) break;
        top += height;
      }
      for (last = first; last < items.length && top < seen; last++) top += items[last].height || this.usual;
    }
    first = Math.max(0, first - AROUND);
    return [first, Math.min(items.length, last + AROUND, first + MOST)];
  }

  render() {
    const { items, rows, list, scroll } = this;
    if (!scroll.clientHeight) return; // another panel is shown in its place
    this.resized = false;
    const [first, last] = this.range();
    const anchor = this.following ? null : this.anchor();
    const wanted = new Set();
    for (let i = first; i < last; i++) wanted.add(items[i].id);
    for (const [id, row] of rows) {
      if (wanted.has(id)) continue;
      row.remove();
      rows.delete(id);
    }
    const measured = [];
    let next = list.firstElementChild;
    for (let i = first; i < last; i++) {
      const item = items[i];
      let row = rows.get(item.id);
      if (!row) {
        row = this.draw(item);
        rows.set(item.id, row);
        measured.push(item);
      } else if (this.changed.has(item.id)) {
        this.draw(item, row);
        measured.push(item);
      }
      if (row === next) next = next.nextElementSibling;
      else list.insertBefore(row, next);
    }
    this.changed.clear();
    for (const item of measured) item.height = rows.get(item.id).offsetHeight;
    if (measured.length > 4) this.usual = measured.reduce((sum, item) => sum + item.height, 0) / measured.length;
    let [above, below] = [0, 0];
    for (let i = 0; i < first; i++) above += items[i].height || this.usual;
    for (let i = last; i < items.length; i++) below += items[i].height || this.usual;
    this.above.style.setProperty("height", `${above}px`);
    this.below.style.setProperty("height", `${below}px`);
    if (this.following) scroll.scrollTop = scroll.scrollHeight;
    else if (anchor) {
      const row = rows.get(anchor.id);
      if (row) {
        const moved = row.getBoundingClientRect().top - anchor.top;
        if (Math.abs(moved) > 1) scroll.scrollTop += moved;
      }
    }
  }

  /** The first row that is seen: what is added above it must not move it. */
  anchor() {
    const top = this.scroll.getBoundingClientRect().top;
    for (const [id, row] of this.rows) {
      const place = row.getBoundingClientRect();
      if (place.bottom > top && place.height) return { id, top: place.top };
    }
    return null;
  }
}
