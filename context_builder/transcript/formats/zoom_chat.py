"""Zoom's chat of a meeting, as it is saved (``09:00:12 From Ida to Everyone:``) or recorded (``00:05:12\\tIda:\\t…``),
and Webex'.

Reactions are not utterances, and a reply is heard without what it quotes.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

from context_builder.transcript.fields import plain
from context_builder.transcript.moments import iso
from context_builder.transcript.offsets import offset
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript, Utterance, name_of

_STAMP: Final = r"(?:(?P<date>\d{4}-\d\d-\d\d)[ T])?(?P<time>\d{1,2}:\d\d:\d\d)(?:\s?(?P<half>[AP]M))?"
_SAVED: Final = re.compile(
    rf"{_STAMP}\s+From\s+(?P<who>\S.{{0,200}}?)(?:\s+[Tt]o\s+(?P<whom>\S.{{0,200}}?))?\s*:(?:\s+(?P<text>.*))?$"
)
_STAMPED: Final = re.compile(rf"{_STAMP}\s")
_RECORDED: Final = re.compile(rf"{_STAMP}\t(?P<who>[^\t\n]{{1,200}}?)\s*:\t(?P<text>.*)")
_FROM: Final = r"(?P<from>Von|De|Da|Van|Fra|Från|Od|От|Dari|Từ|Kimden|开始|從|从|開始|시작|발신자)"
_TO: Final = r"(?:an|a|à|para|aan|til|till|do|для|Кому|ke|đến|Kime|收件人|到|至|宛先|から|에게|받는 사람|수신자)"
_TRANSLATED: Final = re.compile(
    rf"{_STAMP}\s+{_FROM}\s+(?P<who>\S.{{0,200}}?)\s+{_TO}\s+(?P<whom>\S.{{0,200}}?)\s*[:\uff1a](?:\s+(?P<text>.*))?$"
)
"""The same in other languages of the program, as it translates From and To."""

_WEBEX: Final = re.compile(
    r"from\s+(?P<who>\S.{0,200}?)\s+to\s+(?P<whom>\S.{0,200}?):\s+(?P<time>\d{1,2}:\d\d)\s+(?P<half>[AP]M)"
    r"(?P<date>(?!))?(?P<text>)\s*"
)
"""Above each message of what is copied of Webex' chat: ``from Ida (Guest) to Everyone:    6:38  AM``."""

_REACTION: Final = re.compile(r"Reacted to \".*\" with .{1,40}|Removed an? .{1,40} reaction from \".*\"", re.DOTALL)
_REPLY: Final = re.compile(r"\s*Replying to \"(?P<quoted>.*?)\"\s*(?:\n|$)", re.DOTALL)
_ONE_LINE_REPLY: Final = re.compile(r"\s*Replying to \"[^\"\n]*\"\s+")
_FOLDER: Final = re.compile(r"(?P<date>\d{4}-\d\d-\d\d) \d\d\.\d\d\.\d\d [^/\\]*[/\\][^/\\]*$")
_DAY: Final = 86_400.0


def is_zoom_chat(text: str) -> bool:
    """Return whether a text is a chat of Zoom, by its first lines."""
    lines = [line for line in text[:4000].split("\n") if line.strip()]
    is_webex = bool(lines) and _WEBEX.fullmatch(lines[0]) is not None
    return is_webex or any(_SAVED.match(line) or _RECORDED.match(line) for line in lines[:5]) or _is_translated(lines)


def _is_translated(lines: list[str]) -> bool:
    """Return whether all lines with a time, and two at least, name who writes to whom in the same language."""
    found = [_TRANSLATED.fullmatch(line) for line in lines if _STAMPED.match(line)]
    return len(found) > 1 and all(found) and len({one["from"] for one in found if one}) == 1


def read_zoom_chat(source: Source) -> Transcript:
    """Return what was said in the chat.

    A saved one has times of the clock; the day is in its lines, or in the name of the folder that Zoom makes.
    """
    said: list[Utterance] = []
    started: datetime | None = None
    first: float | None = None  # second of the day
    days = last = 0.0
    for line, stamp, lines in _messages(source):
        with source.one_entry(line):
            clock = _seconds(stamp)
            if stamp.re is _RECORDED:
                at = clock
            elif stamp["date"]:
                told = iso(stamp["date"]) + timedelta(seconds=clock)
                started = started or told
                at = (told - started).total_seconds()
            else:
                days += _DAY if clock < last - _DAY / 2 else 0.0  # past midnight
                first = clock if first is None else first
                last, at = clock, clock + days - first
            if words := _text("\n".join(lines)):
                said.append(Utterance(name_of(stamp["who"]), words, at))
    if first is not None and (folder := _FOLDER.search(source.name)):
        with source.one_entry():
            started = iso(folder["date"]) + timedelta(seconds=first)
    return Transcript(said, started)


def _seconds(stamp: re.Match[str]) -> float:
    seconds = offset(stamp["time"] if stamp.re is not _WEBEX else f"{stamp['time']}:00")
    if stamp["half"]:
        return seconds % (_DAY / 2) + (_DAY / 2 if stamp["half"] == "PM" else 0.0)
    return seconds


def _messages(source: Source) -> list[tuple[int, re.Match[str], list[str]]]:
    """Return each message's first line, stamp and lines."""
    translated = _is_translated(source.text.split("\n"))

    def begins(line: str) -> tuple[re.Match[str], str] | None:
        stamp = _TRANSLATED.fullmatch(line) if translated else _RECORDED.fullmatch(line) or _SAVED.fullmatch(line)
        stamp = stamp or _WEBEX.fullmatch(line)
        return (stamp, stamp["text"] or "") if stamp else None

    return source.entries(begins, "text without a time above it")


def _text(written: str) -> str:
    text = written.strip()
    if _REACTION.fullmatch(text):
        return ""
    reply = _REPLY.match(text) or _ONE_LINE_REPLY.match(text)
    return plain(text[reply.end() :] if reply else text)
