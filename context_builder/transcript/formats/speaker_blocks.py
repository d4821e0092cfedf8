"""Text in which a line names who speaks and when, and what was said follows: Otter, Teams, Fireflies, Rev and others.

``Ida Lind   0:03``, ``Ida Lind (00:03):``, ``00:03 Ida Lind``, or name and time on a line each. A heading above tells
when the meeting was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from context_builder.transcript.fields import plain
from context_builder.transcript.moments import in_heading
from context_builder.transcript.offsets import HALF, is_of_day, offset, since_first
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript, Utterance, name_of, speaker_name

_TIME: Final = rf"(?P<time>(?:\d{{1,2}}:)?\d{{1,3}}:\d{{2}}(?:[.,:;]\d{{1,6}})?{HALF}?)"
_END: Final = r"(?:\d{1,2}:)?\d{1,3}:\d{2}(?:[.,:;]\d{1,6})?"
_NAME: Final = r"(?P<name>[^\s\[(:][^\n\[\]:]{0,79}?|[^\s:][^\n:]{0,79}?)"
_FORMS: Final = tuple(
    re.compile(form)
    for form in (
        rf"{_NAME}(?:[ \u00a0]{{2,}}|\s*\t\s*){_TIME}\s*:?",
        rf"{_NAME}\s*(?:\({_TIME}(?:\s?[-–—]\s?{_END})?\)|\[{_TIME.replace('<time>', '<time2>')}\])\s*:?",
        rf"\[(?P<name>[^\n\[\]]{{1,80}})\]\s+{_TIME}",
        rf"{_NAME}\s*[-–—|•·,:]\s*{_TIME}\s*:?",
        rf"{_NAME}\s{_TIME}",
        rf"[\[(]?(?:[^\W\d_]{{3,12}}\.?\s)?{_TIME}(?:\s?(?:-+>|[-–—])\s?{_END})?[\])]?\s*[-–—|•·]?\s*{_NAME}\s*:?",
    )
)
_SURE: Final = 3
"""Forms, the first, one line of which is enough."""

_ALONE: Final = re.compile(rf"(?::[\w+-]{{1,40}}:\s*)?[\[(]?{_TIME}(?:\s?[-–—]\s?{_END})?[\])]?")
"""With an emoji of the person's status before it (Slack), or an end behind it."""

_SENTENCE: Final = re.compile(r".*[.?!,;…]")
_UNSAID: Final = re.compile(
    r"Transcribed by https?://\S+|.{1,80} (?:started|stopped) transcription|"
    r".{1,80} hat die Transkription (?:gestartet|beendet)|"
    r".{1,80} a (?:démarré|commencé|arrêté) la transcription|.{1,80} (?:inició|detuvo) la transcripción|"
    r"(?:SUMMARY KEYWORDS|SPEAKERS|Transcript|Transkript)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Heading:
    """Is where a block begins and its text does, by line, who speaks in it, and when."""

    line: int
    text: int
    name: str
    time: str


def has_speaker_blocks(text: str) -> bool:
    """Return whether a text is in blocks with a line for who speaks and when."""
    return bool(_headings(_lines(text)))


_BOLD: Final = re.compile(
    r"(?:#+\s*)?\*\*(?P<name>[^*\n]+?):?\*\*:?\s*[-–—|]?\s*[*_`]*(?P<time>[\[(]?(?:\d{1,2}:)?\d{1,3}:\d{2}[\])]?)[*_`]*\s*"
)
"""A heading in Markdown."""


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if "**" not in text:
        return lines
    return [
        f"{bold['name']}  {bold['time'].strip('[]()')}" if len(line) < 160 and (bold := _BOLD.fullmatch(line)) else line
        for line in lines
    ]


def read_speaker_blocks(source: Source) -> Transcript:
    """Return what was said in the blocks."""
    lines = _lines(source.text)
    headings = _headings(lines)
    ends = [heading.line for heading in headings[1:]] + [len(lines)]
    said: list[Utterance] = []
    for heading, end in zip(headings, ends, strict=True):
        told = [line.strip() for line in lines[heading.text : end]]
        told = [line for line in told if not _UNSAID.fullmatch(line)]
        if is_of_day(heading.time):
            told = [line for line in told if not _ALONE.fullmatch(line)]
        with source.one_entry(heading.line + 1):
            if words := plain(" ".join(told)):
                said.append(Utterance(speaker_name(name_of(heading.name)), words, offset(heading.time)))
    if headings and all(is_of_day(heading.time) for heading in headings):
        since = since_first([one.at or 0.0 for one in said])
        said = [replace(one, at=at) for one, at in zip(said, since, strict=True)]
    return Transcript(said, in_heading(lines[: headings[0].line]) if headings else None)


def _headings(lines: Sequence[str]) -> list[_Heading]:
    """Return the headings in the form that most of them have; none where it is no file of blocks."""
    best: list[_Heading] = []
    for place, form in enumerate(_FORMS):
        found = [*_of_form(lines, form)]
        is_sure = place < _SURE and not any(is_of_day(one.time) for one in found)
        if len(found) > len(best) and (is_sure or _is_consistent(lines, found)):
            best = found
    for of_two in (_name_below(lines), _name_above(lines)):
        if len(of_two) > len(best):
            best = of_two
    return best


def _of_form(lines: Sequence[str], form: re.Pattern[str]) -> Iterator[_Heading]:
    for place, line in enumerate(lines):
        if len(line) < 160 and (found := form.fullmatch(line.strip())):
            groups = found.groupdict()
            time = groups["time"] or groups.get("time2")
            if time and not re.fullmatch(r"[\W\d]*|[AaPp]\.?[Mm]\.?", found["name"]):
                yield _Heading(place, place + 1, found["name"], time)


def _is_consistent(lines: Sequence[str], found: Sequence[_Heading]) -> bool:
    """Return whether each heading begins a block, has words below, and times ascend: a sentence may end with a time."""
    if not found or any(_SENTENCE.fullmatch(one.name) for one in found):
        return False
    times = _times(found)
    begins = all(
        one.line == 0 or not lines[one.line - 1].strip() or lines[one.line][0] == "[" or " | " in lines[one.line]
        for one in found
    )
    again = len({one.name for one in found}) < len(found)
    starts = {-1, *(one.line for one in found)}
    has_text = all(_next(lines, one.text) not in starts for one in found)
    return len(found) > 1 and times == sorted(times) and has_text and (begins or again)


def _times(headings: Sequence[_Heading]) -> list[float]:
    """Return the seconds of headings from the beginning; of times of the day, from the first one."""
    times = [offset(one.time) for one in headings]
    return since_first(times) if headings and all(is_of_day(one.time) for one in headings) else times


def _next(lines: Sequence[str], place: int) -> int:
    """Return the place of the next line that is not empty."""
    return next((at for at in range(place, len(lines)) if lines[at].strip()), -1)


def _name_below(lines: Sequence[str]) -> list[_Heading]:
    """Return headings of a time alone with a name below."""
    found = []
    for place in _times_alone(lines):
        below = _next(lines, place + 1)
        if below < 0 or not _may_be_name(lines[below]):
            return []
        found.append(_Heading(place, below + 1, lines[below].strip(), _time_alone(lines[place])))
    return found if _of_two(lines, found) else []


def _name_above(lines: Sequence[str]) -> list[_Heading]:
    """Return headings of a name with a time alone below."""
    found = []
    for place in _times_alone(lines):
        if place == 0 or not _may_be_name(lines[place - 1]):
            return []
        found.append(_Heading(place - 1, place + 1, lines[place - 1].strip(), _time_alone(lines[place])))
    return found if _of_two(lines, found) else []


def _of_two(lines: Sequence[str], found: Sequence[_Heading]) -> bool:
    starts = {one.line for one in found}
    says = all((after := _next(lines, one.text)) >= 0 and after not in starts for one in found)
    return len(found) > 1 and says and len({one.name for one in found}) <= max(2, len(found) // 2 + 1)


def _times_alone(lines: Sequence[str]) -> list[int]:
    """Return the lines with a time alone; where some say which half of the day, those: Slack has others in a block."""
    places = [place for place, line in enumerate(lines) if len(line) < 40 and _ALONE.fullmatch(line.strip())]
    return [place for place in places if is_of_day(_time_alone(lines[place]))] or places


def _time_alone(line: str) -> str:
    found = _ALONE.fullmatch(line.strip())
    return found["time"] if found else ""


def _may_be_name(line: str) -> bool:
    name = line.strip()
    return bool(name) and len(name) <= 60 and ":" not in name and not _SENTENCE.fullmatch(name)
