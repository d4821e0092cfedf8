// What every view uses. Text that people said goes into the page by textContent alone: never as markup.

export const PAGE = "/ui";

/** Make an element with a class and text. */
export function element(name, className = "", text = "") {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== "") made.textContent = text;
  return made;
}

/** Make a piece of text whose direction of writing stays its own. */
export function said(text, className = "") {
  const made = element("bdi", className, text);
  made.dir = "auto";
  return made;
}

/** Return a text as nodes, with those words marked that are quoted: as they are written, whatever stands between them. */
export function marked(text, quotes) {
  const sought = quotes.map((quote) => pattern(text, quote)).filter(Boolean);
  if (!sought.length) return [text];
  const longestFirst = sought.sort((left, right) => right.length - left.length);
  const parts = text.split(new RegExp(`(${longestFirst.join("|")})`, "giu"));
  return parts.map((part, place) => (place % 2 ? element("mark", "", part) : part)); // every other one was found
}

/** The expression that finds a quote: as whole words, but where words are written without blanks. */
function pattern(text, quote) {
  const words = quote.match(/[\p{L}\p{M}\p{N}]+/gu)?.join("[^\\p{L}\\p{M}\\p{N}]*");
  const whole = words && `(?<![\\p{L}\\p{M}\\p{N}])${words}(?![\\p{L}\\p{M}\\p{N}])`;
  return whole && new RegExp(whole, "iu").test(text) ? whole : words;
}

/** Set an element's text, unless it is what is there: the page is not laid out anew for nothing. */
export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/** Make a speaker's name in the colour that it has everywhere; the assistant has one of its own. */
export function speakerName(name, isAssistant = false) {
  let sum = 0;
  for (const char of name) sum += char.codePointAt(0);
  return said(name, `speaker ${isAssistant || name === "Consilience" ? "consilience" : `s${sum % 8}`}`);
}

export const DOMAINS = [
  "Biology / Life Sciences", "Chemistry / Biochemistry", "Physics / Astronomy", "Mathematics / Statistics",
  "Computer Science / Software Engineering", "Medicine / Health Sciences / Neuroscience", "Psychology / Cognitive Science",
  "Engineering (Mechanical, Electrical, Civil, etc.)", "Business / Economics / Management",
  "Social Sciences / Sociology / Anthropology", "Environmental Science / Ecology", "Political Science / Law",
  "Philosophy / Ethics", "History / Humanities", "Linguistics / Communication", "Data Science / Machine Learning",
  "Design / User Experience", "Robotics / Automation",
];

/** The class that gives a domain its colour. */
export function domainClass(name) {
  const number = DOMAINS.indexOf(name);
  return `d${number < 0 ? DOMAINS.length : number}`;
}

/** A domain's name where there is little room. */
export function shortDomain(name) {
  return name.split(" / ")[0].split(" (")[0];
}

/** Make the chip of a domain. */
export function domainChip(name) {
  const chip = element("span", `chip ${domainClass(name)}`);
  chip.title = name;
  chip.append(element("i"), said(shortDomain(name)));
  return chip;
}

/** How long ago an epoch second was. */
export function ago(moment, now = Date.now() / 1000) {
  const seconds = Math.max(0, Math.floor(now - moment));
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit} ago`;
  }
  return `${seconds} s ago`;
}

/** The reader's own time of day at an epoch second. */
export function clock(moment) {
  if (typeof moment !== "number" || !isFinite(moment)) return "–";
  return new Date(moment * 1000).toLocaleTimeString([], { hour12: false });
}

export function dollars(amount) {
  return amount >= 1 || !amount ? `$${amount.toFixed(2)}` : `$${amount.toFixed(4)}`;
}

/** Show one panel at a time, where there is room for no more; return what shows one by its name. */
export function panels(onShow = () => {}) {
  const bar = document.querySelector("[data-panels]");
  const conversation = document.querySelector("[data-shown]");
  const show = (name) => {
    conversation.dataset.shown = name;
    for (const one of bar.querySelectorAll("[data-panel]")) one.setAttribute("aria-pressed", String(one.dataset.panel === name));
    onShow();
  };
  bar.hidden = false;
  bar.addEventListener("click", (event) => {
    const button = event.target.closest("[data-panel]");
    if (button) show(button.dataset.panel);
  });
  return show;
}

/**
 * Listen to server-sent events; the browser comes back by itself. `handlers` are functions by the event's name.
 * Shows in the element with data-live whether the connection holds.
 */
export function listen(address, handlers) {
  const light = document.querySelector("[data-live]");
  const show = (state, text) => {
    if (!light) return;
    light.hidden = false;
    light.dataset.live = state;
    setText(light.lastElementChild, text);
  };
  const source = new EventSource(address);
  source.onopen = () => show("on", "Connected");
  source.onerror = () => {
    if (source.readyState === EventSource.CLOSED) show("off", "Disconnected: reload the page");
    else show("waiting", "Reconnecting …");
  };
  for (const [name, handler] of Object.entries(handlers)) {
    source.addEventListener(name, (message) => handler(JSON.parse(message.data), message));
  }
  source.addEventListener("failing", (message) => {
    if (JSON.parse(message.data).failing) show("waiting", "Not current: the server cannot read it");
    else show("on", "Connected");
  });
  addEventListener("pagehide", () => source.close(), { once: true });
  return source;
}
