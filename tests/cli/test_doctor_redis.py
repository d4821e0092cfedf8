"""What the doctor says about a Redis that could lose what it acknowledged."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from context_builder.cli import app
from context_builder.engines.engine import LOOPBACK, free_port
from context_builder.engines.redis import RedisEngine
from context_builder.errors import StoreError
from context_builder.storage.redis import check_server, client_for, judged
from tests.services.redis_server import RedisServer

pytestmark = pytest.mark.engines

Start = Callable[..., RedisServer]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts a Redis with these options, which the doctor then looks at."""
    monkeypatch.setenv("DATABASE_URL", f"postgresql://{LOOPBACK}:{free_port()}/none")
    with ExitStack() as stack:

        def started(*options: str) -> RedisServer:
            folder = tmp_path / f"redis-{len(list(tmp_path.iterdir()))}"
            folder.mkdir()
            server = RedisServer(folder, *options)
            stack.callback(server.kill)
            server.start()
            monkeypatch.setenv("REDIS_URL", server.url)
            return server

        yield started


def finding(check: str = "redis") -> dict[str, Any]:
    findings = orjson.loads(CliRunner().invoke(app, ["doctor", "--json"], catch_exceptions=False).stdout)
    return next(found for found in findings if found["check"] == check)


def failure() -> str:
    """The advice on a Redis that is not as it should be."""
    found = finding()
    assert not found["ok"]
    assert "version" in found["found"]
    return str(found["advice"])


def test_one_that_loses_nothing_is_ok_without_a_word(start: Start) -> None:
    start("--appendfsync", "always")
    assert finding() | {"found": ""} == {"check": "redis", "ok": True, "found": "", "advice": ""}


def test_why_redis_cannot_be_used_is_told_once(start: Start) -> None:
    wrong = start().url.replace("//", "//:wrong@")
    told = CliRunner().invoke(app, ["doctor"], env={"REDIS_URL": wrong}).stdout.splitlines()
    assert sum("refuses the password" in line for line in told) == 1
    assert [line.split()[:4] for line in told if "needs Redis" in line] == [
        ["FAIL", check, "not", "checked:"] for check in ("pushes", "sessions", "clock")
    ]


@pytest.mark.parametrize(("flags", "tells"), [("El", True), ("EA", True), ("", False), ("Kl", False)])
def test_whether_it_tells_of_pushes_is_said(start: Start, flags: str, tells: bool) -> None:
    start("--notify-keyspace-events", flags)
    found = finding("pushes")
    assert found["ok"]
    assert found["advice"] == ("" if tells else "redis-cli CONFIG SET notify-keyspace-events El")


def test_append_only_each_second_is_ok_and_what_a_power_cut_takes_is_said(start: Start) -> None:
    start("--appendfsync", "everysec")
    found = finding()
    assert found["ok"]
    assert found["advice"].startswith("appendfsync is everysec: a power cut takes the last second or two")
    start("--appendfsync", "no")
    assert "appendfsync is no: a power cut takes what the system had not written" in finding()["advice"]


@pytest.mark.parametrize(
    ("policy", "lost"),
    [
        ("allkeys-lru", "whole sessions"),
        ("volatile-ttl", "published states, and leases"),
        ("allkeys-random", "messages"),
    ],
)
def test_one_that_evicts_is_named_with_what_it_would_delete(start: Start, policy: str, lost: str) -> None:
    start("--maxmemory-policy", policy, "--appendfsync", "always")
    advice = failure()
    assert advice.startswith(f"maxmemory-policy is {policy}: when memory is full it deletes ")
    assert lost in advice
    assert advice.endswith("; set noeviction")


def test_one_without_persistence_is_named(start: Start) -> None:
    start("--appendonly", "no")
    assert failure() == (
        "it neither appends to a file nor makes snapshots: a restart loses every session, and messages that wait; "
        "set appendonly yes"
    )


def test_one_with_snapshots_alone_is_named(start: Start) -> None:
    start("--appendonly", "no", "--save", "3600", "1")
    assert failure() == (
        "it writes only snapshots (save 3600 1): a crash loses all messages and summaries since the last one; "
        "set appendonly yes"
    )


def test_a_replica_is_named_with_its_primary(start: Start) -> None:
    primary = start()
    start("--replicaof", LOOPBACK, str(primary.port), "--appendfsync", "always")
    advice = failure()
    assert advice.startswith(
        f"it is a replica of {LOOPBACK}:{primary.port}: it refuses what a session writes, or loses it"
    )
    assert "connect to the primary" in advice


def test_everything_that_is_wrong_is_said_line_by_line(start: Start) -> None:
    start("--appendonly", "no", "--maxmemory-policy", "allkeys-lru")
    assert len(failure().splitlines()) == 2
    printed = CliRunner().invoke(app, ["doctor"], catch_exceptions=False)
    assert printed.exit_code == 1
    assert printed.stdout.startswith("FAIL  redis    Redis at ")
    assert [line[15:17] for line in printed.stdout.splitlines()[1:3]] == ["→ ", "→ "]


@pytest.mark.parametrize("how", ["renamed away", "not for this user"])
def test_where_config_is_not_to_be_had_it_says_what_it_could_not_check(
    start: Start, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    if how == "renamed away":
        start("--rename-command", "CONFIG", "")
    else:
        server = start("--user", *"managed on >theirs ~* &* +@all -config".split())
        monkeypatch.setenv("REDIS_URL", f"redis://managed:theirs@{LOOPBACK}:{server.port}/0")
    found = finding()
    assert (found["ok"], found["advice"]) == (
        True,
        "could not be checked, because this Redis does not allow reading its configuration: appendfsync",
    )


def test_eviction_and_lack_of_persistence_are_named_without_config_too(start: Start) -> None:
    start("--rename-command", "CONFIG", "", "--maxmemory-policy", "allkeys-lfu", "--appendonly", "no")
    advice = failure()
    assert "maxmemory-policy is allkeys-lfu" in advice
    assert "it is not append-only: a restart loses what came since its last snapshot, or all" in advice


def test_what_info_leaves_out_is_not_taken_for_good() -> None:
    found = judged({"role": "master"}, {})
    assert found.faults == []
    assert found.notes == [
        "could not be checked, because this Redis does not allow reading its configuration: "
        "maxmemory-policy, appendonly"
    ]


def test_the_embedded_redis_is_known_although_it_has_no_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setattr("context_builder.wiring.servers.STANDARD_PORT", port)
    monkeypatch.setenv("CONTEXT_BUILDER_REDIS_PORT", str(port))
    monkeypatch.setenv("CONTEXT_BUILDER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DATABASE_URL", f"postgresql://{LOOPBACK}:{free_port()}/none")
    try:
        found = finding()
    finally:
        RedisEngine(tmp_path / "home", port).stop()
    assert found["ok"]
    assert found["advice"].startswith("appendfsync is everysec")


def test_a_cluster_is_refused_in_one_line(start: Start) -> None:
    start("--cluster-enabled", "yes")
    found = finding()
    assert not found["ok"]
    assert found["found"].startswith("Redis Cluster cannot be used")
    assert "\n" not in found["found"] + found["advice"]


async def served(info: str) -> asyncio.Server:
    """A server that answers INFO with this, knows no HELLO, and answers every other command with OK."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while count := await reader.readline():
            words = [(await reader.readline(), await reader.readline())[1].strip() for _ in range(int(count[1:]))]
            if words[0] == b"HELLO":
                writer.write(b"-ERR unknown command `HELLO`, with args beginning with: `3`, \r\n")
            elif words[0] == b"INFO":
                writer.write(f"${len(info)}\r\n{info}\r\n".encode())
            else:
                writer.write(b"+OK\r\n")
        writer.close()

    return await asyncio.start_server(answer, LOOPBACK, 0)


@pytest.mark.parametrize(
    ("version", "refused"), [("5.0.14", True), ("6.0.16", True), ("6.2.0", False), ("8.0-rc1", False), ("dev", False)]
)
async def test_a_version_that_is_too_old_is_named(version: str, *, refused: bool) -> None:
    async with await served(f"redis_version:{version}\r\n") as server:
        port = server.sockets[0].getsockname()[1]
        async with client_for(f"redis://{LOOPBACK}:{port}/0?protocol=2") as client:
            if refused:
                with pytest.raises(StoreError, match=rf"Redis {version} is too old: 6\.2 or later is needed"):
                    await check_server(client)
            else:
                assert await check_server(client) == version


async def test_one_from_before_redis_6_which_knows_no_hello_is_too_old() -> None:
    async with await served("redis_version:5.0.14\r\n") as server:
        port = server.sockets[0].getsockname()[1]
        async with client_for(f"redis://{LOOPBACK}:{port}/0") as client:
            with pytest.raises(StoreError, match=r"^Redis 5\.0\.14 is too old: 6\.2 or later is needed"):
                await check_server(client)


def test_clocks_apart_are_said(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    start()
    assert finding("clock")["advice"] == ""
    true_time = time.time
    monkeypatch.setattr(time, "time", lambda: true_time() + 60)
    found = finding("clock")
    assert 59 < float(found["found"].split()[0]) < 61
    assert "set both clocks by NTP" in found["advice"]
