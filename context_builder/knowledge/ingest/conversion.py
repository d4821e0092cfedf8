"""HTML pages, notebooks and PDF files are read as Markdown: what a person reads in them, with its headings and code."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from html.parser import HTMLParser
from importlib.util import find_spec
from io import BytesIO
from typing import Any, Final

from context_builder.analysis.processes import BoundedProcess, TookTooLong

LARGEST: Final = 30_000_000
"""Bytes of a file that is converted."""

LONGEST: Final = 30.0
"""Seconds of the processor's time in which a page or a PDF file is read."""

MEMORY: Final = 2**30
"""Bytes that reading a page or a PDF file may take."""

_IN_PLACE: Final = frozenset({".ipynb"})
"""Endings of files whose reading takes no longer than they are long."""

MOST_PAGES: Final = 2_000
"""Pages of a PDF file that are read."""

_DEEPEST: Final = 512
"""Hidden elements within each other that are told apart."""

_HIDDEN: Final = frozenset(("script", "style", "nav", "template", "noscript", "svg", "head", "form", "button"))
_NAVIGATION: Final = frozenset(("navigation", "search", "doc-toc", "toc", "navheader", "navfooter", "headerlink"))
"""Roles and classes by which pages of Sphinx, DocBook and AsciiDoc tell what leads to other places."""

_NAVIGATING: Final = frozenset("a div section aside header footer ul ol dl table".split())
"""Elements whose role or class is looked at: those that are always closed."""

_BLOCKS: Final = frozenset(
    "p div section article main aside header footer ul ol dl dt table tr blockquote figure details summary".split()
)
_DEFINED: Final = ": "
"""Before a definition, which so stays with the term on the line above it."""

_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_CELL: Final = frozenset(("td", "th"))


class NotReadable(ValueError):
    """Says why a file cannot be converted."""


class Converter:
    """Converts files. What may take long, a page of HTML or a PDF file, is read in a process of its own, which is ended
    when it takes too long or too much memory. Close it in the end.
    """

    def __init__(self, seconds: float = LONGEST) -> None:
        self._seconds = seconds
        self._process: BoundedProcess | None = None

    def convert(self, suffix: str, data: bytes) -> str:
        """Return the text of a file as Markdown. Raises :class:`NotReadable`."""
        if suffix in _IN_PLACE:
            return convert(suffix, data)
        self._process = self._process or BoundedProcess(self._seconds, _bound_memory)
        try:
            return self._process.call(convert, suffix, data)
        except TookTooLong:
            raise NotReadable(f"takes more than {self._seconds:g} s to read, or too much memory") from None

    def close(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.close()


def _bound_memory() -> None:
    if find_spec("resource") is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, resource.RLIM_INFINITY))


def convert(suffix: str, data: bytes) -> str:
    """Return the text of a file as Markdown. Raises :class:`NotReadable`."""
    if len(data) > LARGEST:
        raise NotReadable(f"larger than {LARGEST:,} bytes")
    return CONVERTERS[suffix](data)


def _html(data: bytes) -> str:
    reader = _HtmlReader()
    reader.feed(_decoded(data))
    reader.close()
    return reader.text()


def _notebook(data: bytes) -> str:
    try:
        cells = json.loads(_decoded(data))["cells"]
        return "\n\n".join(filter(None, map(_cell, cells)))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise NotReadable("not a notebook of version 4") from None


def _cell(cell: Mapping[str, Any]) -> str:
    source = cell["source"]
    text = (source if isinstance(source, str) else "".join(source)).strip()
    if not text or cell["cell_type"] == "markdown":
        return text
    fence = "`" * max(3, 1 + max((len(line) - len(line.lstrip("`")) for line in text.splitlines()), default=0))
    return f"{fence}\n{text}\n{fence}"


def _pdf(data: bytes) -> str:
    try:
        from pypdf import PdfReader
    except ImportError:
        raise NotReadable("PDF files need the extra knowledge") from None
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # what is odd in a file is not this program's to tell
    try:
        reader = PdfReader(BytesIO(data))
        if reader.is_encrypted:
            raise NotReadable("encrypted")
        return "\n\n".join(
            page.extract_text().strip() for _, page in zip(range(MOST_PAGES), reader.pages, strict=False)
        )
    except NotReadable:
        raise
    except Exception as error:  # noqa: BLE001 a parser of a hostile format: whatever stops it, the file is told
        raise NotReadable(f"not a PDF file that can be read ({type(error).__name__})") from None


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise NotReadable("not UTF-8 text") from None


class _HtmlReader(HTMLParser):
    """Gathers the text of a page as Markdown."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[str] = []
        self._hidden: list[str] = []
        self._pre = 0
        self._target = ""
        self._is_in_cell = False

    def text(self) -> str:
        """Return the text without blank lines in a row."""
        return "\n".join(_without_repeated_blanks("".join(self._parts).splitlines())).strip()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        hides = tag in _HIDDEN or tag in self._hidden or (tag in _NAVIGATING and _navigates(dict(attrs)))
        if hides and len(self._hidden) < _DEEPEST:
            self._hidden.append(tag)
        if self._hidden:
            return
        if tag in _HEADINGS:
            self._parts.append(f"\n\n{'#' * _HEADINGS[tag]} ")
        elif tag == "pre":
            self._pre += 1
            self._parts.append("\n\n```\n")
        elif tag == "li":
            self._parts.append(" - " if self._is_in_cell else "\n- ")
        elif tag == "dd":
            self._parts.append(" " if self._is_in_cell else f"\n{_DEFINED}")
        elif tag == "br":
            self._parts.append(" " if self._is_in_cell else "\n")
        elif tag == "code" and not self._pre:
            self._parts.append("`")
        elif tag == "a" and not self._pre:
            target = dict(attrs).get("href") or ""
            self._target = target if not any(sign in target for sign in "()<> \n") else ""
            self._parts.append("[" if self._target else "")
        elif tag in _CELL:
            self._is_in_cell = True
            self._parts.append(" | ")
        elif tag in _BLOCKS:
            self._is_in_cell = self._is_in_cell and tag not in ("table", "tr")
            self._parts.append(self._between(tag))

    def handle_endtag(self, tag: str) -> None:
        if self._hidden:
            if tag in self._hidden:
                del self._hidden[len(self._hidden) - 1 - self._hidden[::-1].index(tag) :]
            return
        if tag == "pre" and self._pre:
            self._pre -= 1
            self._parts.append("\n```\n\n")
        elif tag == "code" and not self._pre:
            self._parts.append("`")
        elif tag == "a" and self._target:
            self._parts.append(f"]({self._target})")
            self._target = ""
        elif tag in _CELL:
            self._is_in_cell = False
        elif tag in _HEADINGS or tag in _BLOCKS:
            self._is_in_cell = self._is_in_cell and tag != "table"
            self._parts.append(self._between(tag) if tag not in ("tr", "dt") else "")

    def _between(self, tag: str) -> str:
        """Return what parts a block from what is before or after it: a row is a line, whatever is in its cells, and an
        item begins on the line of its sign."""
        if tag == "tr":
            return "\n"
        if self._parts and self._parts[-1].endswith(("- ", f"\n{_DEFINED}")):
            return ""
        return " " if self._is_in_cell and tag not in _HEADINGS else "\n\n"

    def handle_data(self, data: str) -> None:
        if self._hidden:
            return
        if self._pre:
            self._parts.append(data)
        elif words := " ".join(data.split()):
            before, after = " " if data[0].isspace() else "", " " if data[-1].isspace() else ""
            self._parts.append(f"{before}{words}{after}")
        elif self._parts and self._parts[-1][-1:] not in ("", " ", "\n"):
            self._parts.append(" ")


def _navigates(attributes: Mapping[str, str | None]) -> bool:
    told = f"{attributes.get('role') or ''} {attributes.get('class') or ''}"
    return not _NAVIGATION.isdisjoint(told.split())


def _without_repeated_blanks(lines: list[str]) -> Iterator[str]:
    before = ""
    for line in map(str.rstrip, lines):
        if line or before:
            yield line
        before = line


CONVERTERS: Final[Mapping[str, Callable[[bytes], str]]] = {
    ".html": _html,
    ".htm": _html,
    ".ipynb": _notebook,
    ".pdf": _pdf,
}
"""How files of these endings are read."""
