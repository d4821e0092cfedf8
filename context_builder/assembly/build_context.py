"""A context put together from strategies: what the fluent methods were told, and what is made of it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from context_builder.assembly.budget import Outcome, Receipt, receipt, token_limit
from context_builder.assembly.candidate import Candidate, ContextType
from context_builder.assembly.fit import Fitted, fit
from context_builder.assembly.govern import AccessQuestion, Governed, RedactionPolicy
from context_builder.assembly.health import Failure
from context_builder.assembly.retrieve import AskStrategy, RetrievalResult, StoreAccess
from context_builder.assembly.section import SECTION_NAMES, ChatMessage, Item
from context_builder.assembly.select import Draft, Selection, select
from context_builder.assembly.services import PromptServices
from context_builder.assembly.strategies import ContextStrategy, StrategyRequest
from context_builder.assembly.turn import DEFAULT_TENANT
from context_builder.errors import EmptyContext, NoMemoryStore, StrategyError, TokenLimitExceeded
from context_builder.quoting import quoted_line, quoted_lines, without_tokens
from context_builder.tracing import span

DEFAULT_TOKEN_LIMIT: Final = 4096

PRIORITY: Final = (
    ContextType.RECENT,
    ContextType.SUMMARY,
    ContextType.SEMANTIC,
    ContextType.USER_PREFERENCES,
)
"""Sections in the order in which they are filled, after the system message."""


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """The options set by the builder's fluent methods; ``optional`` are places of strategies that may fail."""

    strategies: tuple[ContextStrategy, ...] = ()
    optional: frozenset[int] = frozenset()
    token_limit: int | None = None
    system_message: str | None = None
    tenant_id: str = DEFAULT_TENANT
    user_id: str | None = None
    conversation_id: str | None = None
    query: str = ""

    def named(self) -> dict[str, ContextStrategy]:
        """Return the strategies by class and place, as errors name them."""
        return {f"{type(one).__name__} ({place})": one for place, one in enumerate(self.strategies, 1)}


async def build_context(services: PromptServices, options: BuildOptions, request: StrategyRequest) -> Context:
    """Return what the strategies of ``options`` find, behind the system message, or a copy of one built before.

    Raises :class:`~context_builder.errors.NoMemoryStore` and :class:`~context_builder.errors.StrategyError` where a
    strategy that is not optional fails, :class:`~context_builder.errors.EmptyContext` when there is nothing that may
    be shown and fits, and :class:`~context_builder.errors.TokenLimitExceeded` when the system message alone is over.
    """
    limit = token_limit(services.config, options.token_limit, DEFAULT_TOKEN_LIMIT)
    key = _cache_key(options, limit) if services.cache.is_on else None
    cached: Context | None = services.cache.get(key, services.monotonic())
    if cached is not None:
        return cached
    with services.metrics.time_total(), span("context.total"):
        request = replace(request, now=services.now())
        strategies = {name: _asking(strategy, request) for name, strategy in options.named().items()}
        retrieved = await services.retriever.retrieve(None, strategies)
        _raise_failure(retrieved, options)
        question = AccessQuestion(request.query, request.now, options.tenant_id, options.user_id)
        governed = await services.governed(retrieved.lists, question)
        context, fitted = await services.assembled(
            lambda: assembled(services, options, request, limit, retrieved, governed)
        )
        with span("context.recording"):
            services.record(fitted, context.metadata.total_tokens, limit)
        if retrieved.is_whole:
            services.cache.put(key, context, services.monotonic())
        return context


def assembled(
    services: PromptServices,
    options: BuildOptions,
    request: StrategyRequest,
    limit: int,
    retrieved: RetrievalResult,
    governed: Governed,
) -> tuple[Context, Fitted]:
    """Return the context of what was found, and what fits of that. Pure."""
    counter, redaction, metrics = services.counter, services.redaction, services.metrics
    system, withheld = _system_message(options, governed.lists, redaction)
    draft = Draft(
        query=request.query,
        required=({"role": "system", "content": system},) if system is not None else (),
        candidates=governed.lists,
        order=PRIORITY,
        config=services.config,
        keeps_duplicates=ContextType.USER_PREFERENCES,
        refused=withheld,
        signals=services.signals,
    )
    selection = select(draft, governed, request.now, metrics, services.redaction_of_governed, redaction)
    skipped = tuple(f"{failure.name}: {failure.message}" for failure in retrieved.failures)

    def within(fitted: Fitted, model: ModelType) -> tuple[Context, Fitted]:
        """Return the context within the limit, as messages and as ``model`` takes them in one text."""
        while True:
            context = _written(services, options, request.now, system, fitted, skipped)
            over = counter.text(context.written(model)) - limit
            if not any(part.taken for part in fitted.allocations.values()):
                if system is None:
                    raise EmptyContext(f"nothing fits into {limit} tokens")
                if over > 0:
                    raise TokenLimitExceeded(limit + over, limit)
            if over <= 0:
                return context, fitted
            least = counter.prompt(draft.required)
            fitted = fit(selection, max(least, context.metadata.total_tokens - over), counter, redaction)

    with metrics.time_tokenisation(), span("context.tokenisation"):
        fitted = fit(selection, limit, counter, redaction)
    with metrics.time_prompt(), span("context.prompt"):
        if system is None and not any(selection.items.values()):
            raise EmptyContext(_why_empty(selection))
        plain, fitted = within(fitted, ModelType.PLAIN)

    def fit_for(model: ModelType) -> Context:
        return plain if model is ModelType.PLAIN else within(fitted, model)[0]

    return replace(plain, fit_for=fit_for), fitted


def _cache_key(options: BuildOptions, limit: int) -> Hashable:
    """Return what the context is made from: a strategy counts as the same while it is the same object."""
    try:
        hash(options)
    except TypeError:  # a strategy of the application's own that cannot be a key
        return None
    return options, limit


def _raise_failure(retrieved: RetrievalResult, options: BuildOptions) -> None:
    """Raise the error of the first strategy that failed and is not optional."""
    optional = {name for place, name in enumerate(options.named()) if place in options.optional}
    for failure in retrieved.failures:
        if failure.name not in optional:
            raise _error(failure) from failure.error


def _system_message(
    options: BuildOptions, found: Sequence[Sequence[Candidate]], redaction: RedactionPolicy
) -> tuple[str | None, list[Receipt]]:
    """Return the system message with what strategies add to it, as it may be shown; and receipts of what may not."""
    texts = [options.system_message] if options.system_message else []
    withheld: list[Receipt] = []
    for one in (one for candidates in found for one in candidates if one.type is ContextType.SYSTEM):
        shown = redaction.text(one.text)
        if shown.text is None:
            withheld.append(receipt(one.id, one, SECTION_NAMES[one.type], Outcome.WITHHELD, shown.altered))
        else:
            texts.append(shown.text)
    return "\n\n".join(texts) or None, withheld


def _written(
    services: PromptServices,
    options: BuildOptions,
    now: datetime,
    system: str | None,
    fitted: Fitted,
    skipped: tuple[str, ...],
) -> Context:
    formatter = ContextFormatter()
    messages = formatter.messages(system, fitted)
    return Context(
        system_message=system,
        conversation_history=formatter.history(fitted),
        user_preferences=formatter.block(ContextType.USER_PREFERENCES, fitted),
        summary=formatter.block(ContextType.SUMMARY, fitted),
        relevant=[item.text for item in fitted.taken(ContextType.SEMANTIC)],
        messages=messages,
        metadata=ContextMetadata(
            user_id=options.user_id,
            conversation_id=options.conversation_id,
            total_tokens=services.counter.prompt(messages),
            message_count=len(messages),
            created_at=now,
        ),
        receipts=list(fitted.receipts()),
        skipped=skipped,
    )


def _asking(strategy: ContextStrategy, request: StrategyRequest) -> AskStrategy:
    """Return a function that asks a strategy, and fails if this is not a coroutine or offers something else."""

    async def ask(store: StoreAccess) -> list[Candidate]:
        offered = list(await strategy.candidates(replace(request, store=store)))
        for one in offered:
            _check(one)
        return offered

    return ask


def _check(offered: object) -> None:
    """Raise :class:`TypeError` for what cannot be ranked, redacted or counted."""
    if not isinstance(offered, Candidate):
        raise TypeError(f"offered {type(offered).__name__}, where a Candidate belongs")
    for name, kind in (("id", str), ("text", str), ("base_score", int | float), ("metadata", Mapping)):
        if not isinstance(value := getattr(offered, name), kind):
            raise TypeError(f"offered a Candidate whose {name} is of type {type(value).__name__}")


def _error(failure: Failure) -> Exception:
    if isinstance(failure.error, NoMemoryStore):
        return NoMemoryStore(f"{failure.name}: {failure.error}")
    return StrategyError(f"{failure.name}: {failure.message}")


def _why_empty(selection: Selection) -> str:
    withheld = [one for one in selection.refused if one.outcome is Outcome.WITHHELD]
    if not withheld:
        return "no system message, and no strategy found anything"
    return f"no system message, and all {len(withheld)} that strategies found was {withheld[0].reason}"


class ModelType(StrEnum):
    """Tells how a model takes its input as one text."""

    PLAIN = "plain"
    CHATML = "chatml"


@dataclass(frozen=True, slots=True)
class ContextMetadata:
    """Tells whose context it is, its size and time; ``total_tokens`` is exact, chat overhead included."""

    user_id: str | None
    conversation_id: str | None
    total_tokens: int
    message_count: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Context:
    """What a model should know, within the token limit as chat ``messages``, as plain text, and as ChatML.

    ChatML takes more room than messages do, so some that ``messages`` hold may not be in it. ``relevant`` are the
    memories found, best first. ``skipped`` names each optional strategy that failed, and why.
    """

    system_message: str | None
    conversation_history: list[str]
    user_preferences: str | None
    metadata: ContextMetadata
    summary: str | None = None
    relevant: list[str] = field(default_factory=list)
    messages: list[ChatMessage] = field(default_factory=list)
    receipts: list[Receipt] = field(default_factory=list)
    skipped: tuple[str, ...] = ()
    fit_for: Callable[[ModelType], Context] | None = field(default=None, repr=False, compare=False)

    def copied(self, *, cached: bool = False) -> Context:
        """Return a copy that shares nothing mutable."""
        return replace(
            self,
            conversation_history=list(self.conversation_history),
            relevant=list(self.relevant),
            messages=copy.deepcopy(self.messages),
            receipts=list(self.receipts),
        )

    def format_for_model(self, model: ModelType = ModelType.PLAIN) -> str:
        """Return the whole context as one text, within the token limit.

        Raises :class:`~context_builder.errors.ContextError` when nothing fits as ChatML.
        """
        return (self if self.fit_for is None else self.fit_for(model)).written(model)

    def written(self, model: ModelType) -> str:
        """Return the content of ``messages`` as one text, however long."""
        if model is ModelType.CHATML:
            return "\n".join(f"<|im_start|>{one['role']}\n{self._chatml(one)}<|im_end|>" for one in self.messages)
        parts = (self.format_system(), "\n".join(self.format_history()))
        return "\n\n".join(part for part in parts if part)

    def _chatml(self, message: ChatMessage) -> str:
        """Return the content of a message, in which only the application's own may hold tokens of the format."""
        content = str(message["content"])
        return content if content == self.system_message else without_tokens(content)

    def format_history(self) -> list[str]:
        """Return the conversation, a line a message, oldest first."""
        return list(self.conversation_history)

    def format_system(self) -> str | None:
        """Return the system message, then preferences, summary and memories; None without any."""
        known = [str(message["content"]) for message in self.messages if message["role"] == "system"]
        return "\n\n".join(known) or None


_READING_ORDER: Final = (
    ContextType.USER_PREFERENCES,
    ContextType.SUMMARY,
    ContextType.SEMANTIC,
    ContextType.RECENT,
)


class ContextFormatter:
    """Formats the parts of a context as messages and lines."""

    def messages(self, system: str | None, fitted: Fitted) -> list[ChatMessage]:
        """Return the chat messages: the system message, what is known, the conversation."""
        messages: list[ChatMessage] = [{"role": "system", "content": system}] if system else []
        for kind in _READING_ORDER:
            if part := fitted.allocations.get(kind):
                messages += part.section.messages(part.taken)
        return messages

    def history(self, fitted: Fitted) -> list[str]:
        """Return the conversation in lines, oldest first."""
        return [line(item) for item in reversed(fitted.taken(ContextType.RECENT))]

    def block(self, kind: ContextType, fitted: Fitted) -> str | None:
        """Return the text of one block, without its heading."""
        part = fitted.allocations.get(kind)
        messages = part.section.messages(part.taken) if part else []
        return str(messages[0]["content"]).partition("\n")[2] if messages else None


def line(item: Item) -> str:
    """Return a message as a line of text."""
    message = item.message or {}
    speaker = item.candidate.speaker if item.candidate else None
    content = quoted_lines(str(message["content"]))
    return content if speaker else f"{quoted_line(message['role'])}: {content}"
