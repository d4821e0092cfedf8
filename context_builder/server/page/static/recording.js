// Back in time: the slider shows each instant as it passes, and the recording plays. Without this, "Go there" does.
import { panels } from "./page.js";
import { latest, replaced } from "./refresh.js";

const form = document.querySelector("#seeking");
const slider = form.querySelector("#at");
const play = form.querySelector("#play");
const speed = form.querySelector("#speed");
const INTERVAL = 200; // milliseconds between two instants while it plays

panels();
let timer = null;

const show = latest(async (second) => {
  const address = new URL(form.action);
  address.searchParams.set("at", second.toFixed(1));
  if (!(await replaced(address, {}, ["#moment", "#recent", "#points", "#steps"]))) stop();
  else history.replaceState(null, "", address);
});

function stop() {
  clearInterval(timer);
  timer = null;
  play.textContent = "Play";
  play.setAttribute("aria-pressed", "false");
}

function begin() {
  const end = Number(slider.max);
  if (Number(slider.value) >= end) slider.value = "0";
  let at = Number(slider.value);
  let before = performance.now();
  play.textContent = "Pause";
  play.setAttribute("aria-pressed", "true");
  timer = setInterval(() => {
    const now = performance.now();
    at = Math.min(end, at + ((now - before) / 1000) * Number(speed.value));
    before = now;
    slider.value = String(at);
    show(at);
    if (at >= end) stop();
  }, INTERVAL);
}

for (const one of form.querySelectorAll("[hidden]")) one.hidden = false;
form.querySelector("[data-without-scripts]").hidden = true;
play.addEventListener("click", () => (timer === null ? begin() : stop()));
slider.addEventListener("input", () => {
  stop();
  show(Number(slider.value));
});
document.addEventListener("click", (event) => {
  const link = event.target.closest("#steps a");
  if (link === null || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  stop();
  slider.value = new URL(link.href).searchParams.get("at");
  show(Number(slider.value));
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  stop();
  show(Number(slider.value));
});
