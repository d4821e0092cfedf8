"""Every command of the terminal shares these: settings, a session to talk to, and an orderly end.

Shells complete session ids: quickly, and in silence where there is nothing to be had.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import orjson
import typer
from rich.console import Console

from context_builder.cli.view.palette import plain, spaced
from context_builder.errors import (
    ContextBuilderError,
    FilterInvalid,
    ProjectUnknown,
    SessionOwned,
    SettingError,
    StoreError,
)
from context_builder.session.keys import SESSION_ID_RULE

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from context_builder.memory.memory import MemoryFilter
    from context_builder.session.client import SessionClient
    from context_builder.session.store.registry import RegisteredSession
    from context_builder.settings.settings import Settings


COMPLETION_TIME: Final = 0.5
"""Seconds that Redis has to answer: somebody waits with a finger on the key."""

COMPLETED_OF: Final = 1000
"""Newest sessions of each Redis that are looked through."""


def session_ids(incomplete: str) -> list[str]:
    """Return the newest sessions whose ids begin so; none when Redis is away, slow, or not set up."""
    from context_builder import log
    from context_builder.settings.settings import load_settings
    from context_builder.wiring import servers  # noqa: F401  # which takes its time, and not Redis'

    log.configure("error")  # a warning would be written across the command line
    try:
        return asyncio.run(asyncio.wait_for(_session_ids(load_settings(), incomplete), COMPLETION_TIME))
    except Exception:  # noqa: BLE001  # an error would be, too
        return []


async def _session_ids(settings: Settings, incomplete: str) -> list[str]:
    from context_builder.session.store.registry import SessionRegistry
    from context_builder.wiring.servers import running_servers

    found: list[str] = []
    async with running_servers(settings) as servers:
        for server in servers:
            found += await SessionRegistry(server.redis).newest(COMPLETED_OF)
    return [name for name in found if name.startswith(incomplete)]


SESSION_ID = Annotated[
    str,
    typer.Argument(help=f"Name of the conversation: {SESSION_ID_RULE}", autocompletion=session_ids),
]

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

T = TypeVar("T")

INTERRUPTED: Final = 130
"""Exit status of a command that Ctrl-C ended before it was done, as shells have it."""


def settings_in_force(**overrides: Any) -> Settings:
    """Return the settings; names that look misspelt are told on standard error, once."""
    from context_builder.settings.settings import load_settings

    tell_misspelt()
    return load_settings(**overrides)


@cache
def tell_misspelt() -> None:
    """Name on standard error what is set, and looks like a setting that is misspelt."""
    from context_builder.settings.settings import misspelt

    for one in misspelt():
        typer.echo(f"context-builder: {plain(str(one), 200)}", err=True)


def silence_threshold() -> float:
    """Return the seconds without a message after which a session counts as silent here."""
    from context_builder.settings.settings import load_settings

    return load_settings().session.silence


async def settings_for(session_id: str) -> Settings:
    """Return the settings in force, of REDIS_URLS with the one alone that the session lives on, or is to live on."""
    from context_builder.wiring.servers import settings_of

    return await settings_of(settings_in_force(), session_id)


@asynccontextmanager
async def connected(session_id: str) -> AsyncIterator[SessionClient]:
    """Open the session at the configured Redis, whether or not the session exists."""
    from context_builder.session.client import SessionClient
    from context_builder.wiring.servers import open_redis

    async with open_redis(await settings_for(session_id)) as redis:
        yield SessionClient(redis, session_id)


@asynccontextmanager
async def redis_with(session_id: str) -> AsyncIterator[Redis]:
    """Open the configured Redis. Raises :class:`StoreError` when it knows no such session."""
    from context_builder.wiring.servers import open_redis

    async with open_redis(await settings_for(session_id)) as redis:
        await existing(redis, session_id)
        yield redis


async def existing(redis: Redis, session_id: str) -> RegisteredSession:
    """Return what is known of the session. Raises :class:`StoreError` when nothing is."""
    from context_builder.session.store.registry import SessionRegistry

    found = await SessionRegistry(redis).find(session_id)
    if found is None:
        raise no_session(session_id)
    return found


def no_session(session_id: str) -> StoreError:
    """Return the error that every command gives for a session that does not exist."""
    return StoreError(f"there is no session {session_id}; `context-builder sessions` lists them")


def legible(text: str | None) -> str | None:
    """Return typed text with a mark in place of each byte that is not UTF-8; the ``callback`` of texts."""
    return text and text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


TenantOption = Annotated[str | None, typer.Option("--tenant", help="Tenant; default: TENANT_ID.", callback=legible)]


def each_legible(texts: list[str] | None) -> list[str]:
    """Return typed texts likewise; the ``callback`` of options that may be repeated."""
    return [legible(text) or "" for text in texts or ()]


def memory_filter_of(**fields: Any) -> MemoryFilter:
    """Return the filter that a command's options name: speaker, session, since, until and kinds.

    Raises :class:`typer.BadParameter`.
    """
    from context_builder.memory.filter import memory_filter

    try:
        return memory_filter(**fields)
    except FilterInvalid as error:
        raise typer.BadParameter(str(error)) from None


def confirm(question: str, *, yes: bool) -> None:
    """Ask, unless ``yes`` was given; a no ends the command, and so does a missing terminal.

    Not to be called in the event loop, where Ctrl-C would not end the question.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        typer.echo(f"context-builder: {question} There is no terminal to ask on; add --yes to go ahead", err=True)
        raise typer.Exit(1)
    typer.confirm(question, abort=True)


def live_console() -> Console:
    """Return a console for live views, which only a terminal shows; FORCE_COLOR makes none of a pipe."""
    return Console(force_terminal=sys.stdout.isatty())


def announce(text: str) -> None:
    """Print a line of a process that goes on, also when nobody reads it any more."""
    try:
        typer.echo(text)
    except OSError:  # what Python still holds of it would be an error again when it ends
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(value: object, default: Callable[[Any], object] | None = None) -> None:
    """Print indented JSON; in it, what could act on a terminal is escaped. ``default`` as in orjson."""
    text = orjson.dumps(value, default, orjson.OPT_INDENT_2).decode()
    typer.echo("".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text))


def print_text(text: str) -> None:
    """Print a text as it is, but for a terminal, on which it must not act."""
    typer.echo("\n".join(map(spaced, text.split("\n"))) if sys.stdout.isatty() else text)


def run(
    coroutine: Coroutine[Any, Any, T],
    *,
    interrupted: int = INTERRUPTED,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> T:
    """Return the coroutine's result; this package's errors become a line and an exit status, Ctrl-C an orderly end."""
    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(coroutine)
    except KeyboardInterrupt:
        raise typer.Exit(interrupted) from None
    except ContextBuilderError as error:
        raise typer.Exit(told(error)) from None
    except BaseExceptionGroup as group:  # of tasks beside each other, whose errors are told as any
        if (ours := _of_this_package(group)) is None:
            raise
        raise typer.Exit(told(ours)) from None


def _of_this_package(group: BaseExceptionGroup) -> ContextBuilderError | None:
    """Return the first of this package's errors in a group; None where there are others, too."""
    ours, others = group.split(ContextBuilderError)
    if ours is None or others is not None:
        return None
    first: BaseException = ours
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first if isinstance(first, ContextBuilderError) else None


def told(error: ContextBuilderError) -> int:
    """Print the error in a line, and return the exit status that it has."""
    typer.echo(f"context-builder: {plain(error)}", err=True)
    if sys.stderr.isatty():  # programs get one line
        typer.echo(f"  more: {error.page}", err=True)
    return _status(error)


def quick_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes the fastest loop that is installed; there is none other than asyncio's own for Windows."""
    if find_spec("uvloop") is None:
        return None
    from uvloop import new_event_loop

    return new_event_loop


def _status(error: ContextBuilderError) -> int:
    match error:
        case SettingError() | ProjectUnknown():
            return 2
        case SessionOwned():
            return 3
        case _:
            return 1
