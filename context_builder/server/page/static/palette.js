// Ctrl-K or Cmd-K leads anywhere: to a view, a session, a project or a package, by a few words of its name.
import { PAGE, element, said } from "./page.js";
import { latest } from "./refresh.js";

const dialog = document.querySelector("#palette");
const input = dialog.querySelector("input");
const list = dialog.querySelector("[role=listbox]");
const nothing = dialog.querySelector("[role=status]");
const opener = document.querySelector("[data-palette]");
const views = [...document.querySelectorAll(".views a")].map((one) => ({
  kind: "view",
  name: (one.querySelector(".wide") ?? one).textContent,
  path: one.pathname,
}));

function option(place, number) {
  const made = element("li");
  made.id = `place-${number}`;
  made.role = "option";
  made.dataset.path = place.path;
  made.append(said(place.name), element("span", "faint", place.kind));
  return made;
}

function show(places) {
  list.replaceChildren(...places.map(option));
  list.hidden = !places.length;
  nothing.hidden = places.length > 0;
  choose(list.firstElementChild);
}

function choose(wanted) {
  for (const one of list.children) one.ariaSelected = String(one === wanted);
  input.setAttribute("aria-activedescendant", wanted?.id ?? "");
  wanted?.scrollIntoView({ block: "nearest" });
}

const sought = () => input.value.trim().toLowerCase();
let shown = ""; // what the places that are listed were found by
let isEntered = false; // whether Enter waits for those of what is written

const find = latest(async () => {
  const query = sought();
  const words = query.split(/\s+/);
  const fitting = views.filter(({ name }) => words.every((word) => name.toLowerCase().includes(word)));
  let found = [];
  try {
    const answer = await fetch(`${PAGE}/data/places?q=${encodeURIComponent(words.join(" "))}`);
    if (answer.ok) found = await answer.json();
  } catch {
    // Without an answer there are the views.
  }
  show([...fitting, ...found]);
  shown = query;
  if (isEntered && query === sought()) go(list.firstElementChild);
});

function go(place) {
  if (place) location.assign(place.dataset.path);
}

function open() {
  if (dialog.open) return;
  input.value = shown = "";
  show(views);
  dialog.showModal();
  find();
}

opener.hidden = false;
opener.addEventListener("click", open);
dialog.addEventListener("close", () => (isEntered = false));
input.addEventListener("input", () => {
  isEntered = false;
  find();
});
addEventListener("keydown", (event) => {
  if (event.key?.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
  event.preventDefault();
  if (dialog.open) dialog.close();
  else open();
});
input.addEventListener("keydown", (event) => {
  if (event.isComposing) return; // its Enter ends a word of Japanese or Chinese
  const places = [...list.children];
  const at = places.findIndex((one) => one.ariaSelected === "true");
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Enter" && shown !== sought()) isEntered = true;
  else if (event.key === "Enter") go(places[at]);
  else if (step && places.length) choose(places[(at + step + places.length) % places.length]);
  else return;
  event.preventDefault();
});
dialog.addEventListener("click", (event) => {
  if (event.target === dialog) dialog.close();
  else go(event.target.closest("[role=option]"));
});
