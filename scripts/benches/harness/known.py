"""Whether packages answer questions that were written for a project's documentation.

A folder has the documents of each project in a folder of its own, and ``questions.jsonl``: of each question its
``project``, its ``kind`` (``rare``: it has a word of one document alone; ``para``: it is in other words than the
documents'), its ``intent``, the ``files`` that answer it and ``answers``, strings of which one is in what answers it.
"""

from __future__ import annotations

import asyncio
import json
import re
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.section import Item
from context_builder.knowledge.fit import bundle_tokens, rendered
from context_builder.knowledge.ingest.ingest import IngestOptions, ingest, ref_of
from context_builder.knowledge.request import ContextBuildRequest
from context_builder.knowledge.service import PackageService
from context_builder.knowledge.store import KnowledgeStore, document_space, passage_memories
from context_builder.memory.memory import Memory
from context_builder.memory.rows import embedding_text
from context_builder.memory.sql_memory import PostgresMemory
from context_builder.tokens.counter import TokenCounter
from scripts.benches.harness.laboratory import TRACE, Options, agent, new_laboratory
from scripts.benches.harness.memory import PATIENCE, Bm25, Bm25AndDense
from scripts.benches.harness.report import NONE, Line, Report

BUDGETS: Final = (1_000, 3_000)
FULL: Final = 0.97
"""Share of the budget that a package fills wherever there is more to show."""

_BLANKS: Final = re.compile(r"\s+")
_COUNT: Final = TokenCounter("gpt-4o").count


class Question(NamedTuple):
    """An intent, the files that answer it, and strings of which one is in the answer."""

    project: str
    kind: str
    intent: str
    files: tuple[str, ...]
    answers: tuple[str, ...]

    @property
    def refs(self) -> set[str]:
        return {ref_of(self.project, file) for file in self.files}

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
    first: int = 0
    wrong_count: bool = False


def known(report: Report, options: Options) -> None:
    if options.known is None:
        report.missing.append(Path("--known DIR"))
        return
    lines = (options.known / "questions.jsonl").read_text("utf-8").split("\n")
    rows = [json.loads(line) for line in lines if line.strip()]
    questions = [
        Question(row["project"], row["kind"], row["intent"], tuple(row["files"]), tuple(row["answers"])) for row in rows
    ]
    outcomes = asyncio.run(_outcomes(options.known, questions, options))
    _tell(report, [some for some in outcomes if some])
    report.notes.append(
        "answered: a string of the answer is in the text shown; found: a file that answers is among the sources. "
        "The baselines are BM25, and BM25 with the cosine of the same embeddings by reciprocal rank, of the same "
        "passages, each a source of its own under its document's title."
    )


async def _outcomes(folder: Path, questions: Sequence[Question], options: Options) -> list[list[Outcome]]:
    """Return those of packages, of BM25, and with embeddings of both fused."""
    ours: list[Outcome] = []
    by_words: list[Outcome] = []
    fused: list[Outcome] = []
    async with new_laboratory(options) as (lab, url, embedder):
        memory = PostgresMemory(url, embedder, timeout=PATIENCE, query_time=PATIENCE)
        service = lab.service(memory)
        for project in dict.fromkeys(one.project for one in questions):
            await ingest(lab.store, project, folder / project, IngestOptions(project))
            await memory.embed_missing(document_space(project))
            asked = [one for one in questions if one.project == project]
            ours += [await _ours(service, one, budget) for one in asked for budget in BUDGETS]
            parts = await _parts(lab.store, project)
            memories = [memory for memory, _ in parts]
            refs = {id(memory): ref for memory, ref in parts}
            bm25 = Bm25(memories)
            for one in asked:
                by_words += [_baseline(await bm25(one.intent), refs, one, budget) for budget in BUDGETS]
            if embedder is not None:
                made = await embedder.embed([embedding_text(memory) for memory in memories])
                both = Bm25AndDense(memories, embedder, made)
                for one in asked:
                    fused += [_baseline(await both(one.intent), refs, one, budget) for budget in BUDGETS]
    return [ours, by_words, fused]


async def _ours(service: PackageService, question: Question, budget: int) -> Outcome:
    request = ContextBuildRequest(intent=question.intent, token_budget=budget)
    package = await service.build(agent(question.project), request, TRACE)
    text = await service.prompt(package)
    return Outcome(
        question,
        budget,
        not question.refs.isdisjoint(one.ref for one in package.sources),
        question.is_answered_in(text),
        package.tokens_used,
        package.sources[0].tokens if package.sources else 0,
        package.tokens_used > budget or package.tokens_used != (_COUNT(text) if text else 0),
    )


async def _parts(store: KnowledgeStore, project: str) -> list[tuple[Memory, str]]:
    """The passages of a project's documents as memories, each with its document's ref."""
    refs = list(await store.sources(project, project))
    found = await store.get(project, refs)
    return [(one, ref) for ref in refs for one in passage_memories(ref, ref, found[ref])]


def _baseline(order: Iterable[Memory], refs: dict[int, str], question: Question, budget: int) -> Outcome:
    """What a package has of the passages in this order, each a source of its own, as many as fit."""
    chosen: list[Item] = []
    found: set[str] = set()
    used = 0
    for memory in order:
        item = Item(memory.id, memory.text, candidate=Candidate(memory.id, memory.text, label=memory.speaker or ""))
        if used + _COUNT(memory.text) > budget:
            continue
        if (tokens := bundle_tokens([*chosen, item], _COUNT)) <= budget:
            chosen.append(item)
            found.add(refs[id(memory)])
            used = tokens
        if used > FULL * budget:
            break
    return Outcome(question, budget, bool(question.refs & found), question.is_answered_in(rendered(chosen)), used)


def _tell(report: Report, outcomes: Sequence[Sequence[Outcome]]) -> None:
    """Tell of ours, which come first, beside the baselines."""
    ours = outcomes[0]

    def add(what: str, budget: int, goal: float | None, kind: str = "", project: str = "") -> None:
        shares = []
        for some in outcomes:
            of = [one for one in some if one.budget == budget and kind in ("", one.question.kind)]
            shares.append([getattr(one, what) for one in of if project in ("", one.question.project)])
        share, *others = map(statistics.mean, shares)
        name = f"{what} @{budget:,} {kind}{project} ({len(shares[0])} questions)"
        reached = None if goal is None else round(share, 2) >= goal
        baseline = ", ".join(f"{who} {other:.2f}" for who, other in zip(("BM25", "RRF"), others, strict=False))
        report.add(Line(name, f"{share:.2f}", NONE if goal is None else f"{goal:.2f}", reached, baseline))

    for what, goals in (("answered", (0.78, 0.88)), ("found", (0.92, 0.96))):
        for budget, goal in zip(BUDGETS, goals, strict=True):
            add(what, budget, goal)
    for kind, goal in (("rare", 1.0), ("para", 0.6)):
        add("answered", BUDGETS[0], goal, kind=kind)
    for project in dict.fromkeys(one.question.project for one in ours):
        for budget in BUDGETS:
            add("answered", budget, None, project=project)
    wrong = sum(one.wrong_count for one in ours)
    report.add(Line(f"over the budget, or counted wrongly, of {len(ours)}", str(wrong), "0", wrong == 0))
    used, first = [one.used / one.budget for one in ours], [one.first / one.budget for one in ours]
    full = sum(share >= FULL for share in used)
    said = f"{statistics.median(used):.2f} / {min(used):.2f}; {full} of {len(ours)} at least {FULL:g}"
    report.add(Line("share of the budget that is used, median / least", said))
    report.add(Line("share of the first source, median / most", f"{statistics.median(first):.2f} / {max(first):.2f}"))
