// Shows the points of a summary under their headings. A row stays the same element while its point is there: what is
// pressed or focused does not go away because something else was summarized.
import { element, marked, setText, speakerName } from "./page.js";

export class SummaryList {
  constructor(list, { onPoint, onMessage }) {
    this.list = list;
    this.rows = new Map();
    this.groups = new Map();
    list.replaceChildren();
    list.addEventListener("click", (event) => {
      const row = event.target.closest("li.point");
      const message = event.target.closest("[data-message]");
      if (message) onMessage(row.dataset.id, Number(message.dataset.message));
      else if (event.target.closest(".point-button")) onPoint(row.dataset.id);
    });
  }

  /** Show these points, in their order; `behind` gives what the chosen one rests on: messages `inFull`, or their quotes. */
  draw(points, { lit, chosen, behind, inFull }) {
    const under = new Map();
    for (const point of points) under.set(point.heading, [...(under.get(point.heading) ?? []), point]);
    keep(this.groups, new Set(under.keys()));
    keep(this.rows, new Set(points.map((point) => point.id)));
    [...under].forEach(([heading, its], place) => {
      const group = this.groups.get(heading) ?? this.made(heading);
      put(this.list, group, place);
      setText(group.firstElementChild.lastElementChild, String(its.length));
      its.forEach((point, at) => {
        const row = this.row(point);
        put(group.lastElementChild, row, at);
        const isChosen = chosen === point.id;
        row.classList.toggle("lit", isChosen || lit.includes(point.id));
        row.firstElementChild.setAttribute("aria-pressed", String(isChosen));
        row.querySelector(".behind")?.remove();
        if (isChosen) row.append(this.behind(behind(point), inFull));
      });
    });
  }

  made(heading) {
    const group = element("section", "under");
    const title = element("h3", "", `${heading} `);
    title.append(element("span", "figure"));
    group.append(title, element("ol"));
    this.groups.set(heading, group);
    return group;
  }

  row(point) {
    const told = JSON.stringify(point);
    const known = this.rows.get(point.id);
    if (known?.told === told) return known;
    const row = known ?? element("li");
    row.told = told;
    row.dataset.id = point.id;
    row.className = `point kind-${point.kind}`;
    const button = known?.firstElementChild ?? element("button", "point-button");
    button.type = "button";
    button.dataset.point = point.id;
    const text = element("span", "text", point.text);
    text.dir = "auto";
    const names = point.speakers.slice(0, 3).flatMap((name) => [speakerName(name, point.kind === "consilience"), " "]);
    const count = point.ids.length;
    const cited = element("span", "cited", String(count));
    cited.title = `rests on ${count} message${count === 1 ? "" : "s"}`;
    button.replaceChildren(...names, text, ...(point.unconfirmed ? [" ", element("span", "mark", "unconfirmed")] : []), cited);
    if (!known) row.append(button);
    this.rows.set(point.id, row);
    return row;
  }

  behind(messages, inFull) {
    const made = element("ul", "behind");
    made.append(
      ...messages.map((one) => {
        const item = element("li");
        if (!inFull) {
          item.append(this.quoted(one));
          return item;
        }
        const text = element("span", "quote");
        text.dir = "auto";
        text.append(...marked(one.text, one.quotes));
        const jump = element("button", "quiet jump", "Show it in the conversation");
        jump.type = "button";
        jump.dataset.message = one.id;
        item.append(speakerName(one.speaker), " ", text, jump);
        return item;
      }),
    );
    return made;
  }

  quoted(message) {
    const made = element("button", "quoted");
    made.type = "button";
    made.title = "Show it in the conversation";
    made.dataset.message = message.id;
    const text = element("span", "quote", message.quotes.map((quote) => `“${quote}”`).join(" ") || message.text);
    text.dir = "auto";
    made.append(speakerName(message.speaker), " ", text);
    return made;
  }

  scrollToLit() {
    const first = this.list.querySelector(".point.lit");
    if (first) this.list.scrollTop = first.offsetTop - this.list.offsetTop - 40;
  }
}

function keep(elements, wanted) {
  for (const [name, one] of elements) {
    if (wanted.has(name)) continue;
    one.remove();
    elements.delete(name);
  }
}

function put(list, one, place) {
  if (list.children[place] !== one) list.insertBefore(one, list.children[place] ?? null);
}
