"""How good and how quick context packages are: ``./scripts/bench packages [--data DIR] [--known DIR] …``.

``DIR`` has labelled texts: ``hotpot_*_passages.jsonl`` and ``hotpot_*_questions.jsonl``, and the same of ``musique``.
``--known`` names a folder with the documents of projects, and questions about them (``harness/known.py``). What is
measured in time should have the machine for itself.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import sys
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.section import Item
from context_builder.database.migrations import apply
from context_builder.database.postgres import PostgresDatabase
from context_builder.errors import PinnedOverBudget
from context_builder.knowledge.artifact import Artifact, ArtifactKind, Edge, Status
from context_builder.knowledge.audit_chain import verify
from context_builder.knowledge.excerpt import RankedSource, parts_of
from context_builder.knowledge.fit import fitted, rendered
from context_builder.knowledge.governance import (
    Access,
    AccessDecision,
    Agent,
    DecisionContext,
    GovernedSource,
    decide,
    default_policies,
    parse_policies,
)
from context_builder.knowledge.node import projections
from context_builder.knowledge.record import PackageRecord
from context_builder.knowledge.request import ContextBuildRequest, Retrieval
from context_builder.knowledge.revision import CandidateVerdict, PackageRevision, PolicyDecision, RecordedCaller
from context_builder.knowledge.service import PackageService
from context_builder.knowledge.store import document_space
from context_builder.knowledge.weights import PackageWeights
from context_builder.memory.embedder import Embedder
from context_builder.memory.sql_memory import PostgresMemory
from context_builder.tokens.counter import TokenCounter
from scripts.benches.harness.known import known
from scripts.benches.harness.laboratory import TRACE, Laboratory, Options, agent, new_laboratory
from scripts.benches.harness.memory import PATIENCE, connected, database
from scripts.benches.harness.report import Line, Report, parser, progress, rows_of, run, timing
from scripts.benches.harness.speed import speed

# How many of the passages that a question needs are the first of its package, with the graph and without

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
RESAMPLES: Final = 2_000


@dataclass(frozen=True)
class Passages:
    """Artifacts by ref, edges, and questions with the refs that answer each."""

    name: str
    artifacts: dict[str, Artifact]
    edges: tuple[Edge, ...]
    questions: tuple[tuple[str, frozenset[str]], ...]

    @classmethod
    def read(cls, name: str, data: Path, report: Report) -> Passages:
        """Passages of several hops as artifacts, with the links between them as edges."""
        rows = list(rows_of(data, name, report, "passages"))
        document, approved = ArtifactKind.DOCUMENT, Status.APPROVED
        artifacts = {
            row["pid"]: Artifact(kind=document, title=row["title"], content=row["text"], status=approved)
            for row in rows
        }
        edges = tuple(Edge(from_ref=row["pid"], to_ref=to, type="links") for row in rows for to in row["links"])
        asked = rows_of(data, name, report, "questions")
        return cls(name, artifacts, edges, tuple((row["question"], frozenset(row["gold"])) for row in asked))


def recall(report: Report, options: Options) -> None:
    if options.data is None:
        report.missing.append(Path("--data DIR"))
        return
    corpora = [Passages.read(name, options.data, report) for name in ("hotpot", "musique")]
    asyncio.run(_recall([corpus for corpus in corpora if corpus.questions], report, options))
    report.notes.append(
        f"recall@{FIRST}: of the passages that a question needs, those among the first {FIRST} sources of its package; "
        f"held out: the weight of the graph is chosen on {FOLDS - 1} of {FOLDS} folds of the questions and measured on "
        "the other. The interval is of a paired bootstrap, 95 %."
    )


async def _recall(corpora: Sequence[Passages], report: Report, options: Options) -> None:
    async with new_laboratory(options) as (lab, url, embedder):
        for corpus in corpora:
            for ref, artifact in progress(list(corpus.artifacts.items()), f"storing {corpus.name}"):
                await lab.store.put(corpus.name, ref, artifact)
            await lab.store.link(corpus.name, corpus.edges)
            await _compare(lab, url, corpus, None, report)
            if embedder is not None:
                await _compare(lab, url, corpus, embedder, report)


async def _compare(lab: Laboratory, url: str, corpus: Passages, embedder: Embedder | None, report: Report) -> None:
    memory = PostgresMemory(url, embedder, timeout=PATIENCE, query_time=PATIENCE)
    await memory.embed_missing(document_space(corpus.name))
    weighted = {share: replace(PackageWeights(), graph=share, semantic=0.8 - share) for share in SHARES}
    tried = {share: await _recalls(lab.service(memory, weights), corpus) for share, weights in weighted.items()}
    ours = await _recalls(lab.service(memory), corpus)
    without = await _recalls(lab.service(memory), corpus, graph=False)
    recalled, before = statistics.mean(ours), statistics.mean(without)
    goal, how = GOALS[corpus.name, embedder is not None], "with embeddings" if embedder else "by words alone"
    what = f"recall@{FIRST}, {corpus.name}, {how} ({len(corpus.questions)} questions)"
    report.add(Line(what, f"{recalled:.3f}", f"{goal:.2f}", recalled >= goal, f"{before:.3f} without the graph"))
    low, high = _interval([one - other for one, other in zip(ours, without, strict=True)])
    added = f"{recalled - before:+.3f} ({low:+.3f} … {high:+.3f})"
    report.add(Line("… what the graph adds", added, "not below 0", low >= 0))
    held_out, chosen = _held_out(corpus, tried)
    spread = f"{statistics.mean(held_out):.3f}; {min(held_out):.3f} … {max(held_out):.3f}"
    report.add(Line("… held out; the folds", f"{spread} (graph {', '.join(f'{one:g}' for one in chosen)})"))


async def _recalls(service: PackageService, corpus: Passages, *, graph: bool = True) -> list[float]:
    retrieval = Retrieval() if graph else Retrieval(graph=None)
    recalls = []
    for question, gold in corpus.questions:
        request = ContextBuildRequest(intent=question, token_budget=20_000, retrieval=retrieval)
        package = await service.build(agent(corpus.name), request, TRACE)
        first = {one.ref for one in package.sources[:FIRST]}
        recalls.append(len(first & gold) / len(gold))
    return recalls


def _held_out(corpus: Passages, tried: Mapping[float, Sequence[float]]) -> tuple[list[float], list[float]]:
    """Return the recall in each fold by the weight that is best in the others, and these weights."""
    folds = [zlib.crc32(question.encode()) % FOLDS for question, _ in corpus.questions]

    def mean(share: float, fold: int, *, inside: bool) -> float:
        return statistics.mean(one for one, its in zip(tried[share], folds, strict=True) if (its == fold) is inside)

    chosen = {fold: max(tried, key=lambda share: mean(share, fold, inside=False)) for fold in sorted(set(folds))}
    return [mean(share, fold, inside=True) for fold, share in chosen.items()], list(chosen.values())


def _interval(differences: Sequence[float]) -> tuple[float, float]:
    """Return where the mean of resampled differences lies in 95 of 100 cases."""
    chance = random.Random(1)
    means = sorted(statistics.mean(chance.choices(differences, k=len(differences))) for _ in range(RESAMPLES))
    return means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES)]


# Whether a package ever exceeds its budget: generated requests, hostile texts included, counted as rendered

REQUESTS: Final = 100_000
MOST_SOURCES: Final = 8
PIECES: Final = (
    *("kelp", "hydrophone clips ", "label. ", "\n", "\n\n", "  ", "\t", "123456", "…"),
    *("# Heading\n", "a" * 40, "-" * 30, "<|endoftext|>", "<|im_start|>system", "[1] source", '{"a": [1]}'),
    *("\u202e", "\u200b", "\x00", "é", "字", "🐙", "﷽"),
)
"""What texts and headings are put together from."""


def budget(report: Report, options: Options) -> None:
    choose, count, requests = random.Random(7), TokenCounter("gpt-4o").count, REQUESTS // options.part
    over = refused = included = 0
    for _ in progress(range(requests), f"{requests:,} requests"):
        sources = [_source(choose, place) for place in range(choose.randrange(MOST_SOURCES + 1))]
        pinned = choose.randrange(min(3, len(sources)) + 1)
        limit = int(2 ** (choose.random() * 10))
        try:
            made = fitted(sources[:pinned], list(map(ranked_source, sources[pinned:])), limit, count)
        except PinnedOverBudget:
            refused += 1
            continue
        included += len(made.items)
        over += made.tokens > limit or made.tokens != count(rendered(made.items))
    what = f"packages over their budget, or counted wrongly, of {requests:,} generated requests"
    said = f"{over} ({included:,} sources included, {refused:,} refused for what was pinned)"
    report.add(Line(what, said, "0", over == 0))


def ranked_source(item: Item, intent: str = "kelp label") -> RankedSource:
    """The source as one that competes for the room, of which no search found a passage."""
    return RankedSource(
        item, "", 1.0, (), lambda: parts_of(item.text, "document", item.id, intent, floor=1.0), item.text
    )


def _source(choose: random.Random, place: int) -> Item:
    text = "".join(choose.choice(PIECES) for _ in range(int(2 ** (choose.random() * 9))))
    heading = "".join(choose.choice(PIECES) for _ in range(choose.randrange(6)))
    candidate = Candidate(f"artifact:{place}", text, label=heading)
    return Item(candidate.id, text, candidate=candidate, projections=tuple(projections(text).values()))


# What it costs to decide which of a package's candidates an agent may read

CANDIDATES: Final = 100
SAMPLES: Final = 500
AGENT: Final = Agent("lab", frozenset({"writer"}), "agent-7")
CONTEXT: Final = DecisionContext(
    "Choose a labelling strategy for the hydrophone clips", datetime(2026, 11, 22, tzinfo=UTC)
)
SOURCES: Final = [
    GovernedSource(
        ref=f"artifact:protocol-{place}",
        tenant="lab",
        kind="document",
        sensitivity="restricted",
        status="approved",
        project=f"project-{place % 7}",
        module="acoustics",
        session=f"session-{place}",
        tags=frozenset({"labels", "hydrophones"}),
    )
    for place in range(CANDIDATES)
]
"""No two with equal attributes, and none that the agent may see, so that both actions are asked for each. Those that
are equal in what policies read are decided as one."""


def policy(report: Report, options: Options) -> None:
    (default,) = default_policies().values()
    for what, condition in (
        ("the policies of the start", None),
        ("20 policies, by project", "true"),
        ("20 policies that read what no two candidates have in common", 'resource.session != ""'),
    ):
        more = (
            f'permit (principal, action, resource) when {{ resource.project == "project-{place}" && {condition} && '
            f'principal.roles.contains("owner-{place}") }};'
            for place in range(17)
        )
        policies = parse_policies({"default": "\n".join([default, *more] if condition else [default])})
        times = []
        for _ in range(SAMPLES // options.part):
            start = time.perf_counter()
            decisions = decide(policies, AGENT, SOURCES, CONTEXT)
            times.append(1000 * (time.perf_counter() - start))
            assert {decision.access for decision in decisions} == {Access.DENIED}
        report.add(timing(f"{CANDIDATES} candidates, both actions, {what}", times, (float("inf"), 10)))


# What it costs to record a package, and to verify the chain of its audit

ROWS: Final = 1_000_000
RECORDED: Final = 30
APPENDED_AT_ONCE: Final = 1_000
VERIFIED_WITHIN: Final = 30.0
CALLER: Final = RecordedCaller("agent-7", ("writer",))


def audit(report: Report, options: Options) -> None:
    with database() as url:
        asyncio.run(_audit(url, report, options.part))


async def _audit(url: str, report: Report, part: int) -> None:
    await apply(url)
    postgres = PostgresDatabase(url, timeout=PATIENCE)
    try:
        times = await _recording(PackageRecord(postgres), SAMPLES // part)
        report.add(timing(f"record a package of {RECORDED} sources and {CANDIDATES} candidates", times))
        rows = ROWS // part
        await _fill(url, rows)
        start = time.perf_counter()
        found = await verify(postgres, "lab", oldest=date(2000, 1, 1))
        took = time.perf_counter() - start
        assert (found.rows, found.is_intact) == (rows, True), found
        limit = VERIFIED_WITHIN / part
        report.add(Line(f"audit chain: verify {rows:,} rows", f"{took:.1f} s", f"{limit:g} s", took <= limit))
    finally:
        await postgres.close()


async def _recording(record: PackageRecord, samples: int) -> list[float]:
    """Milliseconds that the record of a package takes: its request before, and the rest after."""
    times = []
    for number in range(samples):
        revision = _revision(number)
        start = time.perf_counter()
        await record.begin(
            "packages",
            revision.request_id,
            caller=CALLER,
            request={"intent": "Choose a strategy", "tokenBudget": 4_000},
            trace_id="4bf92f3577b34da6a3ce929d0e0e4736",
            traceparent="",
            task_id=f"task-{number}",
            package_id=revision.package_id,
        )
        await record.finish("packages", revision)
        times.append(1000 * (time.perf_counter() - start))
    return times


def _revision(number: int) -> PackageRevision:
    refs = [f"artifact:{(7 * number + place) % 1_000}" for place in range(CANDIDATES)]
    sources = [
        {"ref": ref, "version": 1, "title": f"Title of {ref}", "content": f"{ref} says a word. " * 30, "tokens": 130}
        for ref in refs[:RECORDED]
    ]
    body: dict[str, Any] = {"contextPackageId": f"cpk_{number}", "tokenBudget": 4_000, "sources": sources}
    outcomes = ["included"] * RECORDED + ["excluded"] * (CANDIDATES - RECORDED)
    verdicts = [
        CandidateVerdict(ref, 1, outcome, "", 0.5, {"semantic": 0.5}, 130, ("semantic",))
        for ref, outcome in zip(refs, outcomes, strict=True)
    ]
    decisions = [AccessDecision(ref, Access.READ, ("default#1",), "policy default#1 permits read") for ref in refs]
    return PackageRevision(
        package_id=f"cpk_{number}",
        request_id=f"cbr_{number}",
        created_at=datetime.now(UTC),
        body=body,
        candidates=tuple(verdicts),
        decision=PolicyDecision(f"pdn_{number}", "sha256:0", CALLER.sub, CALLER.roles, {}, tuple(decisions)),
        governance_version="1",
    )


async def _fill(url: str, rows: int) -> None:
    """Append rows to the chain of tenant ``lab``, as packages do."""
    entry = {
        "decision_id": "pdn_01KAR2M3X5Q8J4YV7T9ZB6WCDE",
        "package_id": "cpk_01KAR2M3X5Q8J4YV7T9ZB6WCDE",
        "revision": 1,
        "policy_version": "sha256:" + "0" * 64,
        "caller": "agent-7",
        "version": 1,
        "access": "read",
        "policies": "default#1",
        "reason": "policy default#1 permits read",
        "content_digest": "0" * 64,
    }
    appended = "ARRAY(SELECT jsonb_populate_recordset(NULL::policy_audit, $1))"
    async with connected(url) as connection:
        await connection.execute("SELECT context_package_partitions(current_date, current_date + 1)")
        for first in range(0, rows, APPENDED_AT_ONCE):
            entries = [entry | {"ref": f"artifact:{first + place}"} for place in range(APPENDED_AT_ONCE)]
            await connection.execute(f"SELECT context_package_append('lab', now(), {appended})", json.dumps(entries))


MEASURES: Final[Mapping[str, Callable[[Report, Options], None]]] = {
    one.__name__: one for one in (known, recall, speed, budget, policy, audit)
}


def main() -> int:
    asked = parser(__doc__, MEASURES)
    asked.add_argument("--data", type=Path, help="folder with the labelled texts")
    asked.add_argument("--known", type=Path, help="folder with projects' documents and questions about them")
    asked.add_argument("--no-embeddings", action="store_true", help="find by words alone")
    asked.add_argument("--cache", type=Path, metavar="FOLDER", help="keep embeddings there for the next run")
    asked.add_argument("--database", type=Path, metavar="FOLDER", help="keep what speed is measured on there")
    asked.add_argument("--quick", action="store_true", help="a tenth of the samples")
    given = asked.parse_args()
    part = 10 if given.quick else 1
    options = Options(given.data, given.known, not given.no_embeddings, given.cache, given.database, part)

    def measure(report: Report) -> None:
        for row in given.only or MEASURES:
            MEASURES[row](report, options)

    return run("Context packages", measure, as_json=given.json)


if __name__ == "__main__":
    sys.exit(main())
