"""WhatsApp's chats as text, from iOS (``[03.05.23, 09:00:12] Ida: …``) and Android (``5/3/23, 9:00 AM - Ida: …``).

The order of day, month and year, their separators, and how mornings are told from afternoons are the phone's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from context_builder.transcript.fields import plain
from context_builder.transcript.moments import of_chat
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript, Utterance, name_of

_MARKS: Final = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_MARK: Final = "\u200e"
"""Left-to-right mark, which iOS writes before what the program says itself."""

_DATE: Final = r"(?P<date>\d{1,4}[./\-\u5e74\ub144]\s?\d{1,2}[./\-\u6708\uc6d4]\s?\d{1,4}[.\u65e5\uc77c]?)"
_HALF: Final = (
    r"(?:[ap]\.?\s?m\.?|vorm\.|nachm\.|πμ|μμ|上午|下午|午前|午後|오전|오후|de la mañana|de la tarde|صباحًا|مساءً|ص|م)"
)
_TIME: Final = rf"(?:(?P<before>{_HALF})\s?)?(?P<time>\d{{1,2}}[:.]\d{{2}}(?:[:.]\d{{2}})?)(?:\s?(?P<after>{_HALF}))?"
_BETWEEN: Final = r",?\s+(?:(?:um|at|à|a las|às|klo|kl\.?|ore|om|в|o)\s+)?"
_STAMP: Final = re.compile(
    rf"(?:\[{_DATE}{_BETWEEN}{_TIME}\]\s?|{_DATE.replace('<date>', '<date2>')}{_BETWEEN}"
    rf"{_TIME.replace('<before>', '<before2>').replace('<time>', '<time2>').replace('<after>', '<after2>')}\s+[-–]\s+)",
    re.IGNORECASE,
)
_AFTERNOON: Final = re.compile(r"p\.?\s?m\.?|nachm\.|μμ|下午|午後|오후|de la tarde|مساءً|م", re.IGNORECASE)
_SENDER: Final = re.compile(r"(?P<name>[^:\n]{1,120}?):(?:\s(?P<text>.*)|$)", re.DOTALL)
_FILE: Final = re.compile(
    r"<[^<>\n]{2,60}>|\S[^\n]{0,120}\.\w{2,5} \([^()\n]{4,40}\)|"
    r"<?(?:attached|Anhang|pièce jointe|adjunto|anexado|bijgevoegd):? [^\n]{1,200}>?",
    re.IGNORECASE,
)
_OMITTED: Final = re.compile(
    r"(?:image|video|audio|GIF|sticker|document|contact card|photo|media|Bild|Sprachnachricht|Foto|Dokument|imagen|"
    r"imagem|vidéo|vídeo|immagine|afbeelding)\b[^\n]{0,80}"
    r"\b(?:omitted|weggelassen|ausgeschlossen|omitid[oa]|omis[e]?|ocult[oa]|omess[oa]|weggelaten)",
    re.IGNORECASE,
)
_EDITED: Final = re.compile(
    r"\s*<[^<>\n]*(?:edited|bearbeitet|editó|editad[oa]|modifi|modificat|bewerkt|отредактировано)[^<>\n]*>\s*",
    re.IGNORECASE,
)
_UNSAID: Final = re.compile(
    r"(?:This message was deleted|You deleted this message|Diese Nachricht wurde gelöscht|"
    r"Du hast diese Nachricht gelöscht|"
    r"Se eliminó este mensaje|Eliminaste este mensaje|Ce message a été supprimé|Vous avez supprimé ce message|"
    r"(?:Esta )?[Mm]ensagem apagada|Você apagou esta mensagem|"
    r"Questo messaggio è stato eliminato|Dit bericht is verwijderd|"
    r"Missed (?:voice|video|group)[^\n]{0,30}call|null|Waiting for this message[^\n]*|"
    r"(?:Voice|Video) call, [^\n]{1,40})\.?",
)
_SYSTEM: Final = re.compile(r"end-to-end|Ende-zu-Ende|de extremo a extremo|de bout en bout|de ponta a ponta")


@dataclass(slots=True)
class _Message:
    line: int
    date: str
    time: str
    half: str
    lines: list[str] = field(default_factory=list)


def is_whatsapp(text: str) -> bool:
    """Return whether a text is a chat of WhatsApp, by its first lines."""
    lines = [_MARKS.sub("", line) for line in text[:4000].split("\n")[:20] if line.strip()]
    return any(_STAMP.match(_spaced(line)) for line in lines[:5])


def read_whatsapp(source: Source) -> Transcript:
    """Return what was said in a chat; what the program says itself, and files, are left out."""
    messages = [*_messages(source)]
    order = _order(messages)
    return of_chat(_said(messages, order, source))


def _messages(source: Source) -> Iterator[_Message]:
    message: _Message | None = None
    for number, line in enumerate(source.text.split("\n"), start=1):
        stamp = _STAMP.match(_spaced(line.lstrip("".join(("\u200e", "\u200f", "\ufeff")))))
        if stamp is None:
            if message is not None:
                message.lines.append(line)
            elif line.strip():
                source.problem("text without a time above it", number)
            continue
        if message is not None:
            yield message
        rest = line.lstrip("\u200e\u200f\ufeff")[stamp.end() :]
        half = next((one for one in stamp.group("before", "after", "before2", "after2") if one), "")
        message = _Message(number, stamp["date"] or stamp["date2"], stamp["time"] or stamp["time2"], half, [rest])
    if message is not None:
        yield message


def _spaced(line: str) -> str:
    """Return a line with plain blanks, as many as it has blanks of other kinds."""
    return re.sub("[\u00a0\u202f\u2009]", " ", line)


def _parts(date: str) -> list[int]:
    return [int(one) for one in re.findall(r"\d+", date)]


def _order(messages: Sequence[_Message]) -> str:
    """Return the order of day, month and year that all dates of a chat allow; where several do, the likelier."""
    dates = [parts for one in messages if len(parts := _parts(one.date)) == 3]
    if any(parts[0] > 31 for parts in dates):
        return "ymd"
    days_first = all(parts[1] <= 12 for parts in dates)
    months_first = all(parts[0] <= 12 for parts in dates)
    if days_first != months_first:
        return "dmy" if days_first else "mdy"
    for order in ("dmy", "mdy"):
        other = "mdy" if order == "dmy" else "dmy"
        if _ascends(dates, order) and not _ascends(dates, other):
            return order
    is_american = any(one.half and "/" in one.date and not one.half.startswith(("a.", "p.")) for one in messages)
    has_long_year = any(len(re.findall(r"\d+", one.date)[-1]) == 4 for one in messages)
    return "mdy" if is_american and not has_long_year else "dmy"


def _ascends(dates: Sequence[Sequence[int]], order: str) -> bool:
    keys = [tuple(parts[order.index(one)] for one in "ymd") for parts in dates]
    return keys == sorted(keys)


def _said(messages: Sequence[_Message], order: str, source: Source) -> Iterator[tuple[float, Utterance]]:
    for one in messages:
        found = _SENDER.match("\n".join(one.lines))
        if found is None or found["name"].count('"') == 1:  # the program's own: somebody joined, or named a group
            continue
        text = _text(found["text"] or "")
        if not text:
            continue
        with source.one_entry(one.line):
            yield _moment(one, order).timestamp(), Utterance(name_of(_MARKS.sub("", found["name"]).lstrip("~ ")), text)


def _text(written: str) -> str:
    """Return what somebody wrote, without files, and nothing of what the program says."""
    edited = _EDITED.sub(" ", written)
    said, mark, told = edited.partition(_MARK)
    if mark and (not said.strip() or _FILE.match(told.strip()) or _OMITTED.match(told.strip())):
        edited = said
    lines = [_MARKS.sub("", line).strip() for line in edited.split("\n")]
    lines = [line for line in lines if not _FILE.fullmatch(line) and not _OMITTED.fullmatch(line)]
    text = plain(" ".join(lines))
    return "" if _UNSAID.fullmatch(text) or (_SYSTEM.search(text) and mark) else text


def _moment(message: _Message, order: str) -> datetime:
    """Return a message's moment, in the local zone. Raises :class:`ValueError`."""
    parts = _parts(message.date)
    if len(parts) != 3:
        raise ValueError(f"{message.date!r} is not a date")
    year, month, day = (parts[order.index(one)] for one in "ymd")
    if year > 2400:  # of the Buddhist calendar
        year -= 543
    hour, minute, *second = (int(one) for one in re.findall(r"\d+", message.time))
    if message.half:
        hour = hour % 12 + (12 if _AFTERNOON.fullmatch(message.half) else 0)
    year = year + 2000 if year < 100 else year
    return datetime(year, month, day, hour, minute, second[0] if second else 0).astimezone()
