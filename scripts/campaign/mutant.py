"""The daemon with a fault built in, so that the campaign can be seen to fail: ``mutant NAME run SESSION``, or a worker
of a fleet: ``mutant NAME fleet``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from context_builder.__main__ import main
from context_builder.analysis.evidence import EvidenceCheck, Findings
from context_builder.errors import StoreUnavailable
from context_builder.fleet.runner import SessionRunner
from context_builder.session.inbox import Inbox
from context_builder.session.relays import OutboxRelay
from context_builder.session.store.deliveries import ListRead
from context_builder.session.store.recovery import CommitHistory, Lineage, UnidentifiedDeliveries
from context_builder.session.store.store import SessionStore
from scripts.alteration import alter_commit, replace


@dataclass(frozen=True)
class Mutation:
    """What ``build`` changes in the daemon, or in a worker ``of_a_fleet``; ``shown_by`` these faults of the campaign,
    which finds it ``found_as``."""

    build: Callable[[], None]
    shown_by: tuple[str, ...]
    found_as: str
    of_a_fleet: bool = False


def acknowledge_before_commit() -> None:
    """Deliveries leave the list when they are read, as with a plain RPOP."""
    read, wait = SessionStore.read_input, SessionStore.next_input

    async def take(self: SessionStore) -> ListRead:
        taken = await read(self)
        if taken.items:
            await self._client.ltrim(self.keys.input, 0, -len(taken.items) - 1)
        return taken

    async def take_next(self: SessionStore, seconds: int) -> bytes | None:
        delivery = await wait(self, seconds)
        if delivery is not None:
            await self._client.ltrim(self.keys.input, 0, -2)
        return delivery

    replace(SessionStore, "read_input", take)
    replace(SessionStore, "next_input", take_next)


def skip_the_fence() -> None:
    """Whoever commits, and on top of whatever: nobody's commit is refused."""
    alter_commit({"present ~= token": "false", "(revision ~= from_revision or by ~= from_writer)": "false"})


def forget_identities() -> None:
    """Redis knows of nothing that was taken in before."""

    async def never(self: SessionStore, identities: Sequence[bytes]) -> list[bool]:
        return [False] * len(identities)

    replace(SessionStore, "are_known", never)
    replace(CommitHistory, "__contains__", lambda self, identity: False)


def ask_about_nothing() -> None:
    """Every number counts as beyond all that were taken in."""
    replace(Inbox, "_is_beyond", lambda self, message: True)


def end_with_a_relay() -> None:
    """What a receiver, a decoder or a pattern fails with ends the session."""

    async def fail(self: OutboxRelay, entry: bytes) -> None:
        await self._deliver(entry)

    replace(OutboxRelay, "_error_of", fail)
    replace(OutboxRelay, "_is_worth_another_try", lambda self, error: isinstance(error, StoreUnavailable))


def hold_on_to_refused_rows() -> None:
    """What is refused for good is tried for good, and what follows waits."""

    async def wait(self: OutboxRelay, entry: bytes, error: BaseException) -> None:
        raise StoreUnavailable("as if Redis were away") from error

    replace(OutboxRelay, "_give_up", wait)


def ignore_the_mark() -> None:
    """An owner that finds nothing takes that for a Redis that lost its data, also if the session was forgotten."""
    replace(Lineage, "was_forgotten", lambda self, held: False)


def write_over_strangers() -> None:
    """Whatever Redis holds counts as known, so an owner writes all that it remembers over it."""
    replace(Lineage, "knows", lambda self, held: True)


def expect_nothing_again() -> None:
    """What has no identity and comes again from a Redis that fell back is new."""
    replace(UnidentifiedDeliveries, "__contains__", lambda self, position: False)


def take_refusals_for_points() -> None:
    """A summary point need not say what the messages say that it quotes."""
    replace(EvidenceCheck, "check", lambda self, draft, replaced=None: Findings())


def leave_at_once() -> None:
    """A worker does not wait for a Redis that is away before its sessions leave."""
    replace(SessionRunner, "hand_over", SessionRunner.drain)


MUTATIONS: Final[Mapping[str, Mutation]] = {
    "acknowledge-before-commit": Mutation(acknowledge_before_commit, ("kill while Redis stalls",), "lost"),
    "skip-the-fence": Mutation(skip_the_fence, ("taken over",), "lost"),
    "forget-identities": Mutation(forget_identities, ("kill",), "doubled"),
    "ask-about-nothing": Mutation(ask_about_nothing, ("kill",), "doubled"),
    "end-with-a-relay": Mutation(end_with_a_relay, ("a receiver refuses a row for good",), "wrong"),
    "hold-on-to-refused-rows": Mutation(hold_on_to_refused_rows, ("a receiver refuses a row for good",), "wrong"),
    "ignore-the-mark": Mutation(ignore_the_mark, ("forgotten while frozen",), "returned"),
    "write-over-strangers": Mutation(write_over_strangers, ("Redis falls back, owner frozen and replaced",), "lost"),
    "expect-nothing-again": Mutation(expect_nothing_again, ("Redis falls back",), "doubled"),
    "leave-at-once": Mutation(leave_at_once, ("server falls back",), "wrong", of_a_fleet=True),
    "share-a-session": Mutation(skip_the_fence, ("worker frozen",), "wrong", of_a_fleet=True),
    "take-refusals-for-points": Mutation(take_refusals_for_points, ("model refuses in points",), "lost"),
}

if __name__ == "__main__":
    MUTATIONS[sys.argv.pop(1)].build()
    main()
