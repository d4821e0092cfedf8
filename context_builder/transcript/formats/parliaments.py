"""Reports of parliaments as each writes who speaks: ``M. le président. – …``, ``O SR. PRESIDENTE - …``, ``○議長 …``.

What stands in brackets on a line of its own, such as applause, was not said. Those that write ``Name: …`` are lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from context_builder.transcript.fields import plain
from context_builder.transcript.formats.proceedings import speeches
from context_builder.transcript.labels import is_written_as_name
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript, Utterance, name_of


@dataclass(frozen=True, slots=True)
class Report:
    """Is a parliament's way: the first line of a speech, and whether who speaks must be written as a name."""

    parliament: str
    speech: re.Pattern[str]
    names: bool = False


_TEXT: Final = r"(?P<text>\S.*)"
REPORTS: Final = (
    Report(
        "France's",
        re.compile(
            rf"(?P<who>(?:MM?\.|Mmes?|Mlle)\s[^.:\n]{{2,80}}(?:\([^()\n]{{1,60}}\))?)\.\s+(?:[–—−-]\s+)?{_TEXT}"
        ),
        names=True,
    ),
    Report(
        "Brazil's",
        re.compile(rf"(?P<who>[OA]S? SRA?S?\. [^()\n]{{2,60}}?(?:\s?\([^()\n]{{1,120}}\))?)\s[-–—]\s+{_TEXT}"),
    ),
    Report("Portugal's", re.compile(rf"(?P<who>[OA]s? Sr\.?[aª]?s?\.? [^:\n]{{2,80}}):\s+[—–-]\s+{_TEXT}")),
    Report(
        "the European",
        re.compile(
            r"(?P<who>[^\W\d_a-z][^\n.:?!]{1,60}?(?:\s\([^()\n]{1,40}\))?(?:, [^\n.:]{3,120})?)\.\s[–—−-]\s"
            rf"(?:\([A-Z]{{2}}\)\s)?{_TEXT}"
        ),
        names=True,
    ),
    Report(
        "Russia's",
        re.compile(
            r"(?P<who>Председательствующий|ГОЛОВУЮЧИЙ|"
            rf"[А-ЯЁІЇЄ][\w-]{{1,30}} [А-ЯЁІЇЄ]\.\s?[А-ЯЁІЇЄ]\.(?:, [^.\n]{{2,80}})?)\.?\s+{_TEXT}"
        ),
    ),
    Report("Japan's", re.compile(rf"[○◯](?P<who>[^\s○◯]{{2,40}})(?:\u3000|\s{{2,}}){_TEXT}")),
    Report(
        "Korea's",
        re.compile(
            r"[○◯](?P<who>(?:\S{0,12}(?:장|위원|의원|장관|총리)) [가-힣]{2,4}|[가-힣]{2,4} (?:위원|의원|장관))\s+"
            rf"{_TEXT}"
        ),
    ),
)

_TITLE: Final = re.compile(r"(?:MM?\.|Mmes?|Mlle)\s+(?:l[ea]\s.*)?")
_BEHIND_NAME: Final = re.compile(r"\s*\(|,| et ")

_LABELLED: Final = re.compile(r"[^\s:][^:\n]{0,60}:\s")
_ASIDE: Final = re.compile(r"\s*[\[(（][^()（）]*[\])）]\s*|\s*[-–]?\s*\d{1,4}\s*[-–]?\s*")
_SHARE: Final = 0.3
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
    heard = (one for one in told if isinstance(one, Utterance) or (one.strip() and not _ASIDE.fullmatch(one)))
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
        if not 1 < len(set(names)) < len(names) or len(found) < _SHARE * paragraphs:
            continue
        if report.names and not all(map(_is_speaker, names)):
            continue
        if labelled - sum(bool(_LABELLED.match(one.string)) for one in found) < len(found):
            return report
    return None
