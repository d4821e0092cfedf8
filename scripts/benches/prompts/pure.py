"""The part of a prompt's making that does no I/O: what it costs, and what its choices are worth."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from context_builder.assembly import AssemblyConfig, Candidate, ContextBuilderMetrics, HealthState
from context_builder.assembly.background import Background
from context_builder.assembly.budget import Choose, TokenBudget
from context_builder.assembly.build_turn import assembled
from context_builder.assembly.govern import Governed, RedactionPolicy
from context_builder.assembly.retrieve import RetrievalResult, Retriever
from context_builder.assembly.section import Block, Item, MessageTokenCounter, labelled
from context_builder.assembly.services import ContextCache, PromptServices
from context_builder.assembly.turn import Turn
from context_builder.clock import SystemClock
from context_builder.redaction import NoopRedactor
from context_builder.tokens.counter import TokenCounter
from scripts.benches.prompts.options import MODEL, Options
from scripts.benches.shared.report import Line, Report, p95

TaskUsage = tuple[float, float]
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
                    Line(
                        f"{what}, {name}",
                        measured,
                        goal=f"{reach:.0f} ms",
                        reached=p95(times) <= reach,
                        published="SomaAgent's builder: 18 ms",
                    )
                )


def pure_times(turns: int, limit: int, choose: Choose) -> tuple[list[TaskUsage], list[TaskUsage]]:
    """With no text counted before, and with all."""
    random_, metrics, now = random.Random(1), ContextBuilderMetrics(), datetime.now(UTC)
    cold: list[TaskUsage] = []
    cached: list[TaskUsage] = []
    for _ in range(turns):
        envelope, candidates = pure_turn(random_)
        config, counter = AssemblyConfig(choose=choose), MessageTokenCounter(TokenCounter(MODEL).count)
        policy = RedactionPolicy(NoopRedactor())
        retriever, cache = Retriever([], None, config, metrics), ContextCache(0.0, 0)
        services = PromptServices(
            config, retriever, counter, policy, policy, metrics, Background(), cache, SystemClock()
        )
        retrieved = RetrievalResult((candidates,), {}, (), HealthState.NORMAL, "ok", {})
        for spent in (cold, cached):
            start, work = time.perf_counter(), time.thread_time()
            turn = Turn.read(envelope)
            assembled(services, turn, turn, limit, retrieved, Governed(retrieved.lists), now)
            spent.append((1000 * (time.perf_counter() - start), 1000 * (time.thread_time() - work)))
    return cold, cached


# greedy and knapsack


async def measure_choice(options: Options, report: Report) -> None:
    """What the memories that were kept are worth together, where half of the candidates fit."""
    TokenCounter(MODEL).load()
    random_, tally = random.Random(2), MessageTokenCounter(TokenCounter(MODEL).count)
    choices: tuple[Choose, ...] = ("greedy", "knapsack")
    kept: dict[str, list[float]] = {choose: [] for choose in choices}
    spent: dict[str, list[float]] = {choose: [] for choose in choices}
    for _ in range(options.count(300)):
        _, candidates = pure_turn(random_)
        items = [Item(one.id, one.text, one.base_score, candidate=one) for one in candidates]
        items.sort(key=lambda item: -item.value)
        block = Block("memory", "Relevant memory:", items, tally, bodies=labelled, numbered=True)
        room = sum(block.cost(item) for item in items) // 2
        for choose in choices:
            work = time.thread_time()
            part = TokenBudget(0, room, choose).fill(block)
            spent[choose].append(1000 * (time.thread_time() - work))
            kept[choose].append(sum(item.value for item in part.taken))
    for choose in choices:
        share = statistics.mean(best / most for best, most in zip(kept[choose], kept["knapsack"], strict=True))
        report.add(
            Line(
                f"value kept of {CANDIDATES} candidates, half of which fit, {choose}; CPU p50 / p95",
                f"{100 * share:.1f} %; {statistics.median(spent[choose]):.2f} / {p95(spent[choose]):.2f} ms",
                baseline="the best possible: 100 %",
            )
        )
