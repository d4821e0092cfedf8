"""``audit verify`` names the row that was altered or removed; ``audit anchors`` exports what cannot be forged later."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
import pytest
from typer.testing import CliRunner, Result

from context_builder.cli import app
from context_builder.database.postgres import PostgresDatabase
from context_builder.knowledge.record import PackageRecord
from tests.knowledge.record.samples import StoppedClock, built

pytestmark = pytest.mark.engines


@pytest.fixture
async def audited(migrated_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PackageRecord]:
    """A record of two packages, of yesterday and today."""
    monkeypatch.setenv("DATABASE_URL", migrated_url)
    clock = StoppedClock()
    record = PackageRecord(PostgresDatabase(migrated_url), clock=clock)
    for day in (1, 0):
        clock.time = datetime.now(UTC) - timedelta(days=day)
        await built(record, f"cpk_{day}", clock.time)
    yield record
    await record.close()


def audit(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["audit", *arguments, "--tenant", "lab"])


# Not async: a command runs an event loop of its own.
@pytest.fixture
def tampering(audited: PackageRecord, migrated_url: str) -> str:
    return migrated_url


def tamper(url: str, sql: str) -> None:
    import asyncio

    async def change() -> None:
        connection = await asyncpg.connect(url)
        await connection.execute(f"SET session_replication_role = replica; {sql}")
        await connection.close()

    asyncio.run(change())


def test_an_intact_audit_says_so(tampering: str) -> None:
    told = audit("verify")
    assert (told.exit_code, told.stdout) == (0, "The audit of lab is intact: 6 rows.\n")


def test_an_altered_row_is_named_and_the_status_is_1(tampering: str) -> None:
    tamper(tampering, "UPDATE policy_audit SET access = 'read' WHERE seq = 2")
    told = audit("verify")
    assert told.exit_code == 1
    assert "The audit of lab is broken: row 2 of" in told.stdout
    assert "was altered (decision pdn_cpk_1_1, package cpk_1, source artifact:secret)" in told.stdout
    found = json.loads(audit("verify", "--json").stdout)
    assert (found["intact"], found["findings"][0]["kind"], found["findings"][0]["first"]) == (False, "altered", 2)


def test_a_removed_row_is_named(tampering: str) -> None:
    tamper(tampering, "DELETE FROM policy_audit WHERE seq = 6")
    told = audit("verify")
    assert told.exit_code == 1
    assert "row 6 was removed" in told.stdout


def test_exported_anchors_are_verified_against(tampering: str, tmp_path: Path) -> None:
    exported = tmp_path / "anchors.jsonl"
    exported.write_text(audit("anchors").stdout)
    assert json.loads(exported.read_text())["count"] == 3
    assert audit("verify", "--anchor", str(exported)).exit_code == 0
    exported.write_text(exported.read_text().replace("sha256:", "sha256:00", 1))
    told = audit("verify", "--anchor", str(exported))
    assert told.exit_code == 1
    assert "rows 1 to 3" in told.stdout
    exported.write_text("nonsense")
    told = audit("verify", "--anchor", str(exported))
    assert told.exit_code == 1
    assert "line 1: not an anchor" in told.stderr
