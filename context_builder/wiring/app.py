"""The app of a daemon: the parts that the settings choose, and that all sessions of a process share.

A fleet's process has an app and a worker for each Redis server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog
from redis.asyncio import Redis

from context_builder.analysis.processes import AnalysisProcess
from context_builder.errors import DatabaseError, StoreError, StoreUnavailable
from context_builder.memory.memory import TenantMemory
from context_builder.recording.file import FileRecorder, RecordingWriter, file_name
from context_builder.session.host import SessionHost, open_host
from context_builder.session.session import Session, SessionDependencies
from context_builder.settings.settings import Settings
from context_builder.storage.redis import check_server, evicted_by, server_info
from context_builder.tokens.counter import ENCODING
from context_builder.wiring.analysts import analysts
from context_builder.wiring.embedded import embedding_engine, start_embeddings
from context_builder.wiring.part_description import PartDescription
from context_builder.wiring.servers import connected_redis
from context_builder.wiring.stores import open_stores

if TYPE_CHECKING:
    from context_builder.fleet.process import WorkloadMeter
    from context_builder.fleet.worker import FleetWorker

log = structlog.get_logger(__name__)


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
    redis_is: PartDescription
    model_is: PartDescription
    archive_is: PartDescription
    memory_is: PartDescription
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
        return Session(host or self.redis, session_id, self.settings.session, self.dependencies, recorder)


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


def recording_of(session_id: str, settings: Settings) -> Path | None:
    """Return the file in which every run of the session is recorded, if the settings want that."""
    return settings.process.record_dir / file_name(session_id) if settings.process.record_dir else None


def fleet_settings(settings: Settings) -> Settings:
    """Return the settings with a lease that has run out when a dead worker's sessions are run elsewhere."""
    from context_builder.fleet.worker import LEASE  # needs the extra

    session = settings.session
    lease = min(session.lease, max(LEASE, 2 * session.tick + 1))
    return settings.model_copy(update={"session": replace(session, lease=lease)})


@asynccontextmanager
async def open_apps(settings: Settings) -> AsyncIterator[tuple[App, ...]]:
    """Open an app for each Redis server; they share everything else. Each runs many sessions."""
    first, *others = (fleet_settings(one) for one in settings.of_each_server())
    async with open_app(first, many=True) as app, AsyncExitStack() as stack:
        yield (app, *[await stack.enter_async_context(app.beside(one)) for one in others])


async def check_servers(apps: tuple[App, ...]) -> None:
    """Raise the :class:`StoreError` that makes a Redis unfit for sessions, which of several it names."""
    for app in apps:
        try:
            await app.check()
        except StoreError as error:
            raise StoreError(str(error) if len(apps) == 1 else f"{app.redis_is.what}: {error}") from None


@asynccontextmanager
async def open_workers(apps: tuple[App, ...], meter: WorkloadMeter) -> AsyncIterator[tuple[FleetWorker, ...]]:
    """Open a worker for each of the apps, with a host that its sessions share."""
    from context_builder.fleet.worker import FleetWorker  # as above

    async with AsyncExitStack() as stack:
        workers = []
        for app in apps:
            host, settings = await stack.enter_async_context(app.host()), app.settings
            worker = FleetWorker(
                settings.redis.server_name,
                app.redis_url,
                host.client,
                partial(app.session, host=host),
                settings.fleet,
                settings.session,
                meter,
                host.arrivals,
            )
            workers.append(worker)
        yield tuple(workers)
