"""Chats as text with a line that says who wrote and on which day, and the message below it.

``[15/01/2024 10:42] ida`` (DiscordChatExporter), ``[8/13/2024 10:42 AM] Ida Lind`` and ``[10:42 • 13/08/2024] Ida:``
(copied of Teams), ``Ida, [15.01.2024 10:42]`` (of Telegram), and the moment above the name (iMessage).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Final

from context_builder.transcript.fields import plain, unedited
from context_builder.transcript.moments import of_chat
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript, Utterance, name_of
from context_builder.transcript.written_dates import WrittenDate, moment_of, order_of, written

_STAMP: Final = r"\[(?P<stamp>[^\[\]\n]{8,60})\]"
_BEFORE: Final = re.compile(rf"{_STAMP}\s+(?P<name>[^\n:]{{1,100}}?)(?:\s+\(pinned\))?:?\s*")
_BEHIND: Final = re.compile(rf"(?P<name>[^\n]{{1,100}}?),\s+{_STAMP}:?\s*")
_DAY: Final = r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4},? \d{1,2}:\d{2}(?::\d{2})?(?:\s?[AP]M)?"
_IN_ROUND: Final = re.compile(r"(?P<name>[^\s(][^\n]{0,99}?):? \((?P<stamp>[^()\n]{8,60})\):?\s*")
_BOXED: Final = re.compile(r"^(-{5,}|={5,})\n(?:[^\n]{1,200}\n){1,2}(?:\1(?=\n|\Z)|\Z)", re.MULTILINE)
"""A heading between two rules."""

_OPEN: Final = re.compile(
    rf"(?:> )?(?P<name>[^\s:][^\n:]{{0,99}}?)(?: \[\w+\] @)?\s+(?P<dash>—\s+)?(?P<stamp>{_DAY})(?: Z)?:?\s*"
)
_ALONE: Final = re.compile(
    r"(?P<stamp>[A-Z][a-z]{2} \d{1,2}, \d{4},? +\d{1,2}:\d{2}:\d{2}\s?[AP]M)(?: \(.{1,80}\))?\s*"
)
_ON_ONE_LINE: Final = re.compile(r"[\u200e\u200f]*\[[^\[\]\n]{8,40}\]\s+[^\n:]{1,80}:\s+\S")
"""A message of WhatsApp, of which some have a line below."""

_DATED: Final = re.compile(
    r"(?P<stamp>\d{4}[-/.]\d{1,2}[-/.]\d{1,2} \d{1,2}:\d{2}:\d{2})\s+(?!From\s)"
    r"(?P<name>[^\n:]{1,80}?)(?:\([^()\n]*\)|<[^<>\n]*@[^<>\n]*>)?:?\s*"
)
_NO_YEAR: Final = re.compile(r"(?P<month>\d{1,2})/(?P<day>\d{1,2}),? (?P<time>\d{1,2}:\d{2}\s?[AP]M)")
_FRAME: Final = re.compile(r"={20,}")
_ABOUT: Final = re.compile(
    r"\[(?:In reply to|Forwarded from|Antwort auf|Weitergeleitet von) [^\[\]]{1,100}\]|"
    r"This message responded to an earlier message\."
)
"""What Telegram says above a message, and imessage-exporter below it."""

_MONTHS: Final = 12
_SECTION: Final = re.compile(r"\{(Attachments|Reactions|Stickers|Embeds?)\}")
_UNSAID: Final = re.compile(
    r"Joined the server\.|Started a (?:call|thread).*|Pinned a message\.|Added .{1,80} to the group\.|"
    r"(?:Removed .{1,80} from|Left) the group\.|Changed the (?:channel|group) (?:name|icon).*|"
    r"This message was deleted\.?|Transcript saved using .{1,200}"
)


@dataclass(frozen=True, slots=True)
class _Heading:
    """The heading of a message: the line where it begins, the line where its text does, who wrote it, and when."""

    line: int
    text: int
    name: str
    at: WrittenDate
    has_dash: bool = False


def is_message_blocks(text: str) -> bool:
    """Return whether a text is a chat in blocks, by its first lines."""
    lines = text[:8000].split("\n")
    first = next((place for place, line in enumerate(lines) if line.strip()), 0)
    first = max([first, *(place for place, line in enumerate(lines[:20]) if _FRAME.fullmatch(line.strip()))])
    headings = _headings(lines)
    return bool(headings) and all(not line.strip() for line in lines[first + 1 : headings[0].line][1:])


def read_message_blocks(source: Source) -> Transcript:
    """Return what was said in the chat; what a program tells of its people stands behind a moment, on one line
    below an empty one."""
    lines = _BOXED.sub(lambda box: "\n" * box[0].count("\n"), source.text).split("\n")
    headings = _headings(lines)
    if headings and _ALONE.fullmatch(lines[headings[0].line]):
        kept = [
            "" if not above.strip() and (found := _ALONE.match(line)) and found.end() < len(line) else line
            for above, line in pairwise(["", *lines])
        ]
        source.left_out(sum(a != b for a, b in zip(lines, kept, strict=True)), "line", "of who joined and left")
        lines = kept
    order = order_of([one.at for one in headings])
    if order == "dmy" and all(one.has_dash and one.at.half in ("AM", "PM") for one in headings):
        months = [one.at.parts[0] for one in headings if len(one.at.parts) == 3]
        order = "mdy" if months and max(months) <= _MONTHS else order  # Discord's, of the United States
    ends = [heading.line for heading in headings[1:]] + [len(lines)]
    said: list[tuple[float, Utterance]] = []
    for heading, end in zip(headings, ends, strict=True):
        text = _text(lines[heading.text : end])
        if text and not _UNSAID.fullmatch(text):
            with source.one_entry(heading.line + 1):
                said.append((moment_of(heading.at, order).timestamp(), Utterance(name_of(heading.name), text)))
    return of_chat(said)


def _headings(lines: Sequence[str]) -> list[_Heading]:
    """Return the headings in the form that most of them have."""
    if sum(bool(_ON_ONE_LINE.match(line)) for line in lines) > sum(1 for _ in _of_form(lines, _BEFORE)):
        return []
    found = max(([*_of_form(lines, form)] for form in (_BEFORE, _BEHIND, _IN_ROUND, _OPEN, _DATED, _ALONE)), key=len)
    starts = {one.line for one in found}
    if sum(one.text in starts for one in found) > len(found) / 2:  # lines of their own, with what is said
        return []
    is_sure = (found and "[" in lines[found[0].line]) or len(found) > 1
    return found if is_sure else []


def _of_form(lines: Sequence[str], form: re.Pattern[str]) -> Iterator[_Heading]:
    for place, line in enumerate(lines):
        found = form.fullmatch(line) if len(line) < 200 else None
        if found is None or (at := written(found["stamp"]) or _of_this_year(found["stamp"])) is None:
            continue
        if form is not _ALONE:
            yield _Heading(place, place + 1, found["name"].strip(), at, bool(found.groupdict().get("dash")))
        elif place + 2 < len(lines) and (name := lines[place + 1].strip()):
            yield _Heading(place, place + 2, name, at)


def _of_this_year(stamp: str) -> WrittenDate | None:
    """Return a moment with the month before the day and no year, as Teams copies those of the year."""
    found = _NO_YEAR.fullmatch(stamp)
    now = datetime.now()
    if found is None:
        return None
    is_later = (int(found["month"]), int(found["day"])) > (now.month, now.day)
    return written(f"{now.year - is_later}-{found['month']}-{found['day']} {found['time']}")


def _text(lines: Sequence[str]) -> str:
    """Return what a message says: what a program quotes beside it only where it has no words of its own."""
    own: list[str] = []
    embedded: list[str] = []
    section = ""
    for line in lines:
        if _FRAME.fullmatch(line.strip()):
            break
        if found := _SECTION.fullmatch(line.strip()):
            section = found[1]
        elif not section and not _ABOUT.fullmatch(line.strip()):
            own.append(line)
        elif section.startswith("Embed"):
            embedded.append(line)
    return unedited(plain(" ".join(own))) or plain(" ".join(embedded))
