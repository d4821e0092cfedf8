"""The page shows a dead letter with its origin, the reason, its beginning, and a stable name."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from redis.asyncio import Redis

from context_builder.session.store.dead_letters import ORIGINS, DeadLetter, DeadLetters, Origin

EXCERPT: Final = 400
MOST_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class ShownLetter:
    """Holds a dead letter of a session. ``name`` is a hash: numbers change when another letter is put back."""

    origin: Origin
    name: str
    letter: DeadLetter

    @property
    def begins(self) -> str:
        return self.letter.begins(self.origin, EXCERPT)


async def letters_of(redis: Redis, session_id: str) -> list[ShownLetter]:
    """Return the session's dead letters, the newest of each origin first."""
    found = []
    for origin in ORIGINS:
        letters = await DeadLetters(redis, session_id, origin).all()
        found += [ShownLetter(origin, _name(origin, one), one) for one in reversed(letters)]
    return found


async def put_back(redis: Redis, session_id: str, name: str) -> int:
    """Put a letter back to where it came from, or with ``all`` every one that was kept whole; return how many."""
    moved = 0
    for one in reversed(await letters_of(redis, session_id)):
        if (name == "all" and one.letter.is_whole) or name == one.name:
            moved += await DeadLetters(redis, session_id, one.origin).requeue(one.letter)
    return moved


def _name(origin: Origin, letter: DeadLetter) -> str:
    return sha256(origin.encode() + letter.encode()).hexdigest()[:32]
