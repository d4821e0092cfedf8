"""What somebody might say to get out of the text."""

from __future__ import annotations

from playwright.async_api import Page

TEXTS = (
    "<script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    '"><svg onload="document.title=\'owned\'">',
    "' onmouseover='document.title=\"owned\"' x='",
    "</textarea></title></style></template><b id=owned>bold</b>",
    "<!-- --><iframe srcdoc='<script>parent.document.title=1</script>'></iframe>",
    "javascript:document.title='owned'",
    "[link](javascript:document.title='owned')",
    "{{ 7*7 }} {% for x in range(9) %}owned{% endfor %} ${7*7} #{7*7}",
    "\u202eevil txet\u202c \u2066isolated \u200f\u200e",
    "W" * 5_000,
    "2026-11-22 10:30:00 [error] session.owned\n\nevent: state\ndata: {}\n\n",
    "\x00\x07\x1b[31mred\x1b[0m\ud83d\udc69\u200d\ud83d\udd2c".encode("utf-16", "surrogatepass").decode("utf-16"),
    "&lt;b&gt; &amp;nbsp; &#x3c;script&#x3e;",
    "A\u0301\u0301\u0301\u0301" * 50,
)


async def not_isolated(page: Page) -> list[str]:
    """What people wrote and no element keeps from turning around the text beside it: nothing should be."""
    found: list[str] = await page.evaluate("""() => {
      const found = [];
      const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const text = walker.currentNode;
        const isTheirs = text.data.includes("evil txet");
        if (isTheirs && !text.parentElement.closest("bdi, [dir=auto], option, textarea, svg")) {
          found.push(text.parentElement.outerHTML.slice(0, 200));
        }
      }
      return found;
    }""")
    return found
