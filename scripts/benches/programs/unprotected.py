"""The daemon as it could be if nothing ever failed: ``python -m scripts.benches.programs.unprotected run SESSION_ID``.

Deliveries are popped, not acknowledged; no message is recognized as taken in before; a commit writes the same state
and checkpoint, but checks neither lease nor revision nor deliveries. Only the bench knows how to leave this out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from context_builder.__main__ import main
from context_builder.session.inbox import Batch, Decoded, Inbox
from context_builder.session.messages import message
from context_builder.session.messages.message_index import MessageIndex
from context_builder.session.store.deliveries import ListRead
from context_builder.session.store.recovery import CommitHistory
from context_builder.session.store.store import SessionStore
from scripts.alteration import alter_commit, replace

PARTS = {
    "if present ~= token then": "if false then",
    "local present = redis.call('GET', owner)": "local present = token",
    "redis.call('PEXPIRE', owner, lease_ms)": "",
    "redis.call('HMGET', checkpoint, 'revision', 'by', 'position')": "{from_revision, from_writer}",
    "(redis.call('HGET', forgotten, forgotten_field) or '') ~= from_mark": "false",
    "  if acknowledged > 0 then": "  if false then",
    "  redis.call('LTRIM', input, 0, -(acknowledged + 1))": "",
    "  send('SADD', seen, identities)": "  at = at + identities",
    "  if identities > 0 then": "  if false then",
}
"""Of ``commit.lua``: what protects, and what is left in its place."""


def pop_instead_of_reading() -> None:
    async def pop(self: SessionStore) -> ListRead:
        popped: Any = await self._client.rpop(self.keys.input, self._rules.read_batch)
        return ListRead(popped or [], b"")

    async def pop_next(self: SessionStore, seconds: int) -> bytes | None:
        popped: Any = await self._client.brpop([self.keys.input], seconds)
        return popped[1] if popped else None

    replace(SessionStore, "read_input", pop)
    replace(SessionStore, "next_input", pop_next)


def recognize_nothing() -> None:
    async def all_of_them(self: Inbox, decoded: Sequence[Decoded], begin: bytes) -> Batch:
        del begin
        index = MessageIndex(self._store.keys.session_id, {}, self.last_id)
        events = [event for each in decoded if each.held and (event := index.take(each.held))]
        self.last_id = index.last_id
        return Batch([each.raw for each in decoded], events, [])

    replace(CommitHistory, "keep", lambda *_: None)
    replace(Inbox, "_batch", all_of_them)
    replace(message, "identity_of", lambda *_: b"?")


if __name__ == "__main__":
    alter_commit(PARTS)
    pop_instead_of_reading()
    recognize_nothing()
    main()
