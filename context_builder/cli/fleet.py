"""``fleet``: any number of sessions on any number of machines, with nobody starting them."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from context_builder.cli.command import announce, print_json, quick_loop, run, settings_in_force
from context_builder.cli.run import SWITCH_INTERVAL, beside, part_lines, sweep_hourly
from context_builder.cli.signals import stopping_signals, within_grace
from context_builder.cli.view.palette import plain
from context_builder.errors import require_extra

if TYPE_CHECKING:
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

        REDIS_URLS="redis://one:6379/0 redis://two:6379/0?tenant=acme" context-builder fleet

        context-builder fleet status

        context-builder fleet --demo
    """
    if context.invoked_subcommand is not None:
        return
    if demo:
        from context_builder.cli.fleet_demo import fleet_demo

        run(fleet_demo(sessions, seconds, as_json=json), interrupted=0)
    else:
        run(_work(), interrupted=0, loop_factory=quick_loop())


async def _work() -> None:
    from context_builder import log

    settings = settings_in_force()
    require_extra("fleet", "docket", "fleet")
    from context_builder.fleet.garbage import collect_seldom
    from context_builder.fleet.room import raise_open_files, tell_room
    from context_builder.fleet.worker import run_workers
    from context_builder.fleet.workload import WorkloadMeter
    from context_builder.wiring.fleet import check_servers, open_apps, open_workers
    from context_builder.wiring.tracing import sending_spans

    log.configure(settings.process.log_level, settings.process.log_format)
    sys.setswitchinterval(SWITCH_INTERVAL)
    stop = asyncio.Event()
    meter = WorkloadMeter()
    async with sending_spans(settings, "fleet"), open_apps(settings) as apps, AsyncExitStack() as stack:
        with stopping_signals(stop.set):
            await check_servers(apps)
            files = raise_open_files()
            for app in apps:
                await tell_room(app.redis, app.settings.redis.server_name, files)
            workers = await stack.enter_async_context(open_workers(apps, meter))
            announce(banner(workers[0].name, apps))
            if settings.process.http_port is not None:
                require_extra("server", "uvicorn", "HTTP_PORT")
                from context_builder.server.health import serve_http

                pages = serve_http(
                    settings.process.http_host,
                    settings.process.http_port,
                    lambda: all(worker.is_served for worker in workers),
                )
                await stack.enter_async_context(pages)
            async with beside(apps[0].warm_up(), *map(sweep_hourly, apps), collect_seldom(), meter.run()):
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
    from context_builder.wiring.servers import open_redis_and_url

    async with AsyncExitStack() as stack:
        servers = []
        for settings in settings_in_force().of_each_server():
            redis, url = await stack.enter_async_context(open_redis_and_url(settings))
            servers.append(FleetServer(settings.redis.server_name, url, redis))
        found = await fleet_status(servers)
    if as_json:
        print_json(found.as_json())
        return
    from rich.console import Console
    from rich.table import Table

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
