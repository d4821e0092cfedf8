"""Many sessions in one process: ``python -m scripts.benches.hosting.worker FIRST COUNT [--alone]``.

It logs ``bench.opened`` when it begins to start the sessions, and ``bench.ready`` when all are. With ``--alone`` each
session does everything by itself.
"""

from __future__ import annotations

import asyncio
import cProfile
import os
import signal
import sys
from contextlib import AsyncExitStack

import structlog

from context_builder import log
from context_builder.cli.command import quick_loop
from context_builder.cli.run import SWITCH_INTERVAL
from context_builder.fleet.garbage import collect_seldom
from context_builder.settings.settings import load_settings
from context_builder.wiring.app import open_app
from scripts.benches.hosting.names import session_name


async def host(first: int, count: int, *, alone: bool) -> None:
    sys.setswitchinterval(SWITCH_INTERVAL)
    log.configure("warning", "json")
    told = structlog.get_logger("bench")
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with AsyncExitStack() as stack:
        app = await stack.enter_async_context(open_app(load_settings(), many=not alone))
        await app.warm_up()
        host = None if alone else await stack.enter_async_context(app.host())
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        collecting = None if alone else tasks.create_task(collect_seldom())
        told.warning("bench.opened")
        sessions = [app.session(session_name(number), host=host) for number in range(first, first + count)]
        for session in sessions:
            tasks.create_task(session.serve())
        for session in sessions:
            await session.ready.wait()
        told.warning("bench.ready")
        await stop.wait()
        for session in sessions:
            session.stop()
        if collecting:
            collecting.cancel()


def main() -> None:
    first, count = map(int, sys.argv[1:3])
    alone = "--alone" in sys.argv
    running = host(first, count, alone=alone)
    if folder := os.environ.get("BENCH_PROFILE"):
        profile = cProfile.Profile()
        profile.runcall(asyncio.run, running)
        profile.dump_stats(f"{folder}/{os.getpid()}.prof")
    else:
        with asyncio.Runner(loop_factory=None if alone else quick_loop()) as runner:  # as in a fleet
            runner.run(running)


if __name__ == "__main__":
    main()
