"""Lineage is the part of a session's history that a process knows, and so may write over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Final, Self

import orjson

from context_builder.session.store.commit import HeldRevision
from context_builder.values import value

ANCESTORS: Final = 32
"""So many earlier writers are named. What Redis holds of one before them counts as a stranger's."""


@value
class Lineage:
    """Remembers the commits that this process, the ``writer``, made or continued from.

    Redis may fall back to an earlier commit: its last second is lost, a replica promoted, a copy restored. A process
    may then write again all that it remembers, but only over what it knows: nothing at all, its own commits, and those
    of its ``ancestors``, each up to the last revision of theirs that it continued from. What anybody else wrote it does
    not remember; and a session that was forgotten since it was loaded must not come back.

    ``latest`` is the newest commit known to have been in Redis, ``base`` the one that the next commit builds on.
    """

    writer: bytes
    latest: HeldRevision = field(default_factory=HeldRevision)
    base: HeldRevision = field(default_factory=HeldRevision)
    ancestors: Mapping[bytes, int] = field(default_factory=dict)

    def loaded(self, held: HeldRevision, ancestors: bytes | None) -> Self:
        """Continue from what Redis holds, whose checkpoint names these ``ancestors``."""
        named = {str(writer).encode(): int(last) for writer, last in orjson.loads(ancestors or b"[]")}
        if held.by:
            named.pop(held.by, None)  # so that it becomes the newest
            named[held.by] = held.revision
        newest = dict([*named.items()][-ANCESTORS:])
        return replace(self, latest=held, base=held, ancestors=newest)

    def committed(self, revision: int) -> Self:
        """Note that Redis holds this process's commit ``revision``."""
        held = HeldRevision(revision, self.writer, self.latest.mark)
        return replace(self, latest=held, base=held)

    def rebased(self, held: HeldRevision) -> Self:
        """Let the next commit build on what Redis fell back to."""
        return replace(self, base=held)

    def knows(self, held: HeldRevision) -> bool:
        """Return whether only this process and those it continued from had a part in what Redis holds."""
        if self.was_forgotten(held):
            return False
        return held.by in (b"", self.writer) or held.revision <= self.ancestors.get(held.by, -1)

    def was_forgotten(self, held: HeldRevision) -> bool:
        """Return whether the session was forgotten since it was loaded; a Redis that fell back has an earlier mark."""
        return not {*held.mark.split()[:1]} <= {*self.latest.mark.split()}

    def is_behind(self, held: HeldRevision) -> bool:
        """Return whether Redis, which holds what this process :meth:`knows`, has lost commits that it had."""
        if held.by == self.writer:
            return self.latest.by == self.writer and held.revision < self.latest.revision
        return held != self.latest

    def encode(self) -> bytes:
        """Return the ancestors, oldest first, as the checkpoint names them."""
        return orjson.dumps([[writer.decode(), last] for writer, last in self.ancestors.items()])
