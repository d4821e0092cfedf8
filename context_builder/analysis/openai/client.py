"""Questions to a model over HTTP: one client, bounded in flight, patient within reason."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import stamina

from context_builder.analysis.openai.capabilities import Capabilities, Question
from context_builder.analysis.openai.completion import Completion, Meter, NoChoice, NoCompletion
from context_builder.analysis.openai.refusals import Refused, ServerError, explained, translated, was_free
from context_builder.analysis.openai.reply import CutOff, parse_reply
from context_builder.analysis.openai.schemas import Reply
from context_builder.analysis.options import CallOptions, Endpoint
from context_builder.analysis.prompts import Prompt
from context_builder.concurrency import FairTurns
from context_builder.costs import Usage
from context_builder.errors import (
    AnalystError,
    AnalystUnavailable,
    ContentRefused,
    OverBudget,
    ReplyInvalid,
    RequestRefused,
)
from context_builder.storage.openai_connection import OpenAIConnection, openai_client

if TYPE_CHECKING:
    from openai import AsyncOpenAI

T = TypeVar("T")

LARGEST_ANSWER: Final = 8_000_000
"""Bytes of an answer that are read: an event a token, of 200 bytes, for the most tokens that are asked for."""

MOST_LESSONS: Final = 8
"""Requests in which one question learns what a server takes."""


class _Final(ReplyInvalid):
    """Raised for a reply that was cut off with the most room that it is given: another would be, too."""


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
        self._untried = Capabilities(schema_in_prompt=not endpoint.shows_schema)
        self._capabilities: dict[str, Capabilities] = {}
        self._answered: set[tuple[str, type[Reply]]] = set()
        self._turns = FairTurns(options.concurrency)
        self._connection = OpenAIConnection(self._new_client)

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

    def notes(self, model: str) -> list[str]:
        """Return in what the model's server is met half-way, for people."""
        return self._known(model).notes

    async def close(self) -> None:
        """Close the connections; a question asked later opens new ones."""
        await self._connection.close()

    def _wait_after(self, error: Exception) -> bool | float:
        """Return whether to try again after ``error``, or the seconds to wait before."""
        if isinstance(error, NoChoice):
            return True
        if not isinstance(error, AnalystError) or isinstance(error, Refused | RequestRefused | OverBudget | _Final):
            return False
        if isinstance(error, CutOff):
            return 0.0
        if isinstance(error, ContentRefused):
            return error.by_chance
        wait = error.retry_after if isinstance(error, AnalystUnavailable) else None
        if wait is None:
            return True
        return wait if wait <= self._options.longest_wait else False

    async def _complete(self, question: Question) -> Completion:
        """Request a completion within the model's capabilities.

        A refusal teaches what to do without; that is remembered when the server answers then.
        """
        client = await self._connection.client()
        model, known = question.options.model, self._known(question.options.model)
        learnt: dict[str, Any] = {}
        for _ in range(MOST_LESSONS):
            capabilities = replace(known, **learnt)
            request = capabilities.request(question, self._json_mode)
            try:
                async with self._turns:
                    completion = await self._create(client, question, request, capabilities.limit(question))
            except ServerError as error:
                was_answered = (model, question.reply) in self._answered
                lesson = capabilities.after(error, question, was_answered=was_answered)
                refusal = explained(error, self._endpoint, model, f"{question.stable}\n{question.varying}")
                if error.is_invalid_json and lesson is None:
                    self._learn(model, schema_in_prompt=True)
                if lesson is None:
                    raise refusal from None
                learnt |= lesson
            else:
                learnt.pop("room", None)  # of this prompt alone
                self._learn(model, **learnt)
                self._answered.add((model, question.reply))
                return completion
        raise refusal

    def _known(self, model: str) -> Capabilities:
        return self._capabilities.get(model, self._untried)

    def _learn(self, model: str, **changes: Any) -> None:
        if changes:
            self._capabilities[model] = replace(self._known(model), **changes)

    async def _create(self, client: AsyncOpenAI, question: Question, request: dict[str, Any], limit: int) -> Completion:
        """Send one request, which counts as spent at its worst case unless the server tells the usage or refused it.

        Raises :class:`ServerError` for what the server says in place of an answer.
        """
        import openai

        with self._meter.hold(question.task, request, limit) as held:
            try:
                answer = await client.chat.completions.with_raw_response.create(**request)
                completion = Completion.of(answer.content)
            except openai.APIStatusError as error:
                held.dollars = 0.0
                raise ServerError.of_response(error.response, str(error.request.url)) from None
            except ServerError:
                held.dollars = 0.0
                raise
            except NoCompletion as error:
                raise NoCompletion(f"{error}; check {self._endpoint.setting}") from None
            except (openai.OpenAIError, ValueError) as error:  # the latter for a key that no header can hold
                held.dollars = 0.0 if isinstance(error, openai.OpenAIError) and was_free(error) else held.dollars
                raise translated(error, self._endpoint) from None
            if completion.is_counted:
                held.dollars = self._meter.priced(completion.cost(question.options.model)).dollars
            return completion

    def _read(self, question: Question, completion: Completion, read: Callable[..., T]) -> T:
        """Parse the reply; a model that misses the form is sent the schema from the next try on.

        Of a reply that was cut off, what is whole is read; in any case the next one gets more room.
        """
        model, is_cut_off = question.options.model, completion.is_cut_off
        if is_cut_off and (lesson := self._known(model).after_early_cut(question, completion.tokens)):
            self._learn(model, **lesson)
            raise CutOff(in_thoughts=False)
        try:
            reply = parse_reply(question.reply, completion.content, is_cut_off=is_cut_off)
        except CutOff as error:
            if not self._give_room(question, in_thoughts=error.in_thoughts):
                raise _Final(str(error)) from None
            raise
        except ContentRefused:
            raise
        except ReplyInvalid:
            self._learn(model, schema_in_prompt=True)
            raise
        if is_cut_off:
            self._give_room(question, in_thoughts=False)
        return read(reply)

    def _give_room(self, question: Question, *, in_thoughts: bool) -> bool:
        """Give replies of the question's task more room from now on; return whether they did not have the most yet."""
        model = question.options.model
        changes = self._known(model).after_cut(question.task, in_thoughts=in_thoughts)
        self._learn(model, **changes or {})
        return changes is not None

    def _new_client(self) -> AsyncOpenAI:
        self._meter.load()
        where, timeout = self._endpoint, self._options.timeout
        client = openai_client(where.base_url, where.api_key, timeout=timeout, retries=0, most_bytes=LARGEST_ANSWER)
        _ = client.chat.completions.with_raw_response  # the package loads it at first use: better here than in the loop
        return client
