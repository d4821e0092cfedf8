"""The analyst that asks a model: messages into a prompt, a checked reply into a reading."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from context_builder.analysis.analyst import (
    MIN_KEYWORD_TEXT,
    Analyst,
    AnalystMessage,
    DomainResult,
    KeywordResult,
    PreferenceResult,
    ReadBoth,
    ReadPreferences,
    SummaryRequest,
    SummaryResult,
)
from context_builder.analysis.chunking import chunks, line_of, summarized, tokens_of
from context_builder.analysis.openai.capabilities import Question
from context_builder.analysis.openai.client import ModelClient
from context_builder.analysis.openai.completion import Meter
from context_builder.analysis.openai.parsing import (
    domains_of,
    keywords_of,
    lone_keywords_of,
    points_of,
    preferences_of,
)
from context_builder.analysis.openai.schemas import (
    CombinedReply,
    DomainReply,
    KeywordReply,
    LoneKeywordReply,
    PreferenceReply,
    SummaryReply,
)
from context_builder.analysis.options import CallOptions, Endpoint, TaskConfig
from context_builder.analysis.prompts import Prompts
from context_builder.costs import Budget, Prices
from context_builder.quoting import quoted_json
from context_builder.tokens.counter import TokenCounter

KEYWORD_TEXT: Final = 4_000
PREFERENCE_TEXT: Final = 1_000
DOMAIN_TEXT: Final = 600
"""Characters of one message that each is taken from: of a longer one, its first and last half."""


class OpenAIAnalyst(Analyst):
    """Asks the model at ``endpoint``; shared by all sessions of a process.

    ``prices`` tell what usage costs, and a ``budget`` bounds it.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        prompts: Prompts,
        *,
        tasks: TaskConfig | None = None,
        calls: CallOptions | None = None,
        prices: Prices | None = None,
        budget: Budget | None = None,
        name: str = "openai",
    ) -> None:
        self._name = name
        self._prompts = prompts
        self._tasks = tasks or TaskConfig()
        self._count = TokenCounter(self._tasks.summary.model).count
        meter = Meter(prices or Prices(), budget, self._count)
        self._client = ModelClient(endpoint, calls or CallOptions(), prompts.json_mode, meter)

    @property
    def name(self) -> str:
        return self._name

    async def extract_keywords(self, messages: Sequence[AnalystMessage]) -> KeywordResult:
        """Ask for all keywords in one call; messages too short for keywords are not sent."""
        asked = list(filter(_is_worth_keywords, messages))
        texts = [_excerpt(message.text, KEYWORD_TEXT) for message in asked]
        if not texts:
            return KeywordResult(((),) * len(messages), self._name)
        if len(texts) == 1:
            found, usage = await self._client.ask(self._lone_keyword_question(texts[0]), lone_keywords_of)
        else:
            question = self._keyword_question(texts)
            found, usage = await self._client.ask(question, partial(keywords_of, count=len(texts)))
        return KeywordResult(_in_place(messages, found), self._name, usage)

    async def infer_domains(self, messages: Sequence[AnalystMessage]) -> DomainResult:
        """Ask for domains in one call, unless nothing was said."""
        texts = [_excerpt(message.text, DOMAIN_TEXT) for message in messages if message.text.strip()]
        if not texts:
            return DomainResult({}, (), self._name)
        options, prompt = self._tasks.domains, self._prompts.domains
        question = Question(
            task="domains",
            stable=prompt.stable,
            varying=prompt.fill(messages="\n".join(map(quoted_json, texts))),
            reply=DomainReply,
            options=options,
            max_tokens=options.max_tokens,
        )
        (confidence, keywords), usage = await self._client.ask(question, domains_of)
        return DomainResult(confidence, keywords, self._name, usage)

    @property
    def read_both(self) -> ReadBoth | None:
        """Return a function that finds keywords and domains in one call, where one model does both."""
        return self._read_both if self._tasks.keywords.model == self._tasks.domains.model else None

    async def _read_both(
        self, keyword_messages: Sequence[AnalystMessage], domain_messages: Sequence[AnalystMessage]
    ) -> tuple[KeywordResult, DomainResult]:
        """Send a message that both are about once, and count the call's usage as the domains'."""
        asked = list(filter(_is_worth_keywords, keyword_messages))
        context = [message for message in domain_messages if message.text.strip()]
        if not asked or not context:
            return await self.extract_keywords(keyword_messages), await self.infer_domains(domain_messages)
        options, prompt = self._tasks.domains, self._prompts.combined
        question = Question(
            task="domains",
            stable=prompt.stable,
            varying=prompt.fill(messages=_marked(asked, context)),
            reply=CombinedReply,
            options=options,
            max_tokens=self._tasks.keywords.max_tokens * len(asked) + options.max_tokens,
        )

        def read(reply: CombinedReply) -> tuple[KeywordResult, DomainResult]:
            keywords = KeywordResult(_in_place(keyword_messages, keywords_of(reply, len(asked))), self._name)
            domain_reply = DomainReply(domains=reply.domains, keywords=reply.topic)
            return keywords, DomainResult(*domains_of(domain_reply), self._name)

        (keywords, domains), usage = await self._client.ask(question, read)
        return keywords, replace(domains, usage=usage)

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        """Ask for the points in one call, if all messages fit; otherwise in as many as it takes."""
        parts = await asyncio.to_thread(self._portions, request)
        return await summarized(request, parts, self._summarize, self._name)

    def _portions(self, request: SummaryRequest) -> list[list[AnalystMessage]]:
        size = partial(tokens_of, count=self._count)
        most = self._tasks.summary_input
        room = max(most - sum(size(point.text) for point in request.known), most // 2)
        return list(chunks(request.messages, room, size))

    async def _summarize(self, request: SummaryRequest) -> SummaryResult:
        options, prompt = self._tasks.summary, self._prompts.summary
        message = (line_of(message.speaker, message.text) for message in request.messages)
        question = Question(
            task="summary",
            stable=prompt.stable,
            varying=prompt.fill(known=_numbered(p.text for p in request.known), messages=_numbered(message)),
            reply=SummaryReply,
            options=options,
            max_tokens=options.max_tokens,
        )
        (points, rejected), usage = await self._client.ask(question, partial(points_of, request=request))
        return SummaryResult(points, self._name, rejected, usage)

    @property
    def read_preferences(self) -> ReadPreferences:
        """Return a function that finds stated preferences in one call."""
        return self._read_preferences

    async def _read_preferences(self, messages: Sequence[AnalystMessage]) -> PreferenceResult:
        asked = [message for message in messages if message.text.strip()]
        if not asked:
            return PreferenceResult((), self._name)
        options, prompt = self._tasks.preferences, self._prompts.preferences
        question = Question(
            task="preferences",
            stable=prompt.stable,
            varying=prompt.fill(messages=_numbered(_excerpt(message.text, PREFERENCE_TEXT) for message in asked)),
            reply=PreferenceReply,
            options=options,
            max_tokens=options.max_tokens,
        )
        (found, rejected), usage = await self._client.ask(question, partial(preferences_of, messages=asked))
        return PreferenceResult(found, self._name, rejected, usage)

    async def close(self) -> None:
        await self._client.close()

    def _keyword_question(self, texts: Sequence[str]) -> Question:
        options, prompt = self._tasks.keywords, self._prompts.keywords
        varying = prompt.fill(messages=_numbered(texts))
        return Question("keywords", prompt.stable, varying, KeywordReply, options, options.max_tokens * len(texts))

    def _lone_keyword_question(self, text: str) -> Question:
        options, prompt = self._tasks.keywords, self._prompts.lone_keywords
        varying = prompt.fill(message=quoted_json(text))
        return Question("keywords", prompt.stable, varying, LoneKeywordReply, options, options.max_tokens)


def _is_worth_keywords(message: AnalystMessage) -> bool:
    return len(message.text) >= MIN_KEYWORD_TEXT


def _in_place(messages: Sequence[AnalystMessage], found: Iterable[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Return the keywords ``found`` for the messages that were asked about, and none for the others."""
    each = iter(found)
    return tuple(next(each) if _is_worth_keywords(message) else () for message in messages)


def _marked(asked: Sequence[AnalystMessage], context: Sequence[AnalystMessage]) -> str:
    """Write a line a message: those ``asked`` about with their number from 1, those of ``context`` without."""
    number = {message.id: place for place, message in enumerate(asked, start=1)}
    shown = {message.id: message for message in [*asked, *context]}
    return "\n".join(
        f"{number[message.id]} {quoted_json(_excerpt(message.text, KEYWORD_TEXT))}"
        if message.id in number
        else quoted_json(_excerpt(message.text, DOMAIN_TEXT))
        for message in sorted(shown.values(), key=lambda message: message.id)
    )


def _numbered(texts: Iterable[str]) -> str:
    """Write a line a text: its number from 1, and the text as JSON."""
    return "\n".join(f"{number} {quoted_json(text)}" for number, text in enumerate(texts, start=1))


def _excerpt(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit // 2]} … {text[-limit // 2 :]}"
