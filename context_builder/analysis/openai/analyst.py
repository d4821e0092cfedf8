"""The analyst that asks a model: messages into a prompt, a checked reply into a reading."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from context_builder.analysis.analyst import (
    MIN_KEYWORD_TEXT,
    DomainReading,
    KeywordReading,
    Said,
    SummaryReading,
    SummaryRequest,
)
from context_builder.analysis.openai.client import ModelClient
from context_builder.analysis.openai.dialect import Question
from context_builder.analysis.openai.options import CallOptions, Endpoint, Tasks
from context_builder.analysis.openai.readings import domains_of, keywords_of, points_of
from context_builder.analysis.openai.replies import DomainReply, KeywordReply, SummaryReply
from context_builder.prompts import Prompts, quoted

KEYWORD_TEXT: Final = 4_000
DOMAIN_TEXT: Final = 1_000
SUMMARY_TEXT: Final = 32_000
"""Characters of one message that a task looks at: of a longer one, its first and last half."""


class OpenAIAnalyst:
    """Asks the model at ``endpoint``; shared by all sessions of a process.

    Implements :class:`~context_builder.analysis.analyst.Analyst`.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        prompts: Prompts,
        *,
        tasks: Tasks | None = None,
        calls: CallOptions | None = None,
        name: str = "openai",
    ) -> None:
        self._name = name
        self._prompts = prompts
        self._tasks = tasks or Tasks()
        self._client = ModelClient(endpoint, calls or CallOptions(), prompts.json_mode)

    @property
    def name(self) -> str:
        return self._name

    async def extract_keywords(self, messages: Sequence[Said]) -> KeywordReading:
        """One call for all messages; those too short for keywords are not sent."""
        asked = [index for index, said in enumerate(messages) if len(said.text) >= MIN_KEYWORD_TEXT]
        keywords: list[tuple[str, ...]] = [()] * len(messages)
        if not asked:
            return KeywordReading(tuple(keywords), self._name)
        options, prompt = self._tasks.keywords, self._prompts.keywords
        question = Question(
            task="keywords",
            stable=prompt.stable,
            varying=prompt.fill(messages=_numbered(_excerpt(messages[i].text, KEYWORD_TEXT) for i in asked)),
            reply=KeywordReply,
            options=options,
            max_tokens=options.max_tokens * len(asked),
        )
        found, usage = await self._client.ask(question, partial(keywords_of, count=len(asked)))
        for index, words in zip(asked, found, strict=True):
            keywords[index] = words
        return KeywordReading(tuple(keywords), self._name, usage)

    async def infer_domains(self, messages: Sequence[Said]) -> DomainReading:
        """One call, unless nothing was said."""
        texts = [_excerpt(said.text, DOMAIN_TEXT) for said in messages if said.text.strip()]
        if not texts:
            return DomainReading({}, (), self._name)
        options, prompt = self._tasks.domains, self._prompts.domains
        question = Question(
            task="domains",
            stable=prompt.stable,
            varying=prompt.fill(messages="\n".join(map(quoted, texts))),
            reply=DomainReply,
            options=options,
            max_tokens=options.max_tokens,
        )
        (confidence, keywords), usage = await self._client.ask(question, domains_of)
        return DomainReading(confidence, keywords, self._name, usage)

    async def summarize(self, request: SummaryRequest) -> SummaryReading:
        """One call, unless there is nothing to summarize."""
        if not request.messages:
            return SummaryReading((), self._name)
        options, prompt = self._tasks.summary, self._prompts.summary
        said = (f"{said.speaker}: {_excerpt(said.text, SUMMARY_TEXT)}" for said in request.messages)
        question = Question(
            task="summary",
            stable=prompt.stable,
            varying=prompt.fill(known=_numbered(p.text for p in request.known), messages=_numbered(said)),
            reply=SummaryReply,
            options=options,
            max_tokens=options.max_tokens,
        )
        (points, rejected), usage = await self._client.ask(question, partial(points_of, request=request))
        return SummaryReading(points, self._name, rejected, usage)

    async def close(self) -> None:
        await self._client.close()


def _numbered(texts: Iterable[str]) -> str:
    """One line a text: its number from 1, and the text as JSON."""
    return "\n".join(f"{number} {quoted(text)}" for number, text in enumerate(texts, start=1))


def _excerpt(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit // 2]} … {text[-limit // 2 :]}"
