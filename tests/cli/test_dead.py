"""Looking at dead letters, and putting them back."""

from __future__ import annotations

import base64
import re
from typing import Any

import orjson
import pytest
import typer
from redis import Redis
from typer.testing import CliRunner, Result

from context_builder.cli.dead import dead, escaped
from context_builder.memory.memory import Memory
from context_builder.session.conversation.memory_batch import MemoryBatch
from context_builder.session.store.dead_letters import DeadLetter
from tests.services.redis_server import RedisServer

pytestmark = pytest.mark.engines

SUMMARY = b'{"summary_text": "Alice: DNA"}'
MEMORY_BATCH = MemoryBatch("monday", [Memory("m-1", "Helicase unwinds the double helix")], ()).encode()
HOSTILE = b'{"text": "\x1b]0;owned\x07\x1b[2J"}\n\xff \xe2\x80\xae desrever'

app = typer.Typer()
app.command("dead")(dead)


@pytest.fixture
def store(redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> Redis:
    """The Redis that the command finds through its settings, with two dead letters."""
    monkeypatch.setenv("CONTEXT_BUILDER_REDIS_URL", redis_server.url)
    client = Redis.from_url(redis_server.url)
    client.flushall()
    for raw, reason in ((b"hello", "not JSON"), (HOSTILE, "not UTF-8")):
        letter = DeadLetter(reason, 1_700_000_000.0, raw, len(raw))
        client.lpush("context_builder:monday:dead", letter.encode())
    return client


def invoke(*arguments: str, columns: int = 120) -> Result:
    return CliRunner().invoke(app, arguments, env={"COLUMNS": str(columns)}, catch_exceptions=False)


def queued(store: Redis) -> list[bytes]:
    waiting: Any = store.lrange("context_builder:monday:input", 0, -1)
    return list(waiting)


def test_the_list_says_when_why_how_large_and_what(store: Redis) -> None:
    heading, first, second = invoke("monday").output.splitlines()
    assert heading.split() == ["when", "reason", "bytes", "begins"]
    assert first.split()[0] == "1"
    assert first.split()[3:] == ["not", "JSON", "5", "hello"]
    assert "not UTF-8" in second


def test_a_narrow_terminal_shows_the_reason_whole_and_less_of_the_text(store: Redis) -> None:
    letter = DeadLetter("refused for good (23514)", 1_700_000_000.0, b"hello " * 40, 240)
    store.lpush("context_builder:monday:dead", letter.encode())
    output = invoke("monday", columns=80).output
    assert "refused for good (23514)" in output
    assert "hello hel" in output


def test_nothing_hostile_reaches_the_terminal(store: Redis) -> None:
    for output in (invoke("monday").output, invoke("monday", "show", "2").output):
        assert "desrever" in output
        assert all(char.isprintable() or char == "\n" for char in output)


def test_one_is_shown_whole_and_escaped_or_as_it_came(store: Redis) -> None:
    shown = invoke("monday", "show", "2").stdout
    assert shown == '{"text": "\\x1b]0;owned\\x07\\x1b[2J"}\\n\\xff \\u202e desrever\n'
    assert invoke("monday", "show", "2", "--raw").stdout_bytes == HOSTILE


def test_what_is_shown_says_why_it_is_there_on_standard_error(store: Redis) -> None:
    shown = invoke("monday", "show", "1")
    assert (shown.stdout, shown.stderr) == ("hello\n", "1: not JSON\n")


def test_programs_get_the_bytes(store: Redis) -> None:
    listed = orjson.loads(invoke("monday", "--json").output)
    assert [(letter["number"], letter["reason"]) for letter in listed] == [(1, "not JSON"), (2, "not UTF-8")]
    assert base64.b64decode(listed[1]["raw"]) == HOSTILE
    assert orjson.loads(invoke("monday", "show", "1", "--json").output)[0]["size"] == 5


def test_one_is_put_back(store: Redis) -> None:
    assert "Put back 1 of 1 into the input of session monday" in invoke("monday", "requeue", "1").output
    assert queued(store) == [b"hello"]
    assert store.llen("context_builder:monday:dead") == 1


def test_all_are_put_back_in_the_order_in_which_they_came(store: Redis) -> None:
    assert "Put back 2 of 2" in invoke("monday", "requeue", "all").output
    assert queued(store)[::-1] == [b"hello", HOSTILE]
    for arguments in (
        ["monday"],
        ["monday", "requeue", "all"],
        ["monday", "requeue", "memory:all"],
        ["monday", "requeue", "all", "--json"],
    ):
        assert invoke(*arguments).output == "Session monday has no dead letters.\n"


def test_what_was_not_kept_whole_stays(store: Redis) -> None:
    store.lpush("context_builder:monday:dead", DeadLetter("larger", 1.0, b"beginning", 1_000_000).encode())
    told = invoke("monday", "requeue", "all").output
    assert "Put back 2 of 3" in told
    assert "Too large to have been kept whole: 3." in told
    assert "the first 9 of 1,000,000 bytes" in invoke("monday", "show", "1").stderr


@pytest.fixture
def refused(store: Redis) -> Redis:
    """Beside the two, a summary that the archive refused, and a memory batch and random bytes for the memory."""
    for key, raw, reason in (
        ("archive_dead", SUMMARY, "violates check constraint (23514)"),
        ("memory_dead", MEMORY_BATCH, "index row too large (54000)"),
        ("memory_dead", b"\x93\xffrandom", "not a memory batch: error"),
    ):
        store.lpush(f"context_builder:monday:{key}", DeadLetter(reason, 1_700_000_000.0, raw, len(raw)).encode())
    return store


def test_what_archive_and_memory_refuse_is_listed_with_where_it_was_going_and_why(refused: Redis) -> None:
    _, *lines = invoke("monday").output.splitlines()
    entries = [line for line in lines if re.search(r" \d{4}-\d\d-\d\d \d\d:", line)]  # the others continue a reason
    assert [line.split()[0] for line in entries] == ["1", "2", "archive:1", "memory:1", "memory:2"]
    assert "violates check" in entries[2]
    assert "Alice: DNA" in entries[2]
    assert "index row" in entries[3]
    assert "Helicase unwinds the double helix" in entries[3]
    listed = orjson.loads(invoke("monday", "--json").output)
    assert [(one["origin"], one["number"]) for one in listed] == [
        ("input", 1),
        ("input", 2),
        ("archive", 1),
        ("memory", 1),
        ("memory", 2),
    ]
    assert base64.b64decode(listed[3]["raw"]) == MEMORY_BATCH


def test_an_entry_is_shown_legibly_or_as_it_was(refused: Redis) -> None:
    assert "Helicase unwinds" in invoke("monday", "show", "memory:1").output
    assert invoke("monday", "show", "memory:1", "--raw").stdout_bytes == MEMORY_BATCH
    assert invoke("monday", "show", "memory:2").stdout == "\\x93\\xffrandom\n"
    assert invoke("monday", "show", "archive:all").stdout.encode() == SUMMARY + b"\n"


def test_each_is_put_back_to_where_it_came_from(refused: Redis) -> None:
    told = invoke("monday", "requeue", "archive:1").output
    assert "Put back 1 of 1 among what waits for the archive of session monday." in told
    assert "Nobody runs the session now: `context-builder end monday`" in told
    assert refused.lrange("context_builder:monday:outbox", 0, -1) == [SUMMARY]
    told = invoke("monday", "requeue", "all").output
    assert "Put back 2 of 2 into the input" in told
    assert "Put back 2 of 2 among what waits for the memory" in told
    assert refused.llen("context_builder:monday:memory_outbox") == 2
    assert invoke("monday").output == "Session monday has no dead letters.\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("monday", "show", "archive:1"), "session monday has no dead letter for the archive 1"),
        (("monday", "show", "nobody:1"), "say which to show"),
        (("monday", "requeue", "archive:-1"), "say which to requeue"),
        (("monday", "show"), "say which to show: a number from the list, or all"),
        (("monday", "requeue", "-"), "say which to requeue"),
        (("monday", "show", "3"), "session monday has no dead letter 3"),
        (("mon day",), "session id 'mon day'"),
    ],
)
def test_what_is_wrong_is_one_line(store: Redis, arguments: tuple[str, ...], told: str) -> None:
    result = invoke(*arguments)
    assert result.stderr.startswith(f"context-builder: {told}")
    assert result.exit_code == 1


def test_ordinary_text_is_not_escaped() -> None:
    assert escaped("Zoë sagt: 你好 👋".encode()) == "Zoë sagt: 你好 👋"
