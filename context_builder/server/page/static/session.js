// A session as it happens: keeps the conversation, the silence clock, the chart and the summary current.
import { PAGE, clock, dollars, domainChip, element, listen, marked, panels, said, setText, speakerName } from "./page.js";
import { DomainChart } from "./domain_chart.js";
import { SummaryList } from "./summary_list.js";
import { WindowedList } from "./windowed_list.js";

const strip = document.querySelector("[data-session]");
const id = strip.dataset.session;
const scroll = document.querySelector("[data-scroll]");
const messages = document.querySelector("[data-messages]");
const chart = new DomainChart(document.querySelector("[data-chart]"), showTime);
const narrow = matchMedia("(max-width: 980px)"); // as in page.css: one panel at a time
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

// ---- The conversation

function draw(item, row) {
  const made = row ?? element("li");
  const lit = isLit(item.id);
  made.className = `message${item.assistant ? " assistant" : ""}${item.before === undefined ? "" : " late"}${corrected.has(item.id) ? " outdated" : ""}${lit ? " lit" : ""}${item.news ? ` ${item.news}` : ""}`;
  made.id = `m${item.id}`;
  const meta = element("div", "meta");
  meta.append(speakerName(item.speaker, item.assistant), element("time", "", clock(item.time)));
  if (corrected.has(item.id)) meta.append(element("span", "mark", "corrected"));
  if (item.corrects !== undefined) meta.append(element("span", "mark", "correction"));
  else if (item.before !== undefined) meta.append(element("span", "mark", "came late"));
  const topic = topicOf(item);
  if (topic) meta.append(domainChip(topic));
  if (item.keywords.length) {
    const words = element("span", "words");
    words.append(...item.keywords.slice(0, 5).map((word) => said(word, "word")));
    meta.append(words);
  }
  const cited = citing.get(item.id);
  if (cited) {
    const button = element("button", "cites quiet", `${cited.length} point${cited.length === 1 ? "" : "s"}`);
    button.type = "button";
    button.setAttribute("aria-pressed", String(chosen?.message === item.id));
    button.setAttribute("aria-label", `Light the ${button.textContent} that cite message ${item.id}`);
    meta.append(button);
  }
  const text = element("p", "said");
  text.dir = "auto";
  text.append(...marked(item.text, lit ? quotesOf(item.id) : []));
  made.replaceChildren(meta, text);
  return made;
}

/** The domain of a message, where it is another one than that of what was said before. */
function topicOf(item) {
  const [leading] = item.domains;
  if (!leading) return "";
  const before = list.before(item, (one) => one.domains.length > 0);
  return before?.domains[0] === leading ? "" : leading;
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
    const next = list.after(list.byId.get(one.id), (other) => other.domains.length > 0);
    if (next) list.redraw(next.id);
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

/** The words of a message that the chosen point rests on or, of a chosen message, those that any point does. */
function quotesOf(message) {
  const citing = points.filter((point) => chosen.point === undefined || point.id === chosen.point);
  return citing.flatMap((point) => point.quotes.filter((one) => one.id === message).map((one) => one.text));
}

function choose(next) {
  const before = chosen;
  chosen = next;
  for (const one of list.rows.keys()) list.redraw(one);
  if (before || next) drawPoints();
}

function drawPoints() {
  summary.draw(points, {
    lit: chosen?.message === undefined ? [] : citing.get(chosen.message) ?? [],
    chosen: chosen?.point,
    behind,
    inFull: narrow.matches, // beside them, the messages themselves are lit
  });
  for (const one of document.querySelectorAll("[data-points-count]")) setText(one, points.length ? String(points.length) : "");
}

/** What a point rests on, in full where the message is at hand. */
function behind(point) {
  return point.ids.map((id) => {
    const message = list.byId.get(id);
    const quotes = point.quotes.filter((one) => one.id === id);
    const said = message ?? quotes[0];
    return { id, speaker: said?.speaker ?? "", text: said?.text ?? "…", quotes: quotes.map((one) => one.text) };
  });
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

const summary = new SummaryList(document.querySelector("[data-points]"), {
  onPoint: async (id) => {
    const point = points.find((one) => String(one.id) === id);
    if (!point || chosen?.point === point.id) return choose(null);
    choose({ point: point.id, ids: point.ids });
    if (!narrow.matches) await showMessages(point, point.ids);
  },
  onMessage: async (id, message) => {
    const point = points.find((one) => String(one.id) === id);
    if (!point) return;
    showPanel("talk");
    await showMessages(point, [message]);
  },
});

/** Scroll to the first of the messages that a point cites, and load it where it was said long ago. */
async function showMessages(point, wanted) {
  const first = Math.min(...wanted);
  while (wanted.length && list.items.length && !list.byId.has(first) && !hasAll()) {
    if (!(await loadEarlier(1000))) break;
  }
  if (chosen?.point === point.id) list.show(wanted.find((one) => list.byId.has(one)));
}

/** Scroll to what was said at a time; where a finger points at the chart, that alone is told. */
async function showTime(at, pointer) {
  if (narrow.matches && pointer) return;
  const isBefore = () => list.items.some((one) => one.time <= at);
  while (list.items.length && !isBefore() && !hasAll()) {
    if (!(await loadEarlier(1000))) break;
  }
  const first = list.items.find((one) => one.time >= at);
  showPanel("talk");
  if (first) list.show(first.id);
}

messages.addEventListener("click", (event) => {
  const row = event.target.closest("li.message");
  if (!row || getSelection().toString()) return;
  const message = Number(row.id.slice(1));
  const cited = citing.has(message) && chosen?.message !== message;
  choose(cited ? { message } : null);
  if (cited && narrow.matches) showPanel("summary");
  if (cited) summary.scrollToLit();
});

// ---- One panel at a time, where there is room for no more

const showPanel = panels(() => list.update());
narrow.addEventListener("change", () => drawPoints());

// ---- The head

function takeHead(state) {
  last = state.last ?? last;
  kept = state.kept;
  silent = state.silent;
  setText(head("messages"), state.messages.toLocaleString("en"));
  setText(head("summarized"), state.summarized.toLocaleString("en"));
  setText(head("waiting"), state.waiting.toLocaleString("en"));
  setText(head("dollars"), dollars(state.dollars));
  for (const name of ["waiting", "dollars"]) head(name).parentElement.classList.toggle("is-zero", !state[name]);
  setText(head("owner"), state.owner || (state.ended_at ? `nobody since ${clock(state.ended_at)}` : "nobody"));
  takeStatus(state);
  chart.now(state.domains);
  head("keywords").replaceChildren(...state.keywords.map((word) => said(word, "word")));
}

function takeStatus(state) {
  const status = head("status");
  status.className = `status is-${state.status.replace(" ", "-")}`;
  setText(status, state.status);
  document.querySelector("[data-troubles]").replaceChildren(...state.troubles.map(trouble));
  const sign = document.querySelector("[data-troubled]");
  sign.hidden = !state.troubles.length;
  sign.className = `verdict is-${state.troubles[0]?.level}`;
  const nothing = document.querySelector("[data-no-points]");
  nothing.hidden = points.length > 0 || state.troubles.length > 0;
  setText(nothing, nothingYet(state));
}

function trouble(one) {
  const made = element("p", `trouble is-${one.level}`);
  made.append(element("b", "", one.title));
  if (one.since) {
    const since = element("span", "faint", "since ");
    since.append(element("time", "", clock(one.since)));
    made.append(" ", since);
  }
  if (one.details.length) {
    const details = element("span", "details", one.details.join(" "));
    details.dir = "auto";
    made.append(details);
  }
  made.append(...one.commands.map((line) => element("code", "", line)));
  if (one.view) {
    const link = element("a", "", "See why, and put them back");
    link.href = `${PAGE}/${one.view}`;
    made.append(link);
  }
  return made;
}

/** Why there is no summary. */
function nothingYet(state) {
  if (!state.messages) return "Nothing is summarized yet: nobody has spoken.";
  if (!state.is_run) return "Nothing is summarized: nobody runs the session.";
  const count = state.unsummarized;
  return `Nothing is summarized yet. ${count.toLocaleString("en")} message${count === 1 ? " waits" : "s wait"} for the first summary.`;
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
  for (const one of data.struck ?? []) list.remove(one);
  if (data.points) takePoints(data.points);
  if (data.head) takeHead(data.head);
  if (data.chart) chart.take(data.chart);
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
