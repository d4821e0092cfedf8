"""The daemon with a fault built in, so that the campaign can be seen to fail: ``mutant NAME run SESSION``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence

from redis.asyncio import Redis
from redis.commands.core import AsyncScript

from context_builder.__main__ import main
from context_builder.session import store
from context_builder.session.store import SessionStore


def acknowledge_before_commit() -> None:
    """Deliveries leave the list when they are read, as with a plain RPOP."""
    read = SessionStore.read_input

    async def take(self: SessionStore) -> list[bytes]:
        raw = await read(self)
        if raw:
            await self._client.ltrim(self.keys.input, 0, -len(raw) - 1)
        return raw

    SessionStore.read_input = take  # type: ignore[method-assign]


def skip_the_fence() -> None:
    """Whoever commits, and on top of whatever: nobody's commit is refused."""
    original = store.script

    def unfenced(client: Redis, name: str) -> AsyncScript:
        script = original(client, name)
        if name != "commit":
            return script
        source = str(script.script)
        for check in ("present ~= token", "revision ~= from_revision"):
            if check not in source:
                raise ValueError(f"commit.lua has no check {check!r} any more")
            source = source.replace(check, "false")
        return client.register_script(source)

    store.script = unfenced


def forget_identities() -> None:
    """Nothing is recognized as taken in before."""

    async def never(self: SessionStore, identities: Sequence[bytes]) -> list[bool]:
        return [False] * len(identities)

    SessionStore.are_known = never  # type: ignore[method-assign]


MUTATIONS: Mapping[str, Callable[[], None]] = {
    "acknowledge-before-commit": acknowledge_before_commit,
    "skip-the-fence": skip_the_fence,
    "forget-identities": forget_identities,
}

if __name__ == "__main__":
    MUTATIONS[sys.argv.pop(1)]()
    main()
