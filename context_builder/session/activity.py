"""A session's activity tells people whether it is run, and whether anybody speaks in it. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

IDLE_AFTER: Final = 60.0
"""Seconds without a word after which a session that is run counts as idle."""


class SessionActivity(StrEnum):
    """Says how a session is, in the words that people read and search for.

    ``ASLEEP``: a fleet runs it again as soon as somebody speaks. ``NOT_RUNNING``: nobody takes in what is said.
    """

    LIVE = "live"
    IDLE = "idle"
    ASLEEP = "asleep"
    NOT_RUNNING = "not running"
    ENDED = "ended"

    @property
    def is_run(self) -> bool:
        """Return whether what is said is taken in."""
        return self in (self.LIVE, self.IDLE, self.ASLEEP)


def activity_of(
    *, is_owned: bool, is_asleep: bool, has_ended: bool, last_spoke: float | None, waiting: int, now: float
) -> SessionActivity:
    """Return the status at ``now``; moments are epoch seconds, ``waiting`` counts what was pushed and not taken in."""
    if is_owned:
        return (
            SessionActivity.LIVE if last_spoke is not None and now - last_spoke < IDLE_AFTER else SessionActivity.IDLE
        )
    if is_asleep:
        return SessionActivity.ASLEEP
    return SessionActivity.ENDED if has_ended and not waiting else SessionActivity.NOT_RUNNING
