// Parts of a page are replaced by those of the page as the server gives it now. The server has escaped everything that
// people said; what it sends is parsed as a document of its own, in which no script runs.

/** Return a function that does `work`, one call after another: of those that come meanwhile only the last. */
export function latest(work) {
  let wanted = null;
  let busy = false;
  return async (...given) => {
    wanted = given;
    if (busy) return;
    busy = true;
    try {
      while (wanted !== null) {
        const next = wanted;
        wanted = null;
        await work(...next);
      }
    } finally {
      busy = false;
    }
  };
}

export async function replaced(address, options, selectors) {
  let answer, text;
  try {
    answer = await fetch(address, { credentials: "same-origin", ...options });
    text = await answer.text();
  } catch {
    return false;
  }
  const type = answer.headers.get("content-type") ?? "";
  if (answer.redirected) {
    location.reload(); // to the login, which has ended
    return false;
  }
  if (!type.startsWith("text/html")) return false;
  const page = new DOMParser().parseFromString(text, "text/html");
  for (const selector of selectors) {
    const old = document.querySelector(selector);
    const now = page.querySelector(selector);
    if (old === null || now === null) return false;
    old.replaceWith(document.importNode(now, true));
  }
  return answer.ok;
}
