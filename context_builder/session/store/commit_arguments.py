"""This module makes KEYS and ARGV of ``commit.lua``, in the script's order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from context_builder.session.config import SessionConfig
from context_builder.session.keys import FORGOTTEN, PACKAGE, PACKAGE_SIGNATURE, SESSIONS, Keys
from context_builder.session.messages.message_index import MOST_SPEAKERS
from context_builder.session.store.commit import Commit
from context_builder.session.store.delivery import sha1_of
from context_builder.session.store.lineage import Lineage
from context_builder.session.store.state_patch import StatePatch

RECENT: Final = 2000
"""So many identities are kept for a process that continues the session."""

RECENT_MS: Final = 60_000
"""Longer than what a Redis that falls back may lose."""


def commit_keys(keys: Keys) -> tuple[str, ...]:
    return (
        keys.owner,
        keys.input,
        keys.state,
        keys.conversation,
        keys.checkpoint,
        keys.pending,
        keys.seen,
        keys.outbox,
        keys.memory_outbox,
        keys.dead,
        keys.control,
        keys.recent,
        SESSIONS,
        FORGOTTEN,
        keys.message_index,
        keys.packages,
    )


def constant_arguments(lease: bytes, lineage: Lineage, rules: SessionConfig, keys: Keys) -> tuple[Any, ...]:
    """Return the arguments that come first: every commit under the lease has the same."""
    return (
        lease,
        int(rules.lease * 1000),
        lineage.writer,
        keys.forgotten_field,
        int(rules.state_ttl * 1000),
        int(rules.conversation_state_ttl * 1000),
        keys.session_id,
        rules.dead_letters_max,
        rules.dead_letters_bytes,
        RECENT,
        RECENT_MS,
    )


class CommitArguments(NamedTuple):
    """A commit that becomes revision ``target``, its change of the published state, and the deliveries that it
    acknowledges.
    """

    commit: Commit
    lineage: Lineage
    target: int
    patch: StatePatch | None
    acknowledged: Sequence[bytes]

    def encode(self) -> list[Any]:
        """Return the arguments that come after the constant ones."""
        commit, base = self.commit, self.lineage.base
        args: list[Any] = [
            base.revision,
            base.by,
            self.target,
            base.mark,
            self.lineage.latest.mark,
            *(self.patch.arguments() if self.patch else (b"", 0, b"", 0)),
            commit.conversation_state,
            commit.silent_for,
            len(self.acknowledged),
            *self._digests(),
            commit.begin,
            commit.end,
            commit.changes.pending_trimmed,
            commit.pending,
            int(commit.rewrite),
            PACKAGE if commit.changes.revised else b"",
            PACKAGE_SIGNATURE,
            commit.indexed_from,
            MOST_SPEAKERS,
        ]
        lists = commit.replayed + commit.lists if commit.rewrite else commit.lists
        for values in (
            self._checkpoint_fields(),
            [*commit.changes.dropped],
            lists.pending,
            commit.identities,
            lists.outbox,
            lists.memory_outbox,
            lists.dead,
            lists.index,
            [part for name, held in commit.changes.index_at_least.items() for part in (name, held)],
            lists.blanks,
        ):
            args.append(len(values))
            args.extend(values)
        return args

    def _digests(self) -> tuple[str, str]:
        """Return those of the oldest and of the newest delivery that is acknowledged."""
        if not self.acknowledged:
            return "", ""
        oldest = sha1_of(self.acknowledged[0])
        return oldest, oldest if len(self.acknowledged) == 1 else sha1_of(self.acknowledged[-1])

    def _checkpoint_fields(self) -> list[Any]:
        """Return the checkpoint's fields that are set, and their values."""
        commit, lineage = self.commit, self.lineage
        fields: list[Any] = ["head", commit.head, "order", commit.order] if commit.head else []
        if commit.rewrite or (commit.head and lineage.base.by != lineage.writer):
            fields += ("ancestors", lineage.encode())
        for name, value in commit.changes.encoded_fields().items():
            fields += (name, value)
        return fields
