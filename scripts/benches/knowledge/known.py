"""Whether packages hold the answers to questions that were written for a project's documentation.

``DIR`` holds a folder of documents for each project, and ``questions.jsonl``: of each question its ``project``, its
``kind`` (``rare``: it has a word of one document alone; ``para``: it is in other words than the documents'), its
``intent``, the ``files`` that answer it and ``answers``, strings of which one is in what answers it.
"""

from __future__ import annotations

import asyncio
import json
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.section import Item
from context_builder.database.migrations import apply
from context_builder.knowledge.fit import bundle_tokens, rendered
from context_builder.knowledge.ingest.ingest import IngestOptions, ingest, ref_of
from context_builder.knowledge.package import ContextPackage
from context_builder.knowledge.request import ContextBuildRequest
from context_builder.knowledge.service import PackageService
from context_builder.knowledge.store import KnowledgeStore, document_space, passage_memories
from context_builder.knowledge.weights import PackageWeights
from context_builder.memory.memory import Memory
from context_builder.memory.postgres import PostgresMemory
from context_builder.memory.rows import embedding_text
from context_builder.tokens.counter import TokenCounter
from context_builder.tracing import TraceContext
from scripts.benches.knowledge.laboratory import PATIENCE, agent, laboratory
from scripts.benches.knowledge.options import Options
from scripts.benches.memory.bm25 import Bm25, Bm25AndDense
from scripts.benches.memory.embeddings import serve_embeddings
from scripts.benches.memory.stage import database
from scripts.benches.memory.vectors import KeptEmbedder
from scripts.benches.shared.report import Line, Report

BUDGETS: Final = (1_000, 3_000)
GOALS: Final[Mapping[tuple[str, int], float]] = {
    ("found", 1_000): 0.92,
    ("found", 3_000): 0.96,
    ("answered", 1_000): 0.78,
    ("answered", 3_000): 0.88,
    ("rare", 1_000): 1.0,
    ("para", 1_000): 0.6,
}
FULL: Final = 0.97
"""Share of the budget that a package fills wherever there is more to show."""

_TRACE: Final = TraceContext("0" * 31 + "1", "0" * 15 + "1")
_BLANKS: Final = re.compile(r"\s+")


class Question(NamedTuple):
    """An intent, the files that answer it, and strings of which one is in the answer."""

    project: str
    kind: str
    intent: str
    files: tuple[str, ...]
    answers: tuple[str, ...]

    def is_answered_in(self, text: str) -> bool:
        shown = _BLANKS.sub(" ", text)
        return any(_BLANKS.sub(" ", answer) in shown for answer in self.answers)


class Outcome(NamedTuple):
    """What a package of a question was like: tokens it used, and those of its first source."""

    question: Question
    budget: int
    found: bool
    answered: bool
    used: int
    first: int
    wrong_count: bool


def questions_of(folder: Path) -> list[Question]:
    lines = (folder / "questions.jsonl").read_text("utf-8").split("\n")
    rows = [json.loads(line) for line in lines if line.strip()]
    return [
        Question(row["project"], row["kind"], row["intent"], tuple(row["files"]), tuple(row["answers"])) for row in rows
    ]


def measure_known(report: Report, options: Options) -> None:
    if options.known is None:
        report.missing.append(Path("--known DIR"))
        return
    asyncio.run(_measure(options.known, report, options))


async def _measure(folder: Path, report: Report, options: Options) -> None:
    questions = questions_of(folder)
    projects = list(dict.fromkeys(one.project for one in questions))
    count = TokenCounter("gpt-4o").count
    ours: list[Outcome] = []
    by_words: list[Outcome] = []
    fused: list[Outcome] = []
    with ExitStack() as stack:
        url = stack.enter_context(database())
        await apply(url)
        served = stack.enter_context(serve_embeddings()) if options.embeddings else None
        embedder = KeptEmbedder(served, options.cache) if served is not None else None
        async with laboratory(url) as lab:
            memory = PostgresMemory(url, embedder, timeout=PATIENCE, query_time=PATIENCE)
            service = lab.service(memory, PackageWeights())
            for project in projects:
                await ingest(lab.store, project, folder / project, IngestOptions(project))
                await memory.embed_missing(document_space(project))
                asked = [one for one in questions if one.project == project]
                ours += [await _ours(service, one, budget, count) for one in asked for budget in BUDGETS]
                parts = await _parts(lab.store, project)
                bm25 = Bm25([memory for memory, _ in parts])
                by_words += [_baseline(bm25.places(one.intent), parts, one, b, count) for one in asked for b in BUDGETS]
                if embedder is not None:
                    made = await embedder.embed([embedding_text(memory) for memory, _ in parts])
                    both = Bm25AndDense([memory for memory, _ in parts], embedder, made)
                    for one in asked:
                        found = await both(one.intent)
                        place = {id(memory): at for at, (memory, _) in enumerate(parts)}
                        order = [place[id(memory)] for memory in found]
                        fused += [_baseline(order, parts, one, budget, count) for budget in BUDGETS]
    _tell(report, ours, by_words, fused)


async def _ours(service: PackageService, question: Question, budget: int, count: Callable[[str], int]) -> Outcome:
    request = ContextBuildRequest(intent=question.intent, token_budget=budget)
    package = await service.build(agent(question.project), request, _TRACE)
    text = service.prompt(package)
    return Outcome(
        question,
        budget,
        _refs(question) & {one.ref for one in package.sources} != set(),
        question.is_answered_in(text),
        package.tokens_used,
        _first(package),
        package.tokens_used > budget or package.tokens_used != (count(text) if text else 0),
    )


def _refs(question: Question) -> set[str]:
    return {ref_of(question.project, file) for file in question.files}


def _first(package: ContextPackage) -> int:
    return package.sources[0].tokens if package.sources else 0


async def _parts(store: KnowledgeStore, project: str) -> list[tuple[Memory, str]]:
    """The passages of a project's documents as memories, each with its document's ref."""
    refs = list(await store.sources(project, project))
    found = await store.get(project, refs)
    return [(one, ref) for ref in refs for one in passage_memories(ref, ref, found[ref])]


def _baseline(
    order: Iterable[int],
    parts: Sequence[tuple[Memory, str]],
    question: Question,
    budget: int,
    count: Callable[[str], int],
) -> Outcome:
    """What a package holds of the passages in this order, each a source of its own, as many as fit."""
    chosen: list[Item] = []
    used = 0
    refs = []
    for place in order:
        memory, ref = parts[place]
        item = Item(memory.id, memory.text, candidate=Candidate(memory.id, memory.text, label=memory.speaker or ""))
        if used + count(memory.text) > budget:
            continue
        if (tokens := bundle_tokens([*chosen, item], count)) <= budget:
            chosen.append(item)
            refs.append(ref)
            used = tokens
        if used > FULL * budget:
            break
    text = rendered(chosen)
    found = not _refs(question).isdisjoint(refs)
    return Outcome(question, budget, found, question.is_answered_in(text), used, 0, wrong_count=used > budget)


def _tell(report: Report, ours: Sequence[Outcome], by_words: Sequence[Outcome], fused: Sequence[Outcome]) -> None:
    for what in ("answered", "found"):
        for budget in BUDGETS:
            report.add(_line(what, budget, ours, by_words, fused))
    for kind, name in (("rare", "rare words"), ("para", "other words")):
        of_kind = [[one for one in some if one.question.kind == kind] for some in (ours, by_words, fused)]
        report.add(_line("answered", BUDGETS[0], *of_kind, goal=(kind, BUDGETS[0]), of=f", {name}"))
    for project in dict.fromkeys(one.question.project for one in ours):
        for budget in BUDGETS:
            of_project = [[one for one in some if one.question.project == project] for some in (ours, by_words, fused)]
            report.add(_line("answered", budget, *of_project, goal=None, of=f", {project}"))
    wrong = sum(one.wrong_count for one in ours)
    report.add(Line(f"over the budget, or counted wrongly, of {len(ours)}", str(wrong), "0", wrong == 0))
    shares = [one.used / one.budget for one in ours]
    full = sum(share >= FULL for share in shares)
    share = f"{statistics.median(shares):.2f} / {min(shares):.2f}; {full} of {len(ours)} at least {FULL:g}"
    report.add(Line("share of the budget that is used, median / least", share))
    first = [one.first / one.budget for one in ours]
    report.add(Line("share of the first source, median / most", f"{statistics.median(first):.2f} / {max(first):.2f}"))
    report.notes.append(
        "answered: a string of the answer is in the text shown; found: a file that answers is among the sources. "
        "The baselines are BM25, and BM25 with the cosine of the same embeddings by reciprocal rank, of the same "
        "passages, each a source of its own under its document's title."
    )


def _line(
    what: str,
    budget: int,
    ours: Sequence[Outcome],
    by_words: Sequence[Outcome],
    fused: Sequence[Outcome],
    *,
    goal: tuple[str, int] | bool | None = True,
    of: str = "",
) -> Line:
    measured = _share(what, budget, ours)
    wanted = GOALS.get((what, budget) if goal is True else goal) if goal else None  # type: ignore[arg-type]
    baseline = f"BM25 {_share(what, budget, by_words):.2f}"
    if fused:
        baseline += f", RRF {_share(what, budget, fused):.2f}"
    return Line(
        f"{what} @{budget:,}{of} ({len(ours) // len(BUDGETS)} questions)",
        f"{measured:.2f}",
        "–" if wanted is None else f"{wanted:.2f}",
        None if wanted is None else round(measured, 2) >= wanted,
        baseline,
    )


def _share(what: str, budget: int, outcomes: Sequence[Outcome]) -> float:
    asked = [getattr(one, what) for one in outcomes if one.budget == budget]
    return statistics.mean(asked) if asked else 0.0
