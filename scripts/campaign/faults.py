"""What befalls a session: each fault ends with the daemon running and publishing again."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from scripts.campaign import fall_backs, forgetting, refusals
from scripts.campaign.daemon import LEASE
from scripts.campaign.deck import Deck, Decks
from scripts.campaign.lane import Lane
from scripts.campaign.model import ABSURD_FIGURES, REFUSALS_AS_POINTS
from scripts.campaign.world import REFUSED
from tests.services.model_server import UNANSWERED, WRONG_ANSWERS, Fault

_MODEL_FAULTS: Final[Sequence[str]] = (REFUSED, *UNANSWERED, Fault.HANG, *WRONG_ANSWERS, ABSURD_FIGURES)


def decks(seed: str, lanes: int, only: Sequence[str] = ()) -> list[Decks]:
    """For each lane the faults as often as they are to come, unless it is to be these ``only``."""
    faults = only or [name for name, (often, _) in FAULTS.items() for _ in range(often)]
    model_faults = Deck(_MODEL_FAULTS, f"{seed}/model")
    return [Decks(Deck(faults, f"{seed}/{lane}"), model_faults) for lane in range(lanes)]


async def inflict(lane: Lane) -> str:
    """Let the next fault happen; its name."""
    fault = lane.decks.faults.deal()
    _, befall = FAULTS[fault]
    if befall in _EXACT and (lane.listener.revises or await lane.is_vague()):
        fault, befall = "kill", kill
    if befall in _ALONE:
        async with lane.world.calm.alone():
            return await befall(lane) or fault
    async with lane.world.calm.beside():
        return await befall(lane) or fault


async def kill(lane: Lane) -> None:
    await lane.pause(0.8)
    await lane.kill()
    await lane.revive()


async def kill_while_starting(lane: Lane) -> None:
    await lane.kill()
    lane.daemon.start()
    await asyncio.sleep(lane.rng.uniform(0.5, 1.2))
    await lane.kill()
    await lane.revive()


async def kill_while_redis_stalls(lane: Lane) -> None:
    await lane.pause(0.3)
    async with lane.link.stalled():
        await lane.pause(0.5)
        await lane.kill()
    await lane.revive()


async def kill_while_answers_are_lost(lane: Lane) -> None:
    await lane.pause(0.3)
    async with lane.link.deaf():
        await lane.pause(0.3)
        await lane.kill()
    await lane.revive()


async def kill_while_archive_answers_are_lost(lane: Lane) -> None:
    if lane.world.archive_outage.locked():
        return await kill(lane)
    async with lane.world.archive_outage, lane.world.archive.deaf():
        await lane.pause(1.5)
        await lane.kill()
    await lane.revive()
    return None


async def redis_killed(lane: Lane) -> None:
    lane.host.kill()
    await lane.pause(1)
    await lane.host.start_again()
    back = time.monotonic()
    await lane.published_again()
    lane.tally.after_redis.append(time.monotonic() - back)


async def redis_and_daemon_killed(lane: Lane) -> None:
    lane.host.kill()
    await lane.pause(0.3)
    await lane.kill()
    lane.killed_at = None  # what counts here is when Redis is back
    lane.daemon.start()
    await lane.pause(0.5)
    await lane.host.start_again()
    back = time.monotonic()
    await lane.revive()
    lane.tally.after_redis.append(time.monotonic() - back)


async def connections_cut(lane: Lane) -> None:
    for _ in range(lane.rng.randint(1, 10)):
        lane.link.cut()
        await lane.pause(0.1)
    await lane.published_again()


async def connection_cut_inside_a_command(lane: Lane) -> None:
    for _ in range(lane.rng.randint(1, 5)):
        lane.link.cut_inside()
        await lane.pause(0.1)
    await lane.published_again()


async def answers_lost(lane: Lane) -> None:
    async with lane.link.deaf():
        await lane.pause(0.5)
    await lane.published_again()


async def network_stalls(lane: Lane) -> None:
    async with lane.link.stalled():
        await lane.pause(2)
    await lane.published_again()


async def network_stalls_past_the_lease(lane: Lane) -> None:
    async with lane.link.stalled():
        await asyncio.sleep(LEASE + lane.rng.uniform(0.2, 3))
    await lane.published_again()


async def archive_away(lane: Lane) -> None:
    if lane.world.archive_outage.locked():
        return await kill(lane)
    away = lane.world.archive.refusing() if lane.rng.random() < 0.5 else lane.world.archive.stalled()
    async with lane.world.archive_outage, away:
        await lane.pause(3)
        await lane.kill()
        await lane.revive()
    return None


async def model_fails(lane: Lane) -> str:
    """For all sessions. Messages are visible all the same."""
    if lane.world.model_outage.locked():
        await kill(lane)
        return "kill"
    async with lane.world.model_outage:
        return await _without_model(lane, measured=False)


async def model_fails_and_nothing_else_happens(lane: Lane) -> str:
    """How long messages take to be visible then."""
    return await _without_model(lane, measured=True)


async def model_refuses_in_points(lane: Lane) -> None:
    """They must not take the place of what was said."""
    async with lane.world.model_outage, lane.world.model_fault(REFUSALS_AS_POINTS):
        await lane.world.summary_asked_for(6)
        await lane.pause(1)
    await lane.published_again()


async def _without_model(lane: Lane, *, measured: bool) -> str:
    kind = lane.decks.model_faults.deal()
    async with lane.world.model_fault(kind):
        await asyncio.sleep(1)  # so that the daemon meets it
        for _ in range(20):
            seconds = await lane.visible_after()
            if measured:
                lane.tally.visible.append(seconds)
            await lane.pause(0.1)
    return f"model: {kind}"


async def paused_past_the_lease(lane: Lane) -> None:
    """Another daemon takes over; the paused one wakes up, must not commit, and must end."""
    paused, lane.daemon = lane.daemon, lane.new_daemon()
    paused.signal(signal.SIGSTOP)
    lane.daemon.start()
    await asyncio.sleep(LEASE)
    await lane.published_again()
    await lane.pause(0.5)
    paused.signal(signal.SIGCONT)
    await lane.must_end(paused, "a paused owner that was replaced")


async def taken_over(lane: Lane) -> None:
    """Two daemons at once, until the first learns that the second took the session."""
    replaced, lane.daemon = lane.daemon, lane.new_daemon()
    lane.daemon.start("--takeover")
    await lane.must_end(replaced, "an owner that was replaced")
    await lane.published_again()


Befall = Callable[[Lane], Awaitable[str | None]]

FAULTS: Final[Mapping[str, tuple[int, Befall]]] = {
    "kill": (52, kill),
    "kill while starting": (7, kill_while_starting),
    "kill while Redis stalls": (7, kill_while_redis_stalls),
    "kill while Redis' answers are lost": (7, kill_while_answers_are_lost),
    "kill while the archive's answers are lost": (4, kill_while_archive_answers_are_lost),
    "kill while the archive is away": (3, archive_away),
    "Redis killed": (3, redis_killed),
    "Redis and daemon killed": (2, redis_and_daemon_killed),
    "connections cut": (3, connections_cut),
    "connection cut inside a command": (3, connection_cut_inside_a_command),
    "answers lost": (2, answers_lost),
    "network stalls": (2, network_stalls),
    "network stalls past the lease": (1, network_stalls_past_the_lease),
    "model fails": (4, model_fails),
    "model fails, nothing else happens": (2, model_fails_and_nothing_else_happens),
    "model refuses in points": (1, model_refuses_in_points),
    "Redis falls back": (3, fall_backs.redis_falls_back),
    "Redis falls back, daemon killed": (2, fall_backs.redis_falls_back_and_the_daemon_is_killed),
    "Redis falls back, owner frozen": (2, fall_backs.redis_falls_back_while_its_owner_is_frozen),
    "Redis falls back, owner frozen and replaced": (3, fall_backs.redis_falls_back_and_another_takes_over),
    "replica promoted": (2, fall_backs.replica_promoted),
    "forgotten": (1, forgetting.forgotten),
    "forgotten while frozen": (2, forgetting.forgotten_while_frozen),
    "a receiver refuses a row for good": (2, refusals.receivers_refuse_a_row),
    "paused past the lease, replaced": (1, paused_past_the_lease),
    "taken over": (2, taken_over),
}
"""Each fault, how often it comes in comparison, and what happens."""

_ALONE: Final = {model_fails_and_nothing_else_happens}
_EXACT: Final = {befall for _, befall in FAULTS.values() if befall.__module__ == fall_backs.__name__}
"""What needs to know of each message where it is at one moment."""
