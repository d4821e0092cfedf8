"""A session is forgotten for good, whether its daemon runs or stands still; what it says next is a new conversation."""

from __future__ import annotations

import asyncio
import signal
import time
from typing import Final

from context_builder.session.keys import SESSIONS, SUMMARY_SEQS
from scripts.campaign.audit import Excused, Findings, Places
from scripts.campaign.daemon import LEASE
from scripts.campaign.lane import Lane

_AWAY: Final = "PostgreSQL at "
"""What ``forget`` says of an archive or a memory that cannot be reached."""

_NOTHING_LEFT: Final = "no session"
"""What it says when an attempt that failed late had deleted everything."""

_UNANSWERED: Final = "did not say that it has left"
"""What ``forget`` says when an owner did not answer that may yet deliver something."""

_TAKES_BACK_LATER: Final = "could not take back"
"""What it says of an owner that answered while the archive was away."""


async def forgotten(lane: Lane) -> None:
    """Its owner runs, and must end."""
    async with lane.listener.silent():
        await _forget(lane)
        await lane.must_end(lane.daemon, "the owner of a forgotten session")
        await _nothing_is_left(lane, "its owner ended")
        _begin_anew(lane)
    await lane.revive()


async def forgotten_while_frozen(lane: Lane) -> None:
    """Its owner wakes up before or after its lease ran out, and must not bring anything back."""
    if lane.rng.random() < 0.5:  # so that it has seen the session begin
        await forgotten(lane)
        await lane.visible_after()
        await lane.pause(3)
    frozen = lane.daemon
    frozen.signal(signal.SIGSTOP)
    await asyncio.sleep(lane.rng.choice((lane.rng.uniform(0, LEASE), LEASE + 0.5)))
    async with lane.listener.silent():
        delivers = (await lane.places()).undelivered > 0
        is_advised = await _forget(lane, of_frozen=True)
        await _nothing_is_left(lane, "it was forgotten")
        _begin_anew(lane)
        lane.daemon = lane.new_daemon()
        if not delivers and lane.rng.random() < 0.5:
            await lane.revive()
        frozen.signal(signal.SIGCONT)
        await lane.must_end(frozen, "the frozen owner of a forgotten session")
        await _nothing_is_back(lane)
        if is_advised and delivers:
            await _forget(lane, again=True)
        await _nothing_is_delivered(lane, "its frozen owner woke up")
    await lane.revive()


async def _forget(lane: Lane, *, again: bool = False, of_frozen: bool = False) -> bool:
    """As people do, who try again when archive or memory is away. Whether they are told to do so once more, should an
    owner wake up, which only one that stands still may cause.
    """
    is_advised = False
    until = time.monotonic() + lane.patience
    while True:
        status, said = await _forget_once(lane)
        is_advised |= _UNANSWERED in said
        is_temporary = _AWAY in said or _TAKES_BACK_LATER in said
        if status == 0 or not is_temporary or time.monotonic() > until:
            break
        again = True
        await asyncio.sleep(0.5)
    is_excused = (of_frozen and is_advised) or (again and _NOTHING_LEFT in said)
    if (status != 0 and not is_excused) or (is_advised and not of_frozen):
        lane.tally.note(f"{lane.session_id}: forget ended with status {status}: {said}")
    return is_advised


async def _forget_once(lane: Lane) -> tuple[int | None, str]:
    """Exit status and output of the command."""
    command = await asyncio.create_subprocess_exec(
        *lane.command("forget", lane.session_id, "--yes"),
        cwd=lane.world.folder,
        env=lane.environ(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await command.communicate()
    return command.returncode, output.decode(errors="replace")


def _begin_anew(lane: Lane) -> None:
    """What is said from now on is another conversation."""
    lane.tally.forget_session(lane.listener.start_over())
    lane.excused = Excused()


async def _nothing_is_left(lane: Lane, context: str) -> None:
    """Of the session there is no key but the mark that it was forgotten, and nothing in archive and memory."""
    redis, left = lane.host.redis, Findings()
    left.returned = {key.decode() async for key in redis.scan_iter(f"*{lane.session_id}*") if not _is_mark(lane, key)}
    if await redis.zscore(SESSIONS, lane.session_id) is not None:
        left.returned.add(SESSIONS)
    if await redis.hexists(SUMMARY_SEQS, lane.session_id):
        left.returned.add(SUMMARY_SEQS)
    lane.tally.find(lane.session_id, left, f"{context}: still there")
    await _nothing_is_delivered(lane, context)


async def _nothing_is_back(lane: Lane) -> None:
    """Redis has no message, though perhaps a new conversation that has none yet."""
    places = await Places.read(lane.host.redis, lane.session_id)
    back = Findings(returned={*places.waiting, *places.taken_in})
    lane.tally.find(lane.session_id, back, "its frozen owner woke up")


async def _nothing_is_delivered(lane: Lane, context: str) -> None:
    left = Findings()
    if rows := await lane.world.archived(lane.session_id):
        left.returned.add(f"{len(rows)} archived summaries")
    if memories := await lane.world.remembered(lane.session_id):
        left.returned.add(f"{len(memories)} memories")
    lane.tally.find(lane.session_id, left, context)


def _is_mark(lane: Lane, key: bytes) -> bool:
    return key.decode() == lane.keys.owner
