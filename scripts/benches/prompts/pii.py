"""How much personal data is found: ``pii_*.jsonl`` has ``text``, ``source``, and ``spans`` with start, end and type."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from context_builder.redaction import PiiRedactor
from context_builder.redaction.spoken_pii import PRECEDENCE
from scripts.benches.prompts.options import Options
from scripts.benches.shared.labelled import rows_of
from scripts.benches.shared.report import NONE, Line, Report

REQUIRED: Final = ("EMAIL_ADDRESS", "CREDIT_CARD", "IBAN_CODE", "IP_ADDRESS")
"""Kinds of which 0.9 must be reached, where they are written as text and not as they are spoken."""


async def measure_pii(options: Options, report: Report) -> None:
    redactor = PiiRedactor()
    spans: defaultdict[tuple[str, str], list[tuple[set[Any], set[Any]]]] = defaultdict(list)
    for row in rows_of(options.data, "pii", report):
        found = redactor.find(row["text"])
        for kind in PRECEDENCE:
            gold = {(span["start"], span["end"]) for span in row["spans"] if span["type"] == kind}
            way = "spoken" if row["source"].startswith("stt") else "written"
            spans[kind, way].append((gold, {(one.start, one.end) for one in found if one.kind == kind}))
    for (kind, way), pairs in sorted(spans.items()):
        right = sum(len(gold & found) for gold, found in pairs)
        missed = sum(len(gold - found) for gold, found in pairs)
        false = sum(len(found - gold) for gold, found in pairs)
        must = way == "written" and kind in REQUIRED
        if must and not right + missed:
            report.add(Line(f"PII span F1, {kind}, {way}", "no spans in the data", goal="0.9"))
        elif right + missed + false:
            score = 2 * right / (2 * right + missed + false)
            report.add(
                Line(
                    f"PII span F1, {kind}, {way} ({right + missed} spans, {false} false)",
                    f"{score:.3f}",
                    goal="0.9" if must else NONE,
                    reached=score >= 0.9 if must else None,
                )
            )
