"""The prompt of a conversation's next turn: system prompt, what is known, history, memories, the user's message."""

from __future__ import annotations

import copy
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from typing import Any, Final

from context_builder.assembly.budget import Outcome, Receipt, added
from context_builder.assembly.candidate import Candidate, ContextType
from context_builder.assembly.config import AssemblyConfig
from context_builder.assembly.fit import Fitted, fit
from context_builder.assembly.govern import AccessQuestion, Governed, RedactionPolicy
from context_builder.assembly.health import HealthState, memories_wanted
from context_builder.assembly.overflow import HistorySummarizer
from context_builder.assembly.preference_history import FindPreferences
from context_builder.assembly.query_kind import ORDER, PLANS, kind_of
from context_builder.assembly.retrieve import AskStrategy, RetrievalResult, StoreAccess
from context_builder.assembly.section import ChatMessage, Item, MessageTokenCounter
from context_builder.assembly.select import Draft, select
from context_builder.assembly.services import PromptServices
from context_builder.assembly.sources import RetrievalQuery
from context_builder.assembly.strategies import StrategyRequest, UserPreferencesStrategy
from context_builder.assembly.turn import DEFAULT_TENANT, Turn
from context_builder.memory.memory import MemoryFilter
from context_builder.quoting import quoted_name
from context_builder.tracing import span

USER: Final = "user"
_PREFERENCES: Final = "preferences"
_BY_USER: Final = "already in the user's message"


async def build_turn(
    services: PromptServices,
    given: Turn,
    limit: int,
    overflow: HistorySummarizer,
    find_preferences: FindPreferences,
) -> BuiltContext:
    """Return the prompt of a turn within ``limit`` tokens, or a copy of one built before within the cache's time.

    The user's message is redacted first, for the memories too, where the config says so. ``overflow`` keeps what is
    trimmed from the history, in the background, in the memories that are not down.
    """
    config = services.config
    turn = _redacted(given, services.redaction) if config.redact_user_message else given
    key = digest_of(turn, limit) if services.cache.is_on else None
    cached: BuiltContext | None = services.cache.get(key, services.monotonic())
    if cached is not None:
        return cached
    with services.metrics.time_total(), span("context.total"):
        now = services.now()
        strategies = _strategies(turn, now, find_preferences)
        retrieved = await services.retriever.retrieve(_query(turn, config), strategies)
        question = AccessQuestion(turn.query, now, turn.tenant_id, turn.user_id)
        governed = await services.governed(retrieved.lists, question)
        built = await services.assembled(lambda: assembled(services, given, turn, limit, retrieved, governed, now))
        if built.trimmed and config.store_summaries:
            up = [name for name, state in retrieved.states.items() if state is not HealthState.DOWN]
            overflow.keep(turn, built.trimmed, now, into=up)
        with span("context.recording"):
            services.record(built.fitted, built.context.token_counts["total"], limit)
        if retrieved.is_whole:
            services.cache.put(key, built.context, services.monotonic())
        return built.context


@dataclass(frozen=True, slots=True)
class BuiltTurn:
    """A turn's prompt, and what of the turn and of the memories is in it."""

    context: BuiltContext
    fitted: Fitted

    @property
    def trimmed(self) -> Sequence[ChatMessage]:
        """Return the messages that the prompt's history begins after, oldest first."""
        return self.fitted.history.before(len(self.fitted.taken(ContextType.RECENT)))


def assembled(
    services: PromptServices,
    given: Turn,
    turn: Turn,
    limit: int,
    retrieved: RetrievalResult,
    governed: Governed,
    now: datetime,
) -> BuiltTurn:
    """Return the prompt of what was found, for the ``turn`` as it may be shown. Pure."""
    counter, redaction, metrics = services.counter, services.redaction, services.metrics
    draft = _draft(services, given, turn, retrieved, governed)
    selection = select(draft, governed, now, metrics, services.redaction_of_governed, redaction)

    def written(fitted: Fitted) -> BuiltContext:
        def again(more: int) -> BuiltContext:
            return written(fit(selection, fitted.limit + more, counter, redaction))

        return replace(_written(turn, retrieved, fitted, counter), fit_again=again)

    with metrics.time_tokenisation(), span("context.tokenisation"):
        fitted = fit(selection, limit, counter, redaction)
    with metrics.time_prompt(), span("context.prompt"):
        return BuiltTurn(written(fitted), fitted)


def digest_of(turn: Turn, limit: int) -> bytes:
    """Return a digest of everything a turn's prompt is made from, its token limit included."""
    parts = {field.name: getattr(turn, field.name) for field in fields(turn)}
    if turn.query_embedding is not None:
        parts["query_embedding"] = [float(part) for part in turn.query_embedding]
    content = json.dumps([parts, limit], default=str)
    return sha256(content.encode("utf-8", "surrogatepass")).digest()


def _redacted(turn: Turn, redaction: RedactionPolicy) -> Turn:
    """Return the turn with its user's message redacted."""
    redacted = redaction.text(turn.user_message)
    return replace(turn, user_message=redacted.shown, altered=redacted.altered, withheld=redacted.text is None)


def _query(turn: Turn, config: AssemblyConfig) -> RetrievalQuery:
    return RetrievalQuery(
        query=turn.query,
        top_k=config.top_k,
        threshold=config.threshold,
        tenant_id=turn.tenant_id,
        session_id=turn.session_id,
        persona_id=turn.persona_id,
        user_id=turn.user_id,
        embedding=turn.query_embedding,
        where=turn.memory_filter or MemoryFilter(),
    )


def _strategies(turn: Turn, now: datetime, find_preferences: FindPreferences) -> Mapping[str, AskStrategy]:
    """Return the user's preferences as a strategy, where the turn wants them."""
    if not turn.preferences or turn.user_id is None:
        return {}
    tenant_id = turn.tenant_id or DEFAULT_TENANT
    request = StrategyRequest(turn.query, now, tenant_id, turn.user_id, find_preferences=find_preferences)
    return {_PREFERENCES: preferences_for(request)}


def _draft(services: PromptServices, given: Turn, turn: Turn, retrieved: RetrievalResult, governed: Governed) -> Draft:
    """Return what the prompt may be made of; weights and order suit the kind of the message where that is set."""
    config = services.config
    plan = PLANS[kind_of(turn.user_message)] if config.by_query else None
    if plan is not None:
        config = replace(config, similarity_weight=plan.similarity_weight, recency_weight=plan.recency_weight)
    refused: list[Receipt] = []
    if turn.altered:
        refused.append(Receipt(USER, USER, Outcome.WITHHELD if turn.withheld else Outcome.REDACTED, turn.altered))
    memories, preferences = governed.lists[: len(retrieved.candidates)], governed.lists[len(retrieved.candidates) :]
    return Draft(
        query=turn.query,
        required=_ends(turn),
        candidates=(*memories, turn.summary, *(list(_named(found, turn.user_id)) for found in preferences)),
        order=ORDER if plan is None else plan.order,
        config=config,
        history=turn.history,
        top_k=memories_wanted(config, retrieved.state),
        threshold=config.threshold,
        present_texts={turn.user_message.strip(): _BY_USER},
        refused=refused,
        masked=[(given.user_message, turn.user_message)] if turn.altered else [],
        signals=services.signals,
    )


def _ends(turn: Turn) -> tuple[ChatMessage, ChatMessage]:
    """Return the first and the last message: always there.

    The system prompt goes out as it is: the application's own words, in which an address, for one, is meant to be.
    """
    return {"role": "system", "content": turn.system_prompt}, {"role": "user", "content": turn.user_message}


def _named(preferences: Sequence[Candidate], user_id: str | None) -> Iterator[Candidate]:
    """Yield the user's preferences after their name: a conversation may have several people."""
    name = quoted_name(user_id or "")
    for one in preferences:
        yield replace(one, text=f"{name}: {one.text}")


def _written(turn: Turn, retrieved: RetrievalResult, fitted: Fitted, counter: MessageTokenCounter) -> BuiltContext:
    """Return the messages of what fits, and what is told of them."""
    first, last = _ends(turn)
    messages = {kind: part.section.messages(part.taken) for kind, part in fitted.allocations.items()}
    history, snippets = messages[ContextType.RECENT], messages[ContextType.SEMANTIC]
    preferences = messages[ContextType.USER_PREFERENCES]
    known = {"summary": messages[ContextType.SUMMARY]} if turn.summary else {}
    if turn.preferences:
        known["preferences"] = preferences
    contents = {"system": [first], "history": history, "snippets": snippets, "user": [last], **known}
    total = counter.prompt((first, last)) + fitted.tokens
    counts = {name: counter.contents(messages) for name, messages in contents.items()}
    counts |= {"overhead": total - sum(counts.values()), "total": total}
    return BuiltContext(
        system_prompt=turn.system_prompt,
        messages=[first, *preferences, *messages[ContextType.SUMMARY], *history, *snippets, last],
        token_counts=counts,
        debug=_debug(turn, retrieved, fitted, counter, len(history), counts["history"]),
        snippets=[_snippet(item) for item in fitted.taken(ContextType.SEMANTIC)],
        history=history,
        write_receipts=lambda: list(fitted.receipts()),
    )


def _debug(
    turn: Turn, retrieved: RetrievalResult, fitted: Fitted, counter: MessageTokenCounter, count: int, tokens: int
) -> dict[str, Any]:
    """Return how the prompt came about, with ``count`` messages of the history, of so many ``tokens``."""
    memories, spoken = fitted.taken(ContextType.SEMANTIC), fitted.taken(ContextType.RECENT)
    snippet_tokens = sum(map(counter.text, [item.text for item in memories]))
    missing = [f"{failure.name}: {failure.message}" for failure in retrieved.failures]
    withheld = sum(one.outcome is Outcome.WITHHELD for one in fitted.refused) + sum(one.withheld for one in spoken)
    return {
        "session_id": turn.session_id,
        "tenant_id": turn.tenant_id,
        "user_id": turn.user_id,
        "somabrain_state": next(iter(retrieved.states.values()), retrieved.state).value,
        "memory_states": {name: state.value for name, state in retrieved.states.items()},
        "memory": "; ".join([retrieved.outcome, *missing]),
        "retrieval_seconds": round(retrieved.seconds, 6),
        "snippet_ids": [item.id for item in memories],
        "snippet_count": len(memories),
        "snippet_tokens": snippet_tokens,
        "history_count": count,
        "history_trimmed": len(turn.history) - count,
        "total_tokens": snippet_tokens + tokens,
        "max_prompt_tokens": fitted.limit,
        "withheld": withheld,
    }


def preferences_for(request: StrategyRequest) -> AskStrategy:
    """Find the preferences of the request's user."""

    def ask(store: StoreAccess) -> Awaitable[Sequence[Candidate]]:
        return UserPreferencesStrategy().candidates(replace(request, store=store))

    return ask


def _snippet(item: Item) -> dict[str, Any]:
    candidate = item.candidate or Candidate(item.id, item.text)
    signals = {one.name: one.score for one in candidate.signals}
    return {
        "id": item.id,
        "text": item.text,
        "score": candidate.score,
        "base_score": signals.get("similarity", 0.0),
        "recency": signals.get("recency", 0.0),
        "signals": signals,
        "metadata": dict(candidate.metadata),
    }


@dataclass(frozen=True)
class BuiltContext:
    """The messages of a turn, which fit the budget, and how they came about.

    ``token_counts`` has ``system``, ``history``, ``snippets`` and ``user``, the tokens of those contents (of the
    whole memory block, for the snippets), ``summary`` and ``preferences`` when the turn has them, ``overhead``, what
    the chat format adds, and ``total``, their sum: the exact count of ``messages``. ``snippets`` are the memories in
    the prompt, best first, each with ``id``, ``text``, ``score``, ``base_score``, ``recency``, ``signals`` (the score
    of each ranking signal by its name) and ``metadata``; ``history`` is what was kept of it.

    ``debug`` tells how it came about:

    ``session_id``:         the turn's, as are
    ``tenant_id``:          whose memories were asked for, and
    ``user_id``:            whom it was for
    ``somabrain_state``:    health of the first memory when it was asked: ``normal``, ``degraded`` or ``down``
    ``memory_states``:      the same of each memory by its name
    ``memory``:             ``ok``, or what was not asked or gave nothing, and why
    ``retrieval_seconds``:  how long the memories took
    ``snippet_ids``:        of the memories in the prompt, best first
    ``snippet_count``:      how many they are
    ``snippet_tokens``:     of their texts alone, without what stands around them
    ``history_count``:      messages of the history in the prompt
    ``history_trimmed``:    messages of the history that are not
    ``total_tokens``:       ``snippet_tokens`` and those of the history's contents: what was chosen, not all of the
                            prompt, of which ``token_counts["total"]`` tells
    ``withheld``:           texts that could not be redacted and were left out or replaced
    ``max_prompt_tokens``:  the limit that was kept
    ``cached``:             true in a context that was built before; absent otherwise
    """

    system_prompt: str
    messages: list[ChatMessage]
    token_counts: dict[str, int]
    debug: dict[str, Any]
    snippets: list[dict[str, Any]]
    history: list[ChatMessage]
    write_receipts: Callable[[], list[Receipt]] = field(default=list, repr=False, compare=False)
    fit_again: Callable[[int], BuiltContext] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def receipts(self) -> list[Receipt]:
        """Return the receipt of every memory and every message of the history, made when first asked for."""
        return self.write_receipts()

    def copied(self, *, cached: bool = False) -> BuiltContext:
        """Return a copy that shares nothing mutable; ``debug`` tells whether it is ``cached``."""
        return replace(
            self,
            messages=copy.deepcopy(self.messages),
            history=copy.deepcopy(self.history),
            snippets=copy.deepcopy(self.snippets),
            token_counts=dict(self.token_counts),
            debug=copy.deepcopy(self.debug) | ({"cached": True} if cached else {}),
        )

    def added_by(self, tokens: int) -> list[Receipt]:
        """Return the receipts of what ``tokens`` more would add, from the same candidates: no memory is asked again."""
        larger = self.fit_again(tokens).receipts if self.fit_again else ()
        return added(self.receipts, larger)
