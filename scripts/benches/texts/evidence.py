"""How many true points the evidence check rejects or doubts, and how many false ones it lets pass."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from pathlib import Path
from typing import Any

from context_builder.analysis.analyst import AnalystMessage, DraftPoint, KnownPoint, PointKind, Quote
from context_builder.analysis.evidence import EvidenceCheck, Findings
from scripts.benches.shared.report import Line
from tests.analysis.points_with_evidence import TRUE, WRITTEN
from tests.analysis.talk_in_languages import TALKS

MOST_DOUBTS = 0.2
"""Part of the true points that may cost a line of a call to a small model."""


def evidence_lines(meeting: Path | None = None) -> list[Line]:
    """Of written points and refusals, and of those of a ``meeting``: a folder of messages, true and false points."""
    written = [(each.verdict, EvidenceCheck(each.messages).check(each.point)) for each in WRITTEN]
    languages = f"{len({each.language for each in WRITTEN})} talks"
    lines = [
        *_lines_of_true([found for verdict, found in written if verdict == TRUE], f"written, of {languages}"),
        *_lines_of_false([found for verdict, found in written if verdict != TRUE], f"written, of {languages}"),
        *_lines_of_false(list(_refusals()), f"refusals, of {len(TALKS)} languages, quoting any messages"),
    ]
    if meeting:
        true, false = _of_meeting(meeting)
        lines += [*_lines_of_true(true, f"of {meeting.name}"), *_lines_of_false(false, f"of {meeting.name}")]
    return lines


def _lines_of_true(findings: Sequence[Findings], what: str) -> Iterator[Line]:
    rejected, doubted = (sum(map(bool, each)) for each in zip(*map(_rejected_or_doubted, findings), strict=True))
    count = len(findings)
    yield Line(f"true points rejected, {what} ({count})", str(rejected), "0", not rejected)
    most = int(MOST_DOUBTS * count)
    yield Line(f"true points doubted, {what} ({count})", str(doubted), f"at most {most}", doubted <= most)


def _lines_of_false(findings: Sequence[Findings], what: str) -> Iterator[Line]:
    rejected, doubted = (sum(map(bool, each)) for each in zip(*map(_rejected_or_doubted, findings), strict=True))
    passed = len(findings) - rejected - doubted
    shown = f"{passed} ({rejected} rejected, {doubted} doubted)"
    yield Line(f"false points passed, {what} ({len(findings)})", shown, "0", not passed)


def _rejected_or_doubted(findings: Findings) -> tuple[bool, bool]:
    return findings.rejected is not None, bool(findings.doubts)


def _refusals() -> Iterator[Findings]:
    for talk in TALKS:
        check = EvidenceCheck([AnalystMessage(place, "", text) for place, text in enumerate(talk.messages)])
        places = range(len(talk.messages))
        choices = chain.from_iterable(combinations(places, count) for count in range(1, len(places) + 1))
        for evidence in [tuple(Quote(place, talk.messages[place]) for place in cited) for cited in choices]:
            yield from (check.check(DraftPoint(text, evidence)) for text in (*talk.refusals, *talk.refusals_of_topic))


def _of_meeting(folder: Path) -> tuple[list[Findings], list[Findings]]:
    """Return what is found in the meeting's true points, which may replace each other, and in its false ones."""
    messages, true, false = (_read(folder / f"{name}.json") for name in ("meeting", "true", "fabricated"))
    check = EvidenceCheck([AnalystMessage(each["n"], each["speaker"], each["text"]) for each in messages])
    drafts = {each["id"]: _draft(each) for each in true}
    known = {id_: [KnownPoint(id_, one.text, one.kind, one.by, one.evidence)] for id_, one in drafts.items()}
    return (
        [check.check(drafts[each["id"]], known.get(each["replaces"], ())) for each in true],
        [check.check(_draft(each)) for each in false],
    )


def _draft(point: Mapping[str, Any]) -> DraftPoint:
    evidence: Iterable[Mapping[str, Any]] = point["evidence"]
    quotes = tuple(Quote(each["m"], each["q"]) for each in evidence)
    return DraftPoint(point["text"], quotes, PointKind(point["kind"]), tuple(point["by"]))


def _read(file: Path) -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))
    return read
