"""The daemon as it could be if nothing ever failed: ``python -m scripts.benches.daemon.unprotected run SESSION_ID``.

Deliveries are popped, not acknowledged; no message is recognized as taken in before; a commit writes the same state
and checkpoint, but checks neither lease nor revision nor deliveries. Only the bench knows how to leave this out.
"""

from __future__ import annotations

from collections.abc import Sequence

from redis.asyncio import Redis
from redis.commands.core import AsyncScript

from context_builder.__main__ import main
from context_builder.session import message, store
from context_builder.session.inbox import Inbox
from context_builder.session.message import Message
from context_builder.session.recent import Recent
from context_builder.session.store import SessionStore

PARTS = {
    "if present ~= token then": "if false then",
    "local present = redis.call('GET', owner)": "local present = token",
    "redis.call('PEXPIRE', owner, lease_ms)": "",
    "local revision = redis.call('HGET', checkpoint, 'revision') or '0'": "local revision = from_revision",
    "if revision ~= to_revision then": "if from_revision ~= to_revision then",
    "  if acknowledged > 0 then": "  if false then",
    "  send('SADD', seen, tonumber(take()))": "  at = at + tonumber(take())",
}
"""Of ``commit.lua``: what protects, and what is left in its place."""


def commit_without_checks() -> None:
    original = store.script

    def bare(client: Redis, name: str) -> AsyncScript:
        script = original(client, name)
        if name != "commit":
            return script
        source = str(script.script)
        for part, left in PARTS.items():
            if part not in source:
                raise ValueError(f"commit.lua has no {part!r} any more")
            source = source.replace(part, left)
        return client.register_script(source)

    store.script = bare


def pop_instead_of_reading() -> None:
    async def pop(self: SessionStore) -> list[bytes]:
        popped = await self._client.rpop(self.keys.input, self._rules.read_batch)  # type: ignore[misc]
        return popped or []

    async def pop_next(self: SessionStore, seconds: int) -> bytes | None:
        popped = await self._client.brpop([self.keys.input], seconds)  # type: ignore[misc]
        return popped[1] if popped else None

    SessionStore.read_input = pop  # type: ignore[method-assign]
    SessionStore.next_input = pop_next  # type: ignore[method-assign]


def recognize_nothing() -> None:
    async def all_of_them(self: Inbox, messages: Sequence[Message]) -> list[Message]:
        del self
        return [*messages]

    Recent.keep = lambda *_: None  # type: ignore[method-assign]
    Inbox._unknown = all_of_them  # type: ignore[method-assign]
    message._identity = lambda *_: b""


if __name__ == "__main__":
    commit_without_checks()
    pop_instead_of_reading()
    recognize_nothing()
    main()
