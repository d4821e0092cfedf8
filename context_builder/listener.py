"""A listener for transcribers that speak JSON: from their messages to a session's queue.

Messages come from a WebSocket that we open, from those that relays open, or from standard input. They are pushed in
order, each once, however long Redis is away.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from threading import Semaphore, Thread
from typing import Any, BinaryIO, Final, cast

from websockets.asyncio.client import ClientConnection, connect, process_exception
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI, WebSocketException
from websockets.frames import CloseCode

from context_builder.config import check_url
from context_builder.engines.engine import LOOPBACK as LOOPBACK
from context_builder.engines.engine import listen
from context_builder.errors import EngineError, SettingError, TranscriptError
from context_builder.session.client import JsonObject, SessionClient, contributed, spoken
from context_builder.storage.redis_availability import until_available
from context_builder.storage.urls import printable
from context_builder.transcript.live_speech import LiveSpeech
from context_builder.transcript.utterance import CorrectedUtterance, Heard, Utterance

LARGEST: Final = 16 * 2**20
"""Most bytes of a message; no transcriber sends a thousandth of that."""

FOLLOW_GRACE: Final = 1.0
"""Seconds in which messages are still read that relays had sent before the server ended."""

FIRST_PAUSE: Final = 0.25
LONGEST_PAUSE: Final = 10.0
"""Seconds between two connections."""

_WAITING: Final = 100
"""Lines that are read ahead."""

Follow = Callable[[AsyncIterator[str | bytes]], Awaitable[None]]


class _Connect(connect):
    """Connects without following redirects: the authorization is for the server that was named."""

    def process_redirect(self, exc: Exception) -> Exception:
        return exc


async def from_websocket(url: str, authorization: str | None, follow: Follow, on_state: Callable[[str], None]) -> None:
    """Give ``follow`` the messages of each connection to ``url``, which is opened again whenever it ends.

    Pauses between two grow, until a connection brings a message. Raises :class:`SettingError` for an address that is
    none, and :class:`TranscriptError` when the server refuses.
    """
    server, pause = printable(url), FIRST_PAUSE
    try:
        check_url(url, "ws", "wss")
    except ValueError as error:
        raise SettingError(f"--from: {error}, as in ws://localhost:9090") from None
    headers = {"Authorization": authorization} if authorization else {}
    while True:
        received = _ConnectionMessages(on_state)
        try:
            async with _Connect(url, additional_headers=headers, max_size=LARGEST) as connection:
                on_state(f"connected to {server}")
                await follow(received.messages(connection))
            reason = "ended the connection"
        except InvalidURI:
            raise SettingError(f"--from: {server} is not an address such as ws://localhost:9090") from None
        except (OSError, TimeoutError, WebSocketException) as error:
            if process_exception(error) is not None:
                raise _refused(server, error) from None
            reason = f"does not answer ({type(error).__name__})"
        pause = FIRST_PAUSE if received.any else min(2 * pause, LONGEST_PAUSE)
        on_state(f"{server} {reason}; connecting again in {pause:g} s")
        await asyncio.sleep(pause)


def _refused(server: str, error: Exception) -> Exception:
    match error:
        case InvalidStatus():
            return TranscriptError(f"{server} refuses: HTTP status {error.response.status_code}")
        case InvalidHandshake():
            return TranscriptError(f"{server} speaks no WebSocket: {type(error).__name__}")
    return error


@asynccontextmanager
async def relays(port: int, follow: Follow, on_state: Callable[[str], None]) -> AsyncIterator[int]:
    """Serve a WebSocket for relays on this machine, and give its port; ``follow`` is given each one's messages.

    Pages in a browser, which name their origin, are refused. Raises :class:`SettingError` for a port that is taken.
    """

    following: set[asyncio.Task[Any]] = set()

    async def take(connection: ServerConnection) -> None:
        following.add(task := cast("asyncio.Task[Any]", asyncio.current_task()))
        try:
            await follow(_ConnectionMessages(on_state).messages(connection))
        finally:
            following.discard(task)

    try:
        listener = listen(LOOPBACK, port)
    except EngineError as error:
        raise SettingError(f"--port: {error}") from None
    server = await serve(take, sock=listener, origins=[None], max_size=LARGEST)
    try:
        yield next(iter(server.sockets)).getsockname()[1]
    finally:
        server.close()
        if following:
            await asyncio.wait(following, timeout=FOLLOW_GRACE)
        for task in following:  # which may wait for Redis without end
            task.cancel()
        await server.wait_closed()


async def from_lines(source: BinaryIO | None = None) -> AsyncIterator[str | bytes]:
    """Yield the lines of ``source``, by default of standard input, which may be a pipe, a terminal or a file.

    Raises :class:`TranscriptError` when it cannot be read.
    """
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()
    places = Semaphore(_WAITING)
    unreadable: OSError | None = None

    def read() -> None:
        nonlocal unreadable
        with suppress(RuntimeError):  # the loop has ended: nobody listens any more
            try:
                stream = source or open(sys.stdin.fileno(), "rb", closefd=False)  # noqa: SIM115 (see below)
                while line := stream.readline(LARGEST):
                    places.acquire()
                    loop.call_soon_threadsafe(lines.put_nowait, line)
            except OSError as error:
                unreadable = error
            finally:
                loop.call_soon_threadsafe(lines.put_nowait, b"")

    # A read cannot be interrupted, and dies with the program, which at its end would wait for sys.stdin's own lock.
    Thread(target=read, name="lines", daemon=True).start()
    while line := await lines.get():
        places.release()
        if line.strip():
            yield line
    if unreadable is not None:
        raise TranscriptError(f"standard input cannot be read: {unreadable.strerror}")


class _ConnectionMessages:
    """Passes a connection's messages on until it ends; ``any`` says whether there was one."""

    def __init__(self, on_state: Callable[[str], None]) -> None:
        self.any = False
        self._on_state = on_state

    async def messages(self, connection: ClientConnection | ServerConnection) -> AsyncIterator[str | bytes]:
        try:
            async for message in connection:
                self.any = True
                yield message
        except ConnectionClosed as error:
            if error.sent is not None and error.sent.code == CloseCode.MESSAGE_TOO_BIG:
                self._on_state(f"skipped a message of more than {LARGEST // 2**20} MiB, and ended its connection")


QUIET: Final = 1.0
"""Seconds without a message after which what may still be joined with more is said as it is."""

PUSH_GRACE: Final = 3.0
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
                await asyncio.wait(pushes, timeout=PUSH_GRACE)
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
