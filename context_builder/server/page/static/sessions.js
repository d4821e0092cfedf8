// Keeps the list of sessions current, and searches while one types.
import { PAGE, ago, dollars, domainChip, element, listen, said, setText } from "./page.js";

const table = document.querySelector("table.sessions");
const body = table.tBodies[0];
const template = document.getElementById("row");
const empty = document.querySelector("[data-empty]");
const total = document.querySelector("[data-total]");
const search = document.getElementById("q");
const rows = new Map([...body.rows].map((row) => [row.dataset.id, row]));

function slot(row, name) {
  return row.querySelector(`[data-slot=${name}]`);
}

function fill(row, one) {
  const link = slot(row, "link");
  link.href = `${PAGE}/sessions/${encodeURIComponent(one.session_id)}`;
  link.title = one.session_id;
  setText(link.firstElementChild, one.session_id);
  const status = slot(row, "status");
  status.className = `status is-${one.status.replace(" ", "-")}`;
  setText(status, one.status);
  replace(slot(row, "speakers"), one.speakers, (name) => said(name));
  replace(slot(row, "domains"), one.domains, domainChip);
  const spoke = slot(row, "spoke");
  if (one.last_spoke) spoke.dataset.since = one.last_spoke;
  const isRun = ["live", "idle", "asleep"].includes(one.status);
  setText(slot(row, "silence"), one.silent && isRun ? "silent" : "");
  setText(slot(row, "failing"), one.failing.length ? `${one.failing.join(", ")} fails` : "");
  setText(slot(row, "messages"), one.messages.toLocaleString("en"));
  setText(slot(row, "rate"), one.rate ? `${one.rate}/min` : "");
  setText(slot(row, "waiting"), one.waiting ? one.waiting.toLocaleString("en") : "");
  setText(slot(row, "dead"), one.dead ? `${one.dead.toLocaleString("en")} dead` : "");
  slot(row, "waiting").classList.toggle("warn", one.waiting > 0);
  setText(slot(row, "dollars"), one.dollars ? dollars(one.dollars) : "");
  setText(slot(row, "owner"), one.owner);
}

function replace(target, values, make) {
  const key = JSON.stringify(values);
  if (target.dataset.key === key) return;
  target.dataset.key = key;
  target.replaceChildren(...values.map(make));
}

function show(list) {
  const ids = new Set(list.rows.map((one) => one.session_id));
  for (const [id, row] of rows) {
    if (ids.has(id)) continue;
    row.remove();
    rows.delete(id);
  }
  list.rows.forEach((one, place) => {
    let row = rows.get(one.session_id);
    if (!row) {
      row = template.content.firstElementChild.cloneNode(true);
      row.dataset.id = one.session_id;
      rows.set(one.session_id, row);
    }
    fill(row, one);
    if (body.rows[place] !== row) body.insertBefore(row, body.rows[place] ?? null);
  });
  table.hidden = !list.rows.length;
  empty.hidden = list.rows.length > 0;
  const of = list.total !== list.rows.length ? ` of ${list.total.toLocaleString("en")}` : "";
  setText(total, `${list.rows.length}${of}`);
  tick();
}

function tick() {
  const now = Date.now() / 1000;
  for (const one of body.querySelectorAll("[data-since]")) setText(one, ago(Number(one.dataset.since), now));
}

/** What is listed, and in which order, as in an address. */
function asked() {
  return new URLSearchParams(new FormData(search.form)).toString();
}

let source;
function follow() {
  source?.close();
  source = listen(`${PAGE}/live/sessions?${asked()}`, { sessions: show });
}

let typing;
search.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    const words = search.value.trim();
    history.replaceState(null, "", `?${asked()}`);
    for (const one of table.tHead.querySelectorAll("a")) {
      const sort = new URLSearchParams(one.search).get("sort");
      one.search = new URLSearchParams({ sort, q: search.value });
    }
    emptyBecause(words);
    follow();
  }, 200);
});

function emptyBecause(words) {
  const heading = element("h2");
  if (words) heading.append("Nothing fits “", said(words), "”");
  else heading.append("No sessions yet");
  empty.replaceChildren(heading);
}

setInterval(tick, 1000);
follow();
