"""Who alters or removes a row of the audit, be it as superuser, is found out, and the row is named."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

import asyncpg
import pytest

from context_builder.database.database import Database
from context_builder.errors import AuditAnchorError
from context_builder.knowledge.audit_chain import Anchor, AuditReport, anchors_of, lines_of, read_anchors, verify
from context_builder.knowledge.governance.decision import Access, AccessDecision
from context_builder.knowledge.record import PackageRecord
from context_builder.knowledge.revision import RecordedCaller
from tests.knowledge.record.samples import START, StoppedClock, begun, built, revision, source

pytestmark = pytest.mark.engines

BEFORE_ALL = date(2000, 1, 1)


async def three_days(record: PackageRecord, clock: StoppedClock) -> None:
    """Three packages, one a day, of three rows each: two sources and the package."""
    for number in range(3):
        await built(record, f"cpk_{number}", clock.time, [source("artifact:a")])
        clock.move(days=1)


async def report(record: PackageRecord, exported: list[Anchor] | None = None, tenant: str = "lab") -> AuditReport:
    return await verify(record._database, tenant, oldest=BEFORE_ALL, exported=exported or [])


async def tampered(database: asyncpg.Connection, sql: str) -> None:
    """What a superuser does who knows his way."""
    async with database.transaction():
        await database.execute("SET LOCAL session_replication_role = replica")
        await database.execute(sql)


async def found(record: PackageRecord, exported: list[Anchor] | None = None) -> list[tuple[str, int, int]]:
    return [(one.kind, one.first, one.last) for one in (await report(record, exported)).findings]


async def rewrite(database: asyncpg.Connection, first: int) -> None:
    """Compute all hashes from a row on anew, as one would to hide a change, in the anchors and the head, too."""
    rows = await database.fetch(
        "SELECT p.*, context_package_audit_line(p) AS line FROM policy_audit AS p WHERE seq >= $1 ORDER BY seq", first
    )
    previous = rows[0]["previous"]
    async with database.transaction():
        await database.execute("SET LOCAL session_replication_role = replica")
        for row in rows:
            digest = hashlib.sha256(previous + row["line"].encode()).digest()
            change = "UPDATE policy_audit SET previous = $1, digest = $2 WHERE seq = $3"
            await database.execute(change, previous, digest, row["seq"])
            await database.execute("UPDATE policy_audit_anchors SET digest = $1 WHERE seq = $2", digest, row["seq"])
            previous = digest
        await database.execute("UPDATE policy_audit_heads SET digest = $1", previous)


async def test_what_nobody_touched_is_intact(either: PackageRecord, clock: StoppedClock, tmp_path: Path) -> None:
    assert (await report(either)).is_intact
    await three_days(either, clock)
    await either.finish("lab", revision("cpk_0", clock.time, [source("artifact:a")], number=2))
    await built(either, "cpk_0", clock.time, tenant="club")
    whole = await report(either)
    assert (whole.is_intact, whole.rows, whole.first) == (True, 12, 1)
    assert (await report(either, tenant="club")).rows == 3
    exported = await anchors_of(either._database, "lab")
    assert [(one.day, one.seq, one.count) for one in exported] == [
        ("2021-11-22", 3, 3), ("2021-11-23", 6, 3), ("2021-11-24", 9, 3),
    ]  # fmt: skip
    assert (await report(either, exported)).is_intact
    (tmp_path / "anchors.jsonl").write_text("\n".join(lines_of(exported)))
    assert read_anchors(tmp_path / "anchors.jsonl") == exported


async def test_erased_content_leaves_the_chain_as_it_was(either: PackageRecord, clock: StoppedClock) -> None:
    await three_days(either, clock)
    await either.erase("lab", "artifact:a")
    assert (await report(either)).is_intact


async def test_an_altered_and_a_removed_row_are_named(
    record: PackageRecord, clock: StoppedClock, database: asyncpg.Connection
) -> None:
    await three_days(record, clock)
    await tampered(database, "UPDATE policy_audit SET access = 'read' WHERE seq = 2")
    assert await found(record) == [("altered", 2, 2)]
    await tampered(database, "DELETE FROM policy_audit WHERE seq = 5")
    assert await found(record) == [("altered", 2, 2), ("removed", 5, 5)]
    assert str((await report(record)).findings[0]) == (
        "row 2 of 2021-11-22 was altered (decision pdn_cpk_0_1, package cpk_0, source artifact:secret)"
    )


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ("DELETE FROM policy_audit WHERE seq = 1", ("removed", 1, 1)),
        ("DELETE FROM policy_audit WHERE seq IN (3, 4)", ("removed", 3, 4)),
        ("DELETE FROM policy_audit WHERE seq = 9", ("removed", 9, 9)),
        ("DELETE FROM policy_audit", ("removed", 1, 9)),
        ("DELETE FROM policy_audit WHERE day = '2021-11-22'; DELETE FROM policy_audit_anchors", ("removed", 1, 3)),
        ("DROP TABLE policy_audit_20211123", ("removed", 4, 6)),
        ("UPDATE policy_audit SET previous = digest WHERE seq = 4", ("altered", 4, 4)),
        ("UPDATE policy_audit SET seq = 77 WHERE seq = 9", ("removed", 9, 9)),
        ("UPDATE policy_audit SET at = at + interval '1 us' WHERE seq = 9", ("altered", 9, 9)),
        ("UPDATE policy_audit SET reason = E'a\\tb\\nc' WHERE seq = 7", ("altered", 7, 7)),
        ("UPDATE policy_audit SET version = NULL WHERE seq = 7", ("altered", 7, 7)),
        (
            "UPDATE policy_audit AS p SET caller = 'eve', digest = sha256(previous || convert_to(replace("
            "context_package_audit_line(p), E'\\tann\\t', E'\\teve\\t'), 'UTF8')) WHERE seq = 4",
            ("altered", 4, 4),
        ),
        ("UPDATE policy_audit_heads SET digest = ''", ("altered", 9, 9)),
        ("UPDATE policy_audit_anchors SET digest = '' WHERE seq = 3", ("rewritten", 1, 3)),
    ],
)
async def test_whatever_is_tampered_with_is_found(
    record: PackageRecord, clock: StoppedClock, database: asyncpg.Connection, change: str, finding: tuple[str, int, int]
) -> None:
    await three_days(record, clock)
    await tampered(database, change)
    assert (await found(record))[0] == finding


async def test_a_chain_that_was_written_anew_is_not_the_one_that_was_exported(
    record: PackageRecord, clock: StoppedClock, database: asyncpg.Connection
) -> None:
    await three_days(record, clock)
    await record.maintain("lab")
    exported = await anchors_of(record._database, "lab")
    await tampered(database, "UPDATE policy_audit SET caller = 'eve' WHERE seq = 5")
    await rewrite(database, 5)
    assert await found(record) == []
    assert await found(record, exported) == [("rewritten", 4, 6)]
    await tampered(database, "DELETE FROM policy_audit WHERE seq > 6")
    await tampered(
        database, "UPDATE policy_audit_heads SET (seq, digest) = (SELECT seq, digest FROM policy_audit WHERE seq = 6)"
    )
    await tampered(database, "DELETE FROM policy_audit_anchors WHERE seq > 6")
    assert await found(record, exported) == [("rewritten", 4, 6), ("removed", 7, 9)]


async def test_after_old_days_are_dropped_it_begins_at_the_oldest_anchor(
    either: PackageRecord, clock: StoppedClock
) -> None:
    await three_days(either, clock)
    clock.move(days=89)
    await either.maintain("lab")
    oldest = (clock.time - timedelta(days=90)).date()
    left = await verify(either._database, "lab", oldest=oldest)
    assert (left.is_intact, left.first, left.rows) == (True, 7, 3)
    assert [one.seq for one in await anchors_of(either._database, "lab")] == [6, 9]
    await built(either, "cpk_9", clock.time)
    clock.move(days=10)
    await either.maintain("lab")
    assert (await verify(either._database, "lab", oldest=(clock.time - timedelta(days=90)).date())).first == 10


async def test_days_removed_as_if_their_time_were_over_are_missed(
    record: PackageRecord, clock: StoppedClock, database: asyncpg.Connection
) -> None:
    await three_days(record, clock)
    await record.maintain("lab")
    exported = await anchors_of(record._database, "lab")
    oldest = START.date()
    await tampered(database, "DROP TABLE policy_audit_20211122; DELETE FROM policy_audit_anchors WHERE seq = 3")
    change = (
        "UPDATE policy_audit_anchors SET day = day - 100, digest = (SELECT previous FROM policy_audit WHERE seq = 7)"
    )
    await tampered(database, f"{change} WHERE seq = 6; DELETE FROM policy_audit WHERE seq < 7")
    assert (await verify(record._database, "lab", oldest=oldest)).is_intact
    found = await verify(record._database, "lab", oldest=oldest, exported=exported)
    assert [(one.kind, one.first, one.last) for one in found.findings] == [("removed", 1, 3), ("removed", 4, 6)]


async def test_a_forged_beginning_is_not_the_exported_one(
    record: PackageRecord, clock: StoppedClock, database: asyncpg.Connection
) -> None:
    await three_days(record, clock)
    clock.move(days=89)
    await record.maintain("lab")
    exported = await anchors_of(record._database, "lab")
    await tampered(database, "UPDATE policy_audit SET caller = 'eve', previous = sha256('') WHERE seq = 7")
    await tampered(database, "UPDATE policy_audit_anchors SET digest = sha256('') WHERE seq = 6")
    await rewrite(database, 7)
    oldest = (clock.time - timedelta(days=90)).date()
    assert (await verify(record._database, "lab", oldest=oldest)).is_intact
    found = await verify(record._database, "lab", oldest=oldest, exported=exported)
    first = found.findings[0]
    assert (first.kind, first.first, first.last) == ("rewritten", 4, 6)


async def test_a_day_closes_once_though_nothing_follows(
    either: PackageRecord, clock: StoppedClock, database: asyncpg.Connection
) -> None:
    await built(either, "cpk_0", START)
    for _ in range(3):
        await either.maintain("lab")
        clock.move(days=1)
    events = await database.fetch("SELECT subject, data FROM context_package_events WHERE type = 'AuditAnchored'")
    assert [one["subject"] for one in events] == ["2021-11-22"]
    await built(either, "cpk_1", clock.time)
    assert (await report(either)).is_intact


async def test_rows_of_a_server_whose_clock_is_late_are_in_order(functions: Database, clock: StoppedClock) -> None:
    record, late = PackageRecord(functions, clock=clock), PackageRecord(functions, clock=StoppedClock())
    clock.move(days=1)
    await built(record, "cpk_0", clock.time)
    await built(late, "cpk_1", START)
    assert (await report(record)).is_intact


async def test_the_table_refuses_changes(record: PackageRecord, database: asyncpg.Connection) -> None:
    await built(record, "cpk_0", START)
    for change in ("UPDATE policy_audit SET access = 'read'", "DELETE FROM policy_audit", "TRUNCATE policy_audit"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="append-only"):
            await database.execute(change)


async def test_what_cannot_be_told_from_another_field_is_not_in_a_row(record: PackageRecord) -> None:
    built_by_eve = revision("cpk_0", START, [source("artifact:a")])
    eve = RecordedCaller("eve\tartifact:a\n")
    await begun(record, "cpk_0")
    await record.finish("lab", replace(built_by_eve, decision=replace(built_by_eve.decision, caller=eve)))
    assert (await report(record)).is_intact


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"tenantId": "lab"}', '{"tenantId":"l","day":"x","seq":1,"count":1,"hash":""}']
)
def test_a_file_that_is_none_of_anchors_is_refused_by_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "anchors.jsonl").write_text(f"\n{text}")
    with pytest.raises(AuditAnchorError, match="line 2: not an anchor"):
        read_anchors(tmp_path / "anchors.jsonl")


TOLD = {
    "request": "UPDATE context_build_requests SET request = request || '{\"intent\": \"\"}' WHERE id = 'cbr_cpk_1'",
    "caller": "UPDATE context_build_requests SET caller = 'eve' WHERE id = 'cbr_cpk_1'",
    "roles": "UPDATE policy_decisions SET roles = '{admin}' WHERE package_id = 'cpk_1'",
    "decision": "UPDATE policy_decisions SET sources = '[]' WHERE package_id = 'cpk_1'",
    "verdicts": "UPDATE context_packages SET candidates = '[]' WHERE id = 'cpk_1'",
    "graph": "UPDATE context_packages SET graph = '{\"nodes\": [1]}' WHERE id = 'cpk_1'",
    "its request": "UPDATE context_package_heads SET request_id = 'cbr_cpk_2' WHERE package_id = 'cpk_1'",
    "its age": "UPDATE context_package_heads SET created_at = '2001-01-01' WHERE package_id = 'cpk_1'",
    "package": "UPDATE context_packages SET body = body || '{\"denied\": 0}' WHERE id = 'cpk_1'",
}


@pytest.mark.parametrize("what", TOLD)
async def test_what_an_audit_tells_cannot_be_altered_unseen(
    record: PackageRecord, clock: StoppedClock, database: asyncpg.Connection, what: str
) -> None:
    await three_days(record, clock)
    await tampered(database, TOLD[what])
    assert await found(record) == [("altered", 6, 6)]
    await rewrite(database, 1)
    assert await found(record) == [("altered", 6, 6)]


async def test_a_text_that_was_shown_cannot_be_altered_or_come_back_unseen(
    record: PackageRecord, clock: StoppedClock, database: asyncpg.Connection
) -> None:
    await three_days(record, clock)
    await built(record, "cpk_9", clock.time, [source("artifact:z")])
    await tampered(database, "UPDATE context_package_contents SET content = 'Sell all.' WHERE ref = 'artifact:z'")
    assert await found(record) == [("altered", 12, 12)]
    assert "the text of artifact:z" in str((await report(record)).findings[0])
    await record.erase("lab", "artifact:z")
    assert (await report(record)).is_intact


async def test_a_text_that_was_deleted_is_told_from_one_that_was_erased(
    record: PackageRecord, clock: StoppedClock, database: asyncpg.Connection
) -> None:
    await three_days(record, clock)
    await built(record, "cpk_9", clock.time, [source("artifact:z"), source("message:monday/7")])
    await record.erase("lab", "session:monday")
    assert (await report(record)).is_intact
    await tampered(database, "DELETE FROM context_package_contents WHERE ref = 'artifact:z'")
    assert await found(record) == [("removed", 13, 13)]
    assert "the text of artifact:z, of which no erasure is on record" in str((await report(record)).findings[0])


async def test_an_erasure_is_part_of_the_chain_and_one_that_is_not_excuses_nothing(
    record: PackageRecord, clock: StoppedClock, database: asyncpg.Connection
) -> None:
    await three_days(record, clock)
    await record.erase("lab", "artifact:a")
    assert await database.fetchval("SELECT ref FROM policy_audit WHERE access = 'erased'") == "artifact:a"
    clock.time = datetime.now(UTC)
    await built(record, "cpk_9", clock.time, [source("artifact:z")])
    forged = "INSERT INTO context_package_erasures VALUES ('lab', 'artifact:z', now())"
    await tampered(database, f"DELETE FROM context_package_contents WHERE ref = 'artifact:z'; {forged}")
    assert "the text of artifact:z, of which no erasure is on record" in str((await report(record)).findings[0])
    await record.erase("lab", "artifact:z")
    assert (await report(record)).is_intact
    await tampered(database, "DELETE FROM policy_audit WHERE access = 'erased' AND ref = 'artifact:a'")
    assert not (await report(record)).is_intact


async def test_what_is_struck_together_is_one_row_that_excuses_each_of_it_and_nothing_else(
    record: PackageRecord, clock: StoppedClock, database: asyncpg.Connection
) -> None:
    await three_days(record, clock)
    await record.erase("lab", "artifact:a")
    clock.time = datetime.now(UTC)
    refs = ["message:monday/1", "message:mon\tday/2", "point:monday/3", "message:monday/4", "artifact:z"]
    await built(record, "cpk_9", clock.time, [source(ref) for ref in refs])
    struck = ["message:monday/1", "message:mon\tday/2"]
    for said in (struck, []):  # at the second time, there is nothing left of it
        await record._database.call("context_package_strike", "lab", {"session": "monday", "said": said})
    assert await database.fetchval("SELECT count(*) FROM policy_audit WHERE access = 'erased'") == 2
    left = [row["ref"] for row in await database.fetch("SELECT ref FROM context_package_contents ORDER BY ref")]
    assert left == ["artifact:z", "message:monday/4"]
    assert (await report(record)).is_intact
    forged = "INSERT INTO context_package_erasures VALUES ('lab', 'message:monday/4', now())"
    await tampered(database, f"DELETE FROM context_package_contents WHERE ref = 'message:monday/4'; {forged}")
    assert "the text of message:monday/4, of which" in str((await report(record)).findings[0])
    await record.erase("lab", "message:monday/4")
    await tampered(database, "DELETE FROM policy_audit WHERE reason LIKE '[\"message:%'")
    assert not (await report(record)).is_intact


async def test_of_each_missing_text_its_own_erasure_is_read_and_not_all(
    record: PackageRecord, clock: StoppedClock, database: asyncpg.Connection
) -> None:
    clock.time = datetime.now(UTC)
    packages = {f"cpk_{number}": [f"message:s{number}/{place}" for place in range(20)] for number in range(10)}
    for name, refs in packages.items():
        await built(record, name, clock.time, [source(ref) for ref in refs])
    for refs in packages.values():
        for ref in refs:
            await record.erase("lab", ref)
    read = (
        "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'context_package_erasures'"
    )
    async with database.transaction():
        await database.execute("SELECT set_config('context_builder.tenant', 'lab', true)")
        told = await database.fetch("SELECT context_package_audit_told('lab', 0, 0, 200) AS row")
        assert len(told) == len(packages)
        assert await database.fetchval(read) <= 2 * sum(map(len, packages.values()))


async def test_a_denial_of_a_ref_with_control_characters_is_told_once(
    either: PackageRecord, clock: StoppedClock
) -> None:
    known, unknown = "message:mon\tday/1", "message:mon\nday/2"
    await begun(either, "cpk_1")
    await either.finish("lab", revision("cpk_1", clock.time, [source("artifact:a")], denied=[known]))
    denied = [AccessDecision(ref, Access.DENIED, (), "no policy permits") for ref in (known, unknown, unknown)]
    for _ in range(2):
        await either.deny("lab", "cpk_1", 1, denied, {})
    audit = await either.audit("lab", "cpk_1")
    assert audit is not None
    refs = [one["ref"] for one in audit["revisions"][0]["decision"]["sources"]]
    assert refs == ["artifact:a", known, unknown.replace("\n", " ")]


async def test_a_package_to_which_nothing_leads_any_more_is_named(
    record: PackageRecord, clock: StoppedClock, database: asyncpg.Connection
) -> None:
    await three_days(record, clock)
    await tampered(database, "DELETE FROM context_package_heads WHERE package_id = 'cpk_1'")
    assert await found(record) == [("removed", 6, 6)]


async def test_a_package_that_was_built_is_not_told_to_have_failed(
    record: PackageRecord, clock: StoppedClock, database: asyncpg.Connection
) -> None:
    await three_days(record, clock)
    await tampered(database, "UPDATE context_build_requests SET (status, reason) = ('failed', 'forged')")
    audit = await record.audit("lab", "cpk_1")
    assert audit is not None
    assert (audit["request"]["status"], audit["request"]["reason"]) == ("built", "")


async def test_a_decision_that_was_removed_is_named(
    record: PackageRecord, clock: StoppedClock, database: asyncpg.Connection
) -> None:
    await three_days(record, clock)
    await tampered(database, "DELETE FROM policy_decisions WHERE package_id = 'cpk_1'")
    assert await found(record) == [("removed", 6, 6)]


async def test_who_calls_functions_cannot_have_the_audit_dropped(
    either: PackageRecord, clock: StoppedClock, database: asyncpg.Connection
) -> None:
    clock.time = datetime.now(UTC) - timedelta(days=30)
    await three_days(either, clock)
    far = {"now": datetime(2099, 1, 1, tzinfo=UTC), "oldest": date(2098, 12, 30)}
    assert await either._database.call("context_package_maintain", "lab", far) == [0]
    await either._database.call("context_package_anchors", "lab", {"at": far["now"]})
    clock.time = datetime.now(UTC)
    await built(either, "cpk_now", clock.time)
    assert (await report(either)).is_intact
    assert await database.fetchval("SELECT count(*) FROM policy_audit") == 12
    await database.execute("SELECT context_package_retain(7)")  # as the owner, with `migrate`
    assert await either._database.call("context_package_maintain", "lab", far) == [15]


RECORD = (
    *("policy_audit", "policy_audit_20211123", "policy_audit_heads", "policy_audit_anchors", "policy_decisions"),
    *("context_build_requests", "context_packages", "context_package_heads", "context_package_contents"),
    *("context_package_erasures", "context_package_retention"),
)
"""Tables that an audit tells from."""

STATEMENTS = (
    *("SELECT FROM {}", "SELECT FROM {} FOR UPDATE", "DELETE FROM {}", "TRUNCATE {}", "DROP TABLE {} CASCADE"),
    *("ALTER TABLE {} DISABLE TRIGGER ALL", "ALTER TABLE {} DISABLE ROW LEVEL SECURITY", "LOCK TABLE {}"),
    *("INSERT INTO {} DEFAULT VALUES", "CREATE RULE gone AS ON INSERT TO {} DO INSTEAD NOTHING"),
    *("CREATE TRIGGER gone BEFORE INSERT ON {} EXECUTE FUNCTION suppress_redundant_updates_trigger()",),
)
ON_THE_DATABASE = (
    *("UPDATE policy_audit SET access = 'read'", "UPDATE context_package_retention SET days = 1"),
    *("SET session_replication_role = replica", "SELECT context_package_retain(1)", "SELECT context_package_daily()"),
    *("DROP FUNCTION context_package_audit_line(policy_audit)", "ALTER ROLE context_builder_app BYPASSRLS"),
    *("CREATE FUNCTION public.sha256(bytea) RETURNS bytea LANGUAGE sql AS $$SELECT ''::bytea$$", "DROP SCHEMA public"),
    *("CREATE OR REPLACE FUNCTION context_package_day(timestamptz) RETURNS date LANGUAGE sql AS 'SELECT now()::date'",),
)


async def test_the_application_s_role_can_change_nothing_that_the_audit_proves(
    record: PackageRecord, clock: StoppedClock, database: asyncpg.Connection
) -> None:
    await three_days(record, clock)
    await database.execute("SET SESSION AUTHORIZATION context_builder_app")
    for statement in (*(one.format(table) for one in STATEMENTS for table in RECORD), *ON_THE_DATABASE):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with database.transaction():
                await database.execute(statement)
    assert (await report(record)).is_intact


async def test_what_the_application_s_role_may_call_removes_nothing_that_the_audit_proves(
    record: PackageRecord, clock: StoppedClock, database: asyncpg.Connection
) -> None:
    clock.time = datetime.now(UTC) - timedelta(days=30)
    await three_days(record, clock)
    before = await record.audit("lab", "cpk_1")
    await database.execute("SET SESSION AUTHORIZATION context_builder_app")
    await database.execute("SET context_builder.tenant = 'lab'; CREATE TEMP TABLE policy_audit (seq bigint)")
    for call in (
        "SELECT context_package_maintain('lab', '2099-01-01', '2098-12-30')",
        "SELECT context_package_maintain('lab', '1970-01-01', '2098-12-30')",
        "SELECT context_package_maintain('lab', 'infinity', 'infinity')",
        "SELECT context_package_anchors('lab', '2099-01-01')",
        "SELECT context_package_fail('lab', 'cbr_cpk_1', 'forged', '2099-01-01')",
    ):
        await database.execute(call)
    assert await record.audit("lab", "cpk_1") == before
    whole = await report(record)
    assert (whole.is_intact, whole.rows) == (True, 9)


COLUMNS = """SELECT table_name, column_name, udt_name FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name = ANY ($1) ORDER BY 1, ordinal_position"""
FORGED_AS = {
    "text": "coalesce({0}, '') || 'x'",
    "_text": "{0} || '{{x}}'",
    "int4": "coalesce({0}, 0) + 1",
    "int8": "coalesce({0}, 0) + 1",
    "date": "{0} + 1",
    "timestamptz": "{0} + interval '1 hour'",
    "bytea": "sha256({0})",
    "bool": "NOT {0}",
    "jsonb": "CASE jsonb_typeof({0}) WHEN 'array' THEN {0} - 0 ELSE {0} || '{{\"denied\": 7}}' END",
}
"""What a column's value becomes, by its type."""

TELL_NOTHING: Final = frozenset(
    {
        *(("context_build_requests", column) for column in ("status", "reason", "begun_at", "erasures_are_kept")),
        *(("context_package_contents", column) for column in ("session_id", "last_day")),
        *(("context_package_heads", column) for column in ("day", "first_day", "refs", "revision")),
        *(("context_package_erasures", column) for column in ("tenant_id", "ref", "erased_at")),
        ("policy_audit_heads", "day"),
    }
)
"""Columns by which something is found, kept or erased: no audit tells of them."""


async def test_every_column_that_an_audit_tells_from_is_named_where_it_is_forged(
    record: PackageRecord, clock: StoppedClock, database: asyncpg.Connection
) -> None:
    await three_days(record, clock)
    await record.maintain("lab")
    tables = [one for one in RECORD if one not in ("policy_audit_20211123", "context_package_retention")]
    unseen = []
    for table, column, kind in await database.fetch(COLUMNS, tables):
        before = [await record.audit("lab", f"cpk_{number}") for number in range(3)]
        await database.execute(f"CREATE TEMP TABLE kept AS TABLE {table}")
        forged = f"UPDATE {table} SET {column} = {FORGED_AS[kind].format(column)} WHERE true"
        try:
            await tampered(database, forged)
        except (asyncpg.IntegrityConstraintViolationError, asyncpg.ObjectNotInPrerequisiteStateError):
            pass  # there is another row, or no partition for it
        else:
            after = [await record.audit("lab", f"cpk_{number}") for number in range(3)]
            if (await report(record)).is_intact:
                unseen.append((table, column, before != after))
        await tampered(database, f"DELETE FROM {table}; INSERT INTO {table} TABLE kept; DROP TABLE kept")
        assert (await report(record)).is_intact
    assert [one for one in unseen if one[:2] not in TELL_NOTHING or one[2]] == [], unseen
