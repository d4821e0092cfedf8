"""What a stream says is pushed to a session here, in order, each once, however long Redis is away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final

from context_builder.session.client import SessionClient, spoken
from context_builder.storage.redis_availability import until_available
from context_builder.transcript.live_speech import LiveSpeech
from context_builder.transcript.utterance import Utterance

QUIET: Final = 1.0
"""Seconds without a message after which what may still be joined with more is said as it is."""

GRACE: Final = 3.0
"""Seconds for which Redis is waited for when a stream has ended."""


class Feed:
    """Pushes what streams say to one session.

    ``pushed``, ``waiting`` (for Redis) and ``skipped`` count messages.
    ``on_skipped`` is told why a message of a stream could not be read, ``on_away`` that Redis is waited for.
    """

    def __init__(
        self, client: SessionClient, on_skipped: Callable[[str], None], on_away: Callable[[], None] = lambda: None
    ) -> None:
        self.pushed = self.skipped = self.waiting = 0
        self._client = client
        self._on_skipped = on_skipped
        self._on_away = on_away
        self._one_at_a_time = asyncio.Lock()
        self._number: int | None = None

    async def follow(self, messages: AsyncIterator[str | bytes], speech: LiveSpeech) -> None:
        """Push what the messages say until they end; also what was held back when they end, or this is cancelled."""
        waiting: asyncio.Future[str | bytes] | None = None
        try:
            while True:
                waiting = waiting or asyncio.ensure_future(anext(messages))
                done, _ = await asyncio.wait({waiting}, timeout=QUIET if speech.holds else None)
                if not done:
                    await self._push_whole(speech.rest())
                    continue
                try:
                    message = waiting.result()
                except StopAsyncIteration:
                    break
                finally:
                    waiting = None
                await self._push_whole(self._read(message, speech))
        finally:
            if waiting is not None:
                waiting.cancel()
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE):
                    await self.push(speech.rest())

    async def push(self, utterances: Sequence[Utterance]) -> None:
        """Push utterances, the oldest first, until Redis takes them; by its number, one that came twice counts once."""
        if not utterances:
            return
        self.waiting += len(utterances)
        async with self._one_at_a_time:
            attempts = 0
            async for attempt in until_available():
                attempts += 1
                if attempts == 2:
                    self._on_away()
                with attempt:
                    if self._number is None:
                        self._number = await self._client.next_number()
                    now = datetime.now().astimezone()
                    said = enumerate(utterances, self._number)
                    name = self._client.session_id
                    await self._client.push(*(spoken(name, number, one.speaker, one.text, now) for number, one in said))
            self._number = (self._number or 1) + len(utterances)
            self.pushed += len(utterances)
            self.waiting -= len(utterances)

    async def _push_whole(self, utterances: Sequence[Utterance]) -> None:
        """Push utterances; should this be cancelled meanwhile, it is only after Redis has answered, or ``GRACE``."""
        pushing = asyncio.ensure_future(self.push(utterances))
        try:
            await asyncio.shield(pushing)
        except asyncio.CancelledError:
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE):
                    await pushing
            raise

    def _read(self, message: str | bytes, speech: LiveSpeech) -> list[Utterance]:
        try:
            return speech.read(message)
        except ValueError as error:
            self.skipped += 1
            self._on_skipped(str(error))
            return []
