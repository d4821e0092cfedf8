"""The rights that the documentation lists are all that each role needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from redis import Redis as BlockingRedis

from context_builder.session.client import SessionClient, spoken
from context_builder.session.store.registry import SessionRegistry
from context_builder.session.store.session_copy import SessionRestore, read_shared, restore_shared, take_snapshot
from context_builder.storage.redis import check_server, client_for, durability_of
from tests.services.command import command
from tests.services.daemon import ROOT, Daemon
from tests.services.redis_server import RedisServer
from tests.services.running import published, push, running
from tests.services.waiting import wait_until

DOCUMENTED = re.findall(r"^ACL SETUSER (.+)$", (ROOT / "docs/how-to/own-servers.md").read_text(), re.MULTILINE)
ROLES = {line.split()[0]: line.split()[1:] for line in DOCUMENTED}
USUAL = "on >USUAL-PASSWORD ~context_builder* ~conversation_state:* &* +@all -@admin -@dangerous".split()
"""What administrators grant a program that they do not know."""


DONE_WITHOUT = {"info"}
"""What tells how long Redis has run, and whether it evicts: asked for, and done without."""


class Guarded:
    """A Redis with the documented users, and one as administrators make them."""

    def __init__(self, server: RedisServer) -> None:
        self.server = server
        self.admin = BlockingRedis.from_url(server.url, decode_responses=True)
        for name, rights in {**ROLES, "usual": USUAL}.items():
            self.admin.execute_command("ACL", "SETUSER", name, *rights)

    def url(self, role: str) -> str:
        return self.server.url.replace("://", f"://{role}:{role.upper()}-PASSWORD@")

    def refused(self) -> list[tuple[str, str, str]]:
        """Who was refused what."""
        log: list[Any] = self.admin.execute_command("ACL", "LOG", 50)
        entries = [
            entry if isinstance(entry, dict) else dict(zip(entry[::2], entry[1::2], strict=True)) for entry in log
        ]
        return [(entry["username"], entry["reason"], entry["object"]) for entry in entries]


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    server = RedisServer(tmp_path, "--notify-keyspace-events", "El")
    server.start()
    with BlockingRedis.from_url(server.url):
        guarded = Guarded(server)
    yield guarded
    guarded.admin.close()
    server.kill()


AWAY = {"supabase_url": "http://127.0.0.1:1", "supabase_key": "sb_secret_x", "feed_memory": "false"}


async def _said_and_read(guarded: Guarded, session_id: str = "monday") -> None:
    """A listener says something, and a reader finds it."""
    async with client_for(guarded.url("listener")) as listener, client_for(guarded.url("reader")) as reader:
        await SessionClient(listener, session_id).push(
            spoken(session_id, 1, "Ida", "The valve is open.", datetime.now(UTC))
        )

        async def heard() -> bool:
            state = (await SessionClient(reader, session_id).snapshot()).state
            return state is not None and state["received_messages"] == 1

        await wait_until(heard, "the message is published")
        assert [each.session_id for each in await SessionRegistry(reader).sessions()] == [session_id]
    async with client_for(guarded.url("monitor")) as monitor:
        assert await SessionClient(monitor, session_id).state()
        assert await SessionClient(monitor, session_id).conversation_state()


@pytest.mark.engines
@pytest.mark.parametrize("role", ["daemon", "usual"])
async def test_a_session_runs_with_the_documented_rights(guarded: Guarded, tmp_path: Path, role: str) -> None:
    with Daemon(tmp_path, "run", "monday", redis_url=guarded.url(role), log_format="json", **AWAY) as daemon:
        await wait_until(lambda: daemon.is_ready, "the session runs")
        await _said_and_read(guarded)
        assert daemon.stop() == 0
        with Daemon(tmp_path, "end", "monday", redis_url=guarded.url(role), **AWAY) as ended:
            ended.wait(60)
            assert "permissions" not in ended.output
        for asked in (["sessions"], ["dead", "monday"], ["forget", "monday", "--yes"]):
            assert "permissions" not in command(tmp_path, *asked, redis_url=guarded.url(role), **AWAY).output
    assert {what for _, _, what in guarded.refused()} <= DONE_WITHOUT


@pytest.mark.engines
async def test_a_fleet_runs_with_the_documented_rights(guarded: Guarded, tmp_path: Path) -> None:
    with Daemon(tmp_path, "fleet", redis_url=guarded.url("fleet"), log_format="json", **AWAY) as worker:
        await wait_until(lambda: "fleet.ready" in worker.output, "the worker is ready")
        await _said_and_read(guarded)
        status = command(tmp_path, "fleet", "status", redis_url=guarded.url("fleet"), **AWAY)
        assert status.exit_code == 0
        assert "No worker" not in status.output
        worker.stop()
    assert {what for _, _, what in guarded.refused()} <= DONE_WITHOUT


@pytest.mark.engines
async def test_a_session_is_copied_and_restored_with_a_daemons_rights(guarded: Guarded) -> None:
    async with client_for(guarded.url("daemon")) as client:
        async with running(client, "monday"):
            await push(client, {"speaker": "Ida", "text": "The valve is open.", "message_number": 1})
            await wait_until(published(client, lambda s: s["received_messages"] == 1), "the message is published")
        snapshot = await take_snapshot(client, "monday")
        parts = [part async for part in snapshot.parts()]
        await snapshot.drop()
        counts = await read_shared(client)
        guarded.admin.flushall()
        await restore_shared(client, counts)
        restore = SessionRestore(client, snapshot.header)
        for name, values in parts:
            await restore.write(name, values)
        assert await restore.finish()
        assert await SessionClient(client, "monday").is_known()
    assert guarded.refused() == []


@pytest.mark.engines
async def test_a_listener_can_push_and_nothing_else(guarded: Guarded) -> None:
    async with client_for(guarded.url("listener")) as listener:
        with pytest.raises(Exception, match="no permissions"):
            await listener.get("context_builder:monday:state")


def test_every_command_of_the_scripts_is_granted_to_a_daemon() -> None:
    scripts = resources.files("context_builder.session.store")
    sources = [each.read_text() for each in scripts.iterdir() if each.name.endswith(".lua")]
    called = {name.lower() for source in sources for name in re.findall(r"redis\.p?call\('([A-Z]+)'", source)}
    assert called <= {right[1:] for right in ROLES["daemon"]}


@pytest.mark.engines
async def test_what_info_and_config_would_tell_is_named_where_a_user_may_not_ask(guarded: Guarded) -> None:
    async with client_for(guarded.url("daemon")) as client:
        assert (await check_server(client))[0].isdigit()
        found = await durability_of(client)
    assert found.faults == []
    assert found.notes == [
        "could not be checked, because this Redis does not allow reading its configuration: "
        "maxmemory-policy, appendonly"
    ]
