"""What a stream says is pushed to a session here, in order, each once, however long Redis is away."""

from __future__ import annotations

import asyncio
import itertools
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from context_builder.session.client import JsonObject, SessionClient, contributed, spoken
from context_builder.storage.redis_availability import until_available
from context_builder.transcript.live_speech import LiveSpeech
from context_builder.transcript.utterance import CorrectedUtterance, Heard, Utterance

QUIET: Final = 1.0
"""Seconds without a message after which what may still be joined with more is said as it is."""

GRACE: Final = 3.0
"""Seconds for which Redis is waited for when this is stopped."""

MOST_AHEAD: Final = 10_000
"""Messages that a stream is read ahead while Redis is away: who is not listened to hangs up, and what comes then is
lost."""


REMEMBERED: Final = 10_000
"""Utterances that may still be corrected."""


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
        self._numbers: OrderedDict[Hashable, int] = OrderedDict()

    async def follow(self, messages: AsyncIterator[str | bytes], speech: LiveSpeech) -> None:
        """Push what the messages say until they end; also what was held back when they end, or this is cancelled.

        Messages are listened to while earlier ones wait for Redis. Raises :class:`StoreError` when that refuses.
        """
        pushes: deque[asyncio.Task[None]] = deque()
        message: asyncio.Future[str | bytes] | None = None
        try:
            while True:
                message = message or asyncio.ensure_future(anext(messages))
                awaited: set[asyncio.Future[Any]] = {message, *itertools.islice(pushes, 1)}
                patience = QUIET if speech.holds else None
                done, _ = await asyncio.wait(awaited, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
                await self._settle(pushes, down_to=MOST_AHEAD)
                if not done:
                    self._begin(pushes, speech.rest())
                elif message in done:
                    try:
                        said = message.result()
                    except StopAsyncIteration:
                        break
                    finally:
                        message = None
                    self._begin(pushes, self._read(said, speech))
            self._begin(pushes, speech.rest())
            await self._settle(pushes, down_to=0)
        except BaseException:  # Ctrl-C, for example
            self._begin(pushes, speech.rest())
            if pushes:
                await asyncio.wait(pushes, timeout=GRACE)
            raise
        finally:
            if message is not None:
                message.cancel()
            for push in pushes:
                push.cancel()
            await asyncio.gather(*pushes, return_exceptions=True)

    def _begin(self, pushes: deque[asyncio.Task[None]], utterances: Sequence[Heard]) -> None:
        if utterances:
            self.waiting += len(utterances)
            now = datetime.now().astimezone()
            pushes.append(asyncio.create_task(self._push(utterances, now), name="push"))

    async def _settle(self, pushes: deque[asyncio.Task[None]], *, down_to: int) -> None:
        """Take out pushes that are done, and wait until no more than so many are left."""
        while pushes and (pushes[0].done() or len(pushes) > down_to):
            await asyncio.wait({pushes[0]})
            pushes.popleft().result()

    async def _push(self, utterances: Sequence[Heard], now: datetime) -> None:
        """Push utterances, the oldest first, until Redis takes them; by its number, one that came twice counts once."""
        async with self._one_at_a_time:  # which lets in whoever came first
            attempts = 0
            async for attempt in until_available():
                attempts += 1
                if attempts == 2:
                    self._on_away()
                with attempt:
                    if self._number is None:
                        self._number = await self._client.next_number()
                    await self._client.push(*self._messages(utterances, self._number, now))
            self._number = (self._number or 1) + sum(map(_is_numbered, utterances))
            self.pushed += len(utterances)
            self.waiting -= len(utterances)

    def _messages(self, utterances: Sequence[Heard], number: int, now: datetime) -> Iterator[JsonObject]:
        """Yield the messages of utterances, and corrections of those that this process has pushed; the assistant's take
        no number of the listener's.
        """
        for one in utterances:
            if isinstance(one, CorrectedUtterance):
                if one.key in self._numbers:
                    yield _correction(self._client.session_id, self._numbers[one.key], one, now)
                continue
            if one.contribution is not None:
                yield contributed(one.text, now, one.contribution)
                continue
            if one.key is not None:
                self._numbers[one.key] = number
                while len(self._numbers) > REMEMBERED:
                    self._numbers.popitem(last=False)
            yield spoken(self._client.session_id, number, one.speaker, one.text, now)
            number += 1

    def _read(self, message: str | bytes, speech: LiveSpeech) -> list[Heard]:
        try:
            return speech.read(message)
        except ValueError as error:
            self.skipped += 1
            self._on_skipped(str(error))
            return []


def _is_numbered(one: Heard) -> bool:
    return isinstance(one, Utterance) and one.contribution is None


def _correction(session_id: str, number: int, one: CorrectedUtterance, now: datetime) -> JsonObject:
    said = {name: value for name, value in (("text", one.text), ("speaker", one.speaker)) if value is not None}
    return {"session_id": session_id, "corrects": number, "timestamp": now.isoformat(), **said}
