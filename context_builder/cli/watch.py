"""``watch``: a session as it happens."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.live import Live

from context_builder.cli.command import live_console, redis_with, run, session_ids, silence_threshold
from context_builder.cli.signals import stopped
from context_builder.cli.view.conversation import Scrollback
from context_builder.cli.view.palette import SpeakerColours
from context_builder.cli.view.published import Published
from context_builder.cli.view.screen import View, export_svg, render
from context_builder.cli.view.status import SILENCE
from context_builder.errors import StoreError
from context_builder.session.client import SessionClient, Snapshot

if TYPE_CHECKING:
    from rich.console import Console

INTERVAL: Final = 0.25
"""Seconds between two looks at Redis."""

RATE_WINDOW: Final = 60.0
"""Seconds over which the rate of messages is measured."""


class Rate:
    """Counts messages a minute, from how many had been received at each look."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def per_minute(self, now: float, received: int) -> float | None:
        """Return the rate over the last minute; ``None`` in the first two seconds."""
        self._seen.append((now, received))
        while self._seen[0][0] < now - RATE_WINDOW:
            self._seen.popleft()
        since, before = self._seen[0]
        return 60.0 * max(0, received - before) / (now - since) if now - since >= 2.0 else None


async def follow(
    client: SessionClient,
    console: Console,
    *,
    stop: asyncio.Event,
    silence_threshold: float = SILENCE,
    on_snapshot: Callable[[Snapshot], None] | None = None,
) -> None:
    """Show the session on the whole terminal until ``stop`` or cancellation.

    A Redis that does not answer is named in the view, and asked again. ``on_snapshot`` is told
    of each look.
    """
    snapshot, rate, scrollback, colours = Snapshot(client.session_id), Rate(), Scrollback(), SpeakerColours()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            now, notice, per_minute = time.time(), "", None
            try:
                snapshot = await client.snapshot()
                page = Published(snapshot)
                per_minute = rate.per_minute(now, page.received)
                scrollback.look(page.messages)
                if on_snapshot:
                    on_snapshot(snapshot)
            except StoreError as error:
                notice = str(error)
            view = View(per_minute, notice, silence_threshold, tuple(scrollback.earlier), colours)
            live.update(render(snapshot, now, console.size, view), refresh=True)
            if await stopped(stop, INTERVAL):
                return


def watch(
    session_id: Annotated[
        str, typer.Argument(help="Session to watch.", show_default=False, autocompletion=session_ids)
    ],
    svg: Annotated[
        Path | None,
        typer.Option(help="Write one picture of the view to this file, and exit.", show_default=False),
    ] = None,
) -> None:
    """Show a session live: who speaks, about what, and what is remembered.

    The session may run anywhere on the same Redis. The command changes nothing. Ctrl-C ends it.

    Examples:

        context-builder watch monday

        context-builder watch monday --svg monday.svg
    """
    run(_picture(session_id, svg) if svg else _watch(session_id, live_console()), interrupted=0)


async def _watch(session_id: str, console: Console) -> None:
    threshold = silence_threshold()
    async with redis_with(session_id) as redis:
        client = SessionClient(redis, session_id)
        if console.is_terminal:
            await follow(client, console, stop=asyncio.Event(), silence_threshold=threshold)
        else:
            console.print(render(await client.snapshot(), time.time(), console.size, View(silence_threshold=threshold)))


async def _picture(session_id: str, path: Path) -> None:
    async with redis_with(session_id) as redis:
        snapshot = await SessionClient(redis, session_id).snapshot()
        try:
            export_svg(snapshot, time.time(), path)
        except OSError as error:
            raise typer.BadParameter(f"cannot write {path}: {error.strerror}") from None
    typer.echo(f"written to {path}")
