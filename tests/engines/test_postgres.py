"""The embedded PostgreSQL: its schema, its user, its record."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import psutil
import pytest

from context_builder.archive.postgres import PostgresArchive
from context_builder.database.migrations import apply
from context_builder.database.postgres import PostgresDatabase
from context_builder.engines import postgres
from context_builder.engines.engine import LOOPBACK
from context_builder.engines.postgres import SHARED_BUFFERS, PostgresEngine, find_programs
from context_builder.errors import DatabaseUnavailable, EngineError
from context_builder.wiring.embedded import embedded_database
from tests.archive.rows import summary
from tests.engines.conftest import PostgresSubject
from tests.services.postgres_server import PostgresServer
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root starts PostgreSQL as another user")


async def test_it_takes_the_archive_and_knows_vectors(postgres_subject: PostgresSubject) -> None:
    url = (await asyncio.to_thread(postgres_subject.engine.ensure)).url
    await apply(url)
    archive = PostgresArchive(PostgresDatabase(url))
    await archive.deliver(summary())
    await archive.check()
    await archive.close()

    connection = await asyncpg.connect(url)
    await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    assert await connection.fetchval("SELECT '[3,4]'::vector <-> '[0,0]'") == 5.0
    assert await connection.fetchval("SELECT lower('ÄÖ')") == "äö"
    cache = await connection.fetchval("SELECT pg_size_bytes(current_setting('shared_buffers'))")
    assert cache == min(SHARED_BUFFERS * 2**20, psutil.virtual_memory().total // 8 // 2**20 * 2**20)
    await connection.close()


async def test_nobody_gets_in_without_the_password(postgres_subject: PostgresSubject) -> None:
    url = (await asyncio.to_thread(postgres_subject.engine.ensure)).url
    password = (postgres_subject.home / "postgres.password").read_text()
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(url.replace(password, "guess"))


def test_a_record_whose_process_number_has_been_reused_is_not_believed(postgres_subject: PostgresSubject) -> None:
    postgres_subject.engine.ensure()
    record = postgres_subject.home / "postgres" / "data" / "postmaster.pid"
    lines = record.read_text().splitlines()
    postgres_subject.engine.stop()

    owner = record.parent.stat()
    other = subprocess.Popen(["sleep", "60"], user=owner.st_uid if os.geteuid() == 0 else None)
    record.write_text("\n".join([str(other.pid), *lines[1:]]))
    record.chmod(0o644)
    assert postgres_subject.engine.running() is None
    assert not postgres_subject.engine.stop()
    assert postgres_subject.engine.ensure().started
    assert other.poll() is None, "it was not ours to end"
    other.kill()
    other.wait()


def test_a_record_that_leads_to_a_server_of_others_is_not_believed(
    postgres_subject: PostgresSubject, postgres_server: PostgresServer
) -> None:
    postgres_subject.engine.ensure()
    postgres_subject.engine.stop()
    others = (postgres_server.folder / "data" / "postmaster.pid").read_text()
    (postgres_subject.home / "postgres" / "data" / "postmaster.pid").write_text(others)
    assert postgres_subject.engine.running() is None
    assert not postgres_subject.engine.stop()


def test_a_creation_that_was_interrupted_is_begun_again(postgres_subject: PostgresSubject) -> None:
    unfinished = postgres_subject.home / "postgres" / "data.creating"
    unfinished.mkdir(parents=True)
    (unfinished / "PG_VERSION").write_text("18")
    assert postgres_subject.engine.ensure().started


@as_root
def test_run_by_root_it_is_an_unprivileged_process(postgres_subject: PostgresSubject) -> None:
    postgres_subject.engine.ensure()
    process = psutil.Process(postgres_subject.pid)
    assert 0 not in (process.uids().effective, process.gids().effective)
    assert (postgres_subject.home / "postgres").stat().st_uid == process.uids().effective


@as_root
def test_a_home_its_user_cannot_enter_is_named_and_left_as_it_is(home: Path) -> None:
    closed = home / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(EngineError, match=f"cannot enter {closed}; set CONTEXT_BUILDER_HOME"):
        PostgresEngine(closed / "home").ensure()
    assert closed.stat().st_mode & 0o777 == 0o700


@as_root
def test_programs_its_user_cannot_reach_are_copied_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "is_open_to_all", lambda _: False)
    folder = home / "postgres"
    folder.mkdir(mode=0o700)
    for _ in range(2):
        programs = find_programs(home, folder)
        assert programs.binaries.is_relative_to(home)
        assert "PostgreSQL" in programs.run("postgres", "--version")


def test_a_lost_password_is_said_instead_of_made_up(postgres_subject: PostgresSubject) -> None:
    postgres_subject.engine.ensure()
    postgres_subject.engine.stop()
    (postgres_subject.home / "postgres.password").unlink()
    with pytest.raises(EngineError, match=r"postgres\.password is missing; restore it, or move .*data away"):
        postgres_subject.engine.ensure()


async def test_who_uses_it_goes_on_after_it_was_killed_and_moved(postgres_subject: PostgresSubject) -> None:
    database = embedded_database(postgres_subject.home)
    url = await database.start()
    archive = PostgresArchive(PostgresDatabase(database))
    await archive.deliver(summary())
    os.kill(postgres_subject.pid, signal.SIGKILL)
    with await wait_until(lambda: _taken(url), "somebody else has its port"):
        await wait_until(lambda: _takes(archive), "it is started again elsewhere")
    await asyncio.to_thread(postgres_subject.engine.stop)
    assert not await _takes(archive), "who stopped it wants it so"
    await archive.close()


def _taken(url: str) -> socket.socket | None:
    try:
        return socket.create_server((LOOPBACK, urlsplit(url).port or 0))
    except OSError:
        return None


async def _takes(archive: PostgresArchive) -> bool:
    try:
        await archive.deliver(summary(2))
    except DatabaseUnavailable:
        return False
    return True
