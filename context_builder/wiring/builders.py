"""The settings make the builder of prompts, also for a session that a daemon runs, or ran."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from importlib import import_module
from typing import Any, Final

import structlog

from context_builder.analysis.analyst import Analyst, AnalystMessage, SummaryRequest
from context_builder.assembly.build_turn import BuiltContext
from context_builder.assembly.builder import ContextBuilder
from context_builder.assembly.config import AssemblyConfig
from context_builder.assembly.overflow import Summarizer, words_of
from context_builder.assembly.preference_history import PreferenceReader
from context_builder.assembly.section import ChatMessage
from context_builder.assembly.session_state import session_turn
from context_builder.assembly.strategies import ReadSession, no_session
from context_builder.assembly.token_window import window_of
from context_builder.concurrency import beside_loop
from context_builder.errors import SessionIdError, SettingError, StoreError
from context_builder.memory.memory import Memory, MemoryStore
from context_builder.memory.preferences import Preference
from context_builder.memory.redacting import RedactingMemory
from context_builder.redaction.redactor import NoopRedactor, RedactorChain, RedactorProtocol
from context_builder.session.client import SessionClient
from context_builder.session.servers import SessionServers
from context_builder.settings.settings import Settings
from context_builder.tokens.counter import TokenCounter
from context_builder.wiring.analysts import open_analyst
from context_builder.wiring.embedded import start_embeddings
from context_builder.wiring.part_description import PartDescription
from context_builder.wiring.servers import running_servers
from context_builder.wiring.stores import open_memory

log = structlog.get_logger(__name__)

UNNAMED_MODEL: Final = "gpt-4o"
"""As which tokens are counted when no model is named."""

ASSUMED_MARGIN: Final = 0.4
"""Share of the window that is kept free for a model whose encoding is not ``o200k_base``: a prompt fits that has up to
1.67 times as many tokens as are counted. Measured on talk in 24 languages (docs/explanation/prompts.md)."""


LONGEST_WARM_UP: Final = 5.0
"""Seconds for which a program that opens a builder waits for the memory to be there, as one that has to be started."""


@asynccontextmanager
async def open_builder(settings: Settings, **rules: Any) -> AsyncIterator[tuple[ContextBuilder, PartDescription]]:
    """Open the configured :class:`ContextBuilder` with its memory; also give that memory's name for people.

    ``rules`` replace fields of the rules that the settings make.
    """
    async with open_memory(settings) as (store, memory_is), open_builder_with(settings, store, **rules) as builder:
        yield builder, memory_is


@asynccontextmanager
async def open_builder_with(
    settings: Settings, store: MemoryStore | None, **rules: Any
) -> AsyncIterator[ContextBuilder]:
    """Open the configured builder over a memory that is open."""
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(running_servers(settings))
        states = PublishedStates(servers, settings.assembly.deadline / 3)
        sums_up, prefers = (by == "analyst" for by in (settings.prompt.summarizer, settings.prompt.preferences))
        analyst = (await stack.enter_async_context(open_analyst(settings)))[0] if sums_up or prefers else None
        builder = builder_of(
            settings,
            store,
            analyst if sums_up else None,
            preferences=analyst if prefers else None,
            read_session=states.read,
            **rules,
        )
        if (assumed := assumed_encoding(settings)) is not None:
            log.warning("prompt.encoding_assumed", counted=assumed, margin=assembly_rules_of(settings).margin)
        if settings.prompt.preload:
            await warm_up_builder(settings, builder, has_memory=store is not None)
        yield builder
        await builder.drain()


async def warm_up_builder(settings: Settings, builder: ContextBuilder, *, has_memory: bool) -> None:
    """Load, off the loop, what would hold up the first prompt, and connect to the memory, for some seconds at most."""
    if not has_memory:
        await builder.preload(LONGEST_WARM_UP)
        return
    if settings.archive.supabase_url is None and not settings.somabrain.base_url:
        await asyncio.to_thread(_load_driver)
    starting = asyncio.create_task(start_embeddings(settings), name="embeddings start")
    await builder.preload(LONGEST_WARM_UP)
    await starting


def _load_driver() -> None:
    with suppress(ImportError):  # whoever connects tells what is missing
        import_module("asyncpg")


class PublishedStates:
    """Reads the states of sessions from ``servers``; without one, or one that does not answer within ``patience``
    seconds, there are none. To tenants other than a server's its sessions do not exist."""

    def __init__(self, servers: SessionServers, patience: float) -> None:
        self._servers = servers
        self._patience = patience

    async def read(self, tenant_id: str, session_id: str) -> dict[str, Any] | None:
        """Return the state that the session publishes; None where there is none to be had."""
        if not len(servers := self._servers.of_tenant(tenant_id)):
            return None
        try:
            async with asyncio.timeout(self._patience):
                server = await servers.find(session_id)
                return None if server is None else await SessionClient(server.redis, session_id).state()
        except SessionIdError:  # a conversation of another program
            return None
        except (StoreError, TimeoutError) as error:
            log.warning("session_state.unread", error=type(error).__name__)
            return None


def builder_of(
    settings: Settings,
    store: MemoryStore | None,
    analyst: Analyst | None = None,
    *,
    preferences: Analyst | None = None,
    read_session: ReadSession = no_session,
    **rules: Any,
) -> ContextBuilder:
    """Return a builder that remembers by ``store``; ``rules`` replace those of the settings. With an ``analyst``, it
    sums up what leaves the prompts; the analyst for ``preferences`` finds them, if it can. ``read_session`` reads what
    running sessions publish.
    """
    return ContextBuilder(
        store=store,
        token_counter=counter_of(settings).count,
        redactor=redactor_of(settings),
        summarizer=summarizer_of(analyst) if analyst is not None else None,
        preference_reader=preference_reader_of(preferences) if preferences is not None else None,
        read_session=read_session,
        config=replace(assembly_rules_of(settings), **rules),
    )


def counter_of(settings: Settings) -> TokenCounter:
    """Return the token counter of the model that reads the prompts."""
    return TokenCounter(settings.prompt.model or UNNAMED_MODEL)


def assumed_encoding(settings: Settings) -> str | None:
    """Return in which encoding tokens are counted, where the model that reads the prompts may have another; None where
    counts are exact, or no model is named.
    """
    counter = counter_of(settings)
    if settings.prompt.model is None or not counter.assumed:
        return None
    return f"{counter.encoding_name}, assumed for {counter.model}"


def summarizer_of(analyst: Analyst) -> Summarizer:
    """Return a function that sums up chat messages in the analyst's points; what is not text is passed over."""

    async def summarized(messages: Sequence[ChatMessage]) -> str:
        said = [
            AnalystMessage(place, str(one.get("name") or one["role"]), words, consilience=one["role"] == "assistant")
            for place, one in enumerate(messages, 1)
            if (words := words_of(one))
        ]
        reading = await analyst.summarize(SummaryRequest(said))
        return " | ".join(point.text for point in reading.points)

    return summarized


def preference_reader_of(analyst: Analyst) -> PreferenceReader | None:
    """Return a function that finds preferences by the analyst's model; None, if it has none that can."""
    if (read := analyst.read_preferences) is None:
        return None

    async def found(messages: Sequence[Memory]) -> list[list[Preference]]:
        stated: list[list[Preference]] = [[] for _ in messages]
        reading = await read([AnalystMessage(place, "", one.text) for place, one in enumerate(messages)])
        for one in reading.preferences:
            stated[one.message_id].append(Preference.of(one.kind, one.what, withdrawn=one.withdrawn))
        return stated

    return found


def assembly_rules_of(settings: Settings) -> AssemblyConfig:
    """Return the rules that prompts go by. Raises :class:`SettingError` for a model of unknown window."""
    assumed = ASSUMED_MARGIN if settings.prompt.model and counter_of(settings).assumed else None
    margin = settings.assembly.margin if settings.assembly.margin is not None else assumed
    return replace(settings.assembly, window=_window(settings), margin=margin)


def redactor_of(settings: Settings) -> RedactorProtocol:
    """Return the redactor: secrets, then personal data. Raises :class:`SettingError` without the extra it needs."""
    redactors: list[RedactorProtocol] = []
    if settings.prompt.redact in ("secrets", "all"):
        from context_builder.redaction.secrets import SecretRedactor  # whose patterns take time to compile

        redactors.append(SecretRedactor())
    if settings.prompt.redact in ("personal", "all"):
        from context_builder.redaction.pii import PiiRedactor  # likewise

        redactors.append(PiiRedactor())
    return RedactorChain(*redactors) if redactors else NoopRedactor()


def redacting(memory: MemoryStore, settings: Settings, *, refuses: bool = False) -> MemoryStore:
    """Return the memory, which keeps nothing that the settings say is redacted. Raises as :func:`redactor_of`;
    ``refuses`` as in :class:`RedactingMemory`.
    """
    if settings.prompt.redact == "none":
        return memory
    return RedactingMemory(memory, redactor_of(settings), refuses=refuses)


def _window(settings: Settings) -> int | None:
    model = settings.prompt.model
    if model is None:
        return None
    window = settings.assembly.window or window_of(model)
    if window is None:
        raise SettingError(f"CONTEXT_MODEL: the window of {model} is not known; set CONTEXT_WINDOW")
    if window <= settings.assembly.reply_tokens:
        raise SettingError(f"CONTEXT_REPLY_TOKENS: must be below the window of {window} tokens")
    return window


async def build_for_session(
    client: SessionClient,
    builder: ContextBuilder,
    query: str = "",
    *,
    max_prompt_tokens: int | None = None,
    **named: Any,
) -> BuiltContext:
    """Return what is known of ``client``'s session and fits ``query``, as messages of ``max_prompt_tokens`` at most.

    Without a query, the newest thing said is answered; without a limit, the builder's holds. ``named`` are further
    keys of a turn, such as ``system_prompt``, ``tenant_id`` and ``user_id``. What that user prefers is told when space
    permits. Raises :class:`~context_builder.errors.StoreError` for a session that is not known, and what
    :meth:`ContextBuilder.build_for_turn` raises.
    """
    state = await client.remembered()
    if state is None:
        raise StoreError(
            f"there is no session {client.session_id}: it never ran, or was deleted after SESSION_RETENTION"
        )
    return await build_for_state(state, builder, query, max_prompt_tokens=max_prompt_tokens, **named)


async def build_for_state(
    state: Mapping[str, Any],
    builder: ContextBuilder,
    query: str = "",
    *,
    max_prompt_tokens: int | None = None,
    whole: bool = False,
    **named: Any,
) -> BuiltContext:
    """Return what :func:`build_for_session` does for a session that publishes ``state``; ``whole`` as in
    :func:`session_turn`."""
    turn = await beside_loop(session_turn, state, query, whole=whole, **named)  # a state may be megabytes
    return await builder.build_for_turn({"preferences": True, **turn}, max_prompt_tokens)
