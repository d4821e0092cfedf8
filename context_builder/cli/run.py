"""``run`` keeps a conversation's state for as long as it lasts; ``record`` keeps all that happens in a file, too."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import structlog
import typer

from context_builder.cli.command import SESSION_ID, announce, run, settings_for
from context_builder.cli.signals import stopping_signals, within_grace
from context_builder.concurrency import SWITCH_INTERVAL
from context_builder.errors import require_extra
from context_builder.session.failures import lone_failure_itself

if TYPE_CHECKING:
    from context_builder.settings.settings import Settings
    from context_builder.wiring.app import App
    from context_builder.wiring.part_description import PartDescription

TAKEOVER = Annotated[bool, typer.Option("--takeover", help="Take the session from the process that runs it.")]
NO_WAIT = Annotated[bool, typer.Option("--no-wait", help="Exit with status 3 when another process runs it.")]

SWEEP_INTERVAL: Final = 3600.0


def run_session(
    session_id: SESSION_ID,
    takeover: TAKEOVER = False,
    no_wait: NO_WAIT = False,
) -> None:
    """Keep a conversation's state in Redis until Ctrl-C; start it again and it continues.

    Exit status: 0 when stopped or ended, 1 when taken over or forgotten,
    2 for a wrong setting, 3 with --no-wait when another process runs it.

    Examples:

        context-builder run session-123

        REDIS_URL=redis://cache OPENAI_API_KEY=sk-... context-builder run monday
    """
    run(_serve(session_id, None, takeover=takeover, wait=not no_wait), interrupted=0)


async def _serve(session_id: str, record: Path | None, *, takeover: bool, wait: bool) -> None:
    """Keep the session's state until told to stop, recorded in the file ``record`` if there is one."""
    from context_builder import log
    from context_builder.wiring.app import open_app, recording_of
    from context_builder.wiring.tracing import sending_spans

    settings = await settings_for(session_id)
    log.configure(settings.process.log_level, settings.process.log_format)
    sys.setswitchinterval(SWITCH_INTERVAL)
    async with sending_spans(settings, "run"), open_app(settings) as app:
        session = app.session(session_id, record=record)
        with stopping_signals(session.stop):
            await app.check()
            announce(banner(session_id, app))
            if kept_in := record or recording_of(session_id, settings):
                announce(f"  Recorded {kept_in}, what people say included")
            health = serving_health(settings, lambda: session.is_served)
            async with health, beside(app.warm_up(), sweep_hourly(app, spared=session_id)):
                await within_grace(session.serve(takeover=takeover, wait=wait), session.told_to_stop)
            if app.redis_is.embedded:
                announce("The embedded servers go on running; `context-builder engines stop` stops them.")


def banner(session_id: str, app: App) -> str:
    """Return five lines: what runs, which Redis, model, archive and memory, and what to set for other ones.

    A Redis with a password of its own has one more, for listeners. Of a memory in the archive's database it goes
    without saying where that is.
    """
    lines = [f"context-builder · listeners push to context_builder:{session_id}:input · Ctrl-C stops"]
    memory = replace(app.memory_is, what=app.memory_is.what.removeprefix(f"{app.archive_is.what}, "))
    parts = [("Redis", app.redis_is), ("Model", app.model_is), ("Archive", app.archive_is), ("Memory", memory)]
    return "\n".join([*lines, *part_lines(parts)])


def part_lines(parts: Iterable[tuple[str, PartDescription]]) -> Iterator[str]:
    """Yield a line for each part, by its label, and what to set for another one."""
    for label, part in parts:
        yield f"  {label:<8} {part.what}{f'  ({part.hint})' if part.hint else ''}"
        if part.access:
            yield f"  {'':<8} listeners need: {part.access}"


@asynccontextmanager
async def beside(*coroutines: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run the coroutines in the background and cancel them in the end; when one fails, the foreground fails with it."""
    with lone_failure_itself():
        async with asyncio.TaskGroup() as tasks:
            started = [tasks.create_task(coroutine) for coroutine in coroutines]
            try:
                yield
            finally:
                for task in started:
                    task.cancel()


@asynccontextmanager
async def serving_health(settings: Settings, is_served: Callable[[], bool]) -> AsyncIterator[None]:
    """Serve metrics and health inside, on a port of their own, where HTTP_PORT is set."""
    process = settings.process
    if process.http_port is None:
        yield
        return
    require_extra("server", "uvicorn", "HTTP_PORT")
    from context_builder.server.health import serve_http

    async with serve_http(process.http_host, process.http_port, is_served):
        yield


async def sweep_hourly(app: App, *, spared: str = "") -> None:
    """Delete sessions that outlived their retention, now and every hour, but not the one named ``spared``."""
    from context_builder.errors import StoreError
    from context_builder.session.store.registry import SessionRegistry
    from context_builder.storage.redis import redis_time

    log = structlog.get_logger(__name__)
    registry, retention = SessionRegistry(app.redis), app.settings.process.session_retention
    keep_last = app.settings.session.summary_keep_last
    while True:
        try:
            if swept := await registry.sweep(
                await redis_time(app.redis) - retention, spared=spared, keep_last=keep_last
            ):
                log.info("sweep.done", sessions=len(swept))
        except StoreError as error:
            log.warning("sweep.failed", error=str(error))
        await asyncio.sleep(SWEEP_INTERVAL)


def record(
    session_id: SESSION_ID,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="File to write; default: SESSION_ID.jsonl in RECORD_DIR or here.", dir_okay=False, show_default=False
        ),
    ] = None,
    takeover: TAKEOVER = False,
    no_wait: NO_WAIT = False,
) -> None:
    """Run a conversation like `run`, and record all events in a file, for `replay-log`.

    The file contains what people say. An existing file is continued.

    Examples:

        context-builder record session-123

        context-builder record session-123 monday.jsonl --takeover
    """
    run(_record(session_id, file, takeover=takeover, wait=not no_wait), interrupted=0)


async def _record(session_id: str, file: Path | None, *, takeover: bool, wait: bool) -> None:
    from context_builder.recording.file import file_name
    from context_builder.session.keys import validate_session_id
    from context_builder.wiring.app import recording_of

    validate_session_id(session_id)
    file = file or recording_of(session_id, await settings_for(session_id)) or Path(file_name(session_id))
    await _serve(session_id, file, takeover=takeover, wait=wait)
