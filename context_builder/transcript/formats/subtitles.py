"""Subtitles: WebVTT (https://www.w3.org/TR/webvtt1/), SubRip, and SubViewer as YouTube and Google Meet write it (.sbv).

Each has a line of times above what was said, such as ``00:01:02.500 --> 00:01:04.000`` or ``0:01:02.500,0:01:04.000``;
what stands directly above that line names the cue. So one parser reads all of them, by their lines of times. Text after
an empty line goes on with its cue: people do leave empty lines inside what somebody says.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import dropwhile, groupby, pairwise
from typing import Final

from context_builder.transcript.fields import optional_text, parse
from context_builder.transcript.labels import LabelledLine, spoken
from context_builder.transcript.moments import iso
from context_builder.transcript.offsets import CLOCK, offset
from context_builder.transcript.repeats import TOUCHING, once, rolled_out
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance, name_of

_SILENT: Final = re.compile(r"(WEBVTT|NOTE|STYLE|REGION)(\s|$)")
"""First line of a WebVTT block in which nobody speaks."""

_ARROW: Final = r"(?:[-–—=]{1,3}\s?(?:>|&gt;)|[–—→⟶])"
_MORE: Final = r"(?:\.\d{1,20})?"
"""Behind the milliseconds, where a program writes them with a fraction of their own."""

_TIMES: Final = re.compile(
    rf"\s*-?(?P<start>{CLOCK}){_MORE}\s*{_ARROW}\s*(?:-?(?P<end>{CLOCK}){_MORE}(?P<rest>\s.*)?)?"
)
_SETTINGS: Final = re.compile(r"(?:\s+[A-Za-z]\w{0,19}:\S*)*\s*")
_PAIR: Final = re.compile(r"\s*(?P<start>[\d:]{3,16}\.\d{1,9}|[\d:]{5,16})\s*,\s*(?P<end>[\d:]{3,16}(?:\.\d{1,9})?)\s*")
_BROKEN: Final = re.compile(rf"\s*(?:[\w:.,-]{{0,20}}\d[\w:.,]{{0,20}}|NaN[\w:.,]{{0,20}})\s*{_ARROW}")
"""Looks like a line of times and is none."""

_HALF_BROKEN: Final = (
    (re.compile(r"\s*(\S{1,24})\s*-->\s*(\S{1,24})\s*"), re.compile(CLOCK)),
    (re.compile(r"\s*([^\s,]{3,16}),([^\s,]{3,16})\s*"), re.compile(r"[\d:]{3,16}\.\d{1,9}")),
)
"""Two that should be times, as SubRip and SubViewer write them, and what one of them then is."""

_OF_FRAMES: Final = r"\d\d:\d\d:\d\d[:;.]\d\d"
_EDITED: Final = re.compile(
    rf"\s*(?:\d{{1,5}}[:.]?\s+)?(?P<start>{_OF_FRAMES})\s*[,\s]\s*(?P<end>{_OF_FRAMES})"
    r"(?:\s*[,\s]\s*(?P<text>\S.*))?\s*"
)
_REMARK: Final = re.compile(r"\s*(?://.*|\$\w+\s*=.*|@ .*|<(?:begin|end) subtitles>|#.*)")
"""What such a program says beside the subtitles."""

_UNPADDED: Final = re.compile(r"^[ \t]*\d:(?:\d:\d{1,2}|\d{1,2}:\d)\.\d{1,3}\s*-->", re.MULTILINE)
"""Begins a line of times as Teams' Word documents have it: ``0:0:2.350 --> 0:0:5.10``."""

_WEBEX: Final = re.compile(r"\s*\d+\s+\"(?P<name>[^\"<>]{1,120})\"\s*(?:\(\d+\))?\s*")
"""Names a cue: ``1 "Ida Lind" (2837465)``."""

_CUT_OFF: Final = re.compile(
    r"\s*-?\d{1,3}:\d{2}(?::\d{0,2}(?:[.,]\d{0,3})?|\.\d{0,3})?"
    r"(?:\s+-{0,2}>?\s*|\s+-->\s*\d{1,3}(?::\d{0,2}(?::\d{0,2}(?:[.,]\d{0,2})?)?)?)?"
)
"""A line of times that ends too early."""

_HEADER: Final = re.compile(r"\s*\[[A-Z]{2,20}( [A-Z]{2,20})?\].*|\s*")
"""Stands above the subtitles of SubViewer: ``[INFORMATION]``, ``[TITLE]The talk``."""

_INDEX: Final = re.compile(r"\s*\d{1,9}\s*")
# A tag ends before the next one begins, so that looking for the end of one that has none does not read on to the end.
_VOICE: Final = re.compile(r"<v(?:\.[^\s<>]*)?\s(?P<speaker>[^<>]*)>")
_TAG: Final = re.compile(
    r"\^[IBU](?=\S|$)|</?(?:c|i|b|u|s|v|em|p|rt|ruby|lang|span|font|strong)(?:[.\s][^<>]*)?/?>|<\d[\d:.]*>|\{\\[^{}]*\}",
    re.IGNORECASE,
)
_OF_SEVERAL: Final = re.compile(r"\s*[-–—]\s?\S")
"""How lines of one cue begin that several people say: "- Yes." "- No." """
_STAMPED: Final = re.compile(r"<\d")
"""Begins a time within a caption that rolls, which shows its words again without it."""

_BREAK: Final = re.compile(r"<br\s?/?>|\[br\]|\\N", re.IGNORECASE)
_DIRECTION: Final = re.compile("[\u200e\u200f]")
_BEYOND_UNICODE: Final = re.compile(r"&#[0-9]{8,};?")
"""A character reference that :func:`html.unescape` fails on: Python refuses to read integers of thousands of digits."""


@dataclass(slots=True)
class Cue:
    """A cue: its times in seconds, and the lines below its line of times."""

    at: float | None
    until: float | None
    name: str = ""
    lines: list[str] = field(default_factory=list)
    began: datetime | None = None  # the moment at which the recording began, where the cue tells


def is_of_editor(text: str) -> bool:
    """Return whether a text is subtitles of a program for editing: two times of frames on a line."""
    lines = [line for line in text[:4000].split("\n") if line.strip()][:30]
    found = sum(bool(_EDITED.fullmatch(line)) for line in lines)
    return found > 1 or 0 < found == len(lines)


def read_of_editor(source: Source) -> Transcript:
    """Return the transcript in subtitles of Spruce (.stl), Avid, Encore and their like, read as SubRip."""
    lines = [line for line in source.text.split("\n") if not _REMARK.fullmatch(line)]
    source.text = "\n".join(
        f"\n{one['start']} --> {one['end']}\n{(one['text'] or '').replace('|', chr(10))}"
        if (one := _EDITED.fullmatch(line))
        else line
        for line in lines
    )
    return read_subtitles(source)


def is_subtitles(text: str) -> bool:
    """Return whether a text is subtitles, by its first lines."""
    lines = [line for line in text[:4000].split("\n") if line.strip()]
    lines = [*dropwhile(_HEADER.fullmatch, lines)][:12]  # SubViewer's
    return bool(lines) and (lines[0].startswith("WEBVTT") or any(_is_times(line) for line in lines[:8]))


def read_subtitles(source: Source) -> Transcript:
    """Return the transcript in subtitles; what cannot be read of them is noted by line."""
    found = _unrolled(_highlighted_once(cues(source)))
    said = once([*_utterances(found)])
    return Transcript(said, next((cue.began for cue in found if cue.began is not None), None))


def read_subtitles_in_text(source: Source) -> Transcript:
    """Return the transcript in subtitles that stand in a text, where Teams has a line for the speaker in each."""
    found = _highlighted_once(cues(source))
    names = [name_of(cue.lines[0]) for cue in found if len(cue.lines) > 1 and _may_be_name(cue.lines[0])]
    if len(names) == len(found) and (len(names) > len(set(names)) or _UNPADDED.search(source.text)):
        for cue, name in zip(found, names, strict=True):
            cue.lines = [f"<v {name}>{cue.lines[1]}", *cue.lines[2:]]
    return Transcript(once([*_utterances(found)]))


def _may_be_name(line: str) -> bool:
    return len(line) <= 60 and not re.search(r"[<>:]|[.?!,;…]\s*$", line)


def cues(source: Source) -> list[Cue]:
    """Return the cues of subtitles, in the order of the file."""
    found: list[Cue] = []
    is_webvtt = source.text.lstrip().startswith("WEBVTT")
    _leave_out_what_is_cut_off(source)
    numbered = enumerate(source.text.split("\n"), start=1)
    index = 0  # of the last cue that has one
    for empty, lines in groupby(numbered, key=lambda line: not line[1].strip()):
        block = [*lines]
        if empty:
            continue
        index = max([index, *(int(line) for _, line in block if _INDEX.fullmatch(line) and int(line) == index + 1)])
        if is_webvtt and _SILENT.match(block[0][1]):
            block = block[next((place for place, (_, line) in enumerate(block) if _times(line)), len(block)) :]
        elif len(block) == 1 and not is_webvtt and block[0][1].strip() == str(index):
            continue  # the number of a cue that has nothing else
        _read_block(block, found, source)
    return found


def _leave_out_what_is_cut_off(source: Source) -> None:
    """Take the beginning of a cue out of the end of a text, where its line of times ends with the file."""
    lines = source.text.split("\n")
    is_first = len(lines) > 1 and (not lines[-2].strip() or bool(_INDEX.fullmatch(lines[-2])))
    is_time = lines[-1].count(":") > 1 or "." in lines[-1]
    if is_first and is_time and _CUT_OFF.fullmatch(lines[-1]):
        source.problem("cut off within a line of times", len(lines))
        del lines[-2 if _INDEX.fullmatch(lines[-2]) else -1 :]
        source.text = "\n".join(lines)


def _highlighted_once(found: list[Cue]) -> list[Cue]:
    """Return cues of which those that show the same words one after the other, each with another marked, are one."""
    kept = found[:1]
    marked = "\n".join(found[0].lines) if found else ""
    for before, cue in pairwise(found):
        now = "\n".join(cue.lines)
        touches = before.until is not None and cue.at is not None and abs(cue.at - before.until) <= TOUCHING
        if touches and _is_other_marking(marked, now):
            kept[-1].until = cue.until
        else:
            kept.append(cue)
        marked = now
    return kept


def _unrolled(found: list[Cue]) -> list[Cue]:
    """Return the cues of captions that roll and mark another speaker (``>>``) with what each adds to the one before.

    A mark stands anywhere in a line that is shown again, so the words are compared before the marks part them.
    """
    texts = [untagged(" ".join(cue.lines)) for cue in found]
    if not any(">>" in text for text in texts) or any(_VOICE.search(line) for cue in found for line in cue.lines):
        return found
    shown = [
        Utterance(UNKNOWN_SPEAKER, text, cue.at, until=cue.until)
        for cue, text in zip(found, texts, strict=True)
        if text
    ]
    new = rolled_out(shown)
    if new is shown:
        return found
    whole = {(cue.at, text): cue.lines for cue, text in zip(found, texts, strict=True)}
    kept: list[Cue] = []
    mark = ""  # that ends a caption, and is of the next one
    for one in new:
        lines = [html.escape(one.text, quote=False)]
        if not one.text.endswith(">>"):
            lines = whole.get((one.at, one.text), lines)
        lines = [html.escape(mark) + lines[0], *lines[1:]]
        mark = ">> " if one.text.endswith(">>") else ""
        if mark:
            lines[0] = lines[0].removesuffix("&gt;&gt;")
        kept.append(Cue(one.at, one.until, lines=lines))
    return kept


def _is_other_marking(before: str, after: str) -> bool:
    """Return whether texts have the same words and voices, and others of them are marked, as who reads along sees."""
    if (
        before == after
        or not (_is_partly_marked(before) or _is_partly_marked(after))
        or _STAMPED.search(before + after)
    ):
        return False
    return _VOICE.findall(before) == _VOICE.findall(after) and untagged(before) == untagged(after)


def _is_partly_marked(text: str) -> bool:
    text = text.strip()
    return "<" in text and not (text.startswith("<") and text.endswith(">") and text.count("<") == 2)


def _read_block(block: list[tuple[int, str]], found: list[Cue], source: Source) -> None:
    """Add the cues of a block; what stands above its first line of times, but for a name, goes on with the last cue."""
    begun: Cue | None = None
    above: list[tuple[int, str]] = []  # lines since the last line of times
    for number, line in block:
        times = _times(line)
        if times is None and not (_is_broken(line) and (len(above) < 2 or _INDEX.fullmatch(above[-1][1]))):
            above.append((number, line))
            continue
        name = ""
        if above and (begun is None or _INDEX.fullmatch(above[-1][1]) or _WEBEX.fullmatch(above[-1][1])):
            name = above.pop()[1]
        _go_on(begun or (found[-1] if found else None), above, source)
        begun, above = _cue(times, source, number), []
        begun.name = name
        found.append(begun)
    _go_on(begun or (found[-1] if found else None), above, source)


def _go_on(cue: Cue | None, lines: list[tuple[int, str]], source: Source) -> None:
    if cue is not None:
        cue.lines += [line for _, line in lines]
    elif told := [number for number, line in lines if not _HEADER.fullmatch(line)]:
        source.problem("text without a line of times above it", told[0])


def _times(line: str) -> re.Match[str] | None:
    return _TIMES.fullmatch(line) or _PAIR.fullmatch(line) if ":" in line else None


def _is_broken(line: str) -> bool:
    """Return whether a line looks like one of times, and is none."""
    for both, time in _HALF_BROKEN:
        told = found.groups() if (found := both.fullmatch(line)) else ()
        if told and all(":" in one for one in told) and any(time.fullmatch(one) for one in told):
            return True
    return _BROKEN.match(line) is not None


def _is_times(line: str) -> bool:
    """Return whether a line is one of times; of two with a comma between (SubViewer), both have fractions.

    Behind them are settings, or nothing: other text is what is said at these times, as lists of segments have it.
    """
    return (
        "-->" in line
        and (found := _TIMES.fullmatch(line)) is not None
        and bool(_SETTINGS.fullmatch(found["rest"] or ""))
    ) or (line.count(".") == 2 and bool(_PAIR.fullmatch(line)))


def _cue(times: re.Match[str] | None, source: Source, number: int) -> Cue:
    if times is None:
        source.problem("not a line of times such as 00:01:02.500 --> 00:01:04.000", number)
        return Cue(None, None)
    try:
        return Cue(offset(times["start"]), offset(times["end"]) if times["end"] else None)
    except ValueError as error:
        source.problem(error, number)
        return Cue(None, None)


def _utterances(found: list[Cue]) -> Iterator[Utterance]:
    """Yield one utterance for each run of lines of the same speaker; a line without one goes on with the last."""
    for cue in found:
        cue.lines = _named(cue)
    voices = [_voiced(cue.lines) for cue in found]
    told = [
        (cue, one)
        for cue, voiced, said in zip(found, voices, spoken([_marked_plain(cue.lines) for cue in found]), strict=True)
        for one in voiced or said
    ]
    goes_on = any(voices) and _are_at_changes([one.speaker for _, one in told])
    speaker: str | None = None
    for cue, one in told:
        if one.speaker is None and _HEARD_BESIDE.fullmatch(one.text):
            yield Utterance(UNKNOWN_SPEAKER, one.text, cue.at, until=cue.until)
            continue
        is_of_one = goes_on and not any(map(_OF_SEVERAL.match, cue.lines))
        speaker = one.speaker or (speaker if is_of_one else None)
        yield Utterance(speaker or UNKNOWN_SPEAKER, one.text, cue.at, until=cue.until)


_HEARD_BESIDE: Final = re.compile(r"\[[^\[\]]+\]|\([^()]+\)|♪.*")
"""What a cue has that is nobody's, such as applause."""


def _are_at_changes(speakers: list[str | None]) -> bool:
    """Return whether voices stand where the speaker changes: the first cue has one, and none follows on itself."""
    named = [one for one in speakers if one is not None]
    return len(named) > 1 and speakers[0] is not None and all(a != b for a, b in pairwise(named))


def _named(cue: Cue) -> list[str]:
    """Return a cue's lines, as a voice where its name (Webex) or an object in it (Teams' metadata) tells who speaks."""
    if cue.name and (named := _WEBEX.fullmatch(cue.name)):
        return [f"<v {named['name']}>{' '.join(cue.lines)}"]
    if cue.lines and cue.lines[0].lstrip().startswith('{"'):
        try:
            told = parse("\n".join(cue.lines))
        except ValueError:
            return cue.lines
        if isinstance(told, dict) and (text := optional_text(told, "spokenText")):
            name = optional_text(told, "speakerName") or UNKNOWN_SPEAKER
            if cue.at is not None and (moment := optional_text(told, "startDateTime")):
                with suppress(ValueError):
                    cue.began = iso(moment) - timedelta(seconds=cue.at)
            return [f"<v {html.escape(name)}>{html.escape(text)}"]
    return cue.lines


def _voiced(lines: list[str]) -> list[LabelledLine]:
    """Return what the voices of a cue say, by WebVTT's tags; nothing where it has none."""
    if not any("<v" in line and _VOICE.search(line) for line in lines):
        return []
    said: list[LabelledLine] = []
    for line in lines:
        before, *voices = _VOICE.split(line)
        parts = [LabelledLine(None, untagged(before))]
        parts += [
            LabelledLine(name_of(untagged(who)), untagged(text))
            for who, text in zip(voices[::2], voices[1::2], strict=True)
        ]
        for part in parts:
            if said and part.speaker in (None, said[-1].speaker):
                said[-1] = LabelledLine(said[-1].speaker, f"{said[-1].text} {part.text}".strip())
            elif part.text or part.speaker:
                said.append(part)
    return [one for one in said if one.text]


def _marked_plain(lines: list[str]) -> list[str]:
    return [] if _voiced(lines) else [untagged(line) for line in lines]


def untagged(marked: str) -> str:
    """Return a text without tags and character references, with single blanks between its words."""
    text = _BEYOND_UNICODE.sub("\N{REPLACEMENT CHARACTER}", _TAG.sub("", _BREAK.sub(" ", marked)))
    return " ".join(_DIRECTION.sub("", html.unescape(text)).split())
