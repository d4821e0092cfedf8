"""Redis comes back without its last moments: from a copy, empty, or as a replica that lagged behind.

What it then has not any more is known exactly. A daemon that goes on has to write again what it had committed; where
it is dead, or another one took its place in the meantime, only what Redis still has is left. Either way the listener
sends again what it can.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Awaitable, Callable
from typing import Final

from context_builder.session.store.recovery import SECONDS
from scripts.campaign.account import FallBack
from scripts.campaign.daemon import LEASE
from scripts.campaign.lane import Lane
from scripts.campaign.redis_host import EMPTY, Moment

LATEST: Final = SECONDS - 0.8
"""Seconds: a moment further back than this may be beyond what a daemon remembers of its commits."""


async def redis_falls_back(lane: Lane) -> None:
    moment = await _moment(lane)
    await lane.pause(1.7)
    fall = await _fall_back(lane, lambda: lane.host.fall_back(_not_too_old(lane, moment)))
    await _its_owner_goes_on(lane, fall)


async def redis_falls_back_and_the_daemon_is_killed(lane: Lane) -> None:
    moment = await _moment(lane)
    await lane.pause(3)
    fall = await _fall_back(lane, lambda: lane.host.fall_back(moment), killed=True)
    await lane.someone_else_goes_on(fall)
    await lane.revive()


async def redis_falls_back_while_its_owner_is_frozen(lane: Lane) -> None:
    """Nobody takes over: the owner wakes up, perhaps after its lease ran out, and has it all."""
    moment = await _moment(lane)
    await lane.pause(1.5)
    lane.daemon.signal(signal.SIGSTOP)
    fall = await _fall_back(lane, lambda: lane.host.fall_back(_not_too_old(lane, moment)))
    await lane.pause(LEASE + 1)
    lane.daemon.signal(signal.SIGCONT)
    await _its_owner_goes_on(lane, fall)


async def redis_falls_back_and_another_takes_over(lane: Lane) -> None:
    """The frozen owner wakes up while another one is there, or has been: nothing of that one's may be undone."""
    moment = EMPTY if lane.rng.random() < 0.3 else await _moment(lane)
    await lane.pause(3)
    frozen, lane.daemon = lane.daemon, lane.new_daemon()
    frozen.signal(signal.SIGSTOP)
    fall = await _fall_back(lane, lambda: lane.host.fall_back(moment))
    lane.daemon.start(*(["--takeover"] if lane.rng.random() < 0.5 else []))
    await lane.published_again()
    await lane.someone_else_goes_on(fall)
    await lane.visible_after()
    leaves = lane.rng.random() < 0.7
    if leaves:
        lane.daemon.signal(signal.SIGTERM)
        await lane.daemon.ended(lane.patience)
        await lane.pause(1)
    frozen.signal(signal.SIGCONT)
    await lane.must_end(frozen, "an owner whose session another one had continued")
    await lane.revive()


async def replica_promoted(lane: Lane) -> None:
    """It lags behind, and what it has not is lost; or both change roles in order, and nothing is."""
    async with lane.host.replicated() as replica:
        if lane.rng.random() < 0.3:
            await lane.host.fail_over(replica)
            await lane.published_again()
            return
        async with replica.link.stalled():
            lagging = time.monotonic()
            await lane.pause(1.5)
            if time.monotonic() - lagging > LATEST:  # on a machine that stood still
                return
            fall = await _fall_back(lane, lambda: lane.host.promote(replica))
        await _its_owner_goes_on(lane, fall)


async def _moment(lane: Lane) -> Moment:
    """One at which some messages wait to be read: after Redis fell back to it, they wait again."""
    lane.daemon.signal(signal.SIGSTOP)
    await lane.pause(0.5)
    moment = lane.host.moment()
    lane.daemon.signal(signal.SIGCONT)
    return moment


def _not_too_old(lane: Lane, moment: Moment) -> Moment:
    """On a machine that stood still for too long, the present moment."""
    return moment if time.monotonic() - moment.at < LATEST else lane.host.moment()


async def _fall_back(lane: Lane, happens: Callable[[], Awaitable[None]], *, killed: bool = False) -> FallBack:
    """Let it happen while nothing is under way; with the daemon ``killed`` at that moment, if it is to be."""
    async with lane.listener.silent(), lane.link.stalled():
        before = await lane.places()
        await happens()
        if killed:
            await lane.kill()
        after = await lane.places()
    return lane.fell_back(before, after)


async def _its_owner_goes_on(lane: Lane, fall: FallBack) -> None:
    """The same daemon writes again what it had committed."""
    back = time.monotonic()
    again = lane.listener.sent.take_back(fall.unread)
    await lane.published_again()
    lane.tally.after_redis.append(time.monotonic() - back)
    await lane.listener.repeat(again)
