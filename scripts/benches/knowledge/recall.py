"""How many of the passages that a question needs are the first of its package, with the graph and without."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
import zlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

import psutil

from context_builder.database.migrations import apply
from context_builder.knowledge.request import ContextBuildRequest, Retrieval
from context_builder.knowledge.service import PackageService
from context_builder.knowledge.store import document_space
from context_builder.knowledge.weights import PackageWeights
from context_builder.memory.embedder import Embedder
from context_builder.memory.postgres import PostgresMemory
from context_builder.tracing import TraceContext
from scripts.benches.knowledge.corpora import Passages, passages_of
from scripts.benches.knowledge.laboratory import PATIENCE, Laboratory, agent, laboratory
from scripts.benches.knowledge.options import Options
from scripts.benches.memory.embeddings import serve_embeddings
from scripts.benches.memory.stage import database
from scripts.benches.memory.static_embeddings import StaticEmbedder
from scripts.benches.memory.vectors import KeptEmbedder
from scripts.benches.shared.progress import progress
from scripts.benches.shared.report import Line, Report, p95

FIRST: Final = 5
FOLDS: Final = 5
SHARES: Final = (0.3, 0.4, 0.5, 0.57, 0.6, 0.65)
"""Weights of the graph that are tried; similarity has what they leave of 0.8."""

GOALS: Final[Mapping[tuple[str, bool], float]] = {
    ("hotpot", False): 0.91,
    ("hotpot", True): 0.94,
    ("musique", False): 0.58,
    ("musique", True): 0.66,
}
_BUDGET: Final = 20_000
_SAMPLE: Final = 200
_RESAMPLES: Final = 2_000
_TRACE: Final = TraceContext("0" * 31 + "1", "0" * 15 + "1")


def measure_recall(report: Report, options: Options) -> None:
    if options.data is None:
        report.missing.append(Path("--data DIR"))
        return
    corpora = [passages_of(name, options.data, report) for name in ("hotpot", "musique")]
    asyncio.run(_measure(corpora, report, options))


async def _measure(corpora: Sequence[Passages], report: Report, options: Options) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(database())
        await apply(url)
        before = _memory()
        served: Embedder | None = StaticEmbedder() if options.static else None
        if options.embeddings and served is None:
            served = stack.enter_context(serve_embeddings())
        if served is not None:
            report.add(await _cost(served, corpora[0], before))
        embedder = KeptEmbedder(served, options.cache) if served is not None else None
        async with laboratory(url) as lab:
            for corpus in corpora:
                if not corpus.questions:
                    continue
                for ref, artifact in progress(list(corpus.artifacts.items()), f"storing {corpus.name}"):
                    await lab.store.put(corpus.name, ref, artifact)
                await lab.store.link(corpus.name, corpus.edges)
                await _compare(lab, url, corpus, None, report)
                if embedder is not None:
                    await _compare(lab, url, corpus, embedder, report)
    report.notes.append(
        f"recall@{FIRST}: of the passages that a question needs, those among the first {FIRST} sources of its package; "
        f"held out: the weight of the graph is chosen on {FOLDS - 1} of {FOLDS} folds of the questions and measured on "
        "the other. The interval is of a paired bootstrap, 95 %."
    )


async def _cost(embedder: Embedder, corpus: Passages, before: float) -> Line:
    """Milliseconds that a passage takes, one at a time, and the memory that the embedder takes."""
    texts = [artifact.content for artifact in corpus.artifacts.values()][:_SAMPLE]
    await embedder.embed(texts[:1])
    times = []
    for text in texts:
        start = time.perf_counter()
        await embedder.embed([text])
        times.append(1000 * (time.perf_counter() - start))
    took = f"{statistics.median(times):.1f} / {p95(times):.1f} ms; {_memory() - before:.0f} MB"
    return Line(f"{embedder.name}: a passage, p50 / p95 of {len(texts)}; memory", took)


def _memory() -> float:
    """Megabytes of this process and those that it started."""
    here = psutil.Process()
    return sum(one.memory_info().rss for one in (here, *here.children(recursive=True))) / 1e6


async def _compare(lab: Laboratory, url: str, corpus: Passages, embedder: Embedder | None, report: Report) -> None:
    memory = PostgresMemory(url, embedder, timeout=PATIENCE, query_time=PATIENCE)
    await memory.embed_missing(document_space(corpus.name))
    plain = PackageWeights()
    weighted = {share: replace(plain, graph=share, semantic=0.8 - share) for share in SHARES}
    tried = {share: await _recalls(lab.service(memory, weights), corpus) for share, weights in weighted.items()}
    ours = await _recalls(lab.service(memory, plain), corpus)
    without = await _recalls(lab.service(memory, plain), corpus, graph=False)
    goal, how = GOALS[corpus.name, embedder is not None], "with embeddings" if embedder else "by words alone"
    report.add(
        Line(
            f"recall@{FIRST}, {corpus.name}, {how} ({len(corpus.questions)} questions)",
            f"{statistics.mean(ours):.3f}",
            f"{goal:.2f}",
            statistics.mean(ours) >= goal,
            f"{statistics.mean(without):.3f} without the graph",
        )
    )
    low, high = _interval([one - other for one, other in zip(ours, without, strict=True)])
    difference = statistics.mean(ours) - statistics.mean(without)
    report.add(Line("… what the graph adds", f"{difference:+.3f} ({low:+.3f} … {high:+.3f})", "not below 0", low >= 0))
    held_out, chosen = _held_out(corpus, tried)
    spread = f"{min(held_out):.3f} … {max(held_out):.3f}"
    weights = ", ".join(f"{one:g}" for one in chosen)
    report.add(Line("… held out; the folds", f"{statistics.mean(held_out):.3f}; {spread} (graph {weights})"))


async def _recalls(service: PackageService, corpus: Passages, *, graph: bool = True) -> list[float]:
    retrieval = Retrieval() if graph else Retrieval(graph=None)
    recalls = []
    for question, gold in corpus.questions:
        request = ContextBuildRequest(intent=question, token_budget=_BUDGET, retrieval=retrieval)
        package = await service.build(agent(corpus.name), request, _TRACE)
        first = {one.ref for one in package.sources[:FIRST]}
        recalls.append(len(first & gold) / len(gold))
    return recalls


def _held_out(corpus: Passages, tried: Mapping[float, Sequence[float]]) -> tuple[list[float], list[float]]:
    """Return the recall in each fold by the weight that is best in the others, and these weights."""
    folds = [zlib.crc32(question.encode()) % FOLDS for question, _ in corpus.questions]
    recalls, chosen = [], []
    for fold in sorted(set(folds)):
        best = max(tried, key=lambda share: statistics.mean(_of(tried[share], folds, fold, inside=False)))
        chosen.append(best)
        recalls.append(statistics.mean(_of(tried[best], folds, fold, inside=True)))
    return recalls, chosen


def _of(recalls: Sequence[float], folds: Sequence[int], fold: int, *, inside: bool) -> list[float]:
    return [recall for recall, its in zip(recalls, folds, strict=True) if (its == fold) is inside]


def _interval(differences: Sequence[float]) -> tuple[float, float]:
    """Return where the mean of resampled differences lies in 95 of 100 cases."""
    chance = random.Random(1)
    means = sorted(statistics.mean(chance.choices(differences, k=len(differences))) for _ in range(_RESAMPLES))
    return means[int(0.025 * _RESAMPLES)], means[int(0.975 * _RESAMPLES)]
