"""Ids of memories that are made in one place and recognized in another."""

from __future__ import annotations


def point_id(session_id: str, number: int, time: float) -> str:
    """The memory of a summary's point: its number and its time in epoch seconds.

    The time tells it from a point of the same number in another run of the session, after the first was swept.
    """
    return f"{session_id}:point:{number}:{time:.0f}"
