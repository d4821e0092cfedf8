"""Text in which a line names who speaks and when, and what was said follows: Otter, Teams, Fireflies, Rev and others.

``Ida Lind   0:03``, ``Ida Lind (00:03):``, ``00:03 Ida Lind``, or name and time on a line each. A heading above tells
when the meeting was.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from context_builder.transcript.fields import plain, unedited
from context_builder.transcript.labels import is_written_as_name
from context_builder.transcript.moments import in_heading
from context_builder.transcript.offsets import HALF, is_of_day, offset, since_first, since_first_of_day
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript, Utterance, name_of, speaker_name

_TIME: Final = rf"(?P<time>(?:\d{{1,2}}:)?\d{{1,3}}:\d{{2}}(?:[.,:;]\d{{1,6}})?{HALF}?)"
_END: Final = r"(?:\d{1,2}:)?\d{1,3}:\d{2}(?:[.,:;]\d{1,6})?"
_UNTIL: Final = rf"(?:\s?(?:[-–—→]|-+>)\s?{_END})?"
_NAME: Final = r"(?P<name>[^\s\[(:][^\n\[\]:]{0,79}?|[^\s:][^\n:]{0,79}?)"
_FORMS: Final = tuple(
    re.compile(form)
    for form in (
        rf"{_NAME}(?:[ \u00a0]{{2,}}|\s*\t\s*){_TIME}\s*:?",
        rf"\[(?P<name>[^\n\[\]]{{1,80}})\]:?\s+[\[(]?{_TIME}{_UNTIL}[\])]?\s*:?",
        rf"{_NAME}[:\uff1a]?\s*(?:[(\uff08]{_TIME}(?:\s?[-–—]\s?{_END})?[)\uff09]"
        rf"|\[{_TIME.replace('<time>', '<time2>')}\])\s*[:\uff1a]?",
        rf"{_NAME}\s*(?:(?:[|•·,@]|[-–—]{{1,4}})\s*|:\s+|(?<!\d):){_TIME}{_UNTIL}\s*:?",
        rf"{_NAME}\s{_TIME}",
        rf"@?[\[(]?(?:[^\W\d_]{{3,12}}\.?\s)?{_TIME}(?:\s?(?:-+>|[-–—])\s?{_END})?[\])]?\s*[-–—|•·]?\s*{_NAME}\s*:?",
    )
)
_SURE: Final = 3
"""Forms, the first, one line of which is enough."""

_ALONE: Final = re.compile(rf"(?::[\w+-]{{1,40}}:\s*)?[\[(]?{_TIME}(?:\s?[-–—]\s?{_END})?[\])]?")
"""With an emoji of the person's status before it (Slack), or an end behind it."""

_BETWEEN: Final = re.compile(
    r"(?P<name>\S.*?)(?:\s*[-–—,|•·])?\s+(?:(?:Today|Yesterday|Heute|Gestern|Hier|Aujourd[’']hui|Hoy|Ayer|Hoje|Ontem|"
    r"Oggi|Ieri|Vandaag|Gisteren|Idag|Igår)(?:,?\s+(?:at|um|à|a las|às|alle|om|kl\.?))?|at|um|kl\.?|om)",
    re.IGNORECASE,
)
"""A name and what a program says between it and the time, in all headings: in one, it may be of the name."""

_SIGN: Final = re.compile(r"[^\w\s@+(\[\"'“«]{1,4}\s+(?=\w)")
_SENTENCE: Final = re.compile(r".*[.?!,;…]")
_ABBREVIATED: Final = re.compile(r".*\b(?:Jr|Sr|Ph\.?D|M\.?D|Esq|Inc|Ltd|[^\W\d_a-z])\.")
_NO_NAME: Final = re.compile(r"[\W\d]*|[AaPp]\.?[Mm]\.?|\*{3}.*")
_DATE: Final = re.compile(
    r"(?:19|20)\d\d\s?[.\u5e74\ub144/-]\s?\d{1,2}\s?[.\u6708\uc6d4/-]\s?\d{1,2}[.\u65e5\uc77c]?.{0,12}"
)
"""A date before a time of the day: when the talk was, not who speaks."""

_TELEPHONE: Final = re.compile(r"\+\d[\d ()*-]{6,24}")
_UNSAID: Final = re.compile(
    r"Transcribed by https?://\S+|.{1,80} (?:started|stopped) transcription|"
    r".{1,80} hat die Transkription (?:gestartet|beendet)|"
    r".{1,80} a (?:démarré|commencé|arrêté) la transcription|.{1,80} (?:inició|detuvo) la transcripción|"
    r"(?:https?://)?clovanote\.(?:naver\.com|line\.me)\S{0,80}|"
    r"(?:SUMMARY KEYWORDS|SPEAKERS|Transcript|Transkript)|"
    r"\d{1,4} (?:repl(?:y|ies)|Antwort(?:en)?|réponses?|respuestas?)|-{3,}|={3,}|\*{3,}|_{3,}|─{3,}|═{3,}",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Heading:
    """The heading of a block: the line where it begins, the line where its text does, who speaks, and when."""

    line: int
    text: int
    name: str
    time: str


def has_speaker_blocks(text: str) -> bool:
    """Return whether a text is in blocks with a line for who speaks and when."""
    return bool(_headings(_lines(text)))


_UNIT: Final = (
    r"(?:hours?|minutes?|seconds?|Stunden?|Minuten?|Sekunden?|heures?|secondes?|horas?|minutos?|segundos?|or[ae]|"
    r"minut[oi]|second[oi]|uur|uren|minuut|seconden?|timm(?:e|ar)|minut(?:er)?|sekund(?:er)?|時間|分|秒)"
)
_IN_WORDS: Final = re.compile(
    rf"(?P<name>\D{{0,80}}?)\s*"
    rf"(?P<words>\d{{1,3}} ?{_UNIT}(?:,? (?:(?:and|und|et|y|e|en|och) )?\d{{1,3}} ?{_UNIT}){{0,2}})"
    rf"\s*(?P<time>(?:\d{{1,2}}:)?\d{{1,2}}:\d{{2}})?",
    re.IGNORECASE,
)
"""``0 minutes 3 seconds0:03``, ``Ida Lind 0 minutes 3 seconds``: what Teams' page says to those who listen to it."""

_HOUR: Final = 3600.0
"""Seconds at which the first time in Zoom's captions is one of the day."""

_UNIT_ENDS: Final = 60
_LONGEST: Final = 360_000
"""Seconds that no recording takes; a hundred hours."""


@dataclass(frozen=True, slots=True)
class _InWords:
    """A line with a time in words: who speaks, if it says so, the seconds, and whether figures beside say the same.

    The seconds are None where there is no such time.
    """

    name: str
    seconds: int | None
    has_figures: bool


def _with_figures(lines: list[str]) -> list[str]:
    """Return lines with times in figures for those in words; a name with a time that stands above already is left out.

    A file has two such lines at least, and no headings in figures.
    """
    found = _sure([_in_words(lines, place) for place in range(len(lines))], lines)
    if sum(one is not None for one in found) < 2 or _is_talk(lines, found):
        return lines
    kept: list[str] = []
    for line, one in zip(lines, found, strict=True):
        above = next((place for place in range(len(kept) - 1, -1, -1) if kept[place].strip()), 0)
        if one is None:
            is_again = _ALONE.fullmatch(line.strip()) and kept and kept[above].endswith(f"  {_in_full(line)}")
            kept.append("" if is_again else line)
            continue
        time = _figures(one.seconds or 0)
        if not one.name and kept and _may_be_name(kept[above]):
            before = next((place for place in range(above - 1, -1, -1) if kept[place].strip()), above)
            above_all = before if kept[before].strip() == _initials(kept[above]) else above
            kept[above_all:] = [f"{kept[above].strip()}  {time}"]
        elif not (kept and kept[above] == f"{one.name}  {time}"):
            kept.append(f"{one.name}  {time}".strip())
    return kept


def _initials(name: str) -> str:
    """Return what stands in place of a picture above a name: ``IL`` for Ida Lind."""
    words = name.split()
    return "".join(word[0] for word in (words[0], *words[1:][-1:])).upper() if words else ""


def without_words(text: str) -> str:
    """Return a text without lines that say in words the time that stands in figures above each (YouTube's page)."""
    lines = text.split("\n")
    times = [_ALONE.fullmatch(line.strip()) if len(line) < 40 else None for line in lines]
    again = {
        place + 1
        for place, (time, below) in enumerate(pairwise(zip(times, lines, strict=True)))
        if time[0]
        and (words := _IN_WORDS.fullmatch(below[1].strip()[:160])) is not None
        and not words["name"].strip()
        and not words["time"]
        and _seconds(words["words"]) == int(offset(time[0]["time"]))
    }
    is_all = len(again) > 1 and len(again) == sum(time is not None for time in times)
    return "\n".join(line for place, line in enumerate(lines) if place not in again) if is_all else text


def _in_words(lines: Sequence[str], place: int) -> _InWords | None:
    line = lines[place]
    found = _IN_WORDS.fullmatch(line.strip()) if len(line) < 160 else None
    if found is None or ((name := found["name"].strip()) and not is_written_as_name(name)):
        return None
    seconds = _seconds(found["words"])
    figures = found["time"] or (_time_alone(lines[place + 1]) if place + 1 < len(lines) else "")
    has_figures = bool(figures) and seconds is not None and _in_full(figures) == _figures(seconds)
    return None if found["time"] and not has_figures else _InWords(name, seconds, has_figures)


def _sure(found: Sequence[_InWords | None], lines: Sequence[str]) -> list[_InWords | None]:
    """Return the times in words that are those of headings: people speak of five minutes, too.

    They have figures beside, or stand below a name that comes again; a name in the same line says them once more. In
    files without such, all have a name in the same line, and they ascend.
    """
    names = _names_of(lines, found)
    again = Counter(names)
    heads = [
        one is not None and (one.has_figures or (not one.name and again[name] > 1 and name != ""))
        for one, name in zip(found, names, strict=True)
    ]
    if not any(heads):
        named = [one if one and one.name else None for one in found]
        times = [one.seconds for one in named if one]
        return named if None not in times and times == sorted(time for time in times if time is not None) else []
    heads = _with_those_between(found, names, heads)
    last: int | None = None
    who = ""
    kept: list[_InWords | None] = []
    for one, name, is_head in zip(found, names, heads, strict=True):
        goes_on = bool(one and who and one.name == who and last is not None and (one.seconds or 0) >= last)
        if one and (is_head or goes_on):
            last, who = one.seconds, name
        kept.append(one if one and last is not None and one.seconds == last and (is_head or one.name) else None)
    return kept


def _with_those_between(found: Sequence[_InWords | None], names: Sequence[str], heads: Sequence[bool]) -> list[bool]:
    """Return the headings with those of people who speak once: below a name, at a time between their neighbours'."""
    sure = [(place, one.seconds) for place, one in enumerate(found) if one and heads[place] and one.seconds is not None]
    kept = [*heads]
    for place, one in enumerate(found):
        if one is None or one.name or not names[place] or one.seconds is None:
            continue
        low = next((seconds for at, seconds in reversed(sure) if at <= place), None)
        high = next((seconds for at, seconds in sure if at >= place), one.seconds)
        kept[place] = kept[place] or (low is not None and low <= one.seconds <= high)
    return kept


def _names_of(lines: Sequence[str], found: Sequence[_InWords | None]) -> list[str]:
    """Return for each line the name that goes with its time in words: in the line, or alone above it."""
    names, above = [], ""
    for line, one in zip(lines, found, strict=True):
        names.append("" if one is None else one.name or (above if is_written_as_name(above) else ""))
        above = line.strip() or above
    return names


def _is_talk(lines: Sequence[str], found: Sequence[_InWords | None]) -> bool:
    """Return whether lines are what people say with times in words: as many headings are in figures.

    Where all times have just a name in the same line, a label or a sentence above the first one tells so, too.
    """
    rest = ["" if one else line for line, one in zip(lines, found, strict=True)]
    for place, one in enumerate(found[:-1]):
        if one and one.has_figures and _ALONE.fullmatch(rest[place + 1].strip()):
            rest[place + 1] = ""
    heads = sum(one is not None and (one.has_figures or not one.name) for one in found)
    in_figures = len(_headings(rest))
    if heads or in_figures:
        return in_figures >= heads
    first = next(place for place, one in enumerate(found) if one)
    labels = [line.partition(": ")[0] for line in rest if ": " in line[:80]]
    return any(map(is_written_as_name, labels)) or any(_SENTENCE.fullmatch(line.strip()) for line in lines[:first])


def _in_full(time: str) -> str:
    return _figures(int(offset(time.strip(" []()"))))


def _figures(seconds: int) -> str:
    minutes, second = divmod(seconds, 60)
    return f"{minutes // 60}:{minutes % 60:02}:{second:02}"


def _seconds(words: str) -> int | None:
    """Return the seconds of words such as ``1 hour 2 minutes 30 seconds``; None where that is not a time."""
    parts = [(int(number), _unit(unit)) for number, unit in re.findall(rf"(\d+) ?({_UNIT})", words, re.IGNORECASE)]
    in_order = all(large > small for (_, large), (_, small) in pairwise(parts))
    in_range = all(number < _UNIT_ENDS for number, _ in parts[1:])
    seconds = sum(number * unit for number, unit in parts)
    return seconds if in_order and in_range and seconds < _LONGEST else None


def _unit(name: str) -> int:
    """Return the seconds of a unit."""
    if name.lower().startswith(("h", "st", "or", "u", "t", "時")):
        return 3600
    return 60 if name.lower().startswith(("m", "分")) else 1


_BOLD: Final = re.compile(
    r"(?:#+\s*)?\*\*(?P<name>[^*\n]+?):?\*\*:?\s*[-–—|]?\s*[*_`]*(?P<time>[\[(]?(?:\d{1,2}:)?\d{1,3}:\d{2}[\])]?)[*_`]*\s*"
)
"""A heading in Markdown."""


_NAMELESS: Final = re.compile(r"@(?P<time>(?:\d{1,2}:)?\d{1,3}:\d{2})\s*[-–—]\s*")
"""A heading of Fathom's, where nobody was named."""


def _lines(text: str) -> list[str]:
    lines = _with_figures(text.split("\n"))
    lines = [
        f"@{one['time']} - Unknown speaker" if line[:1] == "@" and (one := _NAMELESS.fullmatch(line)) else line
        for line in lines
    ]
    if "**" not in text:
        return lines
    return [
        f"{bold['name']}  {bold['time'].strip('[]()')}" if len(line) < 160 and (bold := _BOLD.fullmatch(line)) else line
        for line in lines
    ]


def read_speaker_blocks(source: Source) -> Transcript:
    """Return what was said in the blocks."""
    lines = _lines(source.text)
    headings = _without_signs(_without_words_between(_headings(lines)))
    ends = [heading.line for heading in headings[1:]] + [len(lines)]
    said: list[Utterance] = []
    times: list[str] = []
    for heading, end in zip(headings, ends, strict=True):
        told = [line.strip() for line in lines[heading.text : end]]
        told = [line for line in told if not _UNSAID.fullmatch(line)]
        if is_of_day(heading.time):
            told = [line for line in told if not _ALONE.fullmatch(line)]
        with source.one_entry(heading.line + 1):
            if words := unedited(plain(" ".join(told))):
                said.append(Utterance(speaker_name(name_of(heading.name)), words, offset(heading.time)))
                times.append(heading.time)
    since = since_first_of_day(times)
    if since is None and said and lines[headings[0].line].startswith("[") and (said[0].at or 0.0) >= _HOUR:
        since = since_first([one.at or 0.0 for one in said])
    if since is not None:
        said = [replace(one, at=at) for one, at in zip(said, since, strict=True)]
    return Transcript(said, in_heading(lines[: headings[0].line]) if headings else None)


def _without_words_between(headings: list[_Heading]) -> list[_Heading]:
    """Return headings whose names are without what stands before each time, such as ``at``, where all have it."""
    found = [_BETWEEN.fullmatch(one.name.rstrip()) for one in headings]
    if not all(found):
        return headings
    return [replace(heading, name=one["name"]) for heading, one in zip(headings, found, strict=True) if one]


def _without_signs(headings: list[_Heading]) -> list[_Heading]:
    """Return headings whose names are without the emoji or bullet before each, where all have one."""
    found = [_SIGN.match(one.name) for one in headings]
    if not all(found):
        return headings
    return [
        replace(heading, name=heading.name[one.end() :]) for heading, one in zip(headings, found, strict=True) if one
    ]


def _headings(lines: Sequence[str]) -> list[_Heading]:
    """Return the headings in the form that most of them have; none where it is not a file of blocks."""
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
            if (
                time
                and not _DATE.fullmatch(found["name"].strip())
                and (not _NO_NAME.fullmatch(found["name"]) or _TELEPHONE.fullmatch(found["name"]))
            ):
                yield _Heading(place, place + 1, found["name"], time)


def _is_consistent(lines: Sequence[str], found: Sequence[_Heading]) -> bool:
    """Return whether each heading begins a block, has words below, and times ascend: a sentence may end with a time."""
    if not found or any(_SENTENCE.fullmatch(one.name) and not _ABBREVIATED.fullmatch(one.name) for one in found):
        return False
    times = _times(found)
    begins = all(
        one.line == 0
        or not lines[one.line - 1].strip()
        or lines[one.line][0] == "["
        or " | " in lines[one.line]
        or " — " in lines[one.line]
        for one in found
    )
    again = len({one.name for one in found}) < len(found)
    starts = {-1, *(one.line for one in found)}
    has_text = all(_next(lines, one.text) not in starts for one in found)
    return len(found) > 1 and times == sorted(times) and has_text and (begins or again)


def _times(headings: Sequence[_Heading]) -> list[float]:
    """Return the seconds of headings from the beginning; of times of the day, from the first one."""
    of_day = since_first_of_day([one.time for one in headings])
    return [offset(one.time) for one in headings] if of_day is None else of_day


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
