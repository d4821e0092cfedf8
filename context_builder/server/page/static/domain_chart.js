// Draws domains over time as the server does: a thin band for each domain, a column for each step, narrow ones for pauses,
// and a line where the topic changed. What a column holds is told where the pointer is.
import { clock, domainClass, element, setText, shortDomain } from "./page.js";

const SVG = "http://www.w3.org/2000/svg";
const BAND = 10;
const MOST = 6;

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

export class DomainChart {
  constructor(figure) {
    this.svg = figure.querySelector("svg");
    this.lanes = figure.querySelector("[data-lanes]");
    this.shares = figure.querySelector("[data-now-shares]");
    this.caption = figure.querySelector("[data-caption]");
    this.changes = figure.parentElement.querySelector("[data-changes]");
    this.tip = figure.querySelector("[data-tip]");
    this.chart = null;
    this.current = [];
    for (const one of this.svg.querySelectorAll("title")) one.remove();
    this.svg.addEventListener("pointermove", (event) => this.tell(event));
    this.svg.addEventListener("pointerdown", (event) => this.tell(event));
    this.svg.addEventListener("pointerleave", () => (this.tip.hidden = true));
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
    this.svg.setAttribute("aria-label", `Domains over time: ${names.join(", ")}`);
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
    const ends = [chart.columns[0].begin, chart.columns.at(-1).end];
    this.caption.replaceChildren(...ends.map((at) => element("span", "", clock(at))));
    setText(this.changes, `${counted(chart.changes.length, "change")} of topic${pauses ? `, ${counted(pauses, "pause")}` : ""}`);
  }

  tell(event) {
    if (!this.chart) return;
    const place = this.svg.getBoundingClientRect();
    const at = Math.floor(((event.clientX - place.left) / place.width) * this.chart.columns.length);
    const column = this.chart.columns[at];
    this.tip.hidden = !column;
    if (!column) return;
    setText(this.tip, column.pause ? `Pause of ${duration(column.end - column.begin)} from ${clock(column.begin)}` : this.told(column));
    const within = this.svg.parentElement.getBoundingClientRect();
    const left = Math.min(event.clientX - within.left, within.width - this.tip.offsetWidth);
    this.tip.style.setProperty("left", `${Math.max(0, left)}px`);
  }

  told(column) {
    const shares = this.chart.domains
      .map((name, lane) => [column.shares[lane], shortDomain(name)])
      .filter(([share]) => share)
      .sort(([left], [right]) => right - left)
      .map(([share, name]) => `${name} ${Math.round(100 * share)} %`);
    const what = shares.length ? shares.join(", ") : "no domain";
    return `${clock(column.begin)} to ${clock(column.end)}, ${counted(column.messages, "message")}: ${what}`;
  }
}
