"""``fleet``: any number of sessions on any number of machines, with nobody starting them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from context_builder.cli.command import announce, live_console, print_json, quick_loop, run, settings_in_force
from context_builder.cli.run import beside, part_lines, serving_health, sweep_hourly
from context_builder.cli.signals import stopping_signals, within_grace
from context_builder.cli.view.palette import plain
from context_builder.concurrency import SWITCH_INTERVAL
from context_builder.errors import require_extra

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from context_builder.fleet.demonstration import Demonstration, DemonstrationResult, DemoWorker
    from context_builder.wiring.app import App


fleet = typer.Typer(
    add_completion=False,
    rich_markup_mode="rich",
    help="Run every session that somebody pushes to, together with other workers.",
)


@fleet.callback(invoke_without_command=True)
def work(
    context: typer.Context,
    demo: Annotated[
        bool,
        typer.Option("--demo", help="Run a demonstration: sessions move between workers that are killed and replaced."),
    ] = False,
    sessions: Annotated[int, typer.Option(min=2, max=2_000, help="With --demo: number of sessions.")] = 200,
    seconds: Annotated[float, typer.Option(min=5, help="With --demo: duration in seconds.")] = 45.0,
    json: Annotated[bool, typer.Option("--json", help="With --demo: print the result as JSON.")] = False,
) -> None:
    """Run every session that has something to do, until Ctrl-C; start it on as many machines as you like.

    A session runs on one of the workers within a second of the first LPUSH to its input. When a worker stops, others
    continue its sessions at once; when it dies, within seconds. Sessions in which nobody speaks for SESSION_SLEEP
    sleep until their next message. A session that runs in a terminal (`context-builder run`) is left alone, and taken
    when that command ends.

    Examples:

        context-builder fleet

        REDIS_URL=redis://cache:6379/0 FLEET_CONCURRENCY=200 context-builder fleet

        REDIS_URLS="redis://one redis://two?tenant=acme" context-builder fleet

        context-builder fleet status

        context-builder fleet --demo
    """
    if context.invoked_subcommand is not None:
        return
    if demo:
        run(fleet_demo(sessions, seconds, as_json=json), interrupted=0)
    else:
        run(_work(), interrupted=0, loop_factory=quick_loop())


async def _work() -> None:
    from context_builder import log

    settings = settings_in_force()
    require_extra("fleet", "docket", "fleet")
    from context_builder.fleet.process import WorkloadMeter, collect_seldom, log_room, raise_open_files
    from context_builder.fleet.worker import run_workers
    from context_builder.wiring.app import check_servers, open_apps, open_workers
    from context_builder.wiring.tracing import sending_spans

    log.configure(settings.process.log_level, settings.process.log_format)
    sys.setswitchinterval(SWITCH_INTERVAL)
    stop = asyncio.Event()
    meter = WorkloadMeter()
    async with sending_spans(settings, "fleet"), open_apps(settings) as apps:
        with stopping_signals(stop.set):
            await check_servers(apps)
            files = raise_open_files()
            for app in apps:
                await log_room(app.redis, app.settings.redis.server_name, files)
            async with open_workers(apps, meter) as workers:
                announce(banner(workers[0].name, apps))
                health = serving_health(settings, lambda: all(worker.is_served for worker in workers))
                async with health, beside(apps[0].warm_up(), *map(sweep_hourly, apps), collect_seldom(), meter.run()):
                    await within_grace(run_workers(workers, stop), stop)


def banner(worker: str, apps: tuple[App, ...]) -> str:
    """Return what runs, for how many sessions at most, and where listeners push."""
    app, *others = apps
    lines = [
        f"context-builder fleet · worker {worker} · Ctrl-C hands its sessions to others",
        "  Sessions listeners push to context_builder:SESSION_ID:input; "
        f"at most {app.settings.fleet.concurrency} run here (FLEET_CONCURRENCY)",
    ]
    parts = [("Redis", one.redis_is) for one in (app, *others)]
    parts += [("Model", app.model_is), ("Archive", app.archive_is), ("Memory", app.memory_is)]
    return "\n".join([*lines, *part_lines(parts)])


@fleet.command("status")
def status(
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs: sessions included.")] = False,
    sessions: Annotated[bool, typer.Option("--sessions", help="List each session and its worker.")] = False,
) -> None:
    """Show the workers, how many sessions each runs, and how many messages wait for it.

    Examples:

        context-builder fleet status --sessions

        context-builder fleet status --json | jq '.workers[].worker'
    """
    run(_status(as_json=json, each=sessions))


async def _status(*, as_json: bool, each: bool) -> None:
    require_extra("fleet", "docket", "fleet")
    from context_builder.fleet.status import FleetServer, fleet_status
    from context_builder.session.keys import SESSION_ID_RULE
    from context_builder.wiring.servers import connected_redis

    async with AsyncExitStack() as stack:
        servers = []
        for settings in settings_in_force().of_each_server():
            redis, url, _ = await connected_redis(settings)
            stack.push_async_callback(redis.aclose)
            servers.append(FleetServer(settings.redis.server_name, url, redis))
        found = await fleet_status(servers)
    if as_json:
        print_json(found.as_json())
        return
    if not found.workers:
        typer.echo("No worker. Start one: context-builder fleet")
    else:
        table = Table(box=None, header_style="bold", pad_edge=False)
        table.add_column("worker", overflow="fold")
        table.add_column("redis", overflow="fold")
        for heading in ("sessions", "in queue", "CPU", "late", "seen"):
            table.add_column(heading, justify="right")
        for one in found.workers:
            counts = (str(one.sessions), str(one.waiting))
            load = (f"{one.cpu:.0%}", f"{one.lag * 1000:.0f} ms")
            seen = f"{one.seen:.1f} s ago{'; overloaded, takes no more' if one.overloaded else ''}"
            table.add_row(plain(one.worker, 60), plain(one.server, 60), *counts, *load, seen)
        Console().print(table)
    if each and found.sessions:
        listed = Table(box=None, header_style="bold", pad_edge=False)
        listed.add_column("session", overflow="fold")
        listed.add_column("redis", overflow="fold")
        listed.add_column("run by", overflow="fold")
        listed.add_column("in queue", justify="right")
        for session in found.sessions:
            where = (plain(session.server, 60), plain(session.owner or "–", 60))
            listed.add_row(plain(session.session_id, 128), *where, str(session.waiting))
        Console().print(listed)
    for name in found.away:
        typer.echo(f"Redis at {plain(name, 60)} does not serve: its sessions stand still until it does")
    for fault in found.faults:
        typer.echo(plain(f"a session stands still: {fault}; delete or rename the key"))
    for name in found.unusable:
        typer.echo(plain(f"context_builder:{name}:input is read by nobody: a session id is {SESSION_ID_RULE}"))
    typer.echo(
        f"{found.sleeping} asleep, {found.elsewhere} run by other processes, {found.unowned} with messages and no owner"
    )


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

    from context_builder.demo import load_demo
    from context_builder.session.messages.message import CONSILIENCE

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
    starting = asyncio.create_task(asyncio.to_thread(engine.ensure), name="start Redis")
    try:
        address = await asyncio.shield(starting)
        redis = client_for(address.url)
        try:
            yield redis, {**surroundings, "REDIS_URL": address.url}
        finally:
            await redis.aclose()
    finally:
        await asyncio.wait([starting])  # what an interrupt leaves half started would outlive the demonstration
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

    view = Live(console=console, refresh_per_second=8, transient=True) if console.is_terminal else nullcontext()
    with view as live:
        looking = asyncio.create_task(look(live), name="look")
        try:
            yield
        finally:
            looking.cancel()
    if live is not None:
        console.print(_view(demonstration, events))


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
