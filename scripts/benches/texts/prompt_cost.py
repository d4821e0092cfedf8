"""Tokens and dollars of real conversations, with the real prompts and schemas, and a model that answers by rule.

Every keyword, domain and summary request is counted as it was sent, its schema included. The model is asked for every
message's keywords. Time is simulated, and every call is answered before the next message comes.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, groupby, islice
from typing import Final

from context_builder.analysis.openai import Endpoint, OpenAIAnalyst
from context_builder.analysis.openai.completion import prompt_tokens
from context_builder.analysis.prompts import load_prompts
from context_builder.analysis.text import TextAnalyst
from context_builder.clock import Instant
from context_builder.costs import LIST_PRICES
from context_builder.demo import load_demo
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.jobs import Jobs, TaskOutcome
from context_builder.session.messages.message import from_fields
from context_builder.testing import ManualClock
from context_builder.tokens.counter import TokenCounter
from scripts.benches.shared.labelled import Row
from scripts.benches.shared.report import Line
from tests.services.model_answers import TASKS, answer, task_of
from tests.services.model_server import ModelServer

HOUR: Final = 3600.0
MOST_DOLLARS: Final = 0.40
"""Goal for an hour of meeting."""

PUBLISHED: Final = "246 / 246 (public implementation)"
BURST: Final = 60
PACE: Final = 5.0
"""Seconds between messages of the slow load."""

PACED: Final = 120
"""Messages of the slow load: ten minutes."""

SHORT: Final = (
    "How does DNA replication work?",
    "The helicase unwinds it first.",
    "Could a model predict the error rate?",
    "We should agree on who may use the data.",
)

NO_DOMAINS: Final = SessionConfig(domain_messages=PACED + 1, domain_interval=PACED * PACE)
"""What is left cannot be spared: every text once for its keywords, once for the summary, and what asks for them."""

COUNT: Final = TokenCounter("gpt-4o-mini").count


@dataclass(frozen=True, slots=True)
class PromptCost:
    """Prompt tokens per message of texts that are ``length`` tokens long on average."""

    length: float
    burst: float
    paced: Mapping[str, float]
    """By task; a call that answers keywords and domains counts as domains."""

    paced_asking_always: float
    paced_without_domains: float
    skipped: int
    """Domain calls that were not made in the slow load, of :attr:`inferences`."""

    inferences: int


class OpenAIEndpoint(Endpoint):
    """Stands for OpenAI itself, which shows the model the schema that a request has beside the prompt."""

    @property
    def shows_schema(self) -> bool:
        return True


class Listening:
    """A conversation whose analysis is done as soon as it is due, as a session does it."""

    def __init__(
        self, model: OpenAIAnalyst, plain: TextAnalyst, *, skip: bool, rules: SessionConfig | None = None
    ) -> None:
        self.clock = ManualClock()
        self.conversation = Conversation("bench", rules or SessionConfig(), self.clock.now(), COUNT)
        self.inferences = 0
        self._model = model
        self._done: asyncio.Queue[TaskOutcome] = asyncio.Queue()
        self._jobs = Jobs(model, plain, replace(self.conversation.rules, domain_skip=skip), self._done.put_nowait)
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
            self.inferences += 1
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
        while keywords := self.conversation.next_keyword_task(now):
            self._jobs.start(keywords, tasks)
            started += 1
        return started


async def measure_prompt_cost(texts: Sequence[str]) -> PromptCost:
    """Both loads, made of ``texts`` again and again."""
    plain = TextAnalyst()
    with ModelServer() as server:
        model = OpenAIAnalyst(OpenAIEndpoint("none", server.base_url), load_prompts())

        def tokens(messages: int) -> Mapping[str, float]:
            """Of the requests since the last time, a message, by task."""
            found: defaultdict[str, float] = defaultdict(float)
            for request in server.model.requests:
                found[task_of(request)] += prompt_tokens(request, COUNT) / messages
            server.model.requests.clear()
            return found

        try:
            crowd = Listening(model, plain, skip=True)
            crowd.hear(*islice(cycle(texts), BURST))
            await crowd.settle()
            crowd.clock.advance(crowd.conversation.rules.buffer_window)
            await crowd.settle()
            burst = tokens(BURST)
            thrifty = await _paced(Listening(model, plain, skip=True), texts)
            paced = tokens(PACED)
            await _paced(Listening(model, plain, skip=False), texts)
            asking_always = tokens(PACED)
            await _paced(Listening(model, plain, skip=False, rules=NO_DOMAINS), texts)
            without_domains = tokens(PACED)
        finally:
            await model.close()
            await plain.close()
    spoken = list(islice(cycle(texts), PACED))
    return PromptCost(
        length=sum(map(COUNT, spoken)) / PACED,
        burst=sum(burst.values()),
        paced=paced,
        paced_asking_always=sum(asking_always.values()),
        paced_without_domains=sum(without_domains.values()),
        skipped=thrifty.conversation.domain_tracker.skipped,
        inferences=thrifty.inferences,
    )


async def dollars_an_hour(rows: Sequence[Row]) -> Mapping[str, float]:
    """What an hour of the meetings costs, by task, at the list prices of the default models.

    The meetings are heard at their own pace. The rule's replies are counted as they are: eight terms a message, ten
    points a summary.
    """
    spent: defaultdict[str, float] = defaultdict(float)
    seconds = 0.0
    plain = TextAnalyst()
    with ModelServer() as server:
        model = OpenAIAnalyst(OpenAIEndpoint("none", server.base_url), load_prompts())
        try:
            for _, said in groupby(rows, lambda row: row["meeting"]):
                session, heard_at = Listening(model, plain, skip=True), 0.0
                for row in said:
                    session.clock.advance(max(0.0, row["t_est"] - heard_at))
                    heard_at = row["t_est"]
                    session.hear(row["text"])
                    await session.settle()
                seconds += heard_at
                session.conversation.close()
                await session.settle()
        finally:
            await model.close()
            await plain.close()
        for request in server.model.requests:
            price = LIST_PRICES[request["model"]]
            reply = COUNT(json.dumps(answer(request)))
            spent[task_of(request)] += price.of(prompt_tokens(request, COUNT), reply) * HOUR / seconds
    return spent


async def dollar_lines(rows: Sequence[Row]) -> list[Line]:
    """What an hour of meeting costs."""
    spent = await dollars_an_hour(rows)
    total = sum(spent.values())
    return [
        Line(
            "dollars for an hour of meeting, by the default models at list prices",
            f"{total:.2f}",
            goal=f"< {MOST_DOLLARS:.2f}",
            reached=total < MOST_DOLLARS,
        ),
        Line("  keywords + domains + summary", " + ".join(f"{spent[task]:.3f}" for task in TASKS[:3])),
    ]


async def _paced(session: Listening, texts: Sequence[str]) -> Listening:
    for text in islice(cycle(texts), PACED):
        session.hear(text)
        await session.settle()
        session.clock.advance(PACE)
    session.conversation.close()
    await session.settle()
    return session


async def prompt_cost_lines(meetings: Sequence[str] = ()) -> list[Line]:
    """What a message costs in prompts, and what of it cannot be spared."""
    lines = []
    demo = [utterance.text for utterance in load_demo()]
    for name, texts in (("short sentences", SHORT), ("bundled conversation", demo), ("meetings", meetings)):
        if texts:
            cost = await measure_prompt_cost(texts)
            paced = sum(cost.paced.values())
            slow = f"  one every {PACE:g} s"
            loads = f"burst of {BURST} / one every {PACE:g} s"
            always, never = cost.paced_asking_always, cost.paced_without_domains
            lines += [
                Line(
                    f"prompt tokens a message, {loads}; {name} of {cost.length:.1f} tokens",
                    f"{cost.burst:.0f} / {paced:.0f}",
                    published=PUBLISHED,
                ),
                Line(
                    f"{slow}: keywords + domains with keywords that ride along + summary",
                    " + ".join(f"{cost.paced[task]:.0f}" for task in TASKS),
                ),
                Line(f"{slow} without skipping domain calls / with none at all", f"{always:.0f} / {never:.0f}"),
                Line("  domain calls skipped in it", f"{cost.skipped} of {cost.inferences}"),
            ]
    return lines
