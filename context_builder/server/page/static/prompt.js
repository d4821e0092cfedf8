// Dragging the budget shows at once what comes in and goes out. Without this, "Show the prompt" does.
import { latest, replaced } from "./refresh.js";

const PATIENCE = 150; // milliseconds of standing still before the server is asked

const form = document.querySelector("#asking");
const number = form.elements.budget;
const drag = form.querySelector("#drag");
let timer = null;

const show = latest(async () => {
  const body = new URLSearchParams(new FormData(form));
  const open = new Map([...document.querySelectorAll("#result details[id]")].map((one) => [one.id, one.open]));
  await replaced(form.action, { method: "POST", body }, ["#result", "#before"]);
  for (const one of document.querySelectorAll("#result details[id]")) one.open = open.get(one.id) ?? one.open;
});

for (const one of form.querySelectorAll(".enhanced")) one.hidden = false;
drag.addEventListener("input", () => {
  number.value = drag.value;
  clearTimeout(timer);
  if (form.elements.session.value !== "") timer = setTimeout(show, PATIENCE);
});
number.addEventListener("input", () => {
  drag.value = number.value;
});
