"""``./scripts/faults``: run the campaign, print its table; exit status 0 for proof that nothing was lost or doubled."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import math
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from context_builder.cli.signals import stopping_signals
from scripts.campaign.deck import Decks
from scripts.campaign.faults import FAULTS, decks, inflict
from scripts.campaign.fleet import PATIENCE as FLEET_PATIENCE
from scripts.campaign.fleet import FleetPlan, run_fleet
from scripts.campaign.fleet_faults import FLEET_FAULTS, befall
from scripts.campaign.fleet_faults import deck as fleet_deck
from scripts.campaign.lane import PATIENCE, Lane, Plan
from scripts.campaign.mutant import MUTATIONS
from scripts.campaign.redis_host import RedisHost
from scripts.campaign.tally import Tally
from scripts.campaign.world import World

SERVER_VARIABLE = "TEST_REDIS_SERVER"
"""Names the program that ``tests.services.redis_server`` starts."""

KILLS_A_SESSION = 20

MUTANTS_SESSIONS, MUTANTS_MESSAGES = 20, 300
"""Few sessions in which much is said, so that a fault of a fleet's worker shows soon."""

SECONDS_A_FLEET_KILL = 4.5
"""About so long a kill takes in a fleet, with what else happens in it."""

PROGRESS_SECONDS = 10.0


def main() -> None:
    options = _options()
    tally = Tally(options.seed)
    try:
        with suppress(asyncio.CancelledError):
            asyncio.run(_interruptible(options, tally))
    finally:  # also of a campaign that broke by itself, what it found
        tally.seconds = time.monotonic() - tally.started
        if options.json:
            print(json.dumps(tally.as_json(), indent=2))
        else:
            tally.print()
    if tally.unproven:
        print(f"./scripts/faults: {tally.unproven}", file=sys.stderr)
    sys.exit(tally.status)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./scripts/faults", description="Breaks everything at random and accounts for every message."
    )
    parser.add_argument("--minutes", type=float, help="end after this long (default: 5, without --kills)")
    parser.add_argument("--kills", type=int, help="end after so many SIGKILLs of the daemon")
    parser.add_argument("--messages-per-kill", type=int, default=100)
    parser.add_argument("--lanes", type=int, default=2, help="sessions side by side")
    parser.add_argument("--only", help="no fault but this one")
    parser.add_argument("--workers", type=int, default=3, help="with --fleet: workers (3)")
    parser.add_argument("--sessions", type=int, default=60, help="with --fleet: sessions (60)")
    parser.add_argument(
        "--patience", type=float, help="seconds within which all must recover; more on a busy machine (40; a fleet: 60)"
    )
    parser.add_argument("--seed", default=str(time.time_ns() % 1_000_000), help="repeats a run's choices")
    built = parser.add_mutually_exclusive_group()
    parser.add_argument("--fleet", action="store_true", help="three workers, 60 sessions and two Redis servers")
    built.add_argument("--hosted", action="store_true", help="run sessions as a process with many of them does")
    built.add_argument("--mutation", choices=MUTATIONS, help="build this fault into the daemon; the campaign must fail")
    parser.add_argument("--server", help="program to run as Redis, such as /usr/bin/valkey-server")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args()
    if options.mutation is not None and MUTATIONS[options.mutation].of_a_fleet:
        options.fleet = True
        options.sessions, options.messages_per_kill = MUTANTS_SESSIONS, MUTANTS_MESSAGES
    known = FLEET_FAULTS if options.fleet else FAULTS
    if options.only is not None and options.only not in known:
        parser.error(f"--only: one of {', '.join(known)}")
    if options.minutes is None:
        options.minutes = 5 if options.kills is None else math.inf
    if options.server is not None:
        os.environ[SERVER_VARIABLE] = options.server
    return options


async def _interruptible(options: argparse.Namespace, tally: Tally) -> None:
    """The campaign, until Ctrl-C or SIGTERM; no process is left behind."""
    campaign = asyncio.create_task(_campaign(options, tally), name="campaign")

    def interrupt() -> None:
        tally.interrupted = True  # for a lane that misses being cancelled: redis-py may swallow it
        campaign.cancel()

    with stopping_signals(interrupt):
        await campaign


async def _campaign(options: argparse.Namespace, tally: Tally) -> None:
    if options.fleet:
        await _fleet_campaign(options, tally)
        return
    total = options.kills or math.inf
    kills = math.ceil(min(KILLS_A_SESSION, total / options.lanes))
    plan = Plan(
        seed=options.seed,
        kills=kills,
        messages=kills * options.messages_per_kill,
        rate=options.messages_per_kill / 1.8,  # a kill takes about so many seconds
        deadline=time.monotonic() + options.minutes * 60,
        mutation=options.mutation,
        hosted=options.hosted,
        patience=options.patience or PATIENCE,
    )
    sessions = itertools.count(1)

    async def lane(dealt: Decks) -> None:
        while (
            tally.kills < total
            and time.monotonic() < plan.deadline
            and not (tally.interrupted or (plan.mutation and tally.has_findings))
        ):
            session = next(sessions)
            async with RedisHost.opened(world.folder / f"session-{session}") as host:
                await Lane(world, host, tally, plan, session, dealt).run(inflict)

    async with World.opened(options.lanes) as world, _told(tally), asyncio.TaskGroup() as lanes:
        for dealt in decks(options.seed, options.lanes, _faults(options)):
            lanes.create_task(lane(dealt))


async def _fleet_campaign(options: argparse.Namespace, tally: Tally) -> None:
    kills = options.kills or math.inf
    seconds = SECONDS_A_FLEET_KILL * kills if options.kills else options.minutes * 60
    messages = options.messages_per_kill * (options.kills or math.ceil(seconds / SECONDS_A_FLEET_KILL))
    plan = FleetPlan(
        seed=options.seed,
        kills=kills,
        messages=messages,
        rate=messages / options.sessions / seconds,
        mutation=options.mutation,
        deadline=time.monotonic() + options.minutes * 60,
        workers=options.workers,
        sessions=options.sessions,
        patience=options.patience or FLEET_PATIENCE,
    )
    async with World.opened(1) as world, _told(tally):
        await run_fleet(world, tally, plan, fleet_deck(options.seed, _faults(options)), befall)


def _faults(options: argparse.Namespace) -> Sequence[str]:
    """Those alone that are wanted, or that a mutation shows in; none for all."""
    if options.only is not None:
        return [options.only]
    return MUTATIONS[options.mutation].shown_by if options.mutation is not None else []


@asynccontextmanager
async def _told(tally: Tally) -> AsyncIterator[None]:
    """Tell of the progress inside."""
    telling = asyncio.create_task(_tell(tally), name="progress")
    try:
        yield
    finally:
        telling.cancel()


async def _tell(tally: Tally) -> None:
    while True:
        await asyncio.sleep(PROGRESS_SECONDS)
        print(tally.line(), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
