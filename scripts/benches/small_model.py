"""How good the small model of the tests is: ``./scripts/bench small_model --data DIR [--texts N]``; some minutes.

SmolLM2-135M on llama.cpp's server, as the tests start it, is asked about the first few texts of
``keyphrases_*.jsonl``, ``domains_*.jsonl`` and ``meetings_*.jsonl`` in DIR, beside plain text analysis on the same
texts. What it does not answer in form is answered by plain text analysis, and counted.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from context_builder.analysis.analyst import Analyst, AnalystMessage, SummaryRequest
from context_builder.analysis.text import TextAnalyst
from context_builder.costs import Usage
from context_builder.errors import AnalystError
from context_builder.settings.settings import load_settings
from context_builder.wiring.app import open_analyst
from scripts.benches.shared.labelled import rows_of
from scripts.benches.shared.report import Report
from scripts.benches.understanding import f1_at_10
from tests.services.small_model import SmallModelServer

MESSAGES = 12
"""Messages of one stretch of talk that is summarized."""


class Asked(NamedTuple):
    """What came of a number of questions: how good an answer was each, in seconds, and how many the model answered."""

    scores: list[float]
    seconds: list[float]
    in_form: int


async def keywords(analyst: Analyst, rows: Sequence[Any]) -> Asked:
    asked = Asked([], [], 0)
    for row in rows:
        begun = time.perf_counter()
        reading = await analyst.extract_keywords([AnalystMessage(1, "", row["text"])])
        asked.seconds.append(time.perf_counter() - begun)
        asked.scores.append(f1_at_10(reading.keywords[0], row["keyphrases"]))
        asked = asked._replace(in_form=asked.in_form + (reading.analyst == analyst.name))
    return asked


async def domains(analyst: Analyst, rows: Sequence[Any]) -> Asked:
    asked = Asked([], [], 0)
    for row in rows:
        begun = time.perf_counter()
        reading = await analyst.infer_domains([AnalystMessage(1, "", row["text"])])
        asked.seconds.append(time.perf_counter() - begun)
        asked.scores.append(float(reading.domains[:1] == [row["domain"]]))
        asked = asked._replace(in_form=asked.in_form + (reading.analyst == analyst.name))
    return asked


async def summaries(analyst: Analyst, stretches: Sequence[Sequence[AnalystMessage]]) -> tuple[Asked, int, int, int]:
    """How many points each stretch got; and how many points in all, rejected ones, and citations that are not real."""
    asked, rejected, unreal = Asked([], [], 0), 0, 0
    for said in stretches:
        begun, points, usage = time.perf_counter(), [], Usage()
        try:
            reading = await analyst.summarize(SummaryRequest(said))
        except AnalystError as error:
            usage = error.usage or usage
        else:
            asked = asked._replace(in_form=asked.in_form + 1)
            points, usage = [*reading.points], reading.usage
            rejected += reading.rejected
        asked.seconds.append(time.perf_counter() - begun)
        asked.scores.append(len(points))
        rejected += usage.rejected
        unreal += sum(cited not in {each.id for each in said} for point in points for cited in point.cites)
    return asked, sum(map(int, asked.scores)), rejected, unreal


def stretches_of(rows: Sequence[Any], count: int) -> list[list[AnalystMessage]]:
    said = [AnalystMessage(number, row["speaker"], row["text"]) for number, row in enumerate(rows[: count * MESSAGES])]
    return [said[start : start + MESSAGES] for start in range(0, len(said), MESSAGES)]


async def measure(data: Path, texts: int, url: str) -> Table:
    """So many texts are asked about for keywords, as many for domains, and half as many stretches are summarized."""
    report = Report("The small local model")
    phrases, labelled = rows_of(data, "keyphrases", report)[:texts], rows_of(data, "domains", report)
    labelled = labelled[:: max(1, len(labelled) // texts)][:texts]
    talk = stretches_of(rows_of(data, "meetings", report), (texts + 1) // 2)
    if report.missing:
        raise SystemExit(f"missing: {', '.join(map(str, report.missing))}")
    text = TextAnalyst()
    settings = load_settings({"LOCAL_MODEL_URL": url, "LLM_ATTEMPTS": "2"}, env_file=None)
    table = Table("what", "small model", "plain text analysis", "answered in form", "seconds, median / most")
    try:
        async with open_analyst(settings) as (model, _):
            for what, ask, rows in (
                ("keyphrase F1@10", keywords, phrases),
                ("domain accuracy, strict", domains, labelled),
            ):
                ours, baseline = await ask(model, rows), await ask(text, rows)
                means = (f"{statistics.mean(asked.scores):.2f}" for asked in (ours, baseline))
                table.add_row(what, *means, *_form(ours))
            asked, points, rejected, unreal = await summaries(model, talk)
            _, plain, _, _ = await summaries(text, talk)
            kept = f"{points} points, {rejected} rejected, {unreal} unreal citations"
            table.add_row(f"summaries of {MESSAGES} messages", kept, f"{plain} points", *_form(asked))
    finally:
        await text.close()
    return table


def _form(asked: Asked) -> tuple[str, str]:
    most = max(asked.seconds)
    return f"{asked.in_form} of {len(asked.seconds)}", f"{statistics.median(asked.seconds):.1f} / {most:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description="How good the small model of the tests is.")
    parser.add_argument("--data", type=Path, required=True, help="folder of labelled texts")
    parser.add_argument("--texts", type=int, default=20, metavar="N", help="how many of each kind")
    given = parser.parse_args()
    server = SmallModelServer()
    server.start()
    try:
        table = asyncio.run(measure(given.data, given.texts, server.base_url))
    finally:
        server.stop()
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
