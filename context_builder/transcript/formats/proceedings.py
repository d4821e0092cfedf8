"""Proceedings of courts and parliaments: numbered lines, ``Q.`` and ``A.``, ``THE WITNESS:``, and ``Mr. BERG. …``.

Who asks is named above, as in ``BY MR. BERG:``; who answers is the witness. Reports of parliaments tell who speaks each
in a way of its own: ``M. le président. – …``, ``O SR. PRESIDENTE - …``, ``○議長 …``; what stands in brackets on a line
of its own, such as applause, was not said. Those that write ``Name: …`` are lines.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from context_builder.transcript.fields import plain
from context_builder.transcript.labels import is_written_as_name
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance, name_of

_NUMBERED: Final = re.compile(r"[ \t]*(?:\d{4,6}:)?(?P<number>\d{1,2})(?:[ \t]+(?P<text>\S.*)|[ \t]*)")
_ASKS: Final = re.compile(
    r"\s*(?P<who>[QA])(?:\.|:|\s*[-–])?\s+(?P<text>(?![\[(]\d{1,3}:\d\d|\d{1,3}:\d\d(?::\d\d)?\s*(?::|$))\S.*)"
)
_BY: Final = re.compile(
    r"\s*(?:(?:DIRECT|CROSS|REDIRECT|RECROSS)[- ]?EXAMINATION\s+)?(?:\(?BY|By)\s+"
    r"(?P<who>[A-Z][\w.'’ -]{2,40}):?\)?\s*:?"
)
_SPEAKS: Final = re.compile(r"\s*(?P<who>(?:THE\s+)?[A-Z][A-Z.'’ -]{1,40}[A-Z]):\s+(?P<text>\S.*)")
_TITLED: Final = re.compile(
    r"\s{0,8}(?P<who>(?:Mr|Mrs|Ms|Miss|Dr|Senator|Representative|The)\.?\s+"
    r"(?:[A-Z][a-z]{0,3})?[A-Z][A-Z'’-]+(?:\s[A-Z][A-Z'’-]+)*(?:\s(?:pro "
    r"tempore|of\s[A-Z][A-Za-z ]{2,20}))?)\.\s+(?P<text>\S.*)"
)
_PARLIAMENT: Final = re.compile(r"\s*<SPEAKER(?P<fields>\s+ID\s*=[^<>]*[^<>/])>\s*")
"""Begins a speech in the European Parliament's proceedings, as collected for translation (Europarl)."""

_FIELD: Final = re.compile(r"\bNAME\s*=\s*(?:\"(?P<quoted>[^\"]*)\"|(?P<bare>[^\s\"]+))", re.IGNORECASE)
_CHAPTER: Final = re.compile(r"\s*<CHAPTER\b[^<>]*>\s*", re.IGNORECASE)
_MARKUP: Final = re.compile(r"</?(?:P|SPEAKER|CHAPTER)\b[^<>]*>", re.IGNORECASE)
_ASIDE: Final = re.compile(r"\s*\([^()]*\)\s*|\s*-?\s*\d{1,4}\s*-?\s*|\s*Page \d+.*|[^a-z]*EXAMINATION[^a-z]*|\s*\(.*")
_SHARE: Final = 0.6
_FEWEST_NUMBERS: Final = 3
_WITNESS: Final = "THE WITNESS"


def is_parliament(text: str) -> bool:
    """Return whether a text has lines such as ``<SPEAKER ID=1 NAME="President">``."""
    return any(_PARLIAMENT.fullmatch(line) for line in text[:20_000].split("\n"))


def read_parliament(source: Source) -> Transcript:
    """Return the speeches; the headings of chapters, which nobody says, are counted."""
    said: list[Utterance] = []
    speaker: str | None = None
    headings = 0
    for line in source.text.split("\n"):
        if begins := _PARLIAMENT.fullmatch(line):
            name = _FIELD.search(begins["fields"])
            speaker = name_of(html.unescape(plain(name["quoted"] or name["bare"] or ""))) if name else UNKNOWN_SPEAKER
        elif _CHAPTER.fullmatch(line):
            speaker = None
        elif text := plain(_MARKUP.sub(" ", line)):
            if speaker is None:
                headings += 1
            else:
                said.append(Utterance(speaker, text))
    source.left_out(headings, "line", "of headings")
    return Transcript(said)


def is_proceedings(text: str) -> bool:
    """Return whether a text is of a court or a parliament, by its first lines."""
    lines = text[:60_000].split("\n")
    plainly = _without_numbers(lines)
    return any(_form(plainly, numbered=plainly != lines))


def _form(lines: Sequence[str], *, numbered: bool) -> tuple[bool, bool]:
    """Return whether lines have questions and answers, and whether titles stand before names."""
    asks = [found["who"] for line in lines if (found := _ASKS.fullmatch(line))]
    titled = sum(bool(_TITLED.fullmatch(line)) for line in lines)
    others = sum(
        bool(re.match(r"\s*(?!THE |BY )[A-Za-z][\w .'’-]{0,40}:\s", line)) and not _SPEAKS.match(line) for line in lines
    )
    turns = sum(one != before for before, one in pairwise(asks))
    shouted = sum(bool(_SPEAKS.match(line)) for line in lines)
    return (turns >= 2 and "Q" in asks and turns >= others) or (numbered and shouted > max(1, others)), titled >= 2


def read_proceedings(source: Source) -> Transcript:
    """Return what was said; headings and what is in brackets on lines of their own were not."""
    return speeches(_told(source), source)


def speeches(told: Iterable[Utterance | str], source: Source) -> Transcript:
    """Return utterances with the lines that go on behind each; those above the first one are counted in the notes."""
    said: list[Utterance] = []
    above = 0
    for one in told:
        if isinstance(one, Utterance):
            said.append(one)
        elif said:
            said[-1] = Utterance(said[-1].speaker, f"{said[-1].text} {plain(one)}")
        else:
            above += 1
    source.left_out(above, "line", "above the first speaker")
    return Transcript(said)


def _told(source: Source) -> Iterator[Utterance | str]:
    written = source.text.split("\n")
    lines = _without_numbers(written)
    asks, titled = _form(lines, numbered=lines != written)
    examiner, witness = "Q", "A"
    if asks and any(_BY.fullmatch(line) or line.strip().startswith(f"{_WITNESS}:") for line in lines):
        witness = _WITNESS
    for line in lines:
        by = _BY.fullmatch(line) if asks else None
        found = (
            (asks and _ASKS.fullmatch(line))
            or (asks and _SPEAKS.fullmatch(line))
            or (titled and _TITLED.fullmatch(line))
        )
        if by:
            examiner = plain(by["who"])
        elif found:
            who = {"Q": examiner, "A": witness}.get(found["who"], plain(found["who"]))
            yield Utterance(name_of(who), plain(found["text"]))
        elif line.strip() and not _ASIDE.fullmatch(line):
            yield line


def _without_numbers(lines: Sequence[str]) -> list[str]:
    """Return lines without their numbers, where most have one that goes on with the one before: before it, or above."""
    told = [line for line in lines if line.strip()]
    found = [one for line in told if (one := _NUMBERED.fullmatch(line))]
    rising = sum(int(after["number"]) in (int(before["number"]) + 1, 1) for before, after in pairwise(found))
    are_alone = not any(one["text"] for one in found)
    if len(found) < _FEWEST_NUMBERS or rising < _SHARE * (len(told) - len(found) if are_alone else len(told)):
        return [*lines]
    return [one["text"] or "" if (one := _NUMBERED.fullmatch(line)) else line for line in lines]


@dataclass(frozen=True, slots=True)
class Report:
    """How a parliament reports: the first line of a speech, and whether who speaks must be written as a name."""

    parliament: str
    speech: re.Pattern[str]
    names: bool = False


_REST: Final = r"(?P<text>\S.*)"
REPORTS: Final = (
    Report(
        "France's",
        re.compile(
            rf"(?P<who>(?:MM?\.|Mmes?|Mlle)\s[^.:\n]{{2,80}}(?:\([^()\n]{{1,60}}\))?)\.\s+(?:[–—−-]\s+)?{_REST}"
        ),
        names=True,
    ),
    Report(
        "Brazil's",
        re.compile(rf"(?P<who>[OA]S? SRA?S?\. [^()\n]{{2,60}}?(?:\s?\([^()\n]{{1,120}}\))?)\s[-–—]\s+{_REST}"),
    ),
    Report("Portugal's", re.compile(rf"(?P<who>[OA]s? Sr\.?[aª]?s?\.? [^:\n]{{2,80}}):\s+[—–-]\s+{_REST}")),
    Report(
        "the European",
        re.compile(
            r"(?P<who>[^\W\d_a-z][^\n.:?!]{1,60}?(?:\s\([^()\n]{1,40}\))?(?:, [^\n.:]{3,120})?)\.\s[–—−-]\s"
            rf"(?:\([A-Z]{{2}}\)\s)?{_REST}"
        ),
        names=True,
    ),
    Report(
        "Russia's",
        re.compile(
            r"(?P<who>Председательствующий|ГОЛОВУЮЧИЙ|"
            rf"[А-ЯЁІЇЄ][\w-]{{1,30}} [А-ЯЁІЇЄ]\.\s?[А-ЯЁІЇЄ]\.(?:, [^.\n]{{2,80}})?)\.?\s+{_REST}"
        ),
    ),
    Report("Japan's", re.compile(rf"[○◯](?P<who>[^\s○◯]{{2,40}})(?:\u3000|\s{{2,}}){_REST}")),
    Report(
        "Korea's",
        re.compile(
            r"[○◯](?P<who>(?:\S{0,12}(?:장|위원|의원|장관|총리)) [가-힣]{2,4}|[가-힣]{2,4} (?:위원|의원|장관))\s+"
            rf"{_REST}"
        ),
    ),
)

_TITLE: Final = re.compile(r"(?:MM?\.|Mmes?|Mlle)\s+(?:l[ea]\s.*)?")
_BEHIND_NAME: Final = re.compile(r"\s*\(|,| et ")

_LABELLED: Final = re.compile(r"[^\s:][^:\n]{0,60}:\s")
_NOT_SAID: Final = re.compile(r"\s*[\[(（][^()（）]*[\])）]\s*|\s*[-–]?\s*\d{1,4}\s*[-–]?\s*")
_SHARE_OF_PARAGRAPHS: Final = 0.3
"""Part of the paragraphs that begin a speech, at least: a speech has some."""


def is_report(text: str) -> bool:
    """Return whether a text is such a report."""
    return _report(text[:100_000].split("\n")) is not None


def read_report(source: Source) -> Transcript:
    """Return the speeches."""
    lines = source.text.split("\n")
    report = _report(lines)
    told = (
        Utterance(name_of(found["who"]), plain(found["text"]))
        if report is not None and (found := report.speech.fullmatch(line.strip()))
        else line
        for line in lines
    )
    heard = (one for one in told if isinstance(one, Utterance) or (one.strip() and not _NOT_SAID.fullmatch(one)))
    return speeches(heard, source)


def _is_speaker(label: str) -> bool:
    """Return whether a label is a name or, behind a French title, an office; a sentence is neither."""
    who = _TITLE.sub("", label)
    return not who or is_written_as_name(_BEHIND_NAME.split(who, maxsplit=1)[0])


def _report(lines: Sequence[str]) -> Report | None:
    """Return the way in which most speeches begin, of several speakers, one of whom has two.

    A sentence may look like one.
    """
    starts = [line for place, line in enumerate(lines) if line.strip() and (place == 0 or not lines[place - 1].strip())]
    paragraphs = len(starts) if len(starts) > 1 else sum(bool(line.strip()) for line in lines)
    labelled = sum(bool(_LABELLED.match(line.strip())) for line in lines)
    for report in REPORTS:
        found = [one for line in lines if (one := report.speech.fullmatch(line.strip()))]
        names = [one["who"] for one in found]
        if not 1 < len(set(names)) < len(names) or len(found) < _SHARE_OF_PARAGRAPHS * paragraphs:
            continue
        if report.names and not all(map(_is_speaker, names)):
            continue
        if labelled - sum(bool(_LABELLED.match(one.string)) for one in found) < len(found):
            return report
    return None
