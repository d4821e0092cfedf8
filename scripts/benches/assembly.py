"""How good and how quick prompts are: ``./scripts/bench assembly --data DIR [--quick] [--only ROW …]``.

``DIR`` holds labelled texts, among them ``pii_*.jsonl`` (``text``, ``spans`` with ``start``, ``end`` and ``type``,
``source``). What is measured in time should have the machine for itself.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Final

import structlog

from context_builder.assembly import AssemblyRules, ContextBuilder, HealthState
from context_builder.assembly.tally import Tally
from context_builder.errors import TokenLimitExceeded
from context_builder.redaction import PiiRedactor
from context_builder.redaction.finding import PRECEDENCE
from context_builder.tokens import TokenCounter
from scripts.benches.prompts.pure import measure_choice, measure_pure
from scripts.benches.prompts.report import MODEL, Options, Report, p95
from tests.assembly.turns import Brain, generated

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
    TokenCounter(MODEL).load()
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
    "choice": measure_choice,
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
