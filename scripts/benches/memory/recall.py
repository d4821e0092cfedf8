"""How much of what a question needs is in its context, and what each technique adds to that."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from rich.table import Table

from context_builder.assembly import AssemblyConfig
from context_builder.memory.sql_memory import SearchOptions
from scripts.benches.memory.contexts import BUDGETS, RULES, Way, day_after, figures, stored
from scripts.benches.memory.stage import Stage, open_stage
from scripts.benches.prompts.options import Options
from scripts.benches.shared.report import Line, Report

WITHOUT: Final = {
    "without neighbouring turns": SearchOptions(neighbours=()),
    "without the weight of whom the question names": SearchOptions(speaker=1.0),
    "without rarity weights": SearchOptions(rarity=False),
    "without words that the best passage leads on to": SearchOptions(lead=False),
}

RULED: Final[dict[str, AssemblyConfig]] = {
    "by a turn's defaults: 8 memories of similarity 0.5": replace(RULES, top_k=8, threshold=0.5),
    "with memories chosen by knapsack": replace(RULES, choose="knapsack"),
}

LATELY: Final[dict[str, AssemblyConfig]] = {
    "recency 0.3 as documented": RULES,
    "weights by the kind of the question": replace(RULES, by_query=True),
    "recency 0": replace(RULES, similarity_weight=1.0, recency_weight=0.0),
}

ALMOST: Final = " ."
"""What makes a copy one that nothing recognizes as such."""

HOW: Final = (
    "Recall: build_for_turn with a memory in PostgreSQL, one conversation a tenant; a turn counts where its full text "
    "is in the context. The limit is the whole prompt's: the question, the heading, labels and the chat format's "
    "overhead count as well; the system prompt is empty. The baselines are packed by the same builder, alike. "
    f"The rules are the documented ones, but for top_k={RULES.top_k}, threshold={RULES.threshold:g} and the deadline. "
    "recall@5: of the first five snippets."
)


@dataclass(frozen=True)
class Aim:
    """What is to be reached: so much more recall of evidence than the baseline, and this recall@5."""

    name: str
    baseline: str
    more: float
    at_5: float


WORDS: Final = Aim("full text alone", "BM25", 0.06, 0.55)
MEANING: Final = Aim("with embeddings", "BM25 + dense by RRF", 0.05, 0.62)


async def measure_recall(options: Options, report: Report) -> None:
    async with open_stage(options, report) as stage:
        if stage is None:
            return
        report.notes.append(HOW)
        await compare(stage.by_words(), WORDS, report)
        if stage.embedder is not None:
            await compare(stage, MEANING, report)


async def compare(stage: Stage, aim: Aim, report: Report) -> None:
    """Ours and the baseline."""
    baseline = await measured(aim.baseline, stage, await stage.baseline())
    ours = await measured(aim.name, stage, stage.ours())
    for budget, there, here in zip(BUDGETS, baseline, ours, strict=False):
        report.add(
            Line(
                f"evidence recall within {budget} tokens, {aim.name} ({stage.asked})",
                f"{here:.3f} ({here - there:+.3f})",
                goal=f"{there + aim.more:.3f} (baseline + {aim.more})",
                reached=here >= round(there + aim.more, 3),
                baseline=f"{there:.3f} ({aim.baseline})",
            )
        )
    report.add(
        Line(
            f"recall@5 of gold passages, {aim.name} ({len(stage.texts.questions)} questions)",
            f"{ours[-1]:.3f}",
            goal=f"{aim.at_5}",
            reached=ours[-1] >= aim.at_5,
            baseline=f"{baseline[-1]:.3f} ({aim.baseline})",
        )
    )


async def measured(name: str, stage: Stage, way: Way) -> list[float]:
    """Shares as they are printed, so that a goal is reached where it reads so."""
    started = time.monotonic()
    shares = [round(share, 3) for share in await figures(way, stage.talks, stage.texts)]
    print(f"  {name}: {shares} ({time.monotonic() - started:.0f} s)", file=sys.stderr)
    return shares


# Ablations


async def measure_ablations(options: Options, report: Report) -> None:
    """The same, without each technique in turn, and by other rules."""
    async with open_stage(options, report) as stage:
        if stage is None:
            return
        words, corpora = stage.by_words(), (*stage.talks, stage.texts)
        await words.remember(
            [
                other
                for one in corpora
                for other in (one.without_names(), one.with_times(), one.twice(), one.twice(ALMOST))
            ]
        )
        report.tables.append(await ablated(words, WORDS.name, {**found(words), **remembered(words), **built(words)}))
        if stage.embedder is not None:
            report.tables.append(await ablated(stage, MEANING.name, {**found(stage), **built(stage)}))


async def ablated(stage: Stage, title: str, ways: Mapping[str, Way]) -> Table:
    table = Table(
        title, *(f"{budget} tokens" for budget in BUDGETS), "recall@5", title=f"What each technique adds: {stage.asked}"
    )
    whole = await measured(title, stage, stage.ours())
    table.add_row("all techniques", *(f"{share:.3f}" for share in whole), end_section=True)
    for name, way in ways.items():
        shares = await measured(name, stage, way)
        cells = (f"{share:.3f} ({share - all_:+.3f})" for share, all_ in zip(shares, whole, strict=True))
        table.add_row(name, *cells)
    return table


def found(stage: Stage) -> dict[str, Way]:
    """Searched without one technique at a time."""
    return {name: stage.ours(options) for name, options in WITHOUT.items()}


def remembered(stage: Stage) -> dict[str, Way]:
    """Remembered in other ways, by words alone: an embedding for each takes a quarter of an hour a way."""
    store = stage.store()
    return {
        "without speaker and date in the text searched": Way(
            lambda corpus: stored(store, corpus, corpus.without_names().tenant)
        ),
        "with the days that “yesterday” or “last month” mean": Way(
            lambda corpus: stored(store, corpus, corpus.with_times().tenant)
        ),
        "everything remembered twice": Way(lambda corpus: stored(store, corpus.twice())),
        "… without deduplication": Way(lambda corpus: stored(store, corpus.twice(ALMOST))),
    }


def built(stage: Stage) -> dict[str, Way]:
    """Made into contexts by other rules."""
    whole = stage.ours()
    lately = {
        f"asked a day after the conversation, {name}": replace(whole, rules=rules, clock=day_after)
        for name, rules in LATELY.items()
    }
    return {name: replace(whole, rules=rules) for name, rules in RULED.items()} | lately
