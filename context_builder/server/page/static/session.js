// A session as it happens: keeps the conversation, the silence clock, the chart and the summary current.
import { PAGE, clock, dollars, domainChip, domainClass, element, listen, said, setText } from "./page.js";
import { drawChart } from "./domain_chart.js";
import { WindowedList } from "./windowed_list.js";

const strip = document.querySelector("[data-session]");
const id = strip.dataset.session;
const scroll = document.querySelector("[data-scroll]");
const messages = document.querySelector("[data-messages]");
const pointList = document.querySelector("[data-points]");
const followButton = document.querySelector("[data-follow]");
const head = (name) => document.querySelector(`[data-head=${name}]`);

const corrected = new Set(); // ids of messages that another one says anew
const citing = new Map(); // a message's id: the points that cite it
let points = [];
let chosen = null; // { point } or { message }
let skew = Date.now() / 1000 - Number(strip.dataset.now);
let last = Number(head("silence").dataset.last) || null;
let kept = head("silence").dataset.kept === "yes";
let silent = head("silence").classList.contains("is-silent");

function speakerClass(name) {
  let sum = 0;
  for (const char of name) sum += char.codePointAt(0);
  return `s${sum % 8}`;
}

// ---- The conversation

function draw(item, row) {
  const made = row ?? element("li");
  const lit = isLit(item.id);
  made.className = `message${item.assistant ? " assistant" : ""}${item.before === undefined ? "" : " late"}${corrected.has(item.id) ? " outdated" : ""}${lit ? " lit" : ""}${item.news ? ` ${item.news}` : ""}`;
  made.id = `m${item.id}`;
  const meta = element("div", "meta");
  meta.append(said(item.speaker, `speaker ${speakerClass(item.speaker)}`), element("time", "", clock(item.time)));
  if (corrected.has(item.id)) meta.append(element("span", "mark", "corrected"));
  if (item.corrects !== undefined) meta.append(element("span", "mark", "correction"));
  else if (item.before !== undefined) meta.append(element("span", "mark", "came late"));
  const cited = citing.get(item.id);
  if (cited) {
    const button = element("button", "cites quiet", `${cited.length} point${cited.length === 1 ? "" : "s"}`);
    button.type = "button";
    button.setAttribute("aria-pressed", String(chosen?.message === item.id));
    button.setAttribute("aria-label", `Light the ${button.textContent} that cite message ${item.id}`);
    meta.append(button);
  }
  const text = element("p", "said", item.text);
  text.dir = "auto";
  made.replaceChildren(meta, text);
  if (item.domains.length || item.keywords.length) {
    const tags = element("div", "tags");
    tags.append(...item.domains.slice(0, 2).map(domainChip), ...item.keywords.slice(0, 5).map((word) => said(word, "word")));
    made.append(tags);
  }
  return made;
}

messages.replaceChildren();
document.querySelector("[data-earlier]")?.remove();
const list = new WindowedList({
  scroll,
  list: messages,
  above: document.querySelector("[data-space=top]"),
  below: document.querySelector("[data-space=bottom]"),
  draw,
  onTop: loadEarlier,
  onFollow: (following) => (followButton.hidden = following),
});

/** Take messages in the order in which they arrived: what one that came late was put before is then there. */
function take(fresh, isNews) {
  for (const one of fresh.sort((left, right) => left.id - right.id)) {
    const news = list.put(one);
    if (isNews && news !== "same" && news !== "new") list.byId.get(one.id).news = news;
    if (one.corrects !== undefined) {
      if (isNews) list.byId.get(one.id).news = "correction";
      corrected.add(one.corrects);
      list.redraw(one.corrects);
    }
  }
  if (fresh.length) document.querySelector("[data-nobody]").hidden = true;
}

let loading = null;
let reached = Infinity; // every message from this one on was asked for
const hasAll = () => reached < 1;

/** Load what was said before that; 1,000 at once where they are being searched. Tell whether it was answered. */
function loadEarlier(count = 200) {
  loading ??= earlier(count)
    .then(() => true, () => false)
    .finally(() => (loading = null));
  return loading;
}

async function earlier(count) {
  const before = list.items.reduce((least, one) => Math.min(least, one.id), reached);
  if (before < 1 || before === Infinity) return;
  const after = Math.max(-1, before - count - 1);
  take((await load(after, before - after - 1)).filter((one) => one.id < before), false);
  reached = after + 1;
}

async function load(after, limit) {
  const answer = await fetch(`${PAGE}/data/sessions/${id}/messages?after=${after}&limit=${limit}`);
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return answer.json();
}

/** After a time without a connection, load what was said between what was here and what is here now. */
async function fillGap(from, to) {
  let after = from;
  while (after < to - 1) {
    let found;
    try {
      found = (await load(after, Math.min(1000, to - after - 1))).filter((one) => one.id < to);
    } catch {
      if (source.readyState === EventSource.CLOSED) return;
      await new Promise((resolve) => setTimeout(resolve, 2000));
      continue;
    }
    if (!found.length) return;
    take(found, false);
    after = found.at(-1).id;
  }
}

followButton.addEventListener("click", () => list.follow(true));

// ---- Points, and what they cite

function isLit(message) {
  return chosen !== null && (chosen.message === message || (chosen.point !== undefined && chosen.ids.includes(message)));
}

function choose(next) {
  const before = chosen;
  chosen = next;
  for (const one of list.rows.keys()) list.redraw(one);
  if (before || next) drawPoints();
}

function drawPoints() {
  const lit = chosen?.message === undefined ? new Set() : new Set(citing.get(chosen.message));
  const cited = points.map((point) => {
    const item = element("li", `point kind-${point.kind}`);
    const isChosen = chosen?.point === point.id;
    if (isChosen || lit.has(point.id)) item.classList.add("lit");
    const button = element("button", "point-button");
    button.type = "button";
    button.dataset.point = point.id;
    button.setAttribute("aria-pressed", String(isChosen));
    const meta = element("span", "meta");
    meta.append(element("span", "kind", point.kind), ...point.speakers.map((name) => said(name, `speaker ${speakerClass(name)}`)));
    const text = element("span", "text", point.text);
    text.dir = "auto";
    const count = point.ids.length;
    button.append(meta, text, element("span", "cited", `cites ${count} message${count === 1 ? "" : "s"}`));
    item.append(button);
    return item;
  });
  const focused = document.activeElement?.dataset?.point;
  pointList.replaceChildren(...cited.reverse());
  if (focused) pointList.querySelector(`[data-point="${CSS.escape(focused)}"]`)?.focus();
  document.querySelector("[data-no-points]").hidden = points.length > 0;
  setText(document.querySelector("[data-points-count]"), `${points.length} point${points.length === 1 ? "" : "s"}, newest first`);
  if (lit.size) {
    const first = pointList.querySelector(".lit");
    if (first) pointList.scrollTop = first.offsetTop - pointList.offsetTop;
  }
}

function takePoints(fresh) {
  points = fresh;
  const before = new Set(citing.keys());
  citing.clear();
  for (const point of points) {
    for (const one of point.ids) citing.set(one, [...(citing.get(one) ?? []), point.id]);
  }
  for (const one of new Set([...before, ...citing.keys()])) list.redraw(one);
  drawPoints();
}

pointList.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-point]");
  if (!button) return;
  const point = points.find((one) => String(one.id) === button.dataset.point);
  if (!point || chosen?.point === point.id) return choose(null);
  choose({ point: point.id, ids: point.ids });
  const first = Math.min(...point.ids);
  while (point.ids.length && list.items.length && !list.byId.has(first) && !hasAll()) {
    if (!(await loadEarlier(1000))) break;
  }
  if (chosen?.point === point.id) list.show(point.ids.find((one) => list.byId.has(one)));
});

messages.addEventListener("click", (event) => {
  const row = event.target.closest("li.message");
  if (!row || getSelection().toString()) return;
  const message = Number(row.id.slice(1));
  const cited = citing.has(message) && chosen?.message !== message;
  choose(cited ? { message } : null);
});

// ---- The head

function takeHead(state) {
  last = state.last ?? last;
  kept = state.kept;
  silent = state.silent;
  setText(head("messages"), state.messages.toLocaleString("en"));
  setText(head("summarized"), state.summarized.toLocaleString("en"));
  setText(head("waiting"), state.waiting.toLocaleString("en"));
  setText(head("dollars"), dollars(state.dollars));
  setText(head("owner"), state.owner || (state.ended_at ? `ended ${clock(state.ended_at)}` : "nobody now"));
  head("domains").replaceChildren(
    ...state.domains.map(([name, confidence]) => {
      const chip = domainChip(name);
      if (typeof confidence === "number") chip.append(element("b", "", `${Math.round(100 * confidence)}%`));
      return chip;
    }),
  );
  head("keywords").replaceChildren(...state.keywords.map((word) => said(word, "word")));
}

function tick() {
  const target = head("silence");
  if (!last) return;
  const seconds = Math.max(0, Date.now() / 1000 - skew - last);
  target.classList.toggle("is-silent", kept && silent);
  const minutes = Math.floor(seconds / 60);
  if (!kept) setText(target, `since ${clock(last)}`);
  else setText(target, minutes ? `${minutes} min ${String(Math.floor(seconds % 60)).padStart(2, "0")} s` : `${seconds.toFixed(1)} s`);
}
setInterval(tick, 100);

// ---- Events

function change(data, isNews) {
  skew = Date.now() / 1000 - data.now;
  if (data.messages) take(data.messages, isNews);
  if (data.head) takeHead(data.head);
  if (data.points) takePoints(data.points);
  if (data.chart) drawChart(document.querySelector("[data-chart]"), document.querySelector("[data-legend]"), data.chart);
}

let hasBegun = false;
const source = listen(`${PAGE}/live/sessions/${id}`, {
  begin: (data) => {
    const newest = list.items.reduce((most, one) => Math.max(most, one.id), -1);
    change(data, hasBegun);
    const oldest = data.messages.reduce((least, one) => Math.min(least, one.id), Infinity);
    if (hasBegun && newest >= 0 && oldest > newest + 1) fillGap(newest, oldest);
    hasBegun = true;
  },
  change: (data) => change(data, true),
  gone: () => {
    document.querySelector("[data-gone]").hidden = false;
    source.close();
  },
});
