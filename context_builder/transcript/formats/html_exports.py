"""Chats that are exported as pages: Telegram's, DiscordChatExporter's, Facebook's; and the text of any other page."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from typing import Final, TypeVar

from context_builder.analysis.processes import BoundedProcess, TookTooLong
from context_builder.transcript.fields import plain
from context_builder.transcript.moments import iso, of_chat
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance, name_of
from context_builder.transcript.written_dates import WrittenDate, moment_of, order_of, written

T = TypeVar("T")

SMALL: Final = 4_000
"""Characters of a page that is read in no time, whatever it holds."""

LONGEST: Final = 30.0
"""Seconds of the processor's time in which a page is read."""

_PAGE: Final = re.compile(
    r"\s*(?:<\?xml[^<>]*>\s*)?"
    r"<(?:!doctype html|html|head|body|p|div|span|table|h[1-6]|dl|ul|article|section|cite|main)\b",
    re.IGNORECASE,
)
_VOID: Final = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"})
_ZONE: Final = re.compile(r"\s*UTC(?P<sign>[+-])(?P<hours>\d\d):?(?P<minutes>\d\d)\s*$")
_CHAT: Final = re.compile(
    r"class=[\"']?[^\"'>]{0,200}?(?:chatlog__message|message default|mx_EventTile|_a6-g|bubble|hChatLog)"
)
_CLASSES: Final = {
    "from_name": "who",
    "chatlog__author": "who",
    "chatlog__author-name": "who",
    "text": "text",
    "chatlog__content": "text",
    "date": "at",
    "chatlog__timestamp": "at",
    "chatlog__short-timestamp": "at",
    "sender": "who",  # of imessage-exporter, with the two below
    "bubble": "text",
    "timestamp": "at",
    "mx_DisambiguatedProfile_displayName": "who",  # of Element, with those below
    "mx_SenderProfile_displayName": "who",
    "mx_EventTile_body": "text",
    "mx_MessageTimestamp": "at",
    "mx_ReplyChain": "aside",
    "mx_ReplyChain_wrapper": "aside",
    "mx_ReplyThread": "aside",
    "mx_ReactionsRow": "aside",
    "_a6-h": "who",
    "_a6-p": "text",
    "_a6-o": "at",
    "dt": "at",  # of Google Voice, with the one below
    "fn": "who",
    "forwarded": "aside",
    "reply_to": "aside",
    "chatlog__reply": "aside",
    "chatlog__reactions": "aside",
    "chatlog__embed": "aside",
    "chatlog__edited-timestamp": "aside",
    "mx_EventTile_edited": "aside",
    "_a6-q": "aside",
}
"""What an element holds, by one of its classes; in what is aside there are names and texts of other messages."""


@dataclass(slots=True)
class _Message:
    who: str = ""
    text: str = ""
    at: str = ""


@dataclass(slots=True)
class _Page(HTMLParser):
    """Collects the messages of a page."""

    messages: list[_Message] = field(default_factory=list)
    _open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        HTMLParser.__init__(self, convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        classes = given.get("class", "").split()
        if tag in _VOID:
            self.handle_data(" ")
            return
        kind = next((_CLASSES[one] for one in classes if one in _CLASSES), "text" if tag == "q" else "")
        is_message = (
            "chatlog__message" in classes
            or "_a6-g" in classes
            or "mx_EventTile" in classes
            or classes == ["message"]
            or {"message", "default"} <= set(classes)
        )
        is_aside = "aside" in self._open
        if is_message and not is_aside:
            self.messages.append(_Message())
        if self.messages and kind == "at" and not is_aside and not self.messages[-1].at:
            self.messages[-1].at = given.get("title", "")
        self._open.append(kind)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID and self._open:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        kind = "" if "aside" in self._open else next((one for one in reversed(self._open) if one), "")
        is_title = (
            bool(self.messages and self.messages[-1].at) and kind == "at"
        )  # Telegram's and Discord's have it there
        if self.messages and kind in ("who", "text", "at") and not is_title:
            setattr(self.messages[-1], kind, getattr(self.messages[-1], kind) + data)


_BLOCKS: Final = frozenset(
    {"p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "dt", "dd", "blockquote", "section"}
)
_NAMED: Final = re.compile(r"""class=["']?[^"'>]{0,80}?(?:speaker|author|sender|username)""", re.IGNORECASE)
_UNSEEN: Final = frozenset({"script", "style", "head", "title", "template", "noscript"})


_PIECE: Final = re.compile(r"<!--|-->|<(?P<end>/?)(?P<tag>[A-Za-z][\w:-]*)(?P<rest>[^<>]*)>")


_UNSPACED: Final = re.compile(r"(?P<label>[^:]{1,120}):(?=[^\W\d_])")
"""A label in bold, and what is behind it, without a blank before what was said."""

_DOCTYPE: Final = re.compile(r"(?:<\?xml\b[^<>]*>\s*)?<!doctype\b[^<>]*>", re.IGNORECASE)


def text_of_page(page: str) -> str:
    """Return what a page shows, a line for each of its blocks, with tabs between the cells of a table.

    It goes through the page once, whatever that holds.
    """
    lines = [""]
    unseen = place = 0
    bold: set[int] = set()  # lines that begin so
    is_comment = is_time = is_name = False

    def show(text: str) -> None:
        if not unseen and not is_comment:
            lines[-1] += re.sub(r"[\n\t]", " ", html.unescape(text))

    page = _DOCTYPE.sub("", page, count=1)
    for piece in _PIECE.finditer(page):
        show(page[place : piece.start()])
        place = piece.end()
        tag, ends = (piece["tag"] or "").lower(), bool(piece["end"])
        if piece[0] in ("<!--", "-->"):
            is_comment = piece[0] == "<!--"
        elif tag in _UNSEEN:
            unseen = max(0, unseen - 1) if ends else unseen + 1
        elif tag == "dt" and ends and lines[-1].strip():
            lines[-1] += ":"
        elif tag in _BLOCKS:
            lines.append("")
        elif tag in ("b", "strong") and not ends and not lines[-1].strip():
            bold.add(len(lines) - 1)
        elif tag in ("td", "th") and not ends and lines[-1]:
            lines[-1] += "\t"
        elif is_time:
            lines[-1] += " "
        elif is_name:
            name = lines[-1].strip()
            lines[-1] = name.strip(" []:") + (": " if name.startswith("[") else "\t")
        is_name = not ends and (tag == "cite" or (tag == "span" and bool(_NAMED.search(piece["rest"] or ""))))
        if is_name and tag == "cite":
            lines.append("")
        is_time = not ends and "timestamp" in (piece["rest"] or "")  # of oTranscribe
    show(page[place:])
    lines = [_spaced(line) if at in bold else line for at, line in enumerate(lines)]
    kept = (line for line in lines if line.strip())
    return "\n".join("\t".join(" ".join(cell.split()) for cell in line.split("\t")) for line in kept)


def _spaced(line: str) -> str:
    found = _UNSPACED.match(line)
    return f"{found['label']}: {line[found.end() :]}" if found else line


def is_html(text: str) -> bool:
    """Return whether a text is a page, or a part of one."""
    return bool(_PAGE.match(text[:400]))


def is_chat_page(text: str) -> bool:
    """Return whether a page is a chat's that is known."""
    return is_html(text) and bool(_CHAT.search(text))


def bounded(read: Callable[[str], T], text: str) -> T:
    """Return what a text with markup holds, read in a process of its own: of some, the time grows with its square."""
    if len(text) <= SMALL:
        return read(text)
    try:
        return _process().call(read, text)
    except TookTooLong:
        raise ValueError(f"takes more than {LONGEST:g} s to read") from None


@cache
def _process() -> BoundedProcess:
    """Return the process, which ends with this one: a mailbox has thousands of pages."""
    return BoundedProcess(LONGEST)


def _messages_in(text: str) -> list[_Message]:
    page = _Page()
    page.feed(text)
    return page.messages


def read_html(source: Source) -> Transcript:
    """Return what was said in a chat; a message without a name is by whoever wrote the one before.

    Raises :class:`ValueError` for a page that takes too long to read.
    """
    messages = bounded(_messages_in, source.text)
    dates = [_ZONE.sub("", one.at) for one in messages]
    order = order_of([told for told in map(written, dates) if told is not None])
    said: list[tuple[float, Utterance]] = []
    who = UNKNOWN_SPEAKER
    for one, date in zip(messages, dates, strict=True):
        who = plain(one.who) or who
        if text := plain(one.text):
            with source.one_entry():
                is_iso = bool(re.match(r"\d{4}-\d\d-\d\dT", date))
                moment = iso(date) if is_iso else moment_of(written(date) or WrittenDate(date), order)
                if zone := _ZONE.search(one.at):
                    told = moment.strftime("%Y-%m-%dT%H:%M:%S")
                    moment = iso(f"{told}{zone['sign']}{zone['hours']}:{zone['minutes']}")
                said.append((moment.timestamp(), Utterance(name_of(who), text)))
    return of_chat(said)
