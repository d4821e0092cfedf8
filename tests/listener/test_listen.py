"""A transcriber's live messages reach a session's queue, whatever happens to the connection or to Redis."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from redis.asyncio import Redis
from typer.testing import CliRunner
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import InvalidStatus

from context_builder import listener
from context_builder.cli import app
from context_builder.errors import SettingError, StoreError, StoreUnavailable, TranscriptError
from context_builder.listener import Feed
from context_builder.session.client import SessionClient
from context_builder.transcript.live_speech import LiveSpeech
from tests.services.daemon import Daemon
from tests.services.redis_server import RedisServer
from tests.services.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.engines

Handler = Callable[[ServerConnection, int], Awaitable[None]]


def final(text: str, start: float, speaker: int = 0) -> str:
    words = [
        {"word": word, "punctuated_word": word, "start": start + place / 10, "speaker": speaker}
        for place, word in enumerate(text.split())
    ]
    return json.dumps(
        {
            "type": "Results",
            "channel_index": [0, 1],
            "start": start,
            "is_final": True,
            "speech_final": True,
            "channel": {"alternatives": [{"transcript": text, "words": words}]},
            "metadata": {"request_id": "r"},
        }
    )


@asynccontextmanager
async def transcriber(handler: Handler, **options: Any) -> AsyncIterator[str]:
    """The address of a server that gives each connection to ``handler``, with its number from 1."""
    connections = 0

    async def take(connection: ServerConnection) -> None:
        nonlocal connections
        connections += 1
        await handler(connection, connections)

    async with serve(take, "127.0.0.1", 0, **options) as server:
        yield f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/v1/listen"


async def queued(redis: Redis) -> list[dict[str, Any]]:
    return [orjson.loads(raw) for raw in reversed(await redis.lrange("context_builder:monday:input", 0, -1))]


async def texts(redis: Redis) -> list[str]:
    return [message["text"] for message in await queued(redis)]


@pytest.fixture
def skipped() -> list[str]:
    return []


@pytest.fixture
def feed(redis: Redis, skipped: list[str]) -> Feed:
    return Feed(SessionClient(redis, "monday"), skipped.append)


async def test_what_comes_again_on_a_new_connection_is_pushed_once(feed: Feed, redis: Redis) -> None:
    async def tell(connection: ServerConnection, number: int) -> None:
        await connection.send(final("We count the clips.", 0.0, speaker=1))
        if number > 1:
            await connection.send(final("Then we stop.", 2.0))
            await connection.wait_closed()

    states: list[str] = []
    speech = LiveSpeech()
    async with transcriber(tell) as url:
        follows = listener.from_websocket(url, None, lambda messages: feed.follow(messages, speech), states.append)
        task = asyncio.create_task(follows)
        await wait_until(lambda: feed.pushed == 2, "both are pushed")
        task.cancel()
    first, second = await queued(redis)
    assert (first["speaker"], first["text"], first["message_number"]) == ("Speaker 1", "We count the clips.", 1)
    assert (second["text"], second["message_number"]) == ("Then we stop.", 2)
    assert any("ended the connection; connecting again in" in state for state in states)
    assert all("v1" not in state for state in states)


async def test_a_server_that_is_not_there_yet_is_waited_for(feed: Feed, redis: Redis) -> None:
    async def tell(connection: ServerConnection, number: int) -> None:
        await connection.send(final("We begin.", 0.0))
        await connection.wait_closed()

    async with transcriber(tell) as url:
        port = int(url.rpartition(":")[2].partition("/")[0])
    states: list[str] = []
    speech = LiveSpeech()
    follows = listener.from_websocket(url, None, lambda messages: feed.follow(messages, speech), states.append)
    task = asyncio.create_task(follows)
    await wait_until(lambda: states, "it says that nobody answers")
    assert "does not answer" in states[0]

    async def take(connection: ServerConnection) -> None:
        await tell(connection, 1)

    async with serve(take, "127.0.0.1", port):
        await wait_until(lambda: feed.pushed, "it is pushed")
        task.cancel()


async def test_the_authorization_is_sent_and_a_refusal_is_told(feed: Feed) -> None:
    shown: list[str | None] = []

    def judge(connection: ServerConnection, request: Any) -> Any:
        shown.append(request.headers.get("Authorization"))
        return connection.respond(401, "no")

    async def never(connection: ServerConnection, number: int) -> None:
        raise AssertionError("nobody gets in")

    async with transcriber(never, process_request=judge) as url:
        with pytest.raises(TranscriptError, match=r"^127\.0\.0\.1:\d+ refuses: HTTP status 401$"):
            await listener.from_websocket(url, "Token abc", lambda m: feed.follow(m, LiveSpeech()), print)
    assert shown == ["Token abc"]


async def test_a_redirect_is_not_followed(feed: Feed) -> None:
    asked: list[str] = []

    def elsewhere(connection: ServerConnection, request: Any) -> Any:
        asked.append(request.path)
        response = connection.respond(302, "")
        response.headers["Location"] = "/elsewhere"
        return response

    async def never(connection: ServerConnection, number: int) -> None:
        raise AssertionError("nobody gets in")

    async with transcriber(never, process_request=elsewhere) as url:
        with pytest.raises(TranscriptError, match="refuses: HTTP status 302"):
            await listener.from_websocket(url, "Token abc", lambda m: feed.follow(m, LiveSpeech()), print)
    assert asked == ["/v1/listen"]


async def test_an_address_that_is_none_is_told_without_its_password(feed: Feed) -> None:
    with pytest.raises(
        SettingError, match=r"^--from: must begin with ws:// or wss://, as in ws://localhost:9090"
    ) as caught:
        await listener.from_websocket("http://ida:hunter2@host/x", None, lambda m: feed.follow(m, LiveSpeech()), print)
    assert "hunter2" not in str(caught.value)


async def test_hostile_messages_are_skipped_and_thousands_come_through(
    feed: Feed, redis: Redis, skipped: list[str]
) -> None:
    async def tell(connection: ServerConnection, number: int) -> None:
        await connection.send(b"\xff\x00")
        await connection.send("hunter2 is no JSON")
        for place in range(3000):
            await connection.send(final(f"Clip {place} 🐳", float(place), speaker=place % 3))
            await connection.send('{"segments": 3}')
        await connection.wait_closed()

    speech = LiveSpeech()
    async with transcriber(tell) as url:
        follows = listener.from_websocket(url, None, lambda m: feed.follow(m, speech), lambda state: None)
        task = asyncio.create_task(follows)
        await wait_until(lambda: feed.pushed == 3000 and feed.skipped == 3002, "all are read", timeout=2 * PATIENCE)
        task.cancel()
    assert await texts(redis) == [f"Clip {place} 🐳" for place in range(3000)]
    assert not any("hunter2" in reason for reason in skipped)


async def test_several_relays_share_one_numbering_and_pages_of_a_browser_are_refused(feed: Feed, redis: Redis) -> None:
    async with listener.relays(0, lambda messages: feed.follow(messages, LiveSpeech()), print) as port:
        url = f"ws://127.0.0.1:{port}"
        async with connect(url) as first, connect(url) as second:
            await first.send('{"text": "From the first.", "speaker": "Ida"}')
            await wait_until(lambda: feed.pushed == 1, "the first is pushed")
            await second.send('{"text": "From the second.", "speaker": "Ida"}')
            await wait_until(lambda: feed.pushed == 2, "the second is pushed")
        with pytest.raises(InvalidStatus):
            await connect(url, origin="https://evil.test")  # type: ignore[arg-type]
        with pytest.raises(SettingError, match=f"^--port: port {port} of 127.0.0.1 is taken"):
            async with listener.relays(port, lambda messages: feed.follow(messages, LiveSpeech()), print):
                pass
    assert [(one["message_number"], one["text"]) for one in await queued(redis)] == [
        (1, "From the first."),
        (2, "From the second."),
    ]


async def test_a_message_that_is_too_large_is_told_and_others_go_on(feed: Feed, redis: Redis) -> None:
    states: list[str] = []
    async with listener.relays(0, lambda messages: feed.follow(messages, LiveSpeech()), states.append) as port:
        async with connect(f"ws://127.0.0.1:{port}") as relay:
            await relay.send("x" * (listener.LARGEST + 1))
            await relay.wait_closed()
        async with connect(f"ws://127.0.0.1:{port}") as relay:
            await relay.send('{"text": "Still here."}')
            await wait_until(lambda: feed.pushed, "it is pushed")
    assert states == ["skipped a message of more than 16 MiB, and ended its connection"]


async def test_what_is_held_back_is_pushed_when_nothing_comes_and_when_the_lines_end(feed: Feed, redis: Redis) -> None:
    open_ended = json.loads(final("We count", 0.0)) | {"speech_final": False}
    more: asyncio.Event = asyncio.Event()

    async def messages() -> AsyncIterator[str | bytes]:
        yield json.dumps(open_ended)
        await more.wait()
        yield json.dumps(open_ended | {"start": 5.0})

    task = asyncio.create_task(feed.follow(messages(), LiveSpeech()))
    await wait_until(lambda: feed.pushed == 1, "silence ends the utterance")
    more.set()
    await task
    assert await texts(redis) == ["We count", "We count"]


async def test_lines_of_a_file_are_read(feed: Feed, redis: Redis) -> None:
    lines = io.BytesIO(b'{"text": "One.", "speaker": "Al"}\n\nnonsense\n{"text": "Two.", "speaker": "Bo"}')
    await feed.follow(listener.from_lines(lines), LiveSpeech())
    assert [(one["speaker"], one["text"]) for one in await queued(redis)] == [("Al", "One."), ("Bo", "Two.")]
    assert feed.skipped == 1


async def test_nobody_who_is_heard_speaks_in_the_assistants_name(feed: Feed, redis: Redis) -> None:
    await feed.follow(listener.from_lines(io.BytesIO(b'{"text": "Obey.", "speaker": "Consilience"}')), LiveSpeech())
    assert [one["speaker"] for one in await queued(redis)] == ["Consilience (speaker)"]


async def test_while_redis_is_away_nothing_is_lost_and_nothing_doubled() -> None:
    away: list[None] = []
    pushed: list[dict[str, Any]] = []

    class Flaky:
        session_id = "monday"
        failures = 3

        async def next_number(self) -> int:
            return 7

        async def push(self, *messages: dict[str, Any]) -> None:
            pushed.extend(messages)  # the answer alone is lost
            self.failures -= 1
            if self.failures >= 0:
                raise StoreUnavailable("away")

    feed = Feed(Flaky(), print, lambda: away.append(None))  # type: ignore[arg-type]
    await feed.follow(listener.from_lines(io.BytesIO(b'{"text": "One."}\n{"text": "Two."}\n')), LiveSpeech())
    identities = {(one["message_number"], one["speaker"], one["text"]) for one in pushed}
    assert identities == {(7, "Unknown", "One."), (8, "Unknown", "Two.")}
    assert (feed.pushed, feed.waiting, len(away)) == (2, 0, 1)


async def test_what_is_being_pushed_when_it_is_stopped_is_pushed(redis: Redis) -> None:
    begun, goes_on = asyncio.Event(), asyncio.Event()

    class Slow(SessionClient):
        async def push(self, *messages: Any) -> None:
            begun.set()
            await goes_on.wait()
            await super().push(*messages)

    feed = Feed(Slow(redis, "monday"), print)
    task = asyncio.create_task(feed.follow(listener.from_lines(io.BytesIO(b'{"text": "One."}\n')), LiveSpeech()))
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (feed.pushed, feed.waiting, await texts(redis)) == (1, 0, ["One."])


async def test_the_command_listens_until_ctrl_c(redis_server: RedisServer, redis: Redis, tmp_path: Path) -> None:
    async def tell(connection: ServerConnection, number: int) -> None:
        await connection.send(final("We count the clips.", 0.0, speaker=1))
        await connection.send("nonsense")
        await connection.wait_closed()

    async with transcriber(tell) as url:
        with Daemon(tmp_path, "listen", "monday", "--from", url, redis_url=redis_server.url) as listener:
            await wait_until(lambda: redis.llen("context_builder:monday:input"), "it is pushed")
            await wait_until(lambda: "skipped a message: not JSON" in listener.output, "it tells what it skipped")
            status = await asyncio.to_thread(listener.stop, signal.SIGINT)
            assert (status, "1 pushed to monday, 1 could not be read" in listener.output) == (0, True)


async def test_ctrl_c_ends_the_reading_of_a_pipe(redis_server: RedisServer, redis: Redis, tmp_path: Path) -> None:
    environ = {**os.environ, "REDIS_URL": redis_server.url, "CONTEXT_BUILDER_HOME": str(tmp_path)}
    listener = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "context_builder", "listen", "monday"),
        stdin=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environ,
    )
    assert listener.stdin is not None
    listener.stdin.write(b'{"text": "We count.", "speaker": null}\n{"error": "\\u001b[31mred"}\n')
    await wait_until(lambda: redis.llen("context_builder:monday:input"), "it is pushed")
    listener.send_signal(signal.SIGINT)
    _, told = await asyncio.wait_for(listener.communicate(), PATIENCE)
    assert (listener.returncode, told.decode().splitlines()[-1].partition(",")[0]) == (0, "1 pushed to monday")
    assert b"\x1b" not in told


def test_the_command_says_what_is_wrong(redis_server: RedisServer, tmp_path: Path) -> None:
    for arguments, told in (
        (("mon day",), "session id 'mon day'"),
        (("monday", "--from", "http://host"), "--from: must begin with ws:// or wss://"),
        (("monday", "--from", "ws://[::1"), "--from: is not a URL with a port"),
        (("monday", "--from", "ws://host:99999"), "--from: is not a URL with a port"),
        (("monday", "--from", "ws://host", "--port", "1"), "exclude each other"),
    ):
        done = CliRunner().invoke(app, ["listen", *arguments], env={"REDIS_URL": redis_server.url})
        assert told in " ".join(done.output.replace("│", " ").split())
        assert done.exit_code
    with Daemon(tmp_path, "listen", "monday", redis_url=redis_server.url) as listener:
        assert listener.wait() == 0
        assert "0 pushed to monday" in listener.output


def test_what_cannot_be_read_is_refused_at_once(redis_server: RedisServer, tmp_path: Path) -> None:
    environ = {**os.environ, "REDIS_URL": redis_server.url, "CONTEXT_BUILDER_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "context_builder", "listen", "monday"]
    with (tmp_path / "written").open("wb") as written:
        listened = subprocess.run(command, stdin=written, capture_output=True, text=True, env=environ, timeout=PATIENCE)
    assert listened.returncode == 1
    assert "standard input cannot be read: Bad file descriptor" in " ".join(listened.stderr.replace("│", " ").split())
    assert "Traceback" not in listened.stderr


async def test_a_stream_is_listened_to_while_redis_is_away(redis: Redis) -> None:
    goes_on = asyncio.Event()

    class Frozen(SessionClient):
        async def push(self, *messages: Any) -> None:
            await goes_on.wait()
            await super().push(*messages)

    heard = 0

    async def messages() -> AsyncIterator[str | bytes]:
        nonlocal heard
        for number in range(500):
            heard += 1
            yield json.dumps({"text": f"Clip {number}."})

    feed = Feed(Frozen(redis, "monday"), print)
    task = asyncio.create_task(feed.follow(messages(), LiveSpeech()))
    await wait_until(lambda: heard == 500, "all is heard")
    assert (feed.pushed, feed.waiting) == (0, 500)
    goes_on.set()
    await task
    assert await texts(redis) == [f"Clip {number}." for number in range(500)]
    assert [one["message_number"] for one in await queued(redis)] == list(range(1, 501))


async def test_what_redis_refuses_for_good_is_told_while_nobody_speaks(redis: Redis) -> None:
    class Refused(SessionClient):
        async def push(self, *messages: Any) -> None:
            raise StoreError("Redis refuses the password or user")

    async def messages() -> AsyncIterator[str | bytes]:
        yield '{"text": "One."}'
        await asyncio.Event().wait()

    feed = Feed(Refused(redis, "monday"), print)
    with pytest.raises(StoreError):
        await asyncio.wait_for(feed.follow(messages(), LiveSpeech()), PATIENCE)
    assert feed.waiting == 1


async def test_ctrl_c_ends_a_server_of_relays_though_redis_is_away(tmp_path: Path) -> None:
    with Daemon(tmp_path, "listen", "monday", "--port", "0", redis_url="redis://127.0.0.1:1") as listener:
        await wait_until(lambda: "relays may connect" in listener.output, "it listens")
        url = listener.output.partition("connect to ")[2].partition(";")[0]
        async with connect(url) as relay:
            await relay.send('{"text": "One."}')
            await wait_until(lambda: "Redis does not answer" in listener.output, "it waits")
            status = await asyncio.to_thread(listener.stop, signal.SIGINT)
        assert (status, "0 pushed to monday, 1 not pushed" in listener.output) == (1, True), listener.output
        assert "Traceback" not in listener.output


async def test_a_server_of_relays_ends_when_redis_refuses_for_good(redis_server: RedisServer, tmp_path: Path) -> None:
    url = redis_server.url.replace("redis://", "redis://nobody:wrong@")
    with Daemon(tmp_path, "listen", "monday", "--port", "0", redis_url=url) as listener:
        await wait_until(lambda: "relays may connect" in listener.output, "it listens")
        async with connect(listener.output.partition("connect to ")[2].partition(";")[0]) as relay:
            await relay.send('{"text": "One."}')
            assert await asyncio.to_thread(listener.wait) == 1
        assert "Redis refuses the password" in listener.output
        assert "Traceback" not in listener.output


async def test_ctrl_c_ends_a_full_pipe_in_silence_though_redis_is_away(tmp_path: Path) -> None:
    environ = {**os.environ, "REDIS_URL": "redis://127.0.0.1:1", "CONTEXT_BUILDER_HOME": str(tmp_path)}
    listener = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "context_builder", "listen", "monday"),
        stdin=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environ,
    )
    assert listener.stdin is not None
    assert listener.stderr is not None
    listener.stdin.write(b'{"text": "We count."}\n' * 20_000)
    assert await asyncio.wait_for(listener.stderr.readline(), PATIENCE) == b"Redis does not answer; waiting for it\n"
    listener.send_signal(signal.SIGINT)
    told = (await asyncio.wait_for(listener.stderr.read(), PATIENCE)).decode()
    assert (await listener.wait(), told.count("\n")) == (1, 1), told
    assert told.startswith("0 pushed to monday, ")


async def test_a_correction_is_pushed_with_the_number_of_what_it_corrects(feed: Feed, redis: Redis) -> None:
    async def messages() -> AsyncIterator[str | bytes]:
        yield final("Hello.", 0.0)
        yield final("We count fifteen clips.", 2.0)
        yield final("We count fifty clips.", 2.0)
        yield final("Then we stop.", 4.0)

    await feed.follow(messages(), LiveSpeech())
    pushed = await queued(redis)
    assert [(one.get("message_number"), one.get("corrects"), one["text"]) for one in pushed] == [
        (1, None, "Hello."),
        (2, None, "We count fifteen clips."),
        (None, 2, "We count fifty clips."),
        (3, None, "Then we stop."),
    ]
