"""That a prompt keeps to its budget, whatever comes in, and to its deadline, whatever the memory does."""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from context_builder.assembly import AssemblyConfig, ContextBuilder, HealthState
from context_builder.assembly.section import MessageTokenCounter
from context_builder.errors import TokenLimitExceeded
from context_builder.tokens.counter import TokenCounter
from scripts.benches.prompts.generated import Brain, generated
from scripts.benches.prompts.options import MODEL, Options
from scripts.benches.shared.report import Line, Report, p95


async def measure_budget(options: Options, report: Report) -> None:
    turns, workers = options.count(100_000), os.cpu_count() or 1
    parts = [range(worker, turns, workers) for worker in range(workers)]
    with ProcessPoolExecutor(workers) as pool:
        built, over, wrong = map(sum, zip(*pool.map(check_budgets, parts), strict=True))
    report.add(
        Line(
            f"budget exceeded, {turns:,} generated turns ({built:,} built, the others refused)",
            f"{over} turns",
            goal="0",
            reached=over == 0,
            published="SomaAgent's builder: 200 of 200, by up to 533 tokens",
        )
    )
    report.add(Line("token_counts other than a recount", f"{wrong} turns", goal="0", reached=wrong == 0))


def check_budgets(seeds: Iterable[int]) -> tuple[int, int, int]:
    return asyncio.run(check_turns(seeds))


async def check_turns(seeds: Iterable[int]) -> tuple[int, int, int]:
    """How many contexts were built, were over their limit, and had a total other than a fresh counter's."""
    brain, counter = Brain(), TokenCounter(MODEL)
    builder = ContextBuilder(somabrain=brain, token_counter=counter.count, config=AssemblyConfig(store_summaries=False))
    built = over = wrong = 0
    for seed in seeds:
        turn, brain.answer, limit = generated(seed)
        try:
            context = await builder.build_for_turn(turn, limit)
        except TokenLimitExceeded:
            continue
        total = MessageTokenCounter(counter.count).prompt(context.messages)
        built += 1
        over += total > limit
        wrong += total != context.token_counts["total"]
    return built, over, wrong


class HangingBrain(Brain):
    async def context_evaluate(self, payload: dict[str, Any]) -> Mapping[str, Any]:
        await asyncio.sleep(3600)
        return await super().context_evaluate(payload)


async def measure_hanging(options: Options, report: Report) -> None:
    TokenCounter(MODEL).load()
    deadline, times = AssemblyConfig().deadline, []
    turn, _, _ = generated(3)
    for _ in range(options.count(50)):
        builder = ContextBuilder(somabrain=HangingBrain(), health_provider=lambda: HealthState.NORMAL)
        start = time.perf_counter()
        await builder.build_for_turn(turn | {"user_message": "what is it"}, 100_000)
        times.append(1000 * (time.perf_counter() - start - deadline))
    slow = p95(times)
    report.add(
        Line(
            "context while the memory hangs, beyond the deadline of 300 ms, p50 / p95",
            f"{statistics.median(times):.1f} / {slow:.1f} ms",
            goal="5 ms",
            reached=slow <= 5,
        )
    )
