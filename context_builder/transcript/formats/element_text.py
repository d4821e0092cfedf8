"""Element's export of a Matrix room as plain text: ``Wed, May 3, 2023, 09:00:05 - Ida: …``, in the language it had.

A reply begins with the words that it answers, ``<@ida:example.org "The pump …"> Are you sure?``, cut off after 32.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import Final

from context_builder.transcript.fields import plain
from context_builder.transcript.moments import of_chat
from context_builder.transcript.offsets import offset
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript, Utterance, name_of
from context_builder.transcript.written_dates import named_date

_STAMP: Final = re.compile(
    r"(?P<day>[^\n:]{8,60}?),?\s+(?:[^\W\d_]{1,3}\s)?"
    r"(?P<time>[0-2]?\d[:.][0-5]\d[:.][0-5]\d(?:\s?[AaPp]\.?\s?[Mm]\.?)?) - (?P<rest>\S.*)"
)
_NAMED_DAY: Final = re.compile(r"(?=.*(?<!\d)(?:19|20)\d\d(?!\d))(?=.*[^\W\d_]).*")
_DOTTED: Final = re.compile(r"\d\.\s?\d{1,2}\.")
_MOST_UNREAD: Final = 20
"""Texts that look like a day without being one, after which no more are tried: it takes long to find that out."""

_WEEKDAY: Final = re.compile(r"^[^\W\d_]+\.?,?\s+")
_SENDER: Final = re.compile(r"(?P<name>[^:\n]{1,120}):\s(?P<text>.*)", re.DOTALL)
_EMOTE: Final = re.compile(r"\* (?P<text>\S.*)", re.DOTALL)
_QUOTE: Final = re.compile(r"\s*<@[^\s<>\":]{1,255}:[^\s<>\"]{1,255}(?: \".{0,60}?\")?>(?=\s)", re.DOTALL)
_FILE: Final = re.compile(r"\S[^\n]{0,200}\.\w{2,5} \([^()\n]{4,60}\)\s*")
"""The name of a file, and in the program's language that it is left out or is beside the export."""

_QUOTES: Final = (('"', '"'), ("„", "“"), ("“", "”"), ("«", "»"), ("「", "」"))


def is_element_text(text: str) -> bool:
    """Return whether a text begins with a day that names its month, a time, and a hyphen."""
    found = _STAMP.fullmatch(text.lstrip().partition("\n")[0].rstrip())
    return found is not None and _day(found["day"]) is not None


def read_element_text(source: Source) -> Transcript:
    """Return what was said; who joins, and what is sent besides text, stands without a colon and is left out."""
    return of_chat(_said(source))


def without_quote(text: str) -> str:
    """Return what a reply says, without the words that it answers."""
    quote = _QUOTE.match(text)
    return text[quote.end() :] if quote else text


def _said(source: Source) -> Iterator[tuple[float, Utterance]]:
    days = _Days()

    def begins(line: str) -> tuple[tuple[datetime, str], str] | None:
        found = _STAMP.fullmatch(line.strip())
        day = days.of(found["day"]) if found else None
        return ((day, found["time"]), found["rest"]) if found and day else None

    entries = source.entries(begins)
    written = ["\n".join(lines).rstrip() for *_, lines in entries]
    names = Counter(sent["name"] for told in written if (sent := _SENDER.fullmatch(told)))
    senders = {name for name, count in names.items() if count > 1 or not _opens_quote(name)}
    for (number, (day, time), _), told in zip(entries, written, strict=True):
        who, text = _sent(told, senders)
        if not who or _FILE.fullmatch(text):
            continue
        with source.one_entry(number):
            at = day + timedelta(seconds=offset(re.sub(r"(?<=\d)\.(?=\d)", ":", time)))
            if text := plain(without_quote(text)):
                yield at.astimezone().timestamp(), Utterance(name_of(who), text)


def _sent(told: str, senders: Collection[str]) -> tuple[str, str]:
    """Return who wrote a message, and what; nobody where the program tells what happened."""
    if emote := _EMOTE.fullmatch(told):
        named = max((name for name in senders if emote["text"].startswith(f"{name} ")), key=len, default="")
        who, _, text = (named, "", emote["text"][len(named) :]) if named else emote["text"].partition(" ")
        return who, text
    sent = _SENDER.fullmatch(told)
    return (sent["name"], sent["text"]) if sent and sent["name"] in senders else ("", "")


def _opens_quote(name: str) -> bool:
    """Return whether a name ends within what is quoted: a new topic of the room, which may have a colon."""
    return any(
        name.count(opened) % 2 if opened == closed else name.count(opened) > name.count(closed)
        for opened, closed in _QUOTES
    )


class _Days:
    """Beginnings of days by how they are written, in any language; each is parsed once."""

    def __init__(self) -> None:
        self._known: dict[str, datetime] = {}
        self._unread: set[str] = set()

    def of(self, text: str) -> datetime | None:
        """Return the day that a text is, without a zone; None for another text."""
        if text not in self._known and text not in self._unread and len(self._unread) < _MOST_UNREAD:
            if (found := _day(text)) is not None:
                self._known[text] = found
            else:
                self._unread.add(text)
        return self._known.get(text)


def _day(text: str) -> datetime | None:
    if not _NAMED_DAY.fullmatch(text):
        return None
    order = {"DATE_ORDER": "DMY"} if _DOTTED.search(text) else {}
    for written in (text, _WEEKDAY.sub("", text)):
        found = named_date(written.strip(), RELATIVE_BASE=datetime(2000, 1, 1), **order)
        if found is not None:
            return found.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    return None
