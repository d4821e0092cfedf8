// Draws domains over time as the server does: a stack of shares for each step, and a line where the topic changed.
import { clock, domainChip, domainClass, element } from "./page.js";

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT] = [600, 120];

function shape(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

export function drawChart(figure, legend, chart) {
  const svg = figure.querySelector("svg");
  if (!chart) return;
  const width = WIDTH / chart.shares.length;
  const tops = chart.shares.map(() => 1);
  const groups = chart.domains.map((name, number) => {
    const group = shape("g", { class: domainClass(name) });
    chart.shares.forEach((shares, step) => {
      if (!shares[number]) return;
      tops[step] -= shares[number];
      const place = { x: step * width, y: HEIGHT * tops[step], width: width + 0.4, height: HEIGHT * shares[number] };
      group.append(shape("rect", place));
    });
    return group;
  });
  const changes = chart.changes.map((at) => shape("line", { class: "change", x1: WIDTH * at, x2: WIDTH * at, y1: 0, y2: HEIGHT }));
  svg.replaceChildren(...groups, ...changes);
  const count = chart.changes.length;
  figure.querySelector("[data-caption]").replaceChildren(
    element("span", "", clock(chart.begin)),
    element("span", "", `${count} change${count === 1 ? "" : "s"} of topic`),
    element("span", "", clock(chart.end)),
  );
  legend.replaceChildren(...chart.domains.map(domainChip));
}
