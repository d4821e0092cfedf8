"""The two doors to the pipeline: a turn's prompt, and a context put together from strategies."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, ClassVar, Self

from context_builder.assembly.background import Background
from context_builder.assembly.budget.message_tokens import MessageTokenCounter
from context_builder.assembly.build_options import BuildOptions
from context_builder.assembly.candidate import Candidate
from context_builder.assembly.config import AssemblyConfig
from context_builder.assembly.health import HealthState
from context_builder.assembly.metrics import ContextBuilderMetrics
from context_builder.assembly.overflow.summarizer import HistorySummarizer, Summarizer
from context_builder.assembly.phases import Metrics, phase, report, span
from context_builder.assembly.prompt.built_context import BuiltContext
from context_builder.assembly.prompt.cache import ContextCache
from context_builder.assembly.prompt.composer import DEFAULT_TOKEN_LIMIT, Composer, Ingredients
from context_builder.assembly.prompt.context import Context
from context_builder.assembly.prompt.pipeline import Assembled, TurnPipeline
from context_builder.assembly.redaction_policy import RedactionPolicy
from context_builder.assembly.retrieval.preference_history import (
    FindPreferences,
    PreferenceHistory,
    PreferenceReader,
    by_patterns,
)
from context_builder.assembly.retrieval.retriever import HealthProvider, OnDegraded, Retriever
from context_builder.assembly.retrieval.somabrain_source import SomaBrain, SomaBrainMemory
from context_builder.assembly.retrieval.source import TurnMemory
from context_builder.assembly.retrieval.store_source import StoredMemory
from context_builder.assembly.strategies.builtin import UserPreferencesStrategy
from context_builder.assembly.strategies.strategy import ContextStrategy
from context_builder.assembly.turn import DEFAULT_TENANT, Turn, tenant
from context_builder.clock import Clock, SystemClock
from context_builder.errors import NoMemoryStore
from context_builder.memory.memory import MemoryFilter, MemoryStore, Rating
from context_builder.redaction.redactor import NoopRedactor, RedactorProtocol
from context_builder.tokens.counter import TokenCounter

_RULES = AssemblyConfig()


class ContextBuilder:
    """Builds prompts that fit.

    :meth:`build_for_turn` makes the messages of a conversation's next turn. The fluent methods
    (:meth:`with_strategy`, :meth:`for_user` …, then :meth:`build`) make a context from strategies; each returns a
    changed copy, so that one builder serves many requests at once.

    ``token_counter`` is any function from a text to its tokens (``o200k_base`` without one); budgets are exact by
    it. A memory is a :class:`SomaBrain`, a :class:`MemoryStore`, both, or none. A ``preference_reader``, such as a
    model, is asked beside the turns for what users want; until it has answered, patterns of words tell.

    ``on_degraded`` is called when less will be asked of a memory, with the seconds for which that holds: 15 after a
    failure in its normal state, 60 after the fifth in a row, not for those between nor for a request that it refuses.
    With a ``health_provider``, whose word is taken for the state of all memories, it is called with 15 after each
    failure in the normal state.
    """

    DEFAULT_TOP_K: ClassVar[int] = _RULES.top_k
    DEGRADED_TOP_K: ClassVar[int] = _RULES.top_k_degraded
    DEGRADED_WINDOW_SECONDS: ClassVar[float] = _RULES.degraded_window

    def __init__(
        self,
        *,
        somabrain: SomaBrain | None = None,
        store: MemoryStore | None = None,
        metrics: Metrics | None = None,
        token_counter: Callable[[str], int] | None = None,
        redactor: RedactorProtocol | None = None,
        health_provider: HealthProvider | None = None,
        on_degraded: OnDegraded | None = None,
        summarizer: Summarizer | None = None,
        preference_reader: PreferenceReader | None = None,
        rules: AssemblyConfig = _RULES,
        clock: Clock | None = None,
    ) -> None:
        self._store = store
        self._rules = rules
        self._clock = clock or SystemClock()
        self._metrics = metrics or ContextBuilderMetrics()
        self._tally = MessageTokenCounter(token_counter or TokenCounter("gpt-4o").count)
        self._governor = RedactionPolicy(redactor or NoopRedactor())
        memories: list[TurnMemory] = []
        if somabrain is not None:
            memories.append(SomaBrainMemory(somabrain))
        if store is not None:
            memories.append(StoredMemory(store, rules.scope))
        self._recall = Retriever(
            memories,
            rules,
            self._metrics,
            health_provider=health_provider,
            on_degraded=on_degraded,
            monotonic=lambda: self._clock.now().monotonic,
        )
        self._keeper = HistorySummarizer(memories, rules, self._metrics, self._governor, summarizer=summarizer)
        self._pipeline = TurnPipeline(rules, self._tally, self._governor, self._metrics)
        self._composer = Composer(rules, self._tally, self._governor)
        self._cache = ContextCache(rules.cache_seconds, rules.cache_size)
        self._wishes = BuildOptions()
        self._beside = Background(most=rules.background_max, timeout=rules.background_timeout)
        self._find_preferences: FindPreferences = by_patterns
        if preference_reader is not None:
            patience = rules.deadline / 10
            self._find_preferences = PreferenceHistory(preference_reader, self._governor, self._beside, patience)

    async def build_for_turn(self, turn: Mapping[str, Any], max_prompt_tokens: int | None = None) -> BuiltContext:
        """The messages of a turn, never of more than ``max_prompt_tokens``; of 4000 unless given or set otherwise.

        ``turn`` has ``user_message`` and may have ``system_prompt``, ``history`` (chat messages, as mappings or as the
        ``openai`` client gives them), ``summary`` (a text or several, oldest first), ``tenant_id``, ``session_id``,
        ``persona_id``, ``user_id`` and ``query_embedding``. A memory that fails or is slow leaves the context without
        memories, and ``debug["memory"]`` says why.

        Memories, summary and history are redacted; ``debug["withheld"]`` counts what could not be. The system prompt,
        being the application's own, goes out as it is, and so does the user's message, to the model and as the query to
        the memory, unless the rules say ``redact_user_message``. Raises
        :class:`~context_builder.errors.TokenLimitExceeded` when system prompt and message alone do not fit, and
        :class:`~context_builder.errors.ContextError` for a tenant without a name or a history that is no list.
        """
        given, limit = Turn.read(turn), self._rules.limit(max_prompt_tokens)
        asked = self._governor.turn(given) if self._rules.redact_user_message else given
        key = self._cache.key(asked, limit)
        if cached := self._cache.get(key, self._clock.now().monotonic):
            return cached
        with phase("total", self._metrics.time_total()):
            recalled = await self._recall.for_turn(asked)
            now = self._now()
            assembled = self._pipeline.run(asked, recalled.candidates, state=recalled.state, limit=limit, now=now)
            assembled.context.debug.update(
                somabrain_state=next(iter(recalled.states.values()), recalled.state).value,
                memory_states={name: state.value for name, state in recalled.states.items()},
                memory=recalled.outcome,
                retrieval_seconds=round(recalled.seconds, 6),
                max_prompt_tokens=limit,
            )
            if assembled.trimmed and self._rules.store_summaries:
                up = [name for name, state in recalled.states.items() if state is not HealthState.DOWN]
                self._keeper.keep(asked, assembled.trimmed, now, into=up)
            with span("recording"):
                self._record(assembled, limit, given)
            if recalled.is_whole:
                self._cache.put(key, assembled.context, self._clock.now().monotonic)
            return assembled.context

    async def preload(self, patience: float | None = None) -> None:
        """Load what the first turn would load: the tokenizer and the redactor, off the event loop, and connections to
        the memories, for which it waits ``patience`` seconds, else no longer than a turn would."""
        await asyncio.gather(
            asyncio.to_thread(self._tally.text, "warm"),
            asyncio.to_thread(self._governor.text, "warm"),
            self._recall.warm_up(self._rules.deadline if patience is None else patience),
        )

    async def preferences(self, user_id: str, tenant_id: str = DEFAULT_TENANT) -> list[Candidate]:
        """What the user said they want, the newest first.

        None where there is no store, where the memory is down, and where it does not tell within a third of the
        deadline.
        """
        if self._recall.is_down:
            return []
        wishes = BuildOptions((UserPreferencesStrategy(),), frozenset({0}), tenant_id=tenant_id, user_id=user_id)
        patience = self._rules.deadline / 3
        return (await wishes.offered(self._store, self._now(), patience, self._find_preferences)).candidates

    async def feedback(self, context: BuiltContext, helped: Mapping[str, float]) -> None:
        """Tell the memory store which of a context's snippets helped: by id, from 0 (not at all) to 1.

        It counts in later rankings where ``feedback_weight`` is set, of each user the latest rating. Raises
        :class:`ValueError` for a snippet that the context has not, or another number,
        :class:`~context_builder.errors.NoMemoryStore`, and what the store raises.
        """
        if self._store is None:
            raise NoMemoryStore("the builder was given no memory store that could learn")
        if unknown := helped.keys() - {snippet["id"] for snippet in context.snippets}:
            raise ValueError(f"not among the context's snippets: {', '.join(sorted(unknown))}")
        user_id = context.debug["user_id"]
        ratings = [Rating(name, score, self._now(), user_id) for name, score in helped.items()]
        await self._store.rate(context.debug["tenant_id"] or DEFAULT_TENANT, ratings)
        self._cache.clear()

    async def forget(
        self,
        tenant_id: str = DEFAULT_TENANT,
        *,
        ids: Sequence[str] = (),
        filter: MemoryFilter | None = None,  # noqa: A002
    ) -> int:
        """Delete memories, as :meth:`MemoryStore.forget` does, and the contexts that are cached; how many there were.

        Raises :class:`~context_builder.errors.NoMemoryStore`, and what the store raises.
        """
        if self._store is None:
            raise NoMemoryStore("the builder was given no memory store that could forget")
        try:
            return await self._store.forget(tenant(tenant_id) or DEFAULT_TENANT, ids=ids, filter=filter)
        finally:
            self._cache.clear()

    async def drain(self) -> None:
        """Wait until summaries under way are kept; call it before the program ends."""
        await asyncio.gather(self._keeper.drain(), self._beside.drain())

    async def cancel_reading(self) -> None:
        """Cancel what a ``preference_reader`` is doing and tokens that are counted for metrics alone, in a program that
        builds no later turn; summaries go on."""
        await self._beside.cancel()

    @classmethod
    def new(cls, store: MemoryStore | None = None, **parts: Any) -> Self:
        """A builder that takes its memories from ``store``; ``parts`` as for the constructor."""
        return cls(store=store, **parts)

    def with_strategy(self, strategy: ContextStrategy, *, optional: bool = False) -> Self:
        """Also ask ``strategy``; an optional one that fails is passed over, and the context says so."""
        asked = self._wishes.strategies
        spare = self._wishes.optional | ({len(asked)} if optional else set())
        return self._with(strategies=(*asked, strategy), optional=spare)

    def with_token_limit(self, limit: int) -> Self:
        """At most ``limit`` tokens; without one 4096, or what the model's window leaves."""
        return self._with(token_limit=limit)

    def with_system_message(self, text: str) -> Self:
        """Begin the context with ``text``."""
        return self._with(system_message=text)

    def for_tenant(self, tenant_id: str) -> Self:
        """Of this tenant's memories only. Raises :class:`~context_builder.errors.ContextError` for an empty name."""
        return self._with(tenant_id=tenant(tenant_id))

    def for_user(self, user_id: str) -> Self:
        """For this user."""
        return self._with(user_id=user_id)

    def for_conversation(self, conversation_id: str) -> Self:
        """For this conversation."""
        return self._with(conversation_id=conversation_id)

    def with_query(self, query: str) -> Self:
        """What the context should help with: the memory is asked for it, redacted where the rules say
        ``redact_user_message``."""
        return self._with(query=query)

    async def build(self) -> Context:
        """Ask all strategies at once and fit what they offer: system message, recent messages, summary, memories,
        preferences, in this order.

        Raises :class:`~context_builder.errors.NoMemoryStore`, :class:`~context_builder.errors.StrategyError`,
        :class:`~context_builder.errors.EmptyContext` or :class:`~context_builder.errors.TokenLimitExceeded`.
        """
        now, wishes = self._now(), self._wishes
        if self._rules.redact_user_message:
            wishes = replace(wishes, query=self._governor.text(wishes.query).text or "")
        offered = await wishes.offered(self._store, now, self._rules.deadline, self._find_preferences)
        ingredients = Ingredients(
            system_message=wishes.system_message,
            candidates=offered.candidates,
            token_limit=self._rules.limit(wishes.token_limit, DEFAULT_TOKEN_LIMIT),
            now=now,
            user_id=wishes.user_id,
            conversation_id=wishes.conversation_id,
            skipped=offered.skipped,
        )
        return self._composer.compose(ingredients)

    def _with(self, **wishes: Any) -> Self:
        changed = copy.copy(self)
        changed._wishes = replace(self._wishes, **wishes)
        return changed

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now().wall, UTC)

    def _record(self, assembled: Assembled, limit: int, given: Turn) -> None:
        total = assembled.context.token_counts["total"]
        if assembled.fitted.history.unseen:
            self._beside.start("count tokens", self._count_history(assembled, given))
        else:
            self._record_tokens(assembled.offered_tokens(self._tally, given), total)
        self._metrics.inc_prompt()
        self._metrics.inc_snippets("final", len(assembled.context.snippets))
        report(self._metrics, "observe_utilization", total / limit)

    async def _count_history(self, assembled: Assembled, given: Turn) -> None:
        """Count what is long past, too; nothing but a metric needs that, so no turn waits for it."""
        offered = await asyncio.to_thread(assembled.offered_tokens, self._tally, given)
        self._record_tokens(offered, assembled.context.token_counts["total"])

    def _record_tokens(self, offered: tuple[int, int], total: int) -> None:
        before, redacted = offered
        self._metrics.record_tokens(before, total, redacted, total)
