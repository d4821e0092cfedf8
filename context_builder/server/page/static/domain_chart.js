// Draws domains over time as the server does: a thin band for each domain, a column for each step, narrow ones for pauses,
// and a line where the topic changed. What a column holds is told where the pointer, or the arrow keys, are; a click or
// Enter leads to what was said there. Who drags, or presses plus, sees a part of the time in finer steps.
import { PAGE, clock, domainClass, element, setText, shortDomain } from "./page.js";

const SVG = "http://www.w3.org/2000/svg";
const BAND = 10;
const MOST = 6;
const STEPS = [5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800, 2592000];
const LABEL = 62; // pixels that a label of the axis takes
const DRAG = 6; // pixels from which on a press is no click any more

function shape(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function duration(seconds) {
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= size) return `${Math.round(seconds / size)} ${unit}`;
  }
  return `${Math.round(seconds)} s`;
}

const counted = (number, one) => `${number} ${one}${number === 1 ? "" : "s"}`;

/** The times that are named below the columns, `{ x, left, text }` (part of the width, pixels): round ones, and where talk goes on after a pause. */
function ticks(columns, width) {
  const spoken = columns.filter((column) => !column.pause);
  const length = spoken.reduce((sum, column) => sum + column.end - column.begin, 0);
  const most = Math.max(1, Math.floor(width / LABEL));
  const step = STEPS.find((one) => length / one <= most) ?? STEPS.at(-1);
  const found = [];
  let day = "";
  columns.forEach((column, place) => {
    if (column.pause) return;
    const zone = 60 * new Date(1000 * column.begin).getTimezoneOffset();
    const round = Math.ceil((column.begin - zone) / step) * step + zone;
    const goesOn = !place || columns[place - 1].pause;
    if (!goesOn && round >= column.end) return;
    const at = goesOn ? column.begin : round;
    const x = (place + (at - column.begin) / (column.end - column.begin)) / columns.length;
    const left = Math.min(x * width, width - 0.7 * LABEL); // the last one ends with the bands
    if (found.length && left - found.at(-1).left < LABEL) return;
    const date = new Date(1000 * at);
    const isNew = day && day !== date.toDateString();
    day = date.toDateString();
    const short = step < 60 ? clock(at) : date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
    found.push({ x, left, text: isNew ? date.toLocaleDateString([], { day: "numeric", month: "short" }) : short });
  });
  return found;
}

export class DomainChart {
  /** `onTime` is told the epoch second that was clicked. */
  constructor(figure, onTime) {
    this.svg = figure.querySelector("svg");
    this.bands = this.svg.parentElement;
    this.address = `${PAGE}/data/sessions/${figure.dataset.session}/domains`;
    this.lanes = figure.querySelector("[data-lanes]");
    this.shares = figure.querySelector("[data-now-shares]");
    this.caption = figure.querySelector("[data-caption]");
    this.changes = figure.parentElement.querySelector("[data-changes]");
    this.all = figure.parentElement.querySelector("[data-all]");
    this.tip = figure.querySelector("[data-tip]");
    this.onTime = onTime;
    this.chart = null; // what is drawn
    this.whole = null; // the chart of all the time
    this.current = [];
    this.at = 0; // the column that is told of
    this.pressed = null;
    for (const one of this.svg.querySelectorAll("title")) one.remove();
    this.svg.removeAttribute("role");
    this.svg.removeAttribute("aria-label");
    Object.assign(this.bands, { role: "slider", ariaLabel: "Moment of the domains", ariaValueMin: "0", ariaValueMax: "0", ariaValueNow: "0", ariaValueText: "no domain" });
    const chosen = element("span", "chosen");
    this.chosen = chosen;
    chosen.hidden = true;
    this.bands.append(chosen);
    this.bands.addEventListener("pointerdown", (event) => this.press(event));
    this.bands.addEventListener("pointermove", (event) => this.move(event));
    this.bands.addEventListener("pointerup", (event) => this.release(event));
    this.bands.addEventListener("pointercancel", () => this.let());
    this.bands.addEventListener("pointerleave", () => (this.tip.hidden = true));
    this.bands.addEventListener("blur", () => (this.tip.hidden = true));
    this.bands.addEventListener("keydown", (event) => this.key(event));
    this.all.addEventListener("click", () => this.showAll());
    new ResizeObserver(() => this.axis()).observe(this.bands);
  }

  /** Take the domains of the moment, each with its confidence. */
  now(domains) {
    this.current = domains;
    this.label();
  }

  label() {
    const charted = this.chart?.domains ?? [];
    const names = [...new Set([...charted, ...this.current.map(([name]) => name)])].slice(0, Math.max(MOST, charted.length));
    const confidence = new Map(this.current);
    this.lanes.replaceChildren(
      ...names.map((name) => {
        const lane = element("li", domainClass(name));
        lane.title = name;
        lane.append(element("i"), shortDomain(name));
        return lane;
      }),
    );
    this.shares.replaceChildren(
      ...names.map((name) => {
        const share = confidence.get(name);
        return element("li", "", typeof share === "number" ? `${Math.round(100 * share)} %` : "");
      }),
    );
    this.svg.setAttribute("viewBox", `0 0 ${this.chart?.columns.length ?? 1} ${BAND * Math.max(1, names.length)}`);
  }

  /** Take the chart of all the time; it is not drawn while a part is. */
  take(chart) {
    this.whole = chart;
    if (this.all.hidden) this.draw(chart);
  }

  draw(chart) {
    this.chart = chart;
    if (!chart) return;
    this.label();
    const height = BAND * this.lanes.childElementCount;
    const shapes = chart.columns.flatMap((column, x) =>
      column.pause
        ? [shape("rect", { class: "pause", x, y: 0, width: 1, height })]
        : chart.domains.flatMap((name, lane) => {
            const share = column.shares[lane];
            const place = { x, y: BAND * lane + 1, width: 1, height: BAND - 2, "fill-opacity": (0.25 + 0.75 * share).toFixed(2) };
            return share ? [shape("rect", { class: domainClass(name), ...place })] : [];
          }),
    );
    const changes = chart.changes.map((at) => {
      const x = at * chart.columns.length;
      return shape("line", { class: "change", x1: x, x2: x, y1: 0, y2: height });
    });
    this.svg.replaceChildren(...shapes, ...changes);
    const pauses = chart.columns.filter((column) => column.pause).length;
    const told = [chart.changes.length && `${counted(chart.changes.length, "change")} of topic`, pauses && counted(pauses, "pause")];
    setText(this.changes, told.filter(Boolean).join(", "));
    this.bands.tabIndex = 0;
    this.bands.ariaValueMax = String(chart.columns.length - 1);
    this.choose(Math.min(this.at, chart.columns.length - 1));
    this.axis();
  }

  /** Name times below the bands, as many as there is room for, and mark them with lines. */
  axis() {
    const width = this.bands.clientWidth;
    if (!this.chart || !width) return;
    const found = ticks(this.chart.columns, width);
    for (const one of this.svg.querySelectorAll(".tick")) one.remove();
    const columns = this.chart.columns.length;
    const height = BAND * this.lanes.childElementCount;
    this.svg.prepend(...found.map(({ x }) => shape("line", { class: "tick", x1: x * columns, x2: x * columns, y1: 0, y2: height })));
    this.caption.replaceChildren(
      ...found.map(({ left, text }) => {
        const label = element("span", "", text);
        label.style.setProperty("left", `${left}px`);
        return label;
      }),
    );
  }

  // ---- Telling of a column, and going there

  choose(at) {
    this.at = at;
    this.bands.ariaValueNow = String(at);
    this.bands.ariaValueText = this.told(this.chart.columns[at]);
  }

  tell(at) {
    const columns = this.chart.columns;
    this.choose(Math.max(0, Math.min(at, columns.length - 1)));
    setText(this.tip, this.bands.ariaValueText);
    this.tip.hidden = false;
    const width = this.bands.clientWidth;
    const left = Math.min(((this.at + 0.5) / columns.length) * width, width - this.tip.offsetWidth);
    this.tip.style.setProperty("left", `${this.bands.offsetLeft + Math.max(0, left)}px`);
  }

  told(column) {
    if (column.pause) return `Pause of ${duration(column.end - column.begin)} from ${clock(column.begin)}`;
    const shares = this.chart.domains
      .map((name, lane) => [column.shares[lane], shortDomain(name)])
      .filter(([share]) => share)
      .sort(([left], [right]) => right - left)
      .map(([share, name]) => `${name} ${Math.round(100 * share)} %`);
    const what = shares.length ? shares.join(", ") : "no domain";
    return `${clock(column.begin)} to ${clock(column.end)}, ${counted(column.messages, "message")}: ${what}`;
  }

  key(event) {
    if (!this.chart) return;
    const last = this.chart.columns.length - 1;
    const place = { ArrowLeft: this.at - 1, ArrowRight: this.at + 1, Home: 0, End: last }[event.key];
    if (place !== undefined) this.tell(place);
    else if (event.key === "Enter") this.onTime(this.chart.columns[this.at].begin);
    else if (event.key === "+") this.zoom(Math.max(0, this.at - (last >> 3)), Math.min(last, this.at + (last >> 3)));
    else if (event.key === "-" || (event.key === "Escape" && !this.all.hidden)) this.showAll();
    else return;
    event.preventDefault();
  }

  // ---- A part of the time

  column(event) {
    const place = this.bands.getBoundingClientRect();
    const at = Math.floor(((event.clientX - place.left) / place.width) * this.chart.columns.length);
    return Math.max(0, Math.min(at, this.chart.columns.length - 1));
  }

  press(event) {
    if (!this.chart || event.button) return;
    this.pressed = { x: event.clientX, at: this.column(event) };
    this.bands.setPointerCapture(event.pointerId);
    this.tell(this.pressed.at);
  }

  move(event) {
    if (!this.chart) return;
    const at = this.column(event);
    this.tell(at);
    this.chosen.hidden = !this.pressed || Math.abs(event.clientX - this.pressed.x) < DRAG;
    if (this.chosen.hidden) return;
    const [first, last] = [Math.min(at, this.pressed.at), Math.max(at, this.pressed.at)];
    const share = 100 / this.chart.columns.length;
    this.chosen.style.setProperty("left", `${first * share}%`);
    this.chosen.style.setProperty("width", `${(last + 1 - first) * share}%`);
  }

  release(event) {
    if (!this.pressed) return;
    const [from, at, isClick] = [this.pressed.at, this.column(event), this.chosen.hidden];
    this.let();
    if (isClick) this.onTime(this.chart.columns[at].begin, event.pointerType);
    else this.zoom(Math.min(from, at), Math.max(from, at));
  }

  let() {
    this.pressed = null;
    this.chosen.hidden = true;
  }

  async zoom(first, last) {
    const { columns } = this.chart;
    const begin = columns[Math.min(first, columns.length - 1)].begin; // it may have been drawn anew, in fewer columns
    const end = columns[Math.min(last, columns.length - 1)].end;
    const answer = await fetch(`${this.address}?since=${begin}&until=${end}`).catch(() => null);
    const chart = answer?.ok ? await answer.json() : null;
    if (!chart) return; // what is drawn stays
    this.all.hidden = false;
    this.at = 0;
    this.draw(chart);
  }

  showAll() {
    if (this.all.hidden) return;
    if (document.activeElement === this.all) this.bands.focus();
    this.all.hidden = true;
    this.draw(this.whole);
  }
}
