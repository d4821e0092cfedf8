"""What sessions work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from context_builder.analysis.analyst import Analyst
from context_builder.archive.archive import Archive
from context_builder.clock import Clock, SystemClock
from context_builder.memory.tenant import TenantMemory


@dataclass(frozen=True, slots=True)
class Parts:
    """What a session works with, shared by all sessions of a process.

    ``last_resort`` answers when a failing analyst cannot be waited for. ``memory`` is fed when the rules say so.
    """

    analyst: Analyst
    last_resort: Analyst
    archive: Archive
    count_tokens: Callable[[str], int]
    clock: Clock = field(default_factory=SystemClock)
    memory: TenantMemory | None = None
