"""Questions to a model over HTTP: one client, bounded in flight, patient within reason."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import stamina

from context_builder.analysis.openai.capabilities import REFUSAL_STATUSES, Capabilities, Question
from context_builder.analysis.openai.completion import Completion, Meter
from context_builder.analysis.openai.refusals import Refused, translated, was_free
from context_builder.analysis.openai.schemas import parse_reply
from context_builder.analysis.options import CallOptions, Endpoint
from context_builder.analysis.prompts import Prompt
from context_builder.analysis.turns import FairTurns
from context_builder.costs import Usage
from context_builder.errors import AnalystError, AnalystUnavailable, OverBudget, ReplyInvalid

if TYPE_CHECKING:
    from openai import AsyncOpenAI

T = TypeVar("T")

LARGEST_ANSWER: Final = 1_000_000
"""Bytes of an answer that are read; a reply of the most tokens that are asked for takes a tenth."""


class ModelClient:
    """Asks the model at ``endpoint``; raises :class:`~context_builder.errors.AnalystError` alone.

    Tenants take turns for the ``concurrency`` requests in flight.

    The vendor's package, a second's work to import, is loaded in a thread at the first question.
    """

    def __init__(self, endpoint: Endpoint, options: CallOptions, json_mode: Prompt, meter: Meter) -> None:
        self._endpoint = endpoint
        self._options = options
        self._meter = meter
        self._json_mode = json_mode
        self._capabilities: dict[str, Capabilities] = {}
        self._turns = FairTurns(options.concurrency)
        self._connecting = asyncio.Lock()
        self._client: AsyncOpenAI | None = None

    async def ask(self, question: Question, read: Callable[..., T]) -> tuple[T, Usage]:
        """Return the reply as parsed by ``read``, and the usage of all tries; errors carry their usage too.

        ``read`` takes the parsed reply, in a thread, and may raise :class:`ReplyInvalid`, which is worth another
        try like an invalid reply; the points it rejects are counted.
        """
        spent = Usage(model=question.options.model)
        try:
            async for attempt in stamina.retry_context(
                on=self._wait_after,
                attempts=self._options.attempts,
                timeout=None,
                wait_initial=self._options.first_wait,
                wait_max=self._options.longest_wait,
                wait_jitter=self._options.first_wait,
            ):
                with attempt:
                    completion = await self._complete(question)
                    spent += self._meter.priced(completion.cost(question.options.model))
                    try:
                        return await asyncio.to_thread(self._read, question, completion, read), spent
                    except ReplyInvalid as error:
                        spent = replace(spent, rejected=spent.rejected + error.rejected)
                        raise
        except AnalystError as error:
            error.usage = spent if spent.calls else None
            raise
        raise AssertionError("the last try returns or raises")

    async def close(self) -> None:
        """Close the connections; a question asked later opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _wait_after(self, error: Exception) -> bool | float:
        """Return whether to try again after ``error``, or the seconds to wait before."""
        if not isinstance(error, AnalystError) or isinstance(error, Refused | OverBudget):
            return False
        wait = error.retry_after if isinstance(error, AnalystUnavailable) else None
        if wait is None:
            return True
        return wait if wait <= self._options.longest_wait else False

    async def _complete(self, question: Question) -> Completion:
        """Request a completion within the model's capabilities, which a refusal teaches."""
        client = await self._connected()
        import openai

        model = question.options.model
        while True:
            capabilities = self._capabilities.get(model, Capabilities())
            request = capabilities.request(question, self._json_mode)
            try:
                async with self._turns:
                    return await self._create(client, question, request)
            except (openai.OpenAIError, ValueError) as error:  # the latter for a key that no header can hold
                if not self._learnt_from(error, capabilities, model):
                    raise translated(error, self._endpoint, model) from None

    async def _create(self, client: AsyncOpenAI, question: Question, request: dict[str, Any]) -> Completion:
        """Send one request, which counts as spent at its worst case unless the server tells the usage or refused it."""
        import openai

        with self._meter.hold(question.task, request, question.max_tokens) as held:
            try:
                answer = await client.chat.completions.with_raw_response.create(**request)
            except openai.OpenAIError as error:
                held.dollars = 0.0 if was_free(error) else held.dollars
                raise
            completion = Completion.of(answer.content)
            if completion.is_counted:
                held.dollars = self._meter.priced(completion.cost(question.options.model)).dollars
            return completion

    def _learnt_from(self, error: Exception, capabilities: Capabilities, model: str) -> bool:
        """Return whether the error refused a part of ``capabilities`` that can be done without from now on."""
        import openai

        if not isinstance(error, openai.APIStatusError) or error.status_code not in REFUSAL_STATUSES:
            return False
        part = capabilities.refused_part(f"{error.param} {error.message} {error.body}")
        if part is None:
            return False
        self._capabilities[model] = self._capabilities.get(model, capabilities).without(part)
        return True

    def _read(self, question: Question, completion: Completion, read: Callable[..., T]) -> T:
        """Parse the reply; a model that misses the form is sent the schema from the next try on."""
        content = completion.content
        try:
            reply = parse_reply(question.reply, content)
        except ReplyInvalid:
            model = question.options.model
            self._capabilities[model] = replace(self._capabilities.get(model, Capabilities()), schema_in_prompt=True)
            raise
        return read(reply)

    async def _connected(self) -> AsyncOpenAI:
        async with self._connecting:
            if self._client is None:
                self._client = await asyncio.to_thread(self._new_client)
            return self._client

    def _new_client(self) -> AsyncOpenAI:
        from context_builder.storage.bounded_http import openai_client

        self._meter.load()
        where, timeout = self._endpoint, self._options.timeout
        client = openai_client(where.base_url, where.api_key, timeout=timeout, retries=0, most_bytes=LARGEST_ANSWER)
        _ = client.chat.completions.with_raw_response  # the package loads it at first use: better here than in the loop
        return client
