"""Many sessions in one process: ``python -m scripts.benches.programs.hosted FIRST COUNT``.

It logs ``bench.opened`` when it begins to start the sessions, and ``bench.ready`` when all are.
"""

from __future__ import annotations

import asyncio
import signal
import sys

import structlog

from context_builder import log
from context_builder.cli.command import quick_loop
from context_builder.concurrency import SWITCH_INTERVAL
from context_builder.fleet.process import collect_seldom
from context_builder.settings.settings import load_settings
from context_builder.wiring.app import open_app


async def host(first: int, count: int) -> None:
    """Run the sessions on one host, as a worker of a fleet does, until SIGTERM."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    log.configure("warning", "json")
    told = structlog.get_logger("bench")
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with open_app(load_settings(), many=True) as app:
        await app.warm_up()
        async with app.host() as shared, asyncio.TaskGroup() as tasks:
            collecting = tasks.create_task(collect_seldom())
            told.warning("bench.opened")
            sessions = [app.session(f"hosted-{number}", host=shared) for number in range(first, first + count)]
            for session in sessions:
                tasks.create_task(session.serve())
            for session in sessions:
                await session.ready.wait()
            told.warning("bench.ready")
            await stop.wait()
            for session in sessions:
                session.stop()
            collecting.cancel()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=quick_loop()) as runner:  # as in a fleet
        runner.run(host(int(sys.argv[1]), int(sys.argv[2])))
