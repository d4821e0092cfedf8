"""How good and how quick prompts are: ``./scripts/bench assembly --data DIR [--only ROW …] [--cache FOLDER]``.

``DIR`` has labelled texts: ``locomo_*_messages.jsonl`` and ``locomo_*_questions.jsonl`` (long conversations, and
questions with the turns that answer them), ``musique_*_passages.jsonl`` and ``musique_*_questions.jsonl`` (passages,
and questions that need several), ``pii_*.jsonl`` (``text``, ``source``, and ``spans`` with start, end, type). What is
measured in time should have the machine for itself.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from context_builder.assembly import AssemblyConfig, Candidate, ContextBuilder, ContextBuilderMetrics, HealthState
from context_builder.assembly.build_turn import assembled
from context_builder.assembly.govern import Governed, RedactionPolicy
from context_builder.assembly.retrieve import RetrievalResult, Retriever
from context_builder.assembly.section import MessageTokenCounter
from context_builder.assembly.services import ContextCache, PromptServices
from context_builder.assembly.turn import Turn
from context_builder.clock import Clock, SystemClock
from context_builder.concurrency import Background
from context_builder.database.migrations import apply
from context_builder.errors import TokenLimitExceeded
from context_builder.memory.embedder import Embedder
from context_builder.memory.memory import Memory, MemoryQuery, MemoryStore, SearchResult
from context_builder.memory.rows import embedding_text
from context_builder.memory.sql_memory import PostgresMemory, SearchOptions
from context_builder.redaction import NoopRedactor, PiiRedactor
from context_builder.redaction.pii import PRECEDENCE
from context_builder.testing import InMemoryStore, ManualClock
from context_builder.tokens.counter import TokenCounter
from scripts.benches.harness.memory import (
    PATIENCE,
    PROGRAM,
    Bm25,
    Bm25AndDense,
    KeptEmbedder,
    RandomEmbedder,
    Ranking,
    database,
    load,
    serve_embeddings,
)
from scripts.benches.harness.report import NONE, Line, Report, milliseconds, parser, progress, rows_of, run, timing
from tests.assembly.turns import Brain, generated

MODEL: Final = "gpt-4o"
_COUNTER: Final = TokenCounter(MODEL)
_INFINITE: Final = float("inf")


@dataclass(frozen=True)
class Options:
    """``data`` is the folder of texts; ``quick`` measures a tenth; of the conversations the first ``conversations``.

    Embeddings are kept in the folder ``cache``, so that a second run need not make them again.
    """

    data: Path
    quick: bool = False
    conversations: int | None = None
    embeddings: bool = True
    cache: Path | None = None

    def count(self, full: int) -> int:
        return max(1, full // 10) if self.quick else full


# What memories are searched for: long conversations, and passages

AGAIN: Final = "²"
"""Ends the id of a memory that repeats another."""


@dataclass(frozen=True)
class Corpus:
    """Documents to be found in, and questions with the ids of those that answer each."""

    tenant: str
    memories: tuple[Memory, ...]
    questions: tuple[tuple[str, frozenset[str]], ...]

    def without_names(self) -> Corpus:
        """Nothing but what was said is remembered: not who said it, nor when."""
        unnamed = tuple(replace(memory, speaker=None, time=None) for memory in self.memories)
        return replace(self, tenant=f"{self.tenant} unnamed", memories=unnamed)

    def twice(self, change: str = "") -> Corpus:
        """Everything is remembered a second time, with ``change`` at its end."""
        copies = (replace(memory, id=memory.id + AGAIN, text=memory.text + change) for memory in self.memories)
        return replace(self, tenant=f"{self.tenant} twice{change}", memories=(*self.memories, *copies))


def conversations(options: Options, report: Report) -> list[Corpus]:
    """Each conversation by itself."""
    turns: dict[str, list[Memory]] = defaultdict(list)
    for row in rows_of(options.data, "locomo", report, "messages"):
        said_at = datetime.strptime(row["session_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        conversation, place = row["conv"], row["message_number"]
        said = Memory(
            row["dia_id"], row["text"], session_id=conversation, speaker=row["speaker"], time=said_at, position=place
        )
        turns[conversation].append(said)
    asked: dict[str, list[tuple[str, frozenset[str]]]] = defaultdict(list)
    for row in rows_of(options.data, "locomo", report, "questions"):
        known = {memory.id for memory in turns[row["conv"]]}
        if evidence := known.intersection(row.get("evidence_fixed") or row["evidence"]):
            asked[row["conv"]].append((row["question"], frozenset(evidence)))
    found = [Corpus(name, tuple(memories), tuple(asked[name])) for name, memories in turns.items() if asked[name]]
    return found[: options.conversations]


def passages(options: Options, report: Report) -> Corpus:
    """All passages as one collection."""
    memories = [
        Memory(row["pid"], f"{row['title']}\n{row['text']}", "passage")
        for row in rows_of(options.data, "musique", report, "passages")
    ]
    rows = rows_of(options.data, "musique", report, "questions")
    return Corpus("passages", tuple(memories), tuple((row["question"], frozenset(row["gold"])) for row in rows))


# What a turn's context has of what it should: the same builder, format and limit for every way to find

BUDGETS: Final = (300, 750, 1500, 3000)
"""Tokens of the whole prompt: the question, the heading, labels and the chat format's overhead count as well."""

RULES: Final = AssemblyConfig(top_k=150, threshold=0.0, deadline=60.0, store_summaries=False)
"""As documented, but for as many memories as fit the largest limit, and time for a busy machine."""

Find = Callable[[MemoryQuery], Awaitable[list[SearchResult]]]


class Searched(InMemoryStore):
    """A memory that finds by ``find``, which is asked each query once: a question's turns differ in their limit."""

    def __init__(self, find: Find) -> None:
        super().__init__()
        self._find = find
        self._found: dict[tuple[str, int, float], list[SearchResult]] = {}

    async def search(self, tenant_id: str, query: MemoryQuery) -> list[SearchResult]:
        key = (query.text, query.limit, query.threshold)
        if key not in self._found:
            self._found[key] = await self._find(query)
        return self._found[key]


def stored(store: MemoryStore, corpus: Corpus, remembered_as: str | None = None) -> Find:
    """What ``store`` finds in ``corpus``; shown as it is there, also where it is remembered as something else."""
    originals = {memory.id: memory for memory in corpus.memories}

    async def find(query: MemoryQuery) -> list[SearchResult]:
        found = await store.search(remembered_as or corpus.tenant, query)
        return [replace(one, memory=originals[one.memory.id]) for one in found]

    return find


def ranked(ranking: Ranking) -> Find:
    """What a baseline ranks first."""

    async def find(query: MemoryQuery) -> list[SearchResult]:
        best = (await ranking(query.text))[: query.limit]
        return [SearchResult(memory, 1 - place / len(best)) for place, memory in enumerate(best)]

    return find


@dataclass(frozen=True)
class Way:
    """A way to find memories in each corpus, and to make contexts of them."""

    find: Callable[[Corpus], Find]
    rules: AssemblyConfig = RULES
    clock: Callable[[Corpus], Clock] = lambda _: SystemClock()

    def builder(self, corpus: Corpus) -> ContextBuilder:
        store = Searched(self.find(corpus))
        return ContextBuilder(store=store, token_counter=_COUNTER.count, config=self.rules, clock=self.clock(corpus))


def day_after(corpus: Corpus) -> Clock:
    """A day after the last memory; now, where none has a time."""
    times = [memory.time for memory in corpus.memories if memory.time is not None]
    if not times:
        return SystemClock()
    clock = ManualClock()
    clock.set_wall((max(times) + timedelta(days=1)).timestamp() - clock.now().wall)
    return clock


async def included(builder: ContextBuilder, corpus: Corpus, question: str, limit: int) -> list[str]:
    """The ids of the memories that are in a turn's context in full, best first.

    The prompt is made of an empty system prompt, the memories, and the question as the user's message.
    """
    context = await builder.build_for_turn({"user_message": question, "tenant_id": corpus.tenant}, limit)
    if context.debug["memory"] != "ok":
        raise RuntimeError(f"the memory must answer: {context.debug['memory']}")
    texts = {memory.id: memory.text for memory in corpus.memories}
    named = ((snippet["id"].removesuffix(AGAIN), snippet["text"]) for snippet in context.snippets)
    return [name for name, text in named if texts[name] in text]


@dataclass(frozen=True)
class Memories:
    """Memories in the database at ``url``, each corpus a tenant of its own; found by words alone without embedder."""

    url: str
    talks: list[Corpus]
    texts: Corpus
    embedder: Embedder | None

    @property
    def asked(self) -> str:
        return f"{sum(len(talk.questions) for talk in self.talks)} questions, {len(self.talks)} conversations"

    def by_words(self) -> Memories:
        return replace(self, embedder=None)

    def store(self, options: SearchOptions | None = None) -> PostgresMemory:
        return PostgresMemory(self.url, self.embedder, options, timeout=PATIENCE, query_time=PATIENCE)

    async def remember(self, corpora: Iterable[Corpus]) -> None:
        store = self.store()
        for corpus in corpora:
            if self.embedder is not None:
                await self.embedder.embed([embedding_text(memory) for memory in corpus.memories])
            await store.remember(corpus.tenant, corpus.memories)

    def ours(self, options: SearchOptions | None = None) -> Way:
        store = self.store(options)
        return Way(lambda corpus: stored(store, corpus))

    async def baseline(self) -> Way:
        """BM25; with the cosine of embeddings, fused by reciprocal rank, where there are any."""
        if (embedder := self.embedder) is None:
            return Way(lambda corpus: ranked(Bm25(corpus.memories)))
        rankings = {
            corpus.tenant: Bm25AndDense(
                corpus.memories, embedder, await embedder.embed([embedding_text(memory) for memory in corpus.memories])
            )
            for corpus in (*self.talks, self.texts)
        }
        return Way(lambda corpus: ranked(rankings[corpus.tenant]))

    async def figures(self, name: str, way: Way) -> list[float]:
        """The mean share of the evidence within each limit, and of the gold passages among a context's first five.

        Shares are as they are printed, so that a goal is reached where it reads so.
        """
        started = time.monotonic()
        shares: list[list[float]] = []
        for talk in self.talks:
            builder = way.builder(talk)
            for question, evidence in talk.questions:
                contexts = [set(await included(builder, talk, question, limit)) for limit in BUDGETS]
                shares.append([len(evidence & context) / len(evidence) for context in contexts])
        builder = way.builder(self.texts)
        first = [
            len(gold.intersection((await included(builder, self.texts, question, 4_000))[:5])) / len(gold)
            for question, gold in self.texts.questions
        ]
        found = [round(statistics.fmean(column), 3) for column in (*zip(*shares, strict=True), first)]
        print(f"  {name}: {found} ({time.monotonic() - started:.0f} s)", file=sys.stderr)
        return found


@asynccontextmanager
async def open_memories(options: Options, report: Report) -> AsyncIterator[Memories | None]:
    """All conversations and passages, remembered; none where they are missing."""
    talks, texts = conversations(options, report), passages(options, report)
    if not talks or not texts.questions:
        yield None
        return
    with database() as url, serve_embeddings() if options.embeddings else nullcontext() as served:
        await apply(url)
        embedder = KeptEmbedder(served, options.cache) if served else None
        if served is None and options.embeddings:
            report.notes.append(f"With embeddings: not measured, {PROGRAM} is not installed.")
        memories = Memories(url, talks, texts, embedder)
        try:
            await memories.remember([*talks, texts])
            yield memories
        finally:
            if embedder is not None:
                await embedder.close()


# How much of what a question needs is in its context, and what each technique adds to that

HOW: Final = (
    "Recall: build_for_turn with a memory in PostgreSQL, one conversation a tenant; a turn counts where its full text "
    "is in the context. The limit is the whole prompt's: the question, the heading, labels and the chat format's "
    "overhead count as well; the system prompt is empty. The baselines are packed by the same builder, alike. "
    f"The rules are the documented ones, but for top_k={RULES.top_k}, threshold={RULES.threshold:g} and the deadline. "
    "recall@5: of the first five snippets."
)
WORDS, MEANING = "full text alone", "with embeddings"


async def recall(options: Options, report: Report) -> None:
    async with open_memories(options, report) as memories:
        if memories is None:
            return
        report.notes.append(HOW)
        await _compare(memories.by_words(), WORDS, "BM25", (0.06, 0.55), report)
        if memories.embedder is not None:
            await _compare(memories, MEANING, "BM25 + dense by RRF", (0.05, 0.62), report)


async def _compare(memories: Memories, name: str, other: str, goals: tuple[float, float], report: Report) -> None:
    """Ours and the baseline; the goals are so much more recall of evidence, and this recall@5."""
    more, at_5 = goals
    baseline = await memories.figures(other, await memories.baseline())
    ours = await memories.figures(name, memories.ours())
    for budget, there, here in zip(BUDGETS, baseline, ours, strict=False):
        what = f"evidence recall within {budget} tokens, {name} ({memories.asked})"
        reached = here >= round(there + more, 3)
        report.add(
            Line(what, f"{here:.3f} ({here - there:+.3f})", f"{there + more:.3f}", reached, f"{there:.3f} ({other})")
        )
    what = f"recall@5 of gold passages, {name} ({len(memories.texts.questions)} questions)"
    report.add(Line(what, f"{ours[-1]:.3f}", f"{at_5}", ours[-1] >= at_5, f"{baseline[-1]:.3f} ({other})"))


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


async def ablations(options: Options, report: Report) -> None:
    """Recall without each technique in turn, and by other rules.

    Other ways to remember are measured by words alone: an embedding for each takes a quarter of an hour a way.
    """
    async with open_memories(options, report) as memories:
        if memories is None:
            return
        words, corpora = memories.by_words(), (*memories.talks, memories.texts)
        changed = [other for one in corpora for other in (one.without_names(), one.twice(), one.twice(ALMOST))]
        await words.remember(changed)
        store = words.store()
        unnamed = Way(lambda corpus: stored(store, corpus, corpus.without_names().tenant))
        remembered = {
            "without speaker and date in the text searched": unnamed,
            "everything remembered twice": Way(lambda corpus: stored(store, corpus.twice())),
            "… without deduplication": Way(lambda corpus: stored(store, corpus.twice(ALMOST))),
        }
        report.tables.append(await _ablated(words, WORDS, remembered))
        if memories.embedder is not None:
            report.tables.append(await _ablated(memories, MEANING, {}))


async def _ablated(memories: Memories, title: str, remembered: Mapping[str, Way]) -> Table:
    whole = memories.ours()
    found = {name: memories.ours(options) for name, options in WITHOUT.items()}
    built = {name: replace(whole, rules=rules) for name, rules in RULED.items()} | {
        f"asked a day after the conversation, {name}": replace(whole, rules=rules, clock=day_after)
        for name, rules in LATELY.items()
    }
    columns = (*(f"{budget} tokens" for budget in BUDGETS), "recall@5")
    table = Table(title, *columns, title=f"What each technique adds: {memories.asked}")
    everything = await memories.figures(title, whole)
    table.add_row("all techniques", *(f"{share:.3f}" for share in everything), end_section=True)
    for name, way in (found | dict(remembered) | built).items():
        shares = zip(await memories.figures(name, way), everything, strict=True)
        table.add_row(name, *(f"{share:.3f} ({share - before:+.3f})" for share, before in shares))
    return table


# How long a turn takes whose memory is large, its query's embedding being given

TURN_GOALS: Final = {10_000: 15.0, 200_000: 40.0}
"""Milliseconds at the 95th percentile, by how many memories the tenant has."""

WARM_UP: Final = 20
HISTORY: Final = 20


async def turns(options: Options, report: Report) -> None:
    talks = conversations(options, report)
    if not talks:
        return
    with database() as url:
        await apply(url)
        for count, goal in TURN_GOALS.items():
            if count == min(TURN_GOALS) or not options.quick:
                report.add(await _turn_time(url, talks, count, goal, options.count(400)))


async def _turn_time(url: str, talks: Sequence[Corpus], count: int, goal: float, turns: int) -> Line:
    """Turns of a tenant with ``count`` memories, by a turn's defaults, its deadline included."""
    choose, embedder, tenant = random.Random(3), RandomEmbedder(), f"many-{count}"
    store = PostgresMemory(url, embedder, timeout=600)
    await load(url, embedder, tenant, list(_recombined(talks, count)))
    builder = ContextBuilder(store=store, token_counter=_COUNTER.count)
    await builder.preload()
    times, without = [], 0
    for number in range(turns + WARM_UP):
        talk = choose.choice(talks)
        start = choose.randrange(len(talk.memories) - HISTORY)
        turn = {
            "system_prompt": "You are a helpful assistant.",
            "user_message": choose.choice(talk.questions)[0],
            "history": [{"role": "user", "content": one.text} for one in talk.memories[start : start + HISTORY]],
            "tenant_id": tenant,
            "query_embedding": await embedder.embed_query(f"turn {number}"),
        }
        started = time.perf_counter()
        context = await builder.build_for_turn(turn)
        times.append(1000 * (time.perf_counter() - started))
        without += not context.snippets
    await builder.drain()
    await store.close()
    late = f", {without} without memories" if without else ""
    what = f"build_for_turn, {count:,} memories, query embedding given{late}"
    line = timing(what, times[WARM_UP:], (_INFINITE, goal))
    return replace(line, reached=line.reached and not without)


def _recombined(talks: Sequence[Corpus], count: int) -> Iterator[Memory]:
    """So many memories in sessions of 400: the first half of one turn and the second of another."""
    choose = random.Random(2)
    turns = [memory for talk in talks for memory in talk.memories]
    halves = [
        (one.text.partition(". ")[0], other.text.rpartition(". ")[2])
        for one, other in zip(turns, choose.sample(turns, len(turns)), strict=True)
    ]
    for place in range(count):
        text = " ".join((choose.choice(halves)[0], choose.choice(halves)[1]))
        session, position = f"session-{place // 400}", place % 400
        yield replace(turns[place % len(turns)], id=str(place), text=text, session_id=session, position=position)


# What the part of a prompt's making costs that does no I/O

CANDIDATES: Final = 50
MESSAGES: Final = 500
VOCABULARY: Final = (
    "replication polymerase strand helix enzyme because the between which people said about during "
    "evidence measured temperature reaction binding consequently a an of to in is are was question answer"
).split()


async def pure(options: Options, report: Report) -> None:
    """With no text counted before, and with all."""
    _COUNTER.load()
    for limit in (4_000, 100_000):
        choose, now = random.Random(1), datetime.now(UTC)
        spent: dict[str, list[float]] = {"cold": [], "counts cached": []}
        for _ in range(options.count(200)):
            envelope, candidates = _pure_turn(choose)
            counter, config = MessageTokenCounter(TokenCounter(MODEL).count), AssemblyConfig()
            policy, metrics = RedactionPolicy(NoopRedactor()), ContextBuilderMetrics()
            retriever, cache = Retriever([], None, config, metrics), ContextCache(0.0, 0)
            services = PromptServices(
                config, retriever, counter, policy, policy, metrics, Background(), cache, SystemClock()
            )
            retrieved = RetrievalResult((candidates,), {}, (), HealthState.NORMAL, "ok", {})
            for times in spent.values():
                start = time.perf_counter()
                turn = Turn.read(envelope)
                assembled(services, turn, turn, limit, retrieved, Governed(retrieved.lists), now)
                times.append(1000 * (time.perf_counter() - start))
        for (name, times), goal in zip(spent.items(), (15.0, 2.0), strict=True):
            what = f"pure part, {CANDIDATES} candidates, {MESSAGES} messages, limit {limit:,}, {name}"
            report.add(timing(what, times, (_INFINITE, goal), digits=2))


def _pure_turn(choose: random.Random) -> tuple[Mapping[str, Any], list[Candidate]]:
    def text(shortest: int, longest: int) -> str:
        return " ".join(choose.choices(VOCABULARY, k=choose.randint(shortest, longest)))

    roles = ("user", "assistant")
    history = [{"role": roles[place % 2], "content": text(5, 40)} for place in range(MESSAGES)]
    candidates = [
        Candidate(f"m{place}", text(20, 120), base_score=choose.random(), metadata={"timestamp": "2025-01-01"})
        for place in range(CANDIDATES)
    ]
    return {"system_prompt": text(40, 60), "user_message": text(10, 30), "history": history}, candidates


# That a prompt keeps to its budget, whatever comes in, and to its deadline, whatever the memory does


async def budget(options: Options, report: Report) -> None:
    turns, brain, count = options.count(100_000), Brain(), MessageTokenCounter(_COUNTER.count)
    config = AssemblyConfig(store_summaries=False)
    builder = ContextBuilder(somabrain=brain, token_counter=_COUNTER.count, config=config)
    built = over = wrong = 0
    for seed in progress(range(turns), f"{turns:,} turns"):
        brain.asked.clear()
        turn, brain.answer, limit = generated(seed)
        try:
            context = await builder.build_for_turn(turn, limit)
        except TokenLimitExceeded:
            continue
        total = count.prompt(context.messages)
        built += 1
        over += total > limit
        wrong += total != context.token_counts["total"]
    what = f"budget exceeded, {turns:,} generated turns ({built:,} built, the others refused)"
    report.add(Line(what, f"{over} turns", "0", over == 0))
    report.add(Line("token_counts other than a recount", f"{wrong} turns", "0", wrong == 0))


class HangingBrain(Brain):
    async def context_evaluate(self, payload: dict[str, Any]) -> Mapping[str, Any]:
        await asyncio.sleep(3600)
        return await super().context_evaluate(payload)


async def hanging(options: Options, report: Report) -> None:
    _COUNTER.load()
    deadline, times = AssemblyConfig().deadline, []
    turn, _, _ = generated(3)
    for _ in range(options.count(50)):
        builder = ContextBuilder(somabrain=HangingBrain(), health_provider=lambda: HealthState.NORMAL)
        start = time.perf_counter()
        await builder.build_for_turn(turn | {"user_message": "what is it"}, 100_000)
        times.append(1000 * (time.perf_counter() - start - deadline))
    what = f"context while the memory hangs, beyond the deadline of {milliseconds(deadline)}"
    report.add(timing(what, times, (_INFINITE, 5.0)))


# How much personal data is found

REQUIRED: Final = ("EMAIL_ADDRESS", "CREDIT_CARD", "IBAN_CODE", "IP_ADDRESS")
"""Kinds of which 0.9 must be reached, where they are written as text and not as they are spoken."""


async def pii(options: Options, report: Report) -> None:
    redactor = PiiRedactor()
    counts: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in rows_of(options.data, "pii", report):
        found = redactor.find(row["text"])
        for kind in PRECEDENCE:
            gold = {(span["start"], span["end"]) for span in row["spans"] if span["type"] == kind}
            ours = {(one.start, one.end) for one in found if one.kind == kind}
            counted = counts[kind, "spoken" if row["source"].startswith("stt") else "written"]
            counted[:] = map(sum, zip(counted, map(len, (gold & ours, gold - ours, ours - gold)), strict=True))
    for (kind, way), (right, missed, false) in sorted(counts.items()):
        if right + missed + false:
            score, must = 2 * right / (2 * right + missed + false), way == "written" and kind in REQUIRED
            what = f"PII span F1, {kind}, {way} ({right + missed} spans, {false} false)"
            goal = ("0.9", score >= 0.9) if must else (NONE, None)
            report.add(Line(what, f"{score:.3f}", *goal))


ROWS: Final[Mapping[str, Callable[[Options, Report], Awaitable[None]]]] = {
    one.__name__: one for one in (recall, ablations, turns, pure, budget, hanging, pii)
}


def main() -> int:
    asked = parser(__doc__, ROWS)
    asked.add_argument("--data", type=Path, required=True, help="folder with the labelled texts")
    asked.add_argument("--quick", action="store_true", help="a tenth of the samples, 10,000 memories at most")
    asked.add_argument("--conversations", type=int, metavar="N", help="recall in the first N conversations alone")
    asked.add_argument("--no-embeddings", action="store_true", help="find by words alone")
    asked.add_argument("--cache", type=Path, metavar="FOLDER", help="keep embeddings there for the next run")
    given = asked.parse_args()
    options = Options(given.data, given.quick, given.conversations, not given.no_embeddings, given.cache)

    async def measure(report: Report) -> None:
        for row in given.only or ROWS:
            await ROWS[row](options, report)

    return run("Assembly: prompts that fit", lambda report: asyncio.run(measure(report)), as_json=given.json)


if __name__ == "__main__":
    sys.exit(main())
