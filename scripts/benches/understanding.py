"""How good plain text analysis and the check of points are: ``./scripts/bench understanding --data DIR --meeting DIR``.

``DIR`` has JSON lines files of labelled texts:

* ``keyphrases_*.jsonl``  ``text``, ``keyphrases``, ``set``
* ``domains_*.jsonl``     ``text``, ``domain``, ``alt`` (acceptable neighbours), ``source`` (genre)
* ``meetings_*.jsonl``    ``meeting``, ``message_number``, ``turn``, ``speaker``, ``text``

The meeting's folder has ``meeting.json`` (``n``, ``speaker``, ``text``), and its points, ``true.json`` and
``fabricated.json`` (``text``, ``kind``, ``by``, ``evidence`` with ``m`` and ``q``). Either folder may be left out.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import re
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, cycle, groupby, islice, takewhile
from pathlib import Path
from typing import Any, Final

from context_builder.analysis.analyst import (
    Analyst,
    AnalystMessage,
    DomainResult,
    DraftPoint,
    KnownPoint,
    PointKind,
    Quote,
    SummaryRequest,
)
from context_builder.analysis.evidence import EvidenceCheck, Findings
from context_builder.analysis.openai import Endpoint, OpenAIAnalyst
from context_builder.analysis.openai.capabilities import Capabilities
from context_builder.analysis.openai.completion import prompt_tokens
from context_builder.analysis.prompts import load_prompts
from context_builder.analysis.text import TextAnalyst
from context_builder.analysis.text.sentences import sentences
from context_builder.clock import Instant
from context_builder.costs import LIST_PRICES
from context_builder.domains import DOMAINS
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.conversation.domains import DomainGate
from context_builder.session.conversation.tasks import DomainTask
from context_builder.session.jobs import Jobs, TaskOutcome
from context_builder.session.messages.message import from_fields
from context_builder.testing import ManualClock
from context_builder.tokens.counter import TokenCounter, estimate_tokens
from scripts import gallery
from scripts.benches.harness.report import NONE, Line, Report, Row, parser, rows_of, run, timing
from tests.analysis.points_with_evidence import TRUE, WRITTEN
from tests.analysis.talk_in_languages import TALKS
from tests.services.model_answers import answer, task_of
from tests.services.model_server import ModelServer

Phrase = tuple[str, ...]

SUMMARY_MESSAGES = 60
"""Messages in one summary of a meeting: about two minutes of lively talk."""


def light_stems(text: str) -> Phrase:
    """Lower case, no punctuation, no plural: what two spellings of one phrase have in common."""
    return tuple(re.sub(r"(?<=[^s\W]{2})(?<![ui])s$", "", word) for word in re.findall(r"[^\W_]+", text.lower()))


# keyphrases


def f1_at_10(found: Iterable[str], gold: Iterable[str]) -> float:
    right = {light_stems(phrase) for phrase in gold}
    given = list(dict.fromkeys(light_stems(phrase) for phrase in found))[:10]
    hits = sum(phrase in right for phrase in given)
    return 2 * hits / (len(given) + len(right)) if given or right else 0.0


def tfidf_keyphrases(rows: Sequence[Row]) -> Callable[[str], list[str]]:
    """Baseline: the runs of words without a short word in them, by the TF-IDF of their words."""
    spread = Counter(word for row in rows for word in set(light_stems(row["text"])))

    def extract(text: str) -> list[str]:
        counts = Counter(light_stems(text))
        runs = dict.fromkeys(
            run.strip() for run in re.findall(r"(?:\b[\w-]{4,}\b ?){1,3}", text.lower()) if run.strip()
        )

        def score(run: str) -> float:
            return sum(counts[w] * math.log(len(rows) / (1 + spread[w])) for w in light_stems(run))

        return sorted(runs, key=score, reverse=True)[:10]

    return extract


async def measure_keyphrases(rows: Sequence[Row], analyst: Analyst, report: Report) -> None:
    baseline = tfidf_keyphrases(rows)
    ours: defaultdict[str, list[float]] = defaultdict(list)
    naive: defaultdict[str, list[float]] = defaultdict(list)
    for row in rows:
        reading = await analyst.extract_keywords([AnalystMessage(1, "", row["text"])])
        for group in ("all", row["set"]):
            ours[group].append(f1_at_10(reading.keywords[0], row["keyphrases"]))
            naive[group].append(f1_at_10(baseline(row["text"]), row["keyphrases"]))
    for group in sorted(ours, key=lambda name: (name != "all", name)):
        found = statistics.mean(ours[group])
        report.add(
            Line(
                f"keyphrase F1@10, mean of {len(ours[group])} texts, {group}",
                f"{found:.3f}",
                goal="0.24" if group == "all" else NONE,
                reached=found >= 0.24 if group == "all" else None,
                baseline=f"{statistics.mean(naive[group]):.3f} (TF-IDF)",
            )
        )


# domains


class NaiveBayes:
    """Baseline: multinomial naive Bayes over words, trained on the other genres."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for row in rows:
            self._counts[row["domain"]].update(light_stems(row["text"]))
        self._vocabulary = len(set().union(*self._counts.values()))
        self._totals = {domain: counts.total() for domain, counts in self._counts.items()}

    def domain_of(self, text: str) -> str:
        spoken = light_stems(text)

        def log_likelihood(domain: str) -> float:
            counts, total = self._counts[domain], self._totals[domain] + self._vocabulary
            return sum(math.log((counts[word] + 1) / total) for word in spoken)

        return max(self._counts, key=log_likelihood)


def by_bayes(rows: Sequence[Row]) -> list[str | None]:
    sources = {row["source"] for row in rows}
    if len(sources) < 2:
        return [None] * len(rows)
    trained = {source: NaiveBayes(row for row in rows if row["source"] != source) for source in sources}
    return [trained[row["source"]].domain_of(row["text"]) for row in rows]


async def measure_domains(rows: Sequence[Row], analyst: Analyst, report: Report) -> None:
    inferred: list[str | None] = []
    for row in rows:
        reading = await analyst.infer_domains([AnalystMessage(1, "", row["text"])])
        inferred.append(next(iter(reading.confidence), None))
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        groups["all"].append(index)
        groups[row["source"]].append(index)
    baseline = by_bayes(rows)
    for group, members in sorted(groups.items(), key=lambda item: -len(item[1])):
        strict, near = accuracy(rows, inferred, members)
        naive = accuracy(rows, baseline, members)
        report.add(
            Line(
                f"domain accuracy strict / with neighbours, {group} ({len(members)})",
                f"{strict:.3f} / {near:.3f}",
                goal="0.50 / 0.60" if group == "all" else NONE,
                reached=strict >= 0.5 and near >= 0.6 if group == "all" else None,
                baseline=f"{naive[0]:.3f} / {naive[1]:.3f} (Bayes, other genres)",
            )
        )


def accuracy(rows: Sequence[Row], inferred: Sequence[str | None], members: Sequence[int]) -> tuple[float, float]:
    """Strict, and with acceptable neighbours."""
    strict = sum(inferred[index] == rows[index]["domain"] for index in members)
    near = sum(inferred[index] in (rows[index]["domain"], *rows[index]["alt"]) for index in members)
    return strict / len(members), near / len(members)


# summaries and speed


async def measure_summaries(rows: Sequence[Row], analyst: Analyst, report: Report) -> None:
    meetings: defaultdict[str, list[AnalystMessage]] = defaultdict(list)
    for number, row in enumerate(rows):
        meetings[row["meeting"]].append(AnalystMessage(number, row["speaker"], row["text"]))
    cites: list[bool] = []
    grounded: list[bool] = []
    for said in meetings.values():
        for start in range(0, len(said), SUMMARY_MESSAGES):
            given = {message.id: message for message in said[start : start + SUMMARY_MESSAGES]}
            for point in (await analyst.summarize(SummaryRequest(list(given.values())))).points:
                cites.append(1 <= len(point.cites) <= 5 and all(cited in given for cited in point.cites))
                said_in = " ".join(f"{given[cited].speaker} {given[cited].text}" for cited in point.cites)
                source = set(re.findall(r"\w+", said_in.lower()))
                grounded.append(source.issuperset(re.findall(r"\w+", point.text.lower())))
    report.add(every(f"points that cite only messages given ({len(cites)} points)", cites))
    report.add(every("points all of whose words occur in what they cite, speakers' names included", grounded))


async def measure_speed(rows: Sequence[Row], analyst: Analyst, report: Report) -> None:
    taken: list[float] = []
    for number, row in enumerate(rows):
        start = time.thread_time()
        await analyst.extract_keywords([AnalystMessage(number, row["speaker"], row["text"])])
        taken.append(1000 * (time.thread_time() - start))
    report.add(timing("text analysis of one message, CPU time", taken, (float("inf"), 5), digits=2))


def every(what: str, hits: Sequence[bool]) -> Line:
    return Line(what, share(hits), goal="100 %", reached=all(hits))


def share(hits: Iterable[bool]) -> str:
    counted = list(hits)
    return f"{100 * sum(counted) / len(counted):.1f} %" if counted else "–"


# Model calls for domains that are spared, and what that costs in accuracy: sessions joined from labelled texts.
# The model is simulated: it answers the label of most of the messages it is given, wrong one time in ten.

Utterance = tuple[str, str]
"""A domain and what was said about it."""

TOPIC_LENGTHS = ((6, 12), (15, 40), (40, 80))
"""Fewest and most messages about one domain."""

SESSIONS = 40
NOISE = 0.1
CONFIDENCE = 0.9


@dataclass
class Outcome:
    """Model calls, and messages after which the first current domain was the right one."""

    calls: int = 0
    right: int = 0
    messages: int = 0

    @property
    def accuracy(self) -> float:
        return self.right / self.messages


class Simulated:
    """A model that reads labels (by message id): that of most messages, the newest of those in doubt."""

    name = "simulated"

    def __init__(self, labels: Sequence[str], chance: random.Random) -> None:
        self._labels = labels
        self._chance = chance

    def label(self, work: DomainTask) -> str:
        heard = Counter(self._labels[said.id - 1] for said in reversed(work.messages))
        return heard.most_common(1)[0][0]

    async def read(self, work: DomainTask) -> DomainResult:
        domain = self._chance.choice(DOMAINS) if self._chance.random() < NOISE else self.label(work)
        return DomainResult({domain: CONFIDENCE}, (), self.name)


class AlwaysAsk:
    """The gate that spares nothing."""

    async def repeated(self, work: DomainTask) -> DomainResult | None:
        return None

    def model_answered(self) -> None:
        return None


Gate = DomainGate | AlwaysAsk


def session_of(
    rows: Sequence[Row], chance: random.Random, run: tuple[int, int], topics: int = 8
) -> Iterator[Utterance]:
    """``topics`` stretches of talk, each of ``run`` messages (fewest, most) about one domain."""
    by_domain = defaultdict(list)
    for row in rows:
        by_domain[row["domain"]].append(row["text"])
    before = ""
    for _ in range(topics):
        domain = chance.choice([name for name in by_domain if name != before])
        told: list[str] = []
        length = chance.randint(*run)
        while len(told) < length:
            told += [sentence for sentence in sentences(chance.choice(by_domain[domain])) if sentence.strip()]
        yield from ((domain, text) for text in told[:length])
        before = domain


async def play(lines: Sequence[Utterance], gate: Gate, model: Simulated, outcome: Outcome) -> None:
    """The session's own triggers, smoothing and gate; one message every five seconds."""
    clock = ManualClock()
    conversation = Conversation("bench", SessionConfig(), clock.now(), estimate_tokens)
    for number, (domain, text) in enumerate(lines, start=1):
        fields = {"message_number": number, "speaker": "Ann", "text": text}
        conversation.receive([from_fields(fields, clock.advance(5.0))], clock.now())
        if (work := conversation.next_domain_task(clock.now())) is not None:
            reading = await gate.repeated(work)
            if reading is None:
                outcome.calls += 1
                reading = await model.read(work)
                gate.model_answered()
            conversation.finish(work, reading, clock.now())
        outcome.right += next(iter(conversation.domain_tracker.topic.active), None) == domain
        outcome.messages += 1


async def measure_domain_calls(rows: Sequence[Row], plain: Analyst, report: Report) -> None:
    """How many calls the gate saves, and what of the accuracy that costs, against asking every five messages."""
    for run_ in TOPIC_LENGTHS:
        every, gated = Outcome(), Outcome()
        for seed in range(SESSIONS):
            lines = list(session_of(rows, random.Random(seed), run_))
            labels = [domain for domain, _ in lines]
            gates: tuple[tuple[Outcome, Gate], ...] = ((every, AlwaysAsk()), (gated, DomainGate(plain)))
            for outcome, gate in gates:
                await play(lines, gate, Simulated(labels, random.Random(seed + 1000)), outcome)
        calls, points = gated.calls / every.calls, 100 * (gated.accuracy - every.accuracy)
        report.add(
            Line(
                f"domain calls, accuracy of a simulated model; a topic lasts {run_[0]}-{run_[1]} messages",
                f"{gated.calls} ({calls:.0%}), {gated.accuracy:.3f} ({points:+.1f} points)",
                goal="50 %, -2 points",
                reached=calls <= 0.5 and points >= -2,
                baseline=f"{every.calls}, {every.accuracy:.3f} (every 5 messages)",
            )
        )


# How many true points the evidence check rejects or doubts, and how many false ones it lets pass

MOST_DOUBTS: Final = 0.2
"""Part of the true points that may cost a line of a call to a small model."""


def evidence_lines(meeting: Path | None = None) -> list[Line]:
    """Of written points and refusals, and of those of a ``meeting``: a folder of messages, true and false points."""
    written = [(each.verdict, EvidenceCheck(each.messages).check(each.point)) for each in WRITTEN]
    languages = f"{len({each.language for each in WRITTEN})} talks"
    lines = [
        *_lines_of_true([found for verdict, found in written if verdict == TRUE], f"written, of {languages}"),
        *_lines_of_false([found for verdict, found in written if verdict != TRUE], f"written, of {languages}"),
        *_lines_of_false(list(_refusals()), f"refusals, of {len(TALKS)} languages, quoting any messages"),
    ]
    if meeting:
        true, false = _of_meeting(meeting)
        lines += [*_lines_of_true(true, f"of {meeting.name}"), *_lines_of_false(false, f"of {meeting.name}")]
    return lines


def _lines_of_true(findings: Sequence[Findings], what: str) -> Iterator[Line]:
    count, (rejected, doubted) = len(findings), _rejected_and_doubted(findings)
    most = int(MOST_DOUBTS * count)
    yield Line(f"true points rejected, {what} ({count})", str(rejected), "0", not rejected)
    yield Line(f"true points doubted, {what} ({count})", str(doubted), f"at most {most}", doubted <= most)


def _lines_of_false(findings: Sequence[Findings], what: str) -> Iterator[Line]:
    rejected, doubted = _rejected_and_doubted(findings)
    passed = len(findings) - rejected - doubted
    shown = f"{passed} ({rejected} rejected, {doubted} doubted)"
    yield Line(f"false points passed, {what} ({len(findings)})", shown, "0", not passed)


def _rejected_and_doubted(findings: Sequence[Findings]) -> tuple[int, int]:
    return sum(one.rejected is not None for one in findings), sum(bool(one.doubts) for one in findings)


def _refusals() -> Iterator[Findings]:
    for talk in TALKS:
        check = EvidenceCheck([AnalystMessage(place, "", text) for place, text in enumerate(talk.messages)])
        places = range(len(talk.messages))
        choices = chain.from_iterable(combinations(places, count) for count in range(1, len(places) + 1))
        for evidence in [tuple(Quote(place, talk.messages[place]) for place in cited) for cited in choices]:
            yield from (check.check(DraftPoint(text, evidence)) for text in (*talk.refusals, *talk.refusals_of_topic))


def _of_meeting(folder: Path) -> tuple[list[Findings], list[Findings]]:
    """Return what is found in the meeting's true points, which may replace each other, and in its false ones."""
    messages, true, false = (_read(folder / f"{name}.json") for name in ("meeting", "true", "fabricated"))
    check = EvidenceCheck([AnalystMessage(each["n"], each["speaker"], each["text"]) for each in messages])
    drafts = {each["id"]: _draft(each) for each in true}
    known = {id_: [KnownPoint(id_, one.text, one.kind, one.by, one.evidence)] for id_, one in drafts.items()}
    return (
        [check.check(drafts[each["id"]], known.get(each["replaces"], ())) for each in true],
        [check.check(_draft(each)) for each in false],
    )


def _draft(point: Mapping[str, Any]) -> DraftPoint:
    evidence: Iterable[Mapping[str, Any]] = point["evidence"]
    quotes = tuple(Quote(each["m"], each["q"]) for each in evidence)
    return DraftPoint(point["text"], quotes, PointKind(point["kind"]), tuple(point["by"]))


def _read(file: Path) -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))
    return read


# Tokens and dollars of real conversations, with the real prompts and schemas, and a model that answers by rule. Every
# request is counted as it was sent, its schema included. Time is simulated, and every call is answered before the next
# message comes.

HOUR: Final = 3600.0
MOST_DOLLARS: Final = 0.40
"""Goal for an hour of meeting."""

LEAST_CACHED, CACHE_STEP, CACHED_FOR = 1024, 128, 300.0
"""Tokens of the shortest beginning of a prompt that a provider caches, tokens by which it grows, and seconds."""

BURST: Final = 60
PACE: Final = 5.0
"""Seconds between messages of the slow load."""

PACED: Final = 120
"""Messages of the slow load: ten minutes."""

COUNT: Final = TokenCounter("gpt-4o-mini").count


class OpenAIEndpoint(Endpoint):
    """Stands for OpenAI itself, which shows the model the schema that a request has beside the prompt."""

    @property
    def shows_schema(self) -> bool:
        return True


class Listening:
    """A conversation whose analysis is done as soon as it is due, as a session does it."""

    def __init__(self, model: OpenAIAnalyst, plain: TextAnalyst) -> None:
        self.clock = ManualClock()
        self.conversation = Conversation("bench", SessionConfig(), self.clock.now(), COUNT)
        self._model = model
        self._done: asyncio.Queue[TaskOutcome] = asyncio.Queue()
        self._jobs = Jobs(model, plain, self.conversation.rules, self._done.put_nowait)
        self._heard = 0

    def hear(self, *texts: str) -> None:
        now = self.clock.now()
        for text in texts:
            self._heard += 1
            fields = {"text": text, "speaker": f"Speaker_{self._heard % 3}", "message_number": self._heard}
            self.conversation.receive([from_fields(fields, now)], now)
        self.conversation.take_changes()

    async def settle(self) -> None:
        """Do everything that is due now."""
        now = self.clock.now()
        async with asyncio.TaskGroup() as tasks:
            under_way = self._start(now, tasks)
            while under_way:
                done = await self._done.get()
                if done.result is None:
                    raise RuntimeError("the model that answers by rule must not fail")
                self.conversation.finish(done.task, done.result, now)
                under_way += self._start(now, tasks) - 1

    def _start(self, now: Instant, tasks: asyncio.TaskGroup) -> int:
        """How many pieces of work were handed out."""
        started = 0
        domains = self.conversation.next_domain_task(now)
        if domains is not None:
            keywords = self.conversation.next_keyword_task(now)
            if keywords and self._model.read_both:
                self._jobs.start_both(keywords, domains, self._model.read_both, tasks)
                started += 2
            else:
                self._jobs.start(domains, tasks)
                started += 1
        if self.conversation.summary_due(now) and (summary := self.conversation.next_summary_task()):
            self._jobs.start(summary, tasks)
            started += 1
        if compaction := self.conversation.next_compaction_task():
            self._jobs.start(compaction, tasks)
            started += 1
        while keywords := self.conversation.next_keyword_task(now):
            self._jobs.start(keywords, tasks)
            started += 1
        return started


async def measure_prompts(rows: Sequence[Row], plain: TextAnalyst, report: Report) -> None:
    """Prompt tokens of both loads, made of the meetings' texts again and again, and the dollars of the meetings."""
    with ModelServer() as server:
        model = OpenAIAnalyst(OpenAIEndpoint("none", server.base_url), load_prompts())

        def tokens(messages: int) -> float:
            """Of the requests since the last time, a message."""
            found = sum(prompt_tokens(request, COUNT) for request in server.model.requests) / messages
            server.model.requests.clear()
            return found

        try:
            texts = [row["text"] for row in rows]
            crowd = Listening(model, plain)
            crowd.hear(*islice(cycle(texts), BURST))
            await crowd.settle()
            crowd.clock.advance(crowd.conversation.rules.buffer_window)
            await crowd.settle()
            burst = tokens(BURST)
            slow = Listening(model, plain)
            for text in islice(cycle(texts), PACED):
                slow.hear(text)
                await slow.settle()
                slow.clock.advance(PACE)
            slow.conversation.close()
            await slow.settle()
            what = f"prompt tokens a message, burst of {BURST} / one every {PACE:g} s: meetings"
            report.add(Line(what, f"{burst:.0f} / {tokens(PACED):.0f}"))
            seconds, sent = await _hear_meetings(rows, model, plain, server.model.requests)
        finally:
            await model.close()
    spent = Counter[str]()
    for request, cached in chain.from_iterable(map(_cached, sent)):
        spent[task_of(request)] += _dollars(request, json.dumps(answer(request)), cached) / (seconds / HOUR)
    tagging = spent["keywords"] + spent["domains"]
    report.add(Line("dollars for an hour: keywords + domains of meetings", f"{tagging:.3f}"))
    for name, title in gallery.TITLES.items():
        hourly, uncached = await _recorded_dollars(name)
        total = tagging + hourly.total()
        what = f"… with the recorded summaries, by the default models at list prices: {title}"
        report.add(Line(what, f"{total:.3f}", f"< {MOST_DOLLARS:.2f}", total < MOST_DOLLARS))
        parts = ", ".join(f"{task} {hourly[task]:.3f}" for task in hourly)
        report.add(Line(f"… {parts}; if the provider's prompt cache held nothing", f"{tagging + uncached:.3f}"))


async def _recorded_dollars(name: str) -> tuple[Counter[str], float]:
    """Return what the tasks of a recorded conversation cost in an hour, and all of them with nothing cached.

    Time is told by the summaries, one every two minutes.
    """
    analyst, client = gallery.recorded_analyst(gallery.CASSETTES / f"{name}.replies.jsonl", record=False)
    said = gallery.messages_of(gallery.CASSETTES / f"{name}.jsonl")
    await gallery.shown(said, analyst)
    hours, at = said[-1][0] / HOUR, 0.0
    sent: list[tuple[float, dict[str, Any]]] = []
    for question, _ in client.exchanges:
        at += SessionConfig().buffer_window if question.task == "summary" else 0.0
        sent.append((at, Capabilities().request(question, load_prompts().json_mode)))
    spent, uncached = Counter[str](), 0.0
    for (question, reply), (request, cached) in zip(client.exchanges, _cached(sent), strict=True):
        spent[question.task] += _dollars(request, reply, cached) / hours
        uncached += _dollars(request, reply, 0) / hours
    return spent, uncached


def _dollars(request: Mapping[str, Any], reply: str, cached: int) -> float:
    return LIST_PRICES[request["model"]].of(prompt_tokens(request, COUNT), COUNT(reply), cached)


def _cached(sent: Sequence[tuple[float, dict[str, Any]]]) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield a meeting's requests and how many tokens of each the provider's prompt cache has, by OpenAI's rules.

    It keeps the beginnings of prompts that have 1,024 tokens, and then every 128 more, for five minutes at least after
    their last use, one for each model; the reply's schema stands before the messages
    (https://platform.openai.com/docs/guides/prompt-caching). Only the last request of the same task counts here.
    """
    last: dict[str, tuple[float, str]] = {}
    for at, request in sent:
        prompt = json.dumps(request.get("response_format")) + "".join(one["content"] for one in request["messages"])
        before, earlier = last.get(task_of(request), (-math.inf, ""))
        same = takewhile(lambda both: both[0] == both[1], zip(earlier, prompt, strict=False))
        shared = COUNT("".join(one for one, _ in same)) if at - before <= CACHED_FOR else 0
        last[task_of(request)] = at, prompt
        yield request, shared - shared % CACHE_STEP if shared >= LEAST_CACHED else 0


async def _hear_meetings(
    rows: Sequence[Row], model: OpenAIAnalyst, plain: TextAnalyst, requests: list[dict[str, Any]]
) -> tuple[float, list[list[tuple[float, dict[str, Any]]]]]:
    """Hear the meetings at their own pace; return their seconds, and the requests of each with the time of asking.

    The rule's replies are counted as they are: eight terms a message.
    """
    seconds = 0.0
    meetings = []
    for _, said in groupby(rows, lambda row: row["meeting"]):
        session, heard_at = Listening(model, plain), 0.0
        sent: list[tuple[float, dict[str, Any]]] = []
        meetings.append(sent)
        for row in said:
            session.clock.advance(max(0.0, row["t_est"] - heard_at))
            heard_at = row["t_est"]
            session.hear(row["text"])
            await session.settle()
            sent += ((heard_at, request) for request in requests)
            requests.clear()
        seconds += heard_at
        session.conversation.close()
        await session.settle()
        sent += ((heard_at, request) for request in requests)
        requests.clear()
    return seconds, meetings


async def measure(report: Report, data: Path | None, meeting: Path | None) -> None:
    report.extend(evidence_lines(meeting))
    if data is None:
        return
    analyst = TextAnalyst()
    try:
        if rows := rows_of(data, "keyphrases", report):
            await measure_keyphrases(rows, analyst, report)
        if rows := rows_of(data, "domains", report):
            await measure_domains(rows, analyst, report)
            await measure_domain_calls(rows, analyst, report)
        if rows := rows_of(data, "meetings", report):
            await measure_summaries(rows, analyst, report)
            await measure_speed(rows, analyst, report)
            await measure_prompts(rows, analyst, report)
    finally:
        await analyst.close()


def main() -> int:
    asked = parser(__doc__)
    asked.add_argument("--data", type=Path, help="folder with the labelled texts")
    asked.add_argument("--meeting", type=Path, help="folder with a meeting and points of it")
    options = asked.parse_args()

    def measured(report: Report) -> None:
        asyncio.run(measure(report, options.data, options.meeting))

    return run("Understanding: plain text analysis, and the check of points", measured, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
