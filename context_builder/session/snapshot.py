"""A session as a process finds it in Redis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Held:
    """The revision that Redis holds, and the lease under which it was committed."""

    revision: int
    by: bytes


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A session as Redis holds it."""

    revision: int
    fields: Mapping[str, bytes]
    pending: int
