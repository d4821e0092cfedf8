"""The one place that turns settings into concrete parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import structlog
from redis.asyncio import Redis

from context_builder.analysis.analyst import Analyst
from context_builder.analysis.text.process import AnalysisProcess
from context_builder.errors import DatabaseError, SessionIdError, StoreError, StoreUnavailable
from context_builder.memory.memory import MemoryStore, TenantMemory
from context_builder.recording.file import file_name
from context_builder.recording.writer import FileRecorder, RecordingWriter
from context_builder.session.client import SessionClient
from context_builder.session.host import SessionHost, open_host
from context_builder.session.servers import SessionServers
from context_builder.session.session import Session, SessionDependencies
from context_builder.settings.settings import Settings
from context_builder.storage.redis import check_server, server_info
from context_builder.storage.redis_durability import evicted_by
from context_builder.tokens.counter import ENCODING
from context_builder.wiring.analysts import analysts
from context_builder.wiring.embedded import Described, embedding_engine, start_embeddings
from context_builder.wiring.servers import connected_redis, running_servers
from context_builder.wiring.stores import open_stores

log = structlog.get_logger(__name__)


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


if TYPE_CHECKING:
    from context_builder.assembly.builder import ContextBuilder

LONGEST_WARM_UP: Final = 5.0
"""Seconds for which a program that opens a builder waits for the memory to be there, as one that has to be started."""


@dataclass(frozen=True, slots=True)
class App:
    """What all sessions of a process share. Open it with :func:`open_app`."""

    settings: Settings
    redis: Redis
    redis_url: str = field(repr=False)
    dependencies: SessionDependencies
    warm_up: Callable[[], Coroutine[Any, Any, None]]
    """Loads, off the loop, what would hold up the first use: the model's client, the tokenizer's vocabulary,
    the archive, the embedded embedding engine; and embeds what is left of an earlier process, or of another model."""
    redis_is: Described
    model_is: Described
    archive_is: Described
    memory_is: Described
    recordings: RecordingWriter

    async def check(self) -> None:
        """Raise the error that makes this Redis unfit for a session; the session itself waits for an absent one."""
        with suppress(StoreUnavailable):
            await check_server(self.redis)
            policy = (await server_info(self.redis)).get("maxmemory_policy", "noeviction")
            if policy != "noeviction":
                log.warning("redis.evicts", redis=self.redis_is.what, policy=policy, lost=evicted_by(str(policy)))

    @asynccontextmanager
    async def beside(self, settings: Settings) -> AsyncIterator[App]:
        """Open the app for another Redis server, which ``settings`` name; all but Redis is shared."""
        redis, url, redis_is = await connected_redis(settings)
        memory = self.dependencies.memory
        if memory is not None:
            memory = TenantMemory(memory.store, settings.memory.tenant_id)
        parts = replace(self.dependencies, memory=memory)
        try:
            yield replace(self, settings=settings, redis=redis, redis_url=url, redis_is=redis_is, dependencies=parts)
        finally:
            await redis.aclose()

    def host(self) -> AbstractAsyncContextManager[SessionHost]:
        """Return what runs many sessions of one process together, to be entered."""
        return open_host(self.redis, self.settings.session)

    def session(self, session_id: str, *, record: Path | None = None, host: SessionHost | None = None) -> Session:
        """Return a session ready to be served, with ``host`` one of many; recorded in the file ``record``, or in the
        configured folder.
        """
        path = record or recording_of(session_id, self.settings)
        recorder = FileRecorder(self.recordings, path, ENCODING) if path else None
        return Session(self.redis, session_id, self.settings.session, self.dependencies, recorder, host)


@asynccontextmanager
async def open_app(settings: Settings, *, many: bool = False) -> AsyncIterator[App]:
    """Open everything a daemon needs; embedded engines are started where nothing else is set.

    Where ``many`` sessions share the process, text is analysed in another one, as a thread would hold up their loop,
    and what they remember at about the same time is sent together.
    """
    async with AsyncExitStack() as stack:
        executor = stack.enter_context(AnalysisProcess()) if many else None
        redis, redis_url, redis_is = await connected_redis(settings)
        stack.push_async_callback(redis.aclose)
        analyst, last_resort, count_tokens, model_is = analysts(settings, executor)
        stack.push_async_callback(analyst.close)
        stores = await stack.enter_async_context(open_stores(settings, many=many))
        archive, memory = stores.archive, stores.memory
        if settings.prompt.redact != "none":
            # takes 0.4 s: few daemons redact or build prompts
            from context_builder.wiring.builders import redacting, redactor_of

            if memory is not None:
                memory = redacting(memory, settings)
            else:
                redactor_of(settings)  # whose extra is asked for also where nothing is remembered
        remembered = TenantMemory(memory, settings.memory.tenant_id) if memory is not None else None
        parts = SessionDependencies(analyst, last_resort, archive, count_tokens, memory=remembered)
        recordings = RecordingWriter()
        stack.push_async_callback(recordings.close)

        async def warm_up() -> None:
            if analyst is not last_resort:
                await asyncio.to_thread(import_module, "openai.resources.chat.completions")
            await asyncio.to_thread(count_tokens, "")
            if archive is not None:
                try:
                    await archive.check()
                except DatabaseError as error:  # the archiver tries again; until then summaries wait in Redis
                    log.warning("archive.not_ready", error=str(error))
            if settings.session.feed_memory and memory is not None:
                await start_embeddings(settings)
                if settings.embedding.model or embedding_engine(settings):
                    with suppress(DatabaseError):  # what is remembered next tries again, and tells
                        await memory.embed_missing(settings.memory.tenant_id)

        described = redis_is, model_is, stores.archive_is, stores.memory_is
        yield App(settings, redis, redis_url, parts, warm_up, *described, recordings)


@asynccontextmanager
async def open_analyst(settings: Settings) -> AsyncIterator[tuple[Analyst, Described]]:
    """Open the configured analyst: the chain of models and plain text analysis."""
    analyst, _, _, described = analysts(settings)
    try:
        yield analyst, described
    finally:
        await analyst.close()


@asynccontextmanager
async def open_memory(settings: Settings) -> AsyncIterator[tuple[MemoryStore | None, Described]]:
    """Open the configured memory, or the one in the embedded database; also give its name for people."""
    async with open_stores(settings) as stores:
        yield stores.memory, stores.memory_is


@asynccontextmanager
async def open_builder(settings: Settings, **rules: Any) -> AsyncIterator[tuple[ContextBuilder, Described]]:
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
    from context_builder.wiring.builders import assembly_rules_of, assumed_encoding, builder_of  # as above

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
            await warm_up_builder(settings, builder)
        yield builder
        await builder.drain()


async def warm_up_builder(settings: Settings, builder: ContextBuilder) -> None:
    """Load, off the loop, what would hold up the first prompt, and connect to the memory, for some seconds at most."""
    if settings.archive.supabase_url is None and not settings.somabrain.base_url:
        await asyncio.to_thread(_load_driver)
    starting = asyncio.create_task(start_embeddings(settings), name="embeddings start")
    await builder.preload(LONGEST_WARM_UP)
    await starting


def _load_driver() -> None:
    with suppress(ImportError):  # whoever connects tells what is missing
        import_module("asyncpg")


def recording_of(session_id: str, settings: Settings) -> Path | None:
    """Return the file in which every run of the session is recorded, if the settings want that."""
    return settings.process.record_dir / file_name(session_id) if settings.process.record_dir else None
