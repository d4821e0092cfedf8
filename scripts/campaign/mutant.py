"""The daemon with a fault built in, so that the campaign can be seen to fail: ``mutant NAME run SESSION``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from context_builder.__main__ import main
from context_builder.session.inbox import Inbox
from context_builder.session.recent import Recent
from context_builder.session.store import Read, SessionStore
from scripts.alteration import alter_commit, replace


@dataclass(frozen=True)
class Mutation:
    """What ``build`` changes in the daemon; ``shown_by`` these faults of the campaign, which finds it ``found_as``."""

    build: Callable[[], None]
    shown_by: tuple[str, ...]
    found_as: str


def acknowledge_before_commit() -> None:
    """Deliveries leave the list when they are read, as with a plain RPOP."""
    read, wait = SessionStore.read_input, SessionStore.next_input

    async def take(self: SessionStore) -> Read:
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
    replace(Recent, "__contains__", lambda self, identity: False)


def ask_about_nothing() -> None:
    """Every number counts as beyond all that were taken in."""
    replace(Inbox, "_is_beyond", lambda self, message: True)


MUTATIONS: Final[Mapping[str, Mutation]] = {
    "acknowledge-before-commit": Mutation(acknowledge_before_commit, ("kill while Redis stalls",), "lost"),
    "skip-the-fence": Mutation(skip_the_fence, ("taken over",), "lost"),
    "forget-identities": Mutation(forget_identities, ("kill",), "doubled"),
    "ask-about-nothing": Mutation(ask_about_nothing, ("kill",), "doubled"),
}

if __name__ == "__main__":
    MUTATIONS[sys.argv.pop(1)].build()
    main()
