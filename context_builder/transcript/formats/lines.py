"""Text with what somebody said on each line, or after a label: Whisper's and WhisperX' ``.txt``, ``.lrc``, Google Meet.

A time may stand before a line, ``[00:03] Ida: …``, or alone above several, as in Google Meet's documents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from context_builder.transcript.fields import plain
from context_builder.transcript.formats.markdown import is_of_model
from context_builder.transcript.labels import Labels, is_heard_beside, is_written_as_name
from context_builder.transcript.moments import in_heading
from context_builder.transcript.offsets import CLOCK, HALF, offset, since_first_of_day
from context_builder.transcript.repeats import once
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance

_TIME: Final = rf"(?:{CLOCK}|\d{{1,6}}(?:\.\d{{1,6}})?\s?s|\d{{1,6}}\.\d{{1,6}})"
_BETWEEN: Final = rf"[\[(]\s*(?P<start>{_TIME})\s*(?:-+>|[-–—,])\s*(?P<end>{_TIME})\s*[\])]"
_RANGE: Final = re.compile(rf"\s*{_BETWEEN}:?\s*")
"""``[00:00.000 --> 00:02.500]`` and ``[0.00s -> 2.50s]``."""

_WHO: Final = r"\s*(?P<who>[^\s:\uff1a\[\]][^:\uff1a\[\]\n]{0,78}?)[:\uff1a]?\s*"
_COLON: Final = r"(?::?\s+|\uff1a\s*)"
_OFFSET: Final = rf"(?P<start>(?:\d{{1,3}}:)?\d{{1,3}}:\d{{2}}(?:[.,:]\d{{1,6}})?{HALF}?)"
_NAMED_RANGE: Final = re.compile(rf"\s*\[?(?P<who>[^\s:\[\]][^:\[\]\n]{{0,78}}?)\]?:?\s*{_BETWEEN}:?\s+(?P<text>\S.*)")
_NAMED_FORMS: Final = (
    re.compile(rf"{_WHO}\[{_OFFSET}\]{_COLON}(?P<text>\S.*)"),
    re.compile(rf"{_WHO}[(\uff08]{_OFFSET}[)\uff09]{_COLON}(?P<text>\S.*)"),
    re.compile(rf"{_WHO},\s?{_OFFSET}:\s+(?P<text>\S.*)"),
    re.compile(rf"{_WHO}\s(?:at |@ ?)?{_OFFSET}:\s+(?P<text>\S.*)"),
    re.compile(rf"\s*\[(?P<who>[^\[\]:\n]{{1,78}})\]\s+{_OFFSET}\s+[-–—|]\s+(?P<text>\S.*)"),
    _NAMED_RANGE,
)
"""``SPEAKER_00 [0.00s - 2.50s]: …``, also in brackets,
``Ida: [00:00:02] …`` (Sonix), ``Ida [00:00:02] …`` (Trint), ``Ida (00:03): …``, ``[Ida] 00:03 - …``"""

_BEFORE: Final = re.compile(
    r"\s*(?:[\[(](?P<seconds>\d{1,6}(?:\.\d{1,6})?\s?s)[\])]|"
    r"\[(?P<square>(?:\d{1,3}:)?\d{1,3}:\d{2}(?:[.:;,]\d{1,6})?(?:\s?[AaPp]\.?[Mm]\b\.?)?)\]|\((?P<round>(?:\d{1,3}:)?\d{1,3}:\d{2}(?:[.,]\d{1,6})?(?:\s?[AaPp]\.?[Mm]\b\.?)?)\)|"
    r"<(?P<angle>(?:\d{1,3}:)?\d{1,3}:\d{2}(?:\s?[AaPp]\.?[Mm]\b\.?)?)>|"
    r"(?P<bare>(?:\d{1,3}:)?\d{1,3}:\d{2}(?:[.,]\d{1,6}|[:;]\d{2})?(?:\s?[AaPp]\.?[Mm]\b\.?)?)(?=\s))\s*(?:[-–—|]\s+)?"
)
_REV: Final = re.compile(
    r"(?P<who>[^\s:][^:\t\n]{0,79}?):?(?:\t\s*| {2,})(?P<time>(?:\d{1,3}:)?\d{1,3}:\d{2}(?:[.,]\d{1,6})?)"
    r"(?:\t\s*| {2,})(?P<text>\S.*)"
)
"""Who, when, and what on one line, as Rev writes it."""

_SEPARATED: Final = (
    (re.compile(r"(?P<who>[^\W\d][^\t:]{0,39})\t(?P<text>[^\t]*\S[^\t]*)"), 1.0),
    (re.compile(r"(?P<who>[^\W\d_][^:\n]{0,39}?)\s+[-–—]{1,2}\s+(?P<text>\S.*)"), 1.0),
    (re.compile(r"(?P<who>[^\W\d_][^:|\n]{0,39}?)\s+\|\s+(?P<text>[^|]*\S[^|]*)"), 1.0),
    (re.compile(r"(?P<who>(?:[^\W\d_a-z]|[ '’-]){2,40}(?: \([^()\n]{1,40}\))?)\.\s+(?P<text>\S.*)"), 0.5),
)
"""A name before a tab, a dash, a bar, or (in capitals, as in plays) a full stop, and the part of the lines with it."""

_CELL_OF_TIME: Final = r"(?P<time>\d{1,3}(?::\d{2}){1,3}(?:[.,;]\d{1,3})?(?:\s?[AaPp][Mm])?)"
_TIME_CELL: Final = rf"[\[(]?{_CELL_OF_TIME}[\])]?"
_NAME_CELL: Final = r"\[?(?P<who>[^\W\d][^\t:;|\[\]]{0,59}?)\]?:?"
_COLUMNS: Final = (
    *(
        re.compile(rf"{first}{between}{second}{between}(?P<text>.*\S.*)")
        for between in (r"[ ]?\t[ ]?", r" {0,4}\| {0,4}", r" ?; ?", r" {1,4}[-–—] {1,4}", r" {1,4}[>»/] {1,4}")
        for first, second in ((_TIME_CELL, _NAME_CELL), (_NAME_CELL, _TIME_CELL))
    ),
    re.compile(rf"\[(?P<who>[^\W\d][^\[\]:]{{0,59}}?)(?:,| [-–—|]) {_CELL_OF_TIME}\]:? (?P<text>\S.*)"),
    re.compile(rf"\[{_CELL_OF_TIME}(?:,| [-–—|]) (?P<who>[^\W\d][^\[\]:]{{0,59}}?)\]:? (?P<text>\S.*)"),
)
"""When and who, in either order, and what, with tabs, bars, semicolons or dashes between; or both in brackets."""

_SURE: Final = 3
"""Lines of columns from which on some name comes again; without, they are items of a programme."""

_PROGRAMS: Final = re.compile(
    r"(?:#{1,6} )?(?P<who>You|ChatGPT|Claude|Gemini|Copilot|Grok) (?:said|responded|replied):"
)
"""Stands above what was said, in what is copied of pages of models."""

_TIME_BEFORE: Final = re.compile(r"\s{0,80}¤<(\d{1,9})>")
"""Of Transana, in milliseconds."""

_VERSE: Final = re.compile(r"\s*(?P<times>(?:\[\d{1,3}:\d{2}(?:[.:]\d{1,3})?\]\s*)+)(?P<text>.*)")
_WORD_TIME: Final = re.compile(r"<\d{1,3}:\d{2}(?:[.:]\d{1,3})?>")
"""A line of lyrics with each time at which it is sung, and the times of its words."""

_NAMES: Final = re.compile(r"[^\s:][^:]{0,79}:\s")
_SENTENCE: Final = re.compile(r"[.?!,;:…。？！]\s*$")
_ALONE: Final = re.compile(
    rf"[\s#*]*[\[(]?((?:\d{{1,3}}:)?\d{{1,3}}:\d{{2}}(?:[.,]\d{{1,6}})?{HALF}?)"
    rf"(?:\s?(?:[-–—→]|-+>)\s?{CLOCK})?[\])]?[\s*]*(?:\{{#[\d:.]*\}}\s*)?"
)
"""Also as a heading of Markdown, and with an end behind it."""

_FISHER: Final = re.compile(r"(\d{1,6}\.\d{1,3}) (\d{1,6}\.\d{1,3}) (?=[^\s:][^:\n]{0,39}: )")
"""Two times before who speaks, as the corpora of the LDC have them."""

_DIARIZED: Final = re.compile(
    r"(?P<start>\d{1,6}\.\d{1,3})s?\s+(?:-{1,2}>?\s+)?(?P<end>\d{1,6}\.\d{1,3})s?\s+"
    r"(?P<who>(?:SPEAKER|speaker|spk)_\d{1,4}|None):?\s+(?P<text>\S.*)"
)
"""Two times, a speaker of pyannote's, and what was said, as pyannote-whisper and sherpa-onnx have them."""

_CLOCKED: Final = re.compile(
    rf"\s*(?P<start>{CLOCK})\s*(?:-+>|[-–—])\s*(?P<end>{CLOCK})(?:\s*[-–—|:]\s+|\s+)(?P<text>\S.*)"
)
"""Two times without brackets."""

_BEFORE_COMMA: Final = re.compile(rf"\s*(?P<time>{CLOCK}),\s+(?=[^\s:,][^:,\n]{{0,59}}:\s)")
"""A time with a comma behind it, before a label."""

_WAITED: Final = re.compile(r"\s*\( (?:(?P<hours>\d{1,2})h )?(?:(?P<minutes>\d{1,3})m )?(?P<seconds>\d{1,4})s \)\s+")
"""The time since a chat began, as Salesforce writes it: ``( 1m 3s )``."""

_EMITTED: Final = re.compile(r"\d{1,9}\.\d{4} (?P<start>\d{1,9}) (?P<end>\d{1,9}) (?P<text>.*)")
"""When a line was written, and two times, all in milliseconds, as whisper_streaming has them."""

_ITEM_OF_SPEAKER: Final = re.compile(r"(?:^|(?<=\s))\[(\d{1,3}:\d{2}:\d{2})\] - ")
"""Begins what was said at a time, below its speaker, in aTrain's texts."""

_LENGTH: Final = re.compile(r"\s{0,4}\[\d{1,2}:\d{2}:\d{2}\]\[\d{1,5}\.\d{1,3}\]")
"""When a pause begins behind what is said, and how long it is, in Trint's texts."""

_MOST_TITLES: Final = 4
"""Lines of titles above what was said, at most."""

_FEWEST_NAMED: Final = 2
_MARK: Final = re.compile(r"\s*#(\d{1,2}:\d{2}:\d{2})-(\d{1,2})#\s*")
"""A time as f4, MAXQDA and others write it, behind a paragraph or before it: ``#00:01:02-5#``."""

_FRAME: Final = re.compile(
    r"\s*(?:\{[^{}\n]{1,200}\}\s*)+|\s*\*{4,} (?:START|END) SCRIPT \*{4,}\s*|\s*\[END\]\s*|"
    r"\s*### Transcription \d+ (?:START|END)\b.*|Session (?:Close|Ident|Time): .*|"
    r"\s*\(\d{1,2}:\d\d(?::\d\d)?(?: [AP]M)?\) \*{3} .{1,120} \*{3}\s*|"
    r"\s*\*{3} .{1,80} (?:joined|left|closed|ended)\b.{0,40} \*{3}\s*|"
    r"[\s\[(*_-]{0,8}(?i:(?:start|beginning|end) of (?:the )?(?:transcript(?:ion)?|recording|interview|tape))"
    r"[\s\])*_.-]{0,8}|"
    r"[\s#*_-]*This editable transcript was computer generated.*|\s*(?:-{3,}|={3,}|\*{3,}|_{3,}|─{3,}|═{3,})\s*"
)
"""Stands around the subtitles of QuickTime (``{QTtext} {font:Arial}``) and of SubViewer's first version, and around
what whisper.cpp's stream hears; what chats say of who comes, and when they end (Zendesk, Trillian); what Google Meet
says of its transcript; where one begins and ends; and rules."""

_PAGE: Final = re.compile(
    r"\s*(?:Page|Seite|Página|Pagina|Side|Sida|Strona|Страница) (?P<number>\d{1,4})"
    r"(?P<of>\s?(?:of|von|de|di|sur|av|af|van|z|из|/)\s?\d{1,4})?\s*"
)
"""The number of a page; without how many there are, several that count on."""

_LYRICS: Final = re.compile(r"\s*\[(?:ti|ar|al|au|by|re|ve|offset|length|la|tool|#)\s*:[^\]]*\]\s*", re.IGNORECASE)
_SHIFT: Final = re.compile(r"\s*\[offset:\s*([+-]?\d{1,9})\]\s*", re.IGNORECASE)
"""Milliseconds by which lyrics come sooner."""

_WHISPERCPP: Final = re.compile(r"\s*\[by:whisper\.cpp\]\s*")
_MEET_BEGINS: Final = re.compile(r"\W*Transcript\W*|.* \\?[-–] Transcript\s*")
_MEET_ENDS: Final = re.compile(r"[\s#*]*(?:Meeting|Transcription) ended (?:after|at) .*")
_MEET_UNSAID: Final = re.compile(r"[\s#*]*(?:Attendees|Invited .*|Attachments .*|Meeting started .*)")
_SHARE: Final = 0.5


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of text with its number, and the times before it."""

    number: int
    text: str
    at: float | None = None
    until: float | None = None
    time: str = ""
    is_below: bool = False  # of the time


def read_lines(source: Source) -> Transcript:
    """Return what the lines say; those before the first label of a file that has some are its heading."""
    written = _with_ranges(_with_speakers_above(_with_labels_above(source.text.split("\n"))))
    written = _with_colons(_unlisted([_mark_before(line) for line in written]))
    heading, written, first = _without_frame(written)
    if about := _of_minutes(written):
        heading, written, first = [*heading, *written[:about]], written[about:], first + about
    lines = [*_lines(written, first, source)]
    if (of_day := since_first_of_day([line.time for line in lines if line.at is not None])) is not None:
        since = iter(of_day)
        lines = [line if line.at is None else replace(line, at=next(since)) for line in lines]
    timed = sum(line.at is not None for line in lines)
    named = [bool(_NAMES.match(line.text)) for line in lines if line.at is not None]
    by_time = timed >= _SHARE * max(1, len(lines)) or (timed > 1 and all(named))
    by_time = by_time and not any(line.is_below for line in lines)
    begins_one = [not by_time or line.at is not None for line in lines]
    beside = [line.at is None and _is_remark(line.text) for line in lines]
    labels = Labels(
        [
            line.text
            for line, begins, is_beside in zip(lines, begins_one, beside, strict=True)
            if begins and not is_beside
        ]
    )
    spoken = [(line, labels.line(line.text, first=begins)) for line, begins in zip(lines, begins_one, strict=True)]
    labelled = sum(one.speaker is not None for _, one in spoken)
    is_of_people = labelled > 0 and not any((one.speaker or "").lower() in _MODELS for _, one in spoken)
    joins = labelled > 0 or timed >= _SHARE * max(1, len(lines))
    said: list[Utterance] = []
    above = 0
    headings, is_below_heading = 0, False
    remarks = 0
    for (line, one), is_beside in zip(spoken, beside, strict=True):
        if said and labelled and is_beside and one.speaker is None:
            remarks += 1
            continue
        if is_of_people and said and _MARKED_HEADING.match(line.text):
            is_below_heading = True
            headings += 1
            continue
        begins = one.speaker is not None or line.at is not None or is_below_heading or not joins
        is_below_heading = False
        if begins and (one.text or one.speaker is not None):
            if labelled and not said and one.speaker is None and line.at is None:
                above += 1
                continue
            said.append(Utterance(one.speaker or UNKNOWN_SPEAKER, one.text, line.at, until=line.until))
        elif said and one.text:
            last = said[-1]
            said[-1] = Utterance(last.speaker, f"{last.text} {one.text}".strip(), last.at, until=last.until)
        elif one.text:
            above += 1
    source.left_out(above if said else 0, "line", "above the first speaker")
    source.left_out(headings, "heading", "between what was said")
    source.left_out(remarks, "remark", "in brackets")
    heading += [line.text for line in lines[:above]]
    return Transcript(once([one for one in said if one.text]), in_heading(heading[:20]))


_MODELS: Final = frozenset(
    ("assistant", "chatgpt", "claude", "gemini", "copilot", "grok", "agent", "ai", "model", "bot", "gpt-4", "cursor")
)
"""Who writes headings within what they say."""

_MARKED_HEADING: Final = re.compile(r"#{1,6} \S")
"""A heading in Markdown: nobody says it, and what has no label below it is not known to be whose."""

_REMARK: Final = re.compile(r"\([^()]+\)|\uff08[^\uff08\uff09]+\uff09")
"""What stands in brackets on a line of its own between what was said: applause, or what somebody adds."""

_LABEL: Final = re.compile(r"\s*(?P<label>[^\s:\uff1a][^:\uff1a\n]{0,59}?)\s?(?::(?:\s|$)|\uff1a)")
_HEADS: Final = frozenset(
    (
        "date", "time", "present", "attendees", "participants", "apologies", "absent", "location", "place", "subject",
        "topic", "meeting", "agenda", "chair", "minutes", "title", "datum", "uhrzeit", "anwesend", "teilnehmer",
        "abwesend", "ort", "thema", "betreff", "protokoll", "entschuldigt", "présents", "lieu", "objet", "heure",
        "excusés", "fecha", "hora", "asistentes", "presentes", "lugar", "asunto", "data", "presenti", "luogo",
        "oggetto", "aanwezig", "plaats", "onderwerp", "närvarande", "plats", "til stede", "sted", "obecni", "miejsce",
        "дата", "присутствовали", "место", "тема", "日時", "場所", "出席者", "议题", "时间", "地点",
        "参会人员", "与会人员",
    )
)  # fmt: skip
"""Labels above minutes that tell of the meeting."""


def _is_remark(line: str) -> bool:
    """Return whether a line is a remark, which nobody said; what else is in brackets, somebody did."""
    return _REMARK.fullmatch(line) is not None and is_heard_beside(line)


def _of_minutes(lines: Sequence[str]) -> int:
    """Return how many lines tell of a meeting above its minutes: before an empty line, with labels that speak of it.

    None of their labels comes again; below, some do.
    """
    first = next((place for place, line in enumerate(lines) if line.strip()), 0)
    end = next((place for place in range(first, min(len(lines), first + 20)) if not lines[place].strip()), 0)
    above, below = (
        [one["label"] for line in some if (one := _LABEL.match(line))] for some in (lines[:end], lines[end:])
    )
    heads = {label.lower() for label in above} & _HEADS
    if len(heads) < len(above) / 2 or heads <= {"chair"} or not set(above).isdisjoint(below):
        return 0
    return end if len(set(below)) < len(below) else 0


_ABOUT: Final = re.compile(r"(?:\s{1,8}\([^()\n]{1,60}\)){1,8}$")
"""What Hansard has behind names: whom somebody is elected by, and the party."""

_ITEM: Final = re.compile(r"\s*(\d{1,4})(?:[.):]|(?=\s+[^\s:][^:]{0,60}:\s))\s+(\S.*)")
_BULLET: Final = re.compile(r"\s*[-*+•]\s+(?=[^\s:][^:\n]{0,59}:\s)")
"""Begins an item of a list, before a label."""

_ANGLE: Final = re.compile(r"\s*<([^<>:\n]{1,60})>:?\s+(\S.*)")


_ACTION: Final = re.compile(r"\s*\* (\S{1,60}) (\S.*)")
"""What somebody does, in a log of IRC."""


def _unlisted(lines: list[str]) -> list[str]:
    """Return lines without the numbers of a list, with colons behind names in angle brackets or above paragraphs."""
    told = [line for line in lines if line.strip()]
    if len(told) > 1 and all(_BULLET.match(line) for line in told):
        lines = [_BULLET.sub("", line, count=1) for line in lines]
    items = [found for line in told if (found := _ITEM.fullmatch(line))]
    if len(items) == len(told) > 1 and [int(one[1]) for one in items] == [
        *range(int(items[0][1]), int(items[0][1]) + len(items))
    ]:
        lines = [found[2] if (found := _ITEM.fullmatch(line)) else line for line in lines]
    angled = sum(bool(_ANGLE.fullmatch(line)) for line in told)
    if angled > 1 and angled >= _SHARE * len(told):
        lines = [
            f"{found[1]}: {found[2]}" if (found := _ANGLE.fullmatch(line) or _ACTION.fullmatch(line)) else line
            for line in lines
        ]
    return _named_paragraphs(lines)


def _named_paragraphs(lines: list[str]) -> list[str]:
    """Return lines with a colon behind names above paragraphs: in each one's first line, or one alone before each."""
    starts = [
        place for place, line in enumerate(lines) if line.strip() and (place == 0 or not lines[place - 1].strip())
    ]
    alone = [place for place in starts if not "".join(lines[place + 1 : place + 2]).strip()]
    if len(alone) == len(starts):
        starts = [place for place in starts if is_written_as_name(lines[place].strip())]
        if not {place + 2 for place in starts}.isdisjoint(starts):
            return lines
    names = [_ABOUT.sub("", lines[place].strip()) for place in starts]
    has_text = all("".join(lines[place + 1 : place + 3]).strip() for place in starts)
    if (
        len(names) < 3
        or not has_text
        or len(set(names)) > len(names) / 2 + 1
        or not all(map(is_written_as_name, names))
    ):
        return lines
    begins = set(starts)
    return [f"{line.strip()}:" if place in begins else line for place, line in enumerate(lines)]


def _with_ranges(lines: list[str]) -> list[str]:
    """Return lines with their times in brackets, where enough have them otherwise."""
    told = [line for line in lines if line.strip()]
    for form, share, as_usual in _OTHER_TIMES:
        count = sum(form.match(line) is not None for line in told)
        if count and count >= (len(told) if share == 1.0 else max(2, share * len(told))):
            return [as_usual(one) + line[one.end() :] if (one := form.match(line)) else line for line in lines]
    return lines


def _of_waiting(found: re.Match[str]) -> str:
    hours, minutes, seconds = (int(one or 0) for one in found.groups())
    return f"[{hours}:{minutes:02}:{seconds:02}] "


_OTHER_TIMES: Final[Sequence[tuple[re.Pattern[str], float, Callable[[re.Match[str]], str]]]] = (
    (
        _EMITTED,
        1.0,
        lambda one: f"[{int(one['start']) / 1000:.3f} --> {int(one['end']) / 1000:.3f}] {one['text']}",
    ),
    (
        _DIARIZED,
        1.0,
        lambda one: (
            f"[{one['start']} --> {one['end']}] {'' if one['who'] == 'None' else one['who'] + ': '}{one['text']}"
        ),
    ),
    (_CLOCKED, _SHARE, lambda one: f"[{one['start']} --> {one['end']}] {one['text']}"),
    (_WAITED, 0.0, _of_waiting),
    (_BEFORE_COMMA, _SHARE, lambda one: f"[{one['time']}] "),
)
"""How else times are written, and the part of the lines that has them so."""

_LABEL_ALONE: Final = re.compile(r"\s*([^\s:\[][^:\n]{0,59}):\s*")
_TIMED: Final = re.compile(r"\s*[\[(](?:\d{1,3}:)?\d{1,3}:\d{2}(?:[.,]\d{1,6})?[\])]\s+(?=\S)")
_NUMBERED_SPEAKER: Final = re.compile(r"SPEAKER_\d{1,4}")


def _begins_a_paragraph(lines: Sequence[str], place: int) -> bool:
    return place == 0 or not lines[place - 1].strip()


def _with_labels_above(lines: list[str]) -> list[str]:
    """Return lines with the labels that stand alone above times behind these: ``Ida:`` and ``[0:03] …`` below."""
    above = {
        place: label[1].strip()
        for place, (line, below) in enumerate(pairwise(lines))
        if (label := _LABEL_ALONE.fullmatch(line)) and _TIMED.match(below) and is_written_as_name(label[1].strip())
    }
    if len(above) < 2:
        return lines
    for place, name in above.items():
        time = _TIMED.match(lines[place + 1])
        lines[place : place + 2] = ["", f"{time[0].strip()} {name}: {lines[place + 1][time.end() :]}" if time else ""]
    return lines


def _with_speakers_above(lines: list[str]) -> list[str]:
    """Return a line for each time with its speaker, where who speaks is named on a line above those with times."""
    above = {
        place: name
        for place, (line, below) in enumerate(pairwise(lines))
        if _ITEM_OF_SPEAKER.match(below)
        and not _ITEM_OF_SPEAKER.match(line)
        and 0 < len(name := line.strip()) <= 60
        and not re.search(r"[\[\]:.?!]", name)
        and (_NUMBERED_SPEAKER.fullmatch(name) or (_begins_a_paragraph(lines, place) and is_written_as_name(name)))
    }
    if len(above) < 2 and not any(map(_NUMBERED_SPEAKER.fullmatch, above.values())):
        return lines
    found: list[str] = []
    who = UNKNOWN_SPEAKER
    for place, line in enumerate(lines):
        if place in above:
            who = above[place]
        elif _ITEM_OF_SPEAKER.match(line):
            _, *parts = _ITEM_OF_SPEAKER.split(line)
            found += [f"[{at}] {who}: {text.strip()}" for at, text in zip(parts[::2], parts[1::2], strict=True)]
        else:
            found.append(line)
    return found


def _mark_before(line: str) -> str:
    """Return a line with the time of its mark before it, where one stands before or behind what is said."""
    line = _LENGTH.sub("", line) if "][" in line else line
    line = _FISHER.sub(r"[\1 --> \2] ", line, count=1) if _FISHER.match(line) else line
    if "#" not in line or not (marks := [*_MARK.finditer(line)]):
        return line
    begins = marks[0].start() == 0
    text = _MARK.sub(" ", line).strip()
    return f"[{marks[0][1]}.{marks[0][2]}] {text}" if begins and text else text


def _with_colons(lines: list[str]) -> list[str]:
    """Return lines with a colon behind the names, where enough have a name before a separator, and one comes again."""
    lines = [f"{one['who']}:" if (one := _PROGRAMS.fullmatch(line.strip())) else line for line in lines]
    if all(_TIME_BEFORE.match(line) for line in lines if line.strip()):
        lines = [
            _TIME_BEFORE.sub(lambda time: f"[{int(time[1]) // 60000:02}:{int(time[1]) // 1000 % 60:02}] ", line)
            for line in lines
        ]
    told = sum(bool(line.strip()) for line in lines)
    for form in _COLUMNS if told > 1 else ():
        cells = [form.fullmatch(line.strip()) for line in lines if line.strip()]
        people = {one["who"] for one in cells if one and is_written_as_name(one["who"])}
        if all(one and one["who"] in people for one in cells) and (len(people) < len(cells) or len(cells) < _SURE):
            return [f"[{one['time']}] {one['who']}: {one['text']}" for one in cells if one]
    for form, share in _SEPARATED:
        found = [form.fullmatch(line.strip()) for line in lines]
        names = [one["who"] for one in found if one]
        if any(one and _NAMES.match(line.strip()) for one, line in zip(found, lines, strict=True)):
            continue
        is_named = form is _SEPARATED[0][0] or all(map(is_written_as_name, names))
        if names and len(names) >= share * told and len(set(names)) < len(names) and is_named:
            return [f"{one['who']}: {one['text']}" if one else line for one, line in zip(found, lines, strict=True)]
    return lines


def read_lyrics(source: Source) -> Transcript:
    """Return what is sung, each line at each of its times (https://en.wikipedia.org/wiki/LRC_(file_format))."""
    lines = [_WORD_TIME.sub("", line) for line in source.text.split("\n")]
    shift = next((float(told[1]) / 1000 for line in lines if (told := _SHIFT.fullmatch(line))), 0.0)
    verses = [
        (verse, re.findall(r"\[([^\]]+)\]", verse["times"])) for line in lines if (verse := _VERSE.fullmatch(line))
    ]
    if any(len(times) > 1 for _, times in verses):
        sung = [(offset(time), f"[{time}] {verse['text']}") for verse, times in verses for time in times]
        lines = [line for _, line in sorted(sung, key=lambda one: one[0])]
    source.text = "\n".join(lines)
    found = read_lines(source)
    said = [one if one.at is None else replace(one, at=max(0.0, one.at - shift)) for one in found.utterances]
    return replace(found, utterances=said)


def _without_frame(lines: list[str]) -> tuple[list[str], list[str], int]:
    """Return heading and body of a document of Google Meet, and the number of the body's first line.

    Of any other, the heading is empty.
    """
    end = next((place for place, line in enumerate(lines) if _MEET_ENDS.fullmatch(line)), None)
    begin = next((place for place, line in enumerate(lines[:60]) if _MEET_BEGINS.fullmatch(line)), None)
    begin = None if begin is not None and any(map(is_of_model, lines[:begin])) else begin
    if end is None and begin is None:
        return [], lines, 1
    last = end if end is not None else len(lines)
    first = begin + 1 if begin is not None and begin < last else 0
    later = [place for place in range(first, min(last, 60)) if _MEET_BEGINS.fullmatch(lines[place])]
    first = later[-1] + 1 if later else first
    kept = [line for line in lines[first:last] if not _MEET_UNSAID.fullmatch(line)]
    return lines[:first], kept, first + 1


def _without_titles(lines: list[str]) -> list[str]:
    """Return lines without the few above the first one with a name and a time, where none of these names anybody."""
    first = next(
        (
            place
            for place, line in enumerate(lines[: _MOST_TITLES + 1])
            if any(form.fullmatch(line) for form in _NAMED_FORMS)
        ),
        0,
    )
    titles = lines[:first]
    is_said = any(_NAMES.match(line) or _SENTENCE.search(line) for line in titles)
    return lines if is_said or len(lines) - first < _FEWEST_NAMED else lines[first:]


def _are_most(lines: Sequence[str], form: re.Pattern[str]) -> bool:
    """Return whether most lines have a form with a time, also the first one, and the others go on with them."""
    found = sum(bool(form.fullmatch(line)) for line in lines)
    return found > 1 and found >= _SHARE * len(lines) and form.fullmatch(lines[0]) is not None


def _lines(written: Sequence[str], first: int, source: Source) -> Iterator[_Line]:
    """Yield the lines that say something; a time alone is that of the next one."""
    pending: float | None = None
    above = ""
    told = [line for line in written if line.strip()]
    told = _without_titles(told)
    named = next(
        (
            form
            for form in _NAMED_FORMS
            if told
            and any(form.fullmatch(line) for line in told)
            and (all(form.fullmatch(line) or _NAMES.match(line) for line in told) or _are_most(told, form))
        ),
        None,
    )
    pages = [one for line in told if (one := _PAGE.fullmatch(line))]
    numbers = [int(one["number"]) for one in pages]
    are_pages = all(after == before + 1 for before, after in pairwise(numbers)) and (
        len(pages) > 1 or all(one["of"] for one in pages)
    )
    for number, line in enumerate(written, start=first):
        if not line.strip() or _FRAME.fullmatch(line) or _LYRICS.fullmatch(line) or _WHISPERCPP.fullmatch(line):
            continue
        if are_pages and _PAGE.fullmatch(line):
            continue
        if alone := _ALONE.fullmatch(line):
            pending, above = _offset(alone[1], source, number), alone[1]
            continue
        if between := _RANGE.match(line):
            start, end = _offset(between["start"], source, number), _offset(between["end"], source, number)
            yield _Line(number, plain(line[between.end() :]), start, end)
        elif named and (one := named.fullmatch(line)):
            end = _offset(one["end"], source, number) if named is _NAMED_RANGE else None
            at = _offset(one["start"], source, number)
            yield _Line(number, plain(f"{one['who']}: {one['text']}"), at, end, one["start"])
        elif before := _BEFORE.match(line):
            time = next(one for one in before.groups() if one)
            at = _offset(time, source, number)
            yield _Line(number, plain(line[before.end() :]), at, time=time)
        elif rev := _REV.fullmatch(line):
            at = _offset(rev["time"], source, number)
            yield _Line(number, plain(f"{rev['who']}: {rev['text']}"), at, time=rev["time"])
        else:
            yield _Line(number, plain(line), pending, time=above, is_below=pending is not None)
        pending, above = None, ""


def _offset(time: str, source: Source, line: int) -> float | None:
    with source.one_entry(line):
        return offset(time) if ":" in time else float(time.rstrip("s"))
    return None
