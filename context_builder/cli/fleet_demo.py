"""``fleet --demo``: 200 sessions that move between workers while workers are killed and replaced."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from context_builder.cli.command import live_console, print_json
from context_builder.demo import load_demo
from context_builder.errors import require_extra
from context_builder.session.messages.message import CONSILIENCE

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from context_builder.fleet.demonstration import Demonstration, DemonstrationResult, DemoWorker

_REFRESH: Final = 0.25
_EVENTS: Final = 8
_BAR: Final = 40
_COLOURS: Final = {"starting": "yellow", "running": "green", "leaving": "yellow", "killed": "red", "left": "dim"}


async def fleet_demo(sessions: int, seconds: float, *, as_json: bool) -> None:
    """Show a fleet, and exit with 1 if anything was lost, doubled or out of order."""
    require_extra("fleet", "docket", "fleet")
    from context_builder.fleet.demonstration import Demonstration

    console = Console(stderr=True) if as_json else live_console()
    events: deque[str] = deque(maxlen=_EVENTS)
    began = time.monotonic()

    def told(what: str) -> None:
        line = f"{time.monotonic() - began:5.1f} s  {what}"
        events.append(line)
        if not console.is_terminal:
            console.print(line, highlight=False, soft_wrap=True)

    sayings = [(said.speaker, said.text) for said in load_demo() if said.speaker != CONSILIENCE]
    told("a Redis of its own is started")
    with TemporaryDirectory(prefix="context-builder-demo-") as name:
        async with _stage(Path(name)) as (redis, surroundings):
            demonstration = Demonstration(redis, Path(name), surroundings, sessions, sayings, told)
            try:
                async with _shown(demonstration, events, console):
                    outcome = await demonstration.run(seconds)
            finally:
                await demonstration.close()
    if as_json:
        print_json({**asdict(outcome), "whole": outcome.is_whole})
    else:
        console.print(_closing(outcome))
    if not outcome.is_whole:
        raise typer.Exit(1)


@asynccontextmanager
async def _stage(home: Path) -> AsyncIterator[tuple[Redis, Mapping[str, str]]]:
    """Run embedded engines of their own inside, and end them."""
    from context_builder.fleet.demonstration import surroundings_without
    from context_builder.settings.settings import definitions, load_settings
    from context_builder.storage.redis import client_for
    from context_builder.wiring.embedded import redis_engine

    surroundings = surroundings_without(definitions()) | {"CONTEXT_BUILDER_HOME": str(home), "FEED_MEMORY": "false"}
    engine = redis_engine(load_settings(surroundings, env_file=None))
    address = await asyncio.to_thread(engine.ensure)
    try:
        redis = client_for(address.url)
        try:
            yield redis, {**surroundings, "REDIS_URL": address.url}
        finally:
            await redis.aclose()
    finally:
        stop = [sys.executable, "-m", "context_builder", "engines", "stop", "--yes"]
        await asyncio.to_thread(
            subprocess.run, stop, cwd=home, env=dict(surroundings), capture_output=True, check=False
        )


@asynccontextmanager
async def _shown(demonstration: Demonstration, events: deque[str], console: Console) -> AsyncIterator[None]:
    """Look at the demonstration inside, and show it where there is a terminal."""

    async def look(live: Live | None) -> None:
        while True:
            await demonstration.look()
            if live is not None:
                live.update(_view(demonstration, events))
            await asyncio.sleep(_REFRESH)

    if console.is_terminal:
        with Live(console=console, auto_refresh=True, refresh_per_second=8, transient=True) as live:
            looking = asyncio.create_task(look(live), name="look")
            try:
                yield
            finally:
                looking.cancel()
        console.print(_view(demonstration, events))
    else:
        looking = asyncio.create_task(look(None), name="look")
        try:
            yield
        finally:
            looking.cancel()


def _view(demonstration: Demonstration, events: deque[str]) -> RenderableType:
    seen = demonstration.seen
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("worker")
    table.add_column("", min_width=8)
    table.add_column("sessions", justify="right")
    table.add_column("", min_width=_BAR)
    for worker in demonstration.workers:
        run = sum(pid == worker.process.pid for pid in seen.owners.values())
        table.add_row(
            worker.name, _fate(worker), str(run), Text("█" * round(_BAR * run / demonstration.sessions), "cyan")
        )
    unseen = max(0, seen.said - seen.visible)
    messages = f"{seen.said:,} messages said, {seen.visible:,} visible, {unseen:,} on their way"
    totals = f"{messages}; sessions moved {seen.moved:,} times"
    return Group(table, Text(), Text(totals), Text(), *(Text(line, "dim") for line in events))


def _fate(worker: DemoWorker) -> Text:
    return Text(worker.fate, _COLOURS[worker.fate])


def _closing(outcome: DemonstrationResult) -> RenderableType:
    moves = "; ".join(f"{what}: {took:.1f} s" for what, took in outcome.elsewhere_after.items())
    whole = f"{outcome.lost} lost, {outcome.doubled} doubled, {outcome.out_of_order} sessions out of order"
    return Group(
        Text(),
        Text(
            f"{outcome.said:,} messages in {outcome.sessions} sessions: {whole}",
            "bold green" if outcome.is_whole else "bold red",
        ),
        Text(f"Until others ran all sessions of a worker that {moves}"),
        *(
            [Text(f"{outcome.not_taken_over} sessions stayed with a worker that ended", "bold red")]
            if outcome.not_taken_over
            else []
        ),
        Text("Next: REDIS_URL=redis://… context-builder fleet, on each machine", "dim"),
    )
