"""Archive and memory refuse a row for good: it must not hold up what follows, nor get lost."""

from __future__ import annotations

from typing import Final

from scripts.campaign.lane import Lane

_SQLSTATES: Final = ("22001", "22003", "22021", "22P02", "23502", "23514", "23P01")
"""What PostgreSQL says of a row that it will never take: data exceptions and violated constraints."""


async def receivers_refuse_a_row(lane: Lane) -> None:
    """The archive refuses the next summary, the memory a message in it; both go on with what comes after."""
    sqlstate = lane.rng.choice(_SQLSTATES)
    revisions = await _applied_revisions(lane)
    seq = await _refuse_next_summary(lane, sqlstate)
    delivery = lane.listener.compose(plain=True)
    await lane.world.refuse(lane.session_id, "memory", delivery.token, sqlstate)
    await lane.listener.push([delivery])

    async def left() -> int:
        """What is summarized before the message is, for as long as something is not refused yet."""
        places = await lane.places()
        was_revised = _revisions(lane) != revisions  # which may take the refused summary, since it no longer holds
        if delivery.token in places.unremembered and (seq in places.unarchived or was_revised):
            return 0
        return 1 + places.left

    await lane.work_off(left, "what is refused for good is a dead letter", poll=0.1)


async def _applied_revisions(lane: Lane) -> tuple[int, int, int]:
    """How often something was revised until now, once all of that is applied, and what came after it is summarized.

    On a busy machine a revision waits in the input, and would take the refused summary unnoticed.
    """
    revisions, last = _revisions(lane), lane.listener.compose(plain=True)
    await lane.listener.push([last])

    async def left() -> int:
        places = await lane.places()
        is_there = any(last.token in place for place in (places.waiting, places.buffer, places.pending))
        return 1 + places.left if is_there else 0

    await lane.work_off(left, "what was revised before a refusal is summarized", poll=0.1)
    return revisions


def _revisions(lane: Lane) -> tuple[int, int, int]:
    """How often something was corrected, renamed or struck."""
    sent = lane.listener.sent
    return sent.corrected, sent.renamed, len(sent.strikes)


async def _refuse_next_summary(lane: Lane, sqlstate: str) -> int:
    """The number of the next summary, which is refused: it was not given to any before."""
    while True:
        seq = (await lane.places()).summary_seq + 1
        await lane.world.refuse(lane.session_id, "archive", str(seq), sqlstate)
        if (await lane.places()).summary_seq < seq:
            return seq
