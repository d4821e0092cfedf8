"""What every command of the terminal needs: a session to talk to, and an orderly end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Final

import typer

from context_builder.client import SessionClient
from context_builder.errors import ContextBuilderError, SessionOwned, SettingError

INTERRUPTED: Final = 130
"""Exit status of a command that Ctrl-C ended before it was done, as shells have it."""


@asynccontextmanager
async def connected(session_id: str) -> AsyncIterator[SessionClient]:
    """The session at the Redis that the settings name."""
    from context_builder.app import open_redis
    from context_builder.settings import load_settings

    async with open_redis(load_settings()) as redis:
        yield SessionClient(redis, session_id)


def run(work: Coroutine[object, object, None], *, interrupted: int = INTERRUPTED) -> None:
    """Do the work; an error of ours becomes one line and an exit status, Ctrl-C an orderly end."""
    try:
        asyncio.run(work)
    except KeyboardInterrupt:
        raise typer.Exit(interrupted) from None
    except ContextBuilderError as error:
        typer.echo(f"context-builder: {error}", err=True)
        raise typer.Exit(_status(error)) from None


def _status(error: ContextBuilderError) -> int:
    match error:
        case SettingError():
            return 2
        case SessionOwned():
            return 3
        case _:
            return 1
