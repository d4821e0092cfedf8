"""How good and how quick prompts are: ``./scripts/bench assembly --data DIR [--quick] [--only ROW …]``.

``DIR`` holds labelled texts, among them ``pii_*.jsonl`` (``text``, ``spans`` with ``start``, ``end`` and ``type``,
``source``). What is measured in time should have the machine for itself.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

import structlog
from rich.console import Console
from rich.table import Table

from context_builder.assembly import AssemblyRules, Candidate, ContextBuilder, ContextBuilderMetrics, HealthState
from context_builder.assembly.govern import Governor
from context_builder.assembly.pipeline import TurnPipeline
from context_builder.assembly.tally import Tally
from context_builder.assembly.turn import Turn
from context_builder.errors import TokenLimitExceeded
from context_builder.redaction import NoopRedactor, PiiRedactor
from context_builder.redaction.finding import PRECEDENCE
from context_builder.tokens import TokenCounter
from tests.assembly.turns import Brain, generated

MODEL: Final = "gpt-4o"


@dataclass
class Report:
    """The table, filled line by line; ``missing`` names the files that were not there."""

    lines: list[tuple[str, str, str, str]] = field(default_factory=list)
    missing: list[Path] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def add(self, what: str, measured: str, *, reach: str = "–", baseline: str = "–", ok: bool | None = None) -> None:
        """One line; ``ok`` says whether what is to be reached was, None where there is nothing to reach."""
        mark = "" if ok is None else " ✓" if ok else " ✗"
        self.lines.append((what, baseline, reach, measured + mark))
        if ok is False:
            self.missed.append(what)

    def print(self) -> None:
        table = Table("what", "baseline", "reach", "measured here", title="Assembly: prompts that fit")
        for line in self.lines:
            table.add_row(*line)
        console = Console(width=None if sys.stdout.isatty() else 120)
        console.print(table)
        for path in self.missing:
            console.print(f"[bold red]not measured:[/] {path} is missing", soft_wrap=True)
        for what in self.missed:
            console.print(f"[bold red]not reached:[/] {what}")


@dataclass(frozen=True)
class Options:
    """``data`` is the folder of texts; ``quick`` measures a tenth."""

    data: Path
    quick: bool = False

    def count(self, full: int) -> int:
        return max(1, full // 10) if self.quick else full

    def rows_of(self, kind: str, report: Report) -> list[Mapping[str, Any]]:
        """The rows of all files of a kind, such as ``pii_dev.jsonl``."""
        files = sorted(self.data.glob(f"{kind}_*.jsonl"))
        if not files:
            report.missing.append(self.data / f"{kind}_*.jsonl")
        lines = (line for path in files for line in path.read_text("utf-8").split("\n"))
        return [json.loads(line) for line in lines if line.strip()]


def p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


# the pure part

Spent = tuple[float, float]
"""Milliseconds on the clock and of the processor; they differ by what others took on a busy machine."""

CANDIDATES: Final = 50
HISTORY: Final = 500
VOCABULARY: Final = (
    "replication polymerase strand helix enzyme because the between which people said about during "
    "evidence measured temperature reaction binding consequently a an of to in is are was question answer"
).split()


def pure_turn(random_: random.Random) -> tuple[Mapping[str, Any], list[Candidate]]:
    def text(shortest: int, longest: int) -> str:
        return " ".join(random_.choices(VOCABULARY, k=random_.randint(shortest, longest)))

    roles = ("user", "assistant")
    history = [{"role": roles[place % 2], "content": text(5, 40)} for place in range(HISTORY)]
    candidates = [
        Candidate(f"m{place}", text(20, 120), base_score=random_.random(), metadata={"timestamp": "2025-01-01"})
        for place in range(CANDIDATES)
    ]
    return {"system_prompt": text(40, 60), "user_message": text(10, 30), "history": history}, candidates


async def measure_pure(options: Options, report: Report) -> None:
    TokenCounter(MODEL).load()
    for limit in (4_000, 100_000):
        for choose in ("greedy", "knapsack"):
            cold, cached = pure_times(options.count(200), limit, choose)
            what = f"pure part, 50 candidates, 500 messages, limit {limit:,}, {choose}, p50 / p95"
            for name, spent, reach in (("counts cached", cached, 2.0), ("cold", cold, 15.0)):
                times, work = zip(*spent, strict=True)
                measured = f"{statistics.median(times):.2f} / {p95(times):.2f} ms, CPU {p95(work):.2f} ms"
                report.add(
                    f"{what}, {name}", measured, reach=f"{reach:.0f} ms", baseline="18 ms", ok=p95(times) <= reach
                )


def pure_times(turns: int, limit: int, choose: Literal["greedy", "knapsack"]) -> tuple[list[Spent], list[Spent]]:
    """With no text counted before, and with all."""
    random_, metrics, now = random.Random(1), ContextBuilderMetrics(), datetime.now(UTC)
    cold: list[Spent] = []
    cached: list[Spent] = []
    for _ in range(turns):
        envelope, candidates = pure_turn(random_)
        tally = Tally(TokenCounter(MODEL).count)
        pipeline = TurnPipeline(AssemblyRules(choose=choose), tally, Governor(NoopRedactor()), metrics)
        for spent in (cold, cached):
            start, work = time.perf_counter(), time.thread_time()
            turn = Turn.read(envelope)
            pipeline.run(turn, [candidates], state=HealthState.NORMAL, limit=limit, now=now)
            spent.append((1000 * (time.perf_counter() - start), 1000 * (time.thread_time() - work)))
    return cold, cached


# the budget


async def measure_budget(options: Options, report: Report) -> None:
    turns, workers = options.count(100_000), os.cpu_count() or 1
    parts = [range(worker, turns, workers) for worker in range(workers)]
    with ProcessPoolExecutor(workers) as pool:
        built, over, wrong = map(sum, zip(*pool.map(check_budgets, parts), strict=True))
    report.add(
        f"budget exceeded, {turns:,} generated turns ({built:,} built, the others refused)",
        f"{over} turns",
        reach="0",
        baseline="200 of 200, by up to 533 tokens",
        ok=over == 0,
    )
    report.add("token_counts other than a recount", f"{wrong} turns", reach="0", ok=wrong == 0)


def check_budgets(seeds: Iterable[int]) -> tuple[int, int, int]:
    return asyncio.run(check_turns(seeds))


async def check_turns(seeds: Iterable[int]) -> tuple[int, int, int]:
    """How many contexts were built, were over their limit, and had a total other than a fresh counter's."""
    brain, counter = Brain(), TokenCounter(MODEL)
    builder = ContextBuilder(somabrain=brain, token_counter=counter.count, rules=AssemblyRules(store_summaries=False))
    built = over = wrong = 0
    for seed in seeds:
        turn, brain.answer, limit = generated(seed)
        try:
            context = await builder.build_for_turn(turn, limit)
        except TokenLimitExceeded:
            continue
        total = Tally(counter.count).prompt(context.messages)
        built += 1
        over += total > limit
        wrong += total != context.token_counts["total"]
    return built, over, wrong


# a memory that hangs


class HangingBrain(Brain):
    async def context_evaluate(self, payload: dict[str, Any]) -> Mapping[str, Any]:
        await asyncio.sleep(3600)
        return await super().context_evaluate(payload)


async def measure_hanging(options: Options, report: Report) -> None:
    deadline, times = AssemblyRules().deadline, []
    turn, _, _ = generated(3)
    for _ in range(options.count(50)):
        builder = ContextBuilder(somabrain=HangingBrain(), health_provider=lambda: HealthState.NORMAL)
        start = time.perf_counter()
        await builder.build_for_turn(turn | {"user_message": "what is it"}, 100_000)
        times.append(1000 * (time.perf_counter() - start - deadline))
    report.add(
        "context while the memory hangs, beyond the deadline of 300 ms, p50 / p95",
        f"{statistics.median(times):.1f} / {p95(times):.1f} ms",
        reach="5 ms",
        ok=p95(times) <= 5,
    )


# personal data


async def measure_pii(options: Options, report: Report) -> None:
    rows = options.rows_of("pii", report)
    if not rows:
        return
    redactor = PiiRedactor()
    spans: defaultdict[tuple[str, str], list[tuple[set[Any], set[Any]]]] = defaultdict(list)
    for row in rows:
        found = redactor.find(row["text"])
        for kind in PRECEDENCE:
            gold = {(span["start"], span["end"]) for span in row["spans"] if span["type"] == kind}
            way = "spoken" if row["source"].startswith("stt") else "written"
            spans[kind, way].append((gold, {(one.start, one.end) for one in found if one.kind == kind}))
    for (kind, way), pairs in sorted(spans.items()):
        right = sum(len(gold & found) for gold, found in pairs)
        missed = sum(len(gold - found) for gold, found in pairs)
        false = sum(len(found - gold) for gold, found in pairs)
        if right + missed + false:
            score = 2 * right / (2 * right + missed + false)
            must = way == "written" and kind in ("EMAIL_ADDRESS", "CREDIT_CARD", "IBAN_CODE", "IP_ADDRESS")
            what = f"PII span F1, {kind}, {way} ({right + missed} spans, {false} false)"
            report.add(what, f"{score:.3f}", reach="0.9" if must else "–", ok=score >= 0.9 if must else None)


MEASURES: Final[Mapping[str, Callable[[Options, Report], Awaitable[None]]]] = {
    "pure": measure_pure,
    "budget": measure_budget,
    "hanging": measure_hanging,
    "pii": measure_pii,
}


async def measure(options: Options, only: Sequence[str]) -> Report:
    report = Report()
    for name, row in MEASURES.items():
        if not only or name in only:
            await row(options, report)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the labelled texts")
    parser.add_argument("--quick", action="store_true", help="a tenth of the samples")
    parser.add_argument("--only", nargs="+", choices=list(MEASURES), default=[], metavar="ROW", help="these rows alone")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    report = asyncio.run(measure(Options(given.data, quick=given.quick), given.only))
    report.print()
    return 1 if report.missing or report.missed else 0


if __name__ == "__main__":
    sys.exit(main())
