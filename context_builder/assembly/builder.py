"""The builder: a turn's prompt, or a context put together from strategies."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

from context_builder.assembly.budget import token_limit
from context_builder.assembly.build_context import BuildOptions, Context, build_context
from context_builder.assembly.build_turn import BuiltContext, build_turn, preferences_for
from context_builder.assembly.candidate import Candidate
from context_builder.assembly.config import AssemblyConfig
from context_builder.assembly.govern import AccessPolicy, RedactionPolicy
from context_builder.assembly.health import HealthProvider, OnDegraded
from context_builder.assembly.metrics import ContextBuilderMetrics, Metrics
from context_builder.assembly.overflow import HistorySummarizer, Summarizer
from context_builder.assembly.preference_history import (
    FindPreferences,
    PreferenceHistory,
    PreferenceReader,
    by_patterns,
)
from context_builder.assembly.retrieve import Retriever
from context_builder.assembly.section import MessageTokenCounter
from context_builder.assembly.select import RankingSignal
from context_builder.assembly.services import ContextCache, PromptServices
from context_builder.assembly.sources import (
    KeptBySomaBrain,
    MemorySource,
    RecordStore,
    SomaBrain,
    SomaBrainSource,
    StoreSource,
)
from context_builder.assembly.strategies import ContextStrategy, ReadSession, StrategyRequest, no_session
from context_builder.assembly.turn import DEFAULT_TENANT, Turn, tenant
from context_builder.clock import Clock, SystemClock
from context_builder.concurrency import Background, beside_loop
from context_builder.errors import NoMemoryStore
from context_builder.memory.memory import MemoryFilter, MemoryStore, Rating
from context_builder.redaction.redactor import NoopRedactor, RedactorProtocol
from context_builder.tokens.counter import TokenCounter

_CONFIG = AssemblyConfig()


class ContextBuilder:
    """Builds prompts that fit.

    :meth:`build_for_turn` makes the messages of a conversation's next turn. The fluent methods
    (:meth:`with_strategy`, :meth:`for_user` …, then :meth:`build`) make a context from strategies; each returns a
    changed copy, so that one builder serves many requests at once.

    ``token_counter`` is any function from a text to its tokens (``o200k_base`` without one); budgets are exact by
    it. A memory is a :class:`SomaBrain`, a :class:`MemoryStore`, both, or none. A ``preference_reader``, such as a
    model, is asked beside the turns for what users want; until it has answered, patterns of words tell.
    ``read_session`` gives the state that a running session publishes, by tenant and id, for its newest messages.
    ``sources`` are further memories that turns ask; those that have ``remember`` keep summaries of trimmed history too.
    An ``access_policy`` decides of everything that sources and strategies offer how it may be seen. ``signals`` rank it
    in place of those that the config weighs; they may be those of context packages
    (:mod:`context_builder.knowledge.signals`).

    ``on_degraded`` is called when less will be asked of a memory, with the seconds for which that holds: 15 after a
    failure in its normal state, 60 after the fifth in a row, not for those between nor for a request that it refuses.
    With a ``health_provider``, whose word is taken for the state of all memories, it is called with 15 after each
    failure in the normal state.
    """

    DEFAULT_TOP_K: ClassVar[int] = _CONFIG.top_k
    DEGRADED_TOP_K: ClassVar[int] = _CONFIG.top_k_degraded
    DEGRADED_WINDOW_SECONDS: ClassVar[float] = _CONFIG.degraded_window

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
        read_session: ReadSession = no_session,
        sources: Sequence[MemorySource] = (),
        access_policy: AccessPolicy | None = None,
        signals: Sequence[RankingSignal] = (),
        config: AssemblyConfig = _CONFIG,
        clock: Clock | None = None,
    ) -> None:
        self._store = store
        self._config = config
        metrics = metrics or ContextBuilderMetrics()
        clock = clock or SystemClock()
        redaction = RedactionPolicy(redactor or NoopRedactor())
        memories: list[MemorySource] = [SomaBrainSource(somabrain)] if somabrain is not None else []
        if store is not None:
            memories.append(_source_of(store, config.scope))
        memories += sources
        self._services = PromptServices(
            config=config,
            retriever=Retriever(
                memories,
                store,
                config,
                metrics,
                health_provider=health_provider,
                on_degraded=on_degraded,
                monotonic=lambda: clock.now().monotonic,
            ),
            counter=MessageTokenCounter(token_counter or TokenCounter("gpt-4o").count),
            redaction=redaction,
            redaction_of_governed=redaction,
            metrics=metrics,
            background=Background(most=config.background_max, timeout=config.background_timeout),
            cache=ContextCache(config.cache_seconds, config.cache_size),
            clock=clock,
            access=access_policy,
            signals=signals,
        )
        self._overflow = HistorySummarizer(
            [one for one in memories if isinstance(one, RecordStore)],
            config,
            metrics,
            redaction,
            summarizer=summarizer,
        )
        self._options = BuildOptions()
        self._read_session = read_session
        self._find_preferences: FindPreferences = by_patterns
        if preference_reader is not None:
            patience = config.deadline / 10
            background = self._services.background
            self._find_preferences = PreferenceHistory(preference_reader, redaction, background, patience)

    async def build_for_turn(self, turn: Mapping[str, Any], max_prompt_tokens: int | None = None) -> BuiltContext:
        """Return the messages of a turn within ``max_prompt_tokens``, by default the configured limit or 4000.

        ``turn`` has ``user_message`` and may have ``system_prompt``, ``history`` (chat messages, as mappings or as the
        ``openai`` client gives them), ``summary`` (a text or several, oldest first), ``tenant_id``, ``session_id``,
        ``persona_id``, ``user_id``, ``query_embedding``, ``memory_filter`` (a :class:`MemoryFilter`: speaker, session,
        kinds and times of the memories that take part) and ``preferences`` (true: what
        the user prefers is told too, when space permits). A memory that fails or is slow leaves the context without
        memories, and ``debug["memory"]`` says why.

        Memories, summary and history are redacted; ``debug["withheld"]`` counts what could not be. The system prompt,
        being the application's own, goes out as it is, and so does the user's message, to the model and as the query to
        the memory, unless the config says ``redact_user_message``. Raises
        :class:`~context_builder.errors.TokenLimitExceeded` when system prompt and message alone do not fit, and
        :class:`~context_builder.errors.ContextError` for a tenant without a name or a history that is not a list.
        """
        given, limit = Turn.read(turn), token_limit(self._config, max_prompt_tokens)
        return await build_turn(self._services, given, limit, self._overflow, self._find_preferences)

    async def preload(self, patience: float | None = None) -> None:
        """Load what the first turn needs: tokenizer and redactor, off the event loop, and the memories' connections,
        waiting ``patience`` seconds for these, else no longer than a turn would.
        """
        await asyncio.gather(
            beside_loop(self._services.counter.text, "warm"),
            beside_loop(self._services.redaction.text, "warm"),
            self._services.retriever.warm_up(self._config.deadline if patience is None else patience),
        )

    async def preferences(self, user_id: str, tenant_id: str = DEFAULT_TENANT) -> list[Candidate]:
        """Return the user's current preferences, the newest first.

        None where there is no store, where the memory is down, and where it does not tell within the deadline.
        """
        if self._store is None:
            return []
        request = StrategyRequest("", self._services.now(), tenant_id, user_id, find_preferences=self._find_preferences)
        retrieved = await self._services.retriever.retrieve(None, {"preferences": preferences_for(request)})
        return list(retrieved.found.get("preferences", ()))

    async def feedback(self, context: BuiltContext, helped: Mapping[str, float]) -> None:
        """Rate the snippets of a context in the memory store: by id, from 0 (did not help) to 1.

        It counts in later rankings where ``feedback_weight`` is set, of each user the latest rating. Raises
        :class:`ValueError` for a snippet that the context has not, or another number,
        :class:`~context_builder.errors.NoMemoryStore`, and what the store raises.
        """
        if self._store is None:
            raise NoMemoryStore("the builder was given no memory store that could learn")
        if unknown := helped.keys() - {snippet["id"] for snippet in context.snippets}:
            raise ValueError(f"not among the context's snippets: {', '.join(sorted(unknown))}")
        user_id = context.debug["user_id"]
        ratings = [Rating(name, score, self._services.now(), user_id) for name, score in helped.items()]
        await self._store.rate(context.debug["tenant_id"] or DEFAULT_TENANT, ratings)
        self._services.cache.clear()

    async def forget(
        self,
        tenant_id: str = DEFAULT_TENANT,
        *,
        ids: Sequence[str] = (),
        filter: MemoryFilter | None = None,  # noqa: A002
    ) -> int:
        """Delete memories, as :meth:`MemoryStore.forget` does, and the cached contexts; return how many memories there
        were.

        Raises :class:`~context_builder.errors.NoMemoryStore`, and what the store raises.
        """
        if self._store is None:
            raise NoMemoryStore("the builder was given no memory store that could forget")
        try:
            return await self._store.forget(tenant(tenant_id) or DEFAULT_TENANT, ids=ids, filter=filter)
        finally:
            self._services.cache.clear()

    async def drain(self) -> None:
        """Wait until running summaries are stored; call it before the program ends."""
        await asyncio.gather(self._overflow.drain(), self._services.background.drain())

    async def cancel_reading(self) -> None:
        """Cancel what a ``preference_reader`` is doing and tokens that are counted for metrics alone, in a program that
        builds no later turn; summaries go on."""
        await self._services.background.cancel()

    @classmethod
    def new(cls, store: MemoryStore | None = None, **options: Any) -> Self:
        """Return a builder that takes its memories from ``store``; ``options`` as for the constructor."""
        return cls(store=store, **options)

    def with_source(self, source: MemorySource | None, access_policy: AccessPolicy, redaction: RedactionPolicy) -> Self:
        """Return a builder whose turns ask ``source``, if any, as well, under an ``access_policy`` that decides of
        everything.

        What that lets be seen redacted only goes through ``redaction``. It is made for one reader, and caches nothing;
        all else, and the health of the memories, is shared with this builder.
        """
        changed = copy.copy(self)
        services = self._services
        changed._services = replace(
            services,
            retriever=services.retriever if source is None else services.retriever.with_memory(source),
            redaction_of_governed=redaction,
            access=access_policy,
            cache=ContextCache(0.0, 0),
        )
        return changed

    def with_strategy(self, strategy: ContextStrategy, *, optional: bool = False) -> Self:
        """Also ask ``strategy``; if an ``optional`` one fails, the context is built without it and says so."""
        asked = self._options.strategies
        spare = self._options.optional | ({len(asked)} if optional else set())
        return self._with(strategies=(*asked, strategy), optional=spare)

    def with_token_limit(self, limit: int) -> Self:
        """Limit the context to ``limit`` tokens; the default is 4096, or what the model's window leaves."""
        return self._with(token_limit=limit)

    def with_system_message(self, text: str) -> Self:
        """Begin the context with ``text``."""
        return self._with(system_message=text)

    def for_tenant(self, tenant_id: str) -> Self:
        """Restrict the context to this tenant's memories. Raises :class:`~context_builder.errors.ContextError` for an
        empty name.
        """
        return self._with(tenant_id=tenant(tenant_id))

    def for_user(self, user_id: str) -> Self:
        """Build the context for this user."""
        return self._with(user_id=user_id)

    def for_conversation(self, conversation_id: str) -> Self:
        """Build the context for this conversation."""
        return self._with(conversation_id=conversation_id)

    def with_query(self, query: str) -> Self:
        """Retrieve memories for ``query``, which is redacted where the config says ``redact_user_message``."""
        return self._with(query=query)

    async def build(self) -> Context:
        """Ask all strategies at once and fit their candidates: system message, recent messages, summary, memories,
        preferences, in this order.

        Raises :class:`~context_builder.errors.NoMemoryStore`, :class:`~context_builder.errors.StrategyError`,
        :class:`~context_builder.errors.EmptyContext` or :class:`~context_builder.errors.TokenLimitExceeded`.
        """
        options = self._options
        query = options.query
        if self._config.redact_user_message:
            query = self._services.redaction.text(query).text or ""
        request = StrategyRequest(
            query=query,
            now=self._services.now(),
            tenant_id=options.tenant_id,
            user_id=options.user_id,
            conversation_id=options.conversation_id,
            find_preferences=self._find_preferences,
            read_session=self._read_session,
        )
        return await build_context(self._services, options, request)

    def _with(self, **changes: Any) -> Self:
        changed = copy.copy(self)
        changed._options = replace(self._options, **changes)
        return changed


def _source_of(store: MemoryStore, scope: Literal["tenant", "session"]) -> MemorySource:
    """Return the store as the memory of turns."""
    if isinstance(store, KeptBySomaBrain):
        return SomaBrainSource(store.somabrain, store.name, scope)
    return StoreSource(store, scope)
