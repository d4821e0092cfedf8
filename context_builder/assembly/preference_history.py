"""The preference history combines stored preferences with those stated in messages that nobody has read yet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Final

import structlog

from context_builder.assembly.govern import RedactionPolicy
from context_builder.assembly.session_state import LONG_AGO
from context_builder.clock import moment
from context_builder.concurrency import Background, beside_loop
from context_builder.memory.memory import Memory
from context_builder.memory.preferences import KIND, MOST, WITHDRAWN, Preference, stated_preferences

__all__ = ["KIND", "Preference", "stated_preferences"]

log = structlog.get_logger(__name__)

PreferenceReader = Callable[[Sequence[Memory]], Awaitable[Sequence[Sequence[Preference]]]]
"""Finds what each of some messages states, such as a model does; what it raises is answered by the patterns."""

FindPreferences = Callable[[str, Sequence[Memory]], Awaitable[Sequence[Sequence[Preference]]]]
"""Finds the preferences that each of a tenant's messages states."""

READ_AT_ONCE: Final = 50
"""Newest messages that a reader is asked about in one call; older ones are in the next."""

_LONGEST_READ: Final = 4_000
"""Characters of a message that are looked through."""

_PATTERN_TIME: Final = 0.03
"""Seconds that patterns take in one turn; what they read then is not read again, so later turns read the rest."""

_KEPT: Final = 20_000
"""Messages of which is known what a reader found in them."""

_Name = tuple[str, str, int]
"""A message: its tenant, its id and the hash of its text."""


@lru_cache(maxsize=4_096)
def _by_patterns(text: str) -> Sequence[Preference]:
    return stated_preferences(text)


async def by_patterns(_: str, messages: Sequence[Memory]) -> Sequence[Sequence[Preference]]:
    """Return the preferences that known patterns find; the newest messages, which are the last, are read first."""

    def read() -> list[Sequence[Preference]]:
        end = time.monotonic() + _PATTERN_TIME
        texts = (message.text[:_LONGEST_READ] for message in reversed(messages))
        return [_by_patterns(text) if time.monotonic() < end else () for text in texts][::-1]

    return await beside_loop(read) if messages else []


class PreferenceHistory:
    """Asks a ``reader`` about messages, each once, beside the turns; until it has answered, patterns find preferences.

    A turn waits ``patience`` seconds for it at most.
    """

    def __init__(
        self, reader: PreferenceReader, policy: RedactionPolicy, background: Background, patience: float
    ) -> None:
        self._reader = reader
        self._policy = policy
        self._background = background
        self._patience = patience
        self._found: dict[_Name, Sequence[Preference]] = {}
        self._asked: set[_Name] = set()

    async def __call__(self, tenant_id: str, messages: Sequence[Memory]) -> Sequence[Sequence[Preference]]:
        """Return the preferences that the messages state."""
        named = [((tenant_id, one.id, hash(one.text)), one) for one in messages]
        if unread := [(name, one) for name, one in named if name not in self._found and name not in self._asked]:
            await self._begin(dict(unread[-READ_AT_ONCE:]))
        by_words = await by_patterns(tenant_id, messages)
        return [self._found.get(name, stated) for (name, _), stated in zip(named, by_words, strict=True)]

    async def _begin(self, unread: Mapping[_Name, Memory]) -> None:
        self._asked |= unread.keys()
        done = asyncio.Event()
        if not self._background.start("read preferences", self._read(unread, done)):
            self._asked -= unread.keys()
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                await done.wait()

    async def _read(self, unread: Mapping[_Name, Memory], done: asyncio.Event) -> None:
        try:
            shown = await asyncio.to_thread(self._shown, unread)  # redacting may take seconds
            found = await self._reader(list(shown.values()))
            read = {name: _checked(preferences) for name, preferences in zip(shown, found, strict=True)}
            self._found |= {name: read.get(name, ()) for name in unread}
            for name in list(self._found)[:-_KEPT]:
                del self._found[name]
        except Exception as error:  # noqa: BLE001 a reader of any kind; the patterns answer, and it is asked again
            log.warning("preferences.failed", error=type(error).__name__)
        finally:
            self._asked -= unread.keys()
            done.set()

    def _shown(self, unread: Mapping[_Name, Memory]) -> dict[_Name, Memory]:
        """Return the messages as they may be shown, without those that may not."""
        redacted = ((name, one, self._policy.text(one.text[:_LONGEST_READ]).text) for name, one in unread.items())
        return {name: Memory(one.id, text, time=one.time) for name, one, text in redacted if text is not None}


def _checked(preferences: Iterable[Preference]) -> Sequence[Preference]:
    stated = tuple(preferences)[:MOST]
    if not all(isinstance(one, Preference) for one in stated):
        raise TypeError("a reader found something that is no preference")
    return stated


def held(stored: Iterable[Memory], stated: Iterable[tuple[Memory, Sequence[Preference]]], user_id: str) -> list[Memory]:
    """Return the preferences that hold after all that is ``stored`` and ``stated``, the newest first."""
    events = [*_stored(stored), *_stated_in(stated, user_id)]
    holding: dict[str, Memory] = {}
    for preference, memory in sorted(events, key=lambda event: moment(event[1].time) or LONG_AGO):
        if preference.withdrawn:
            for topic in [topic for topic, one in holding.items() if preference.withdraws(one.text)]:
                del holding[topic]
        else:
            holding.pop(preference.topic, None)
            holding[preference.topic] = memory
    return list(holding.values())[::-1]


def _stored(memories: Iterable[Memory]) -> Iterator[tuple[Preference, Memory]]:
    for memory in memories:
        preference = Preference.read(str(memory.metadata.get(WITHDRAWN) or memory.text))
        topic = memory.metadata.get("topic") or preference.topic
        yield replace(preference, topic=str(topic), withdrawn=WITHDRAWN in memory.metadata), memory


def _stated_in(
    stated: Iterable[tuple[Memory, Sequence[Preference]]], user_id: str
) -> Iterator[tuple[Preference, Memory]]:
    for message, preferences in stated:
        for preference in preferences:
            memory = preference.as_memory(user_id, source=message.id, time=message.time)
            yield preference, replace(memory, session_id=message.session_id, speaker=message.speaker)
