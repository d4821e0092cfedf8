"""Lines that begin with a date and a time, as people and small programs write them, or with a moment, as programs do.

``2023-05-03 09:00:03 Ida: …``, ``2023-05-03T09:00:01.123Z Ida: …`` and ``1683104401 <ida> …``. Who speaks stands
behind, in brackets, before a colon, or parted from what was said by a bar, a dash or the like.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from context_builder.transcript.fields import is_reaction, plain
from context_builder.transcript.labels import LabelledLine, Labels, is_written_as_name
from context_builder.transcript.moments import epoch_seconds, iso, of_chat
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance, name_of
from context_builder.transcript.written_dates import DATE, HALF, moment_of, order_of, written

_TIME: Final = rf"\d{{1,2}}:\d{{2}}(?::\d{{2}})?(?:[.,]\d{{1,6}})?(?:\s?(?:{HALF})(?!\w))?"
_STAMP: Final = re.compile(
    rf"[\[(]?(?:[^\W\d_]{{2,10}}\.?,?\s+)?(?P<when>{DATE}(?:,?\s+|T)(?:at\s|um\s|à\s)?{_TIME}|"
    rf"[A-Z][a-z]{{2,8}}\.? {{1,2}}\d{{1,2}},? (?:\d{{4}},? )?{_TIME}(?: \d{{4}})?)[\])]?(?:\s*[-–—|,;:/»>]\s*|\s+)",
    re.IGNORECASE,
)
_WHO: Final = r"(?P<who>[^\s:|\t\[\]<>][^:|\t\n\[\]<>]{0,79}?)"
_SPLITS: Final = (
    (re.compile(r"(?P<who>[^\s:\t\[<|][^:\t\n<>]{0,79}?)\s?:\s+(?P<text>\S.*)"), False),
    (re.compile(r"(?:\[(?P<who>[^\[\]\n]{1,80})\]|<(?P<who2>[^<>\n]{1,80})>):?\s+(?P<text>\S.*)"), False),
    (re.compile(rf"{_WHO}\t\s*(?P<text>\S.*)"), False),
    (re.compile(rf"{_WHO}\s+[|»>]\s+(?P<text>\S.*)"), True),
    (re.compile(rf"{_WHO}\s+[-–—/]\s+(?P<text>\S.*)"), True),
    (re.compile(r"(?P<who>[^\s,;:][^,;:\n]{0,59}?)\s?[,;]\s?(?P<text>\S.*)"), True),
)
"""Forms in which who stands before what, and whether it must be written as a name there."""

_LEVEL: Final = re.compile(r"\W*(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL)\b")
"""Begins lines of a program's log."""

_SHARE: Final = 0.5
_ALL: Final = 0.8
_PROBED: Final = 60


def is_dated(text: str) -> bool:
    """Return whether half of the first lines of a text, and two at least, begin so, and tell who speaks."""
    lines = [line for line in text[:16_000].split("\n") if line.strip()][:_PROBED]
    stamped = [(found["when"], line[found.end() :]) for line in lines if (found := _STAMP.match(line))]
    if len(stamped) < 2 or len(stamped) < _SHARE * len(lines) or any(written(when) is None for when, _ in stamped):
        return False
    return _split_names([rest for _, rest in stamped]) is not None


def read_dated(source: Source) -> Transcript:
    """Return what the lines say; one without a date goes on with the one before."""
    return of_chat(_said(source))


def _split_names(rests: Sequence[str]) -> list[tuple[str | None, str]] | None:
    """Return who says what of lines that have it in one form; None where the first have it in none, or no name comes
    again, or what stands there are levels of a log or figures alone.

    A line that is in another form has nobody.
    """
    for form, is_name in _SPLITS:
        found = [form.fullmatch(rest.strip()) for rest in rests]
        first = [one for one in found[:_PROBED] if one]
        names = [_who(one) for one in first]
        if len(names) < 2 or len(names) < _ALL * len(found[:_PROBED]) or len(set(names)) == len(names):
            continue
        if any(_LEVEL.match(name) or _LEVEL.match(one["text"]) for name, one in zip(names, first, strict=True)):
            return None
        if not any(map(str.isalpha, "".join(one["text"] for one in first))):
            return None
        if not is_name or all(is_written_as_name(_who(one)) for one in first):
            return [
                (_who(one), one["text"]) if one and (not is_name or is_written_as_name(_who(one))) else (None, rest)
                for one, rest in zip(found, rests, strict=True)
            ]
    return None


def _who(found: re.Match[str]) -> str:
    groups = found.groupdict()
    return str(groups["who"] or groups.get("who2") or "").strip()


def _said(source: Source) -> Iterator[tuple[float, Utterance]]:
    def begins(line: str) -> tuple[str, str] | None:
        found = _STAMP.match(line)
        return (found["when"], line[found.end() :]) if found else None

    source.text = "\n".join("" if is_reaction(line) else line for line in source.text.split("\n"))
    entries = source.entries(begins, "text without a date before it")
    rests = [lines[0] for *_, lines in entries]
    named = _split_names(rests) or [(None, rest) for rest in rests]
    dates = [written(when) for _, when, _ in entries]
    order = order_of([one for one in dates if one is not None])
    for (number, when, lines), date, (who, text) in zip(entries, dates, named, strict=True):
        with source.one_entry(number):
            if date is None:
                raise ValueError(f"{when[:40]!r} is no date")
            if words := plain(" ".join([text, *lines[1:]])):
                yield moment_of(date, order).timestamp(), Utterance(name_of(who or UNKNOWN_SPEAKER), words)


_MOMENT: Final = re.compile(
    r"[\[(]?(?:(?P<iso>\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?(?:[.,]\d{1,9})?|"
    r"[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9}|(?= UTC)))"
    r"\s?(?:Z|UTC|[+-]\d\d:?\d\d)?)|(?P<epoch>1\d{9}(?:\.\d{1,6}|\d{3})?))[\])]?\s*[-–|:]?\s+"
    r"(?:\[?(?:INFO|DEBUG|NOTICE|WARN(?:ING)?)\]?[\s:-]+"
    r"(?:[\w.]{1,60}(?::| -)\s+(?=[^\s:]{1,40}[^:\n]{0,40}:\s))?)?(?P<rest>\S.*)"
)
_NICK: Final = re.compile(r"<[ @+%~&!]?(?P<nick>[^<>\n]{1,64})>\s+(?P<text>.*)|\* (?P<nick2>\S{1,64}) (?P<text2>.*)")


def is_stamped(text: str) -> bool:
    """Return whether a text's first lines begin so."""
    lines = [line for line in text[:4000].split("\n") if line.strip()][:5]
    return bool(lines) and sum(bool(_MOMENT.match(line)) for line in lines) > len(lines) / 2


def read_stamped(source: Source) -> Transcript:
    """Return what the lines say; one without a moment goes on with the one before."""
    return of_chat(_stamped(source))


def _is_of_server(line: str) -> bool:
    """Return whether a server of IRC wrote the line, as that somebody has joined: what follows goes on with what was
    said before it.
    """
    found = _MOMENT.match(line)
    return found is not None and found["rest"].startswith("*** ")


def _stamped(source: Source) -> Iterator[tuple[float, Utterance]]:
    def begins(line: str) -> tuple[re.Match[str], str] | None:
        found = _MOMENT.match(line)
        return (found, found["rest"]) if found else None

    source.text = "\n".join(
        "" if _is_of_server(line) or is_reaction(line) else line for line in source.text.split("\n")
    )
    entries = source.entries(begins, "text without a moment before it")
    first = [lines[0] for *_, lines in entries]
    labels = Labels(first)
    spoken = [labels.line(line) for line in first]
    if not any(one.speaker for one in spoken) and (named := _split_names(first)):
        spoken = [LabelledLine(who, text) for who, text in named]
    for (number, found, lines), told in zip(entries, spoken, strict=True):
        nick = _NICK.match(lines[0])
        who = name_of(nick["nick"] or nick["nick2"]) if nick else told.speaker or UNKNOWN_SPEAKER
        text = (nick["text"] or nick["text2"] or "") if nick else told.text
        with source.one_entry(number):
            moment = (
                iso(found["iso"].replace(",", ".")).timestamp()
                if found["iso"]
                else epoch_seconds(float(found["epoch"]), "a moment")
            )
            if words := plain(" ".join([text, *lines[1:]])):
                yield moment, Utterance(who, words)
