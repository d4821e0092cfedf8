"""A session as a process finds it in Redis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Held:
    """Which commit Redis holds: its ``revision`` and the writer it is ``by``, whose revisions only ascend.

    ``mark`` was left when the session was forgotten for the last time; empty when it never was.
    """

    revision: int = 0
    by: bytes = b""
    mark: bytes = b""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A session as Redis holds it."""

    revision: int
    fields: Mapping[str, bytes]
    pending: int
