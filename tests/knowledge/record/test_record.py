"""What was asked and served is kept, found again, and gone when it is erased or its time is over."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from context_builder.database.migrations import apply
from context_builder.database.postgres import PostgresDatabase
from context_builder.errors import DatabaseRejected, IdempotencyClash
from context_builder.knowledge.artifact import Artifact, ArtifactKind
from context_builder.knowledge.record import PackageRecord
from context_builder.knowledge.store import KnowledgeStore
from context_builder.memory.memory import Memory, MemoryFilter
from context_builder.memory.sql_memory import PostgresMemory
from tests.knowledge.record.samples import ANN, START, TRACE, StoppedClock, begun, body, built, revision, source
from tests.services.postgrest import PostgrestFront
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines


async def everything(database: asyncpg.Connection) -> str:
    """All rows of all tables, as text."""
    tables = await database.fetch("SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'")
    rows = [await database.fetchval(f"SELECT json_agg(t)::text FROM {table['name']} AS t") for table in tables]
    return "\n".join(row for row in rows if row)


async def test_a_package_comes_back_as_it_was_served_with_its_request(either: PackageRecord) -> None:
    shown = [source("artifact:a"), source("message:monday/7", 'Said "so".\n', "Ann"), source("artifact:a", "twice")]
    await begun(either, "cpk_1")
    assert await either.latest("lab", "cpk_1") is None
    assert await either.finish("lab", revision("cpk_1", START, shown)) == 1
    held = await either.latest("lab", "cpk_1")
    assert held is not None
    assert held.body == body("cpk_1", shown) | {"revision": 1}
    assert (held.revision, held.request_id, held.caller, held.task_id) == (1, "cbr_cpk_1", ANN, "task-17")
    assert (held.trace_id, held.governance_version, held.created_at) == (TRACE, "7", START)
    assert held.request["intent"] == "Choose a strategy"


async def test_a_rebuild_is_the_next_revision_and_earlier_ones_stay(either: PackageRecord) -> None:
    await built(either, "cpk_1", START, [source("artifact:a", "First.")])
    later = START + timedelta(days=3)
    assert await either.finish("lab", revision("cpk_1", later, [source("artifact:a", "Second.")], number=2)) == 2
    held = await either.latest("lab", "cpk_1")
    assert held is not None
    assert (held.revision, held.created_at, held.body["sources"][0]["content"]) == (2, later, "Second.")
    audit = await either.audit("lab", "cpk_1")
    assert audit is not None
    assert audit["request"]["status"] == "built"
    assert [one["body"]["sources"][0]["content"] for one in audit["revisions"]] == ["First.", "Second."]
    first = audit["revisions"][0]
    assert [(one["ref"], one["outcome"]) for one in first["candidates"]] == [
        ("artifact:a", "included"), ("artifact:secret", "denied"),
    ]  # fmt: skip
    assert first["candidates"][0]["signals"] == {"semantic": 0.7}
    assert first["decision"]["sources"][1] == {
        "ref": "artifact:secret", "access": "denied", "policies": [], "reason": "no policy permits",
    }  # fmt: skip
    assert first["graph"] == {"nodes": []}


async def test_what_was_never_begun_is_not_finished(either: PackageRecord) -> None:
    with pytest.raises(DatabaseRejected):
        await either.finish("lab", revision("cpk_1", START, []))
    await begun(either, "cpk_1", tenant="club")
    with pytest.raises(DatabaseRejected):
        await either.finish("lab", revision("cpk_1", START, []))


async def test_a_failed_build_leaves_its_request_marked(record: PackageRecord, database: asyncpg.Connection) -> None:
    await begun(record, "cpk_1")
    await record.fail("lab", "cbr_cpk_1", "the budget is too small")
    row = await database.fetchrow("SELECT status, reason FROM context_build_requests")
    assert tuple(row) == ("failed", "the budget is too small")
    await record.finish("lab", revision("cpk_1", START, []))
    await record.fail("lab", "cbr_cpk_1", "too late")
    assert await database.fetchval("SELECT status FROM context_build_requests") == "built"


async def test_packages_are_listed_by_task_trace_and_source_newest_first(
    either: PackageRecord, clock: StoppedClock
) -> None:
    for number in range(5):
        clock.move(days=1)
        await built(
            either, f"cpk_{number}", clock.time, [source(f"artifact:{number % 2}")], task_id=f"task-{number % 2}"
        )

    async def ids(**how: object) -> list[str]:
        return [one.package_id for one in await either.listing("lab", **how)]  # type: ignore[arg-type]

    assert await ids(by="task", value="task-0") == ["cpk_4", "cpk_2", "cpk_0"]
    assert await ids(by="ref", value="artifact:1") == ["cpk_3", "cpk_1"]
    assert await ids(by="ref", value="artifact:secret") == []
    assert await ids(by="trace", value=TRACE, limit=2) == ["cpk_4", "cpk_3"]
    assert await ids(by="trace", value=TRACE, limit=2, before="cpk_3") == ["cpk_2", "cpk_1"]
    assert await either.listing("club", "trace", TRACE) == []


async def test_tenants_know_nothing_of_each_other(either: PackageRecord) -> None:
    await built(either, "cpk_1", START)
    assert await either.latest("club", "cpk_1") is None
    assert await either.audit("club", "cpk_1") is None
    assert not await either.feedback("club", "cpk_1", "ann", 1.0, {"artifact:a": 1.0}, "")
    await either.erase("club", "artifact:a")
    held = await either.latest("lab", "cpk_1")
    assert held is not None
    assert held.body["sources"][0]["content"] == "Label every call."
    await built(either, "cpk_1", START, tenant="club")


async def test_a_key_is_of_the_first_package_for_a_day_and_of_one_caller(
    either: PackageRecord, clock: StoppedClock
) -> None:
    wanted = [either.claim("lab", "ann", "key", "digest", f"cpk_{number}") for number in range(4)]
    assert len(set(await asyncio.gather(*wanted))) == 1
    with pytest.raises(IdempotencyClash):
        await either.claim("lab", "ann", "key", "other", "cpk_9")
    assert await either.claim("lab", "bob", "key", "other", "cpk_8") == "cpk_8"
    assert await either.claim("club", "ann", "key", "other", "cpk_7") == "cpk_7"
    clock.move(hours=24)
    assert await either.claim("lab", "ann", "key", "other", "cpk_9") == "cpk_9"


async def test_an_erased_artifact_is_gone_from_the_record_and_its_verdicts_stay(
    record: PackageRecord, migrated_url: str, database: asyncpg.Connection
) -> None:
    knowledge = KnowledgeStore(PostgresDatabase(migrated_url))
    artifact = Artifact(kind=ArtifactKind.DOCUMENT, title="Peculiar title", content="A peculiar sentence.")
    await knowledge.put("lab", "artifact:p", artifact)
    await built(record, "cpk_1", START, [source("artifact:p", artifact.content, artifact.title), source("artifact:b")])
    await record.feedback("lab", "cpk_1", "ann", 1.0, {}, "It says: a peculiar sentence.")
    assert await knowledge.erase("lab", "artifact:p")
    assert "peculiar" not in (await everything(database)).lower()
    held = await record.latest("lab", "cpk_1")
    assert held is not None
    erased, other = held.body["sources"]
    assert erased == source("artifact:p", "", "")
    audit = await record.audit("lab", "cpk_1")
    assert audit is not None
    told = audit["revisions"][0]["body"]["sources"][0]
    assert (told["ref"], told["content"], told["erased"], len(told["contentDigest"])) == ("artifact:p", "", True, 64)
    assert other == source("artifact:b")
    await knowledge.close()


async def test_a_forgotten_session_is_gone_from_the_record(
    record: PackageRecord, migrated_url: str, database: asyncpg.Connection
) -> None:
    memory = PostgresMemory(migrated_url)
    said = [Memory(id=f"m{n}", text="A peculiar saying.", kind="message", session_id="monday") for n in range(3)]
    await memory.remember("lab", said)
    shown = [source("message:monday/m1", "A peculiar saying."), source("point:monday/1", "A peculiar claim.")]
    await built(record, "cpk_1", START, [*shown, source("message:tuesday/1", "Stays.")])
    await memory.forget("lab", ids=["m0", "m1", "m2"])
    await memory.forget("lab", filter=MemoryFilter(session_id="monday", user_id="ann"))
    assert "peculiar claim" in await everything(database)
    await memory.forget("lab", filter=MemoryFilter(session_id="monday"))
    assert "peculiar" not in await everything(database)
    held = await record.latest("lab", "cpk_1")
    assert held is not None
    assert [one["content"] for one in held.body["sources"]] == ["", "", "Stays."]
    await memory.close()


async def test_forgetting_a_session_on_a_new_day_holds_up_nobody_else(
    migrated_url: str, database: asyncpg.Connection
) -> None:
    memory = PostgresMemory(migrated_url)
    said = [Memory(id=f"m{n}", text="Said.", kind="message", session_id="monday") for n in range(2)]
    await memory.remember("lab", said)
    async with asyncio.TaskGroup() as tasks, database.transaction():  # somebody makes the day's partitions
        await database.execute("SELECT pg_advisory_xact_lock(hashtextextended('context_packages', 0))")
        filters = (MemoryFilter(session_id="monday"), MemoryFilter(session_id="monday", ids=("m0",)))
        for one in filters:
            tasks.create_task(memory.forget("lab", filter=one))

        async def are_waiting() -> bool:
            waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            return bool(await database.fetchval(waiting) == len(filters))

        await wait_until(are_waiting, "both wait for the day's partitions")
        await memory.remember("lab", [Memory(id="m9", text="Said meanwhile.")])
    await memory.close()


async def test_what_is_erased_while_a_package_is_built_does_not_come_back(
    either: PackageRecord, database: asyncpg.Connection
) -> None:
    await begun(either, "cpk_1")
    await either.erase("lab", "artifact:p")
    await either.erase("lab", "session:monday")
    shown = [source("artifact:p", "A peculiar sentence."), source("point:monday/1", "A peculiar claim.")]
    await either.finish("lab", revision("cpk_1", START, [*shown, source("artifact:b")]))
    assert "peculiar" not in await everything(database)
    await begun(either, "cpk_2")
    await either.finish("lab", revision("cpk_2", START, shown))
    assert "peculiar" in await everything(database)


async def test_whoever_writes_first_makes_the_day_also_two_at_once(record: PackageRecord) -> None:
    async def build(number: int) -> None:
        await built(record, f"cpk_{number}", START + timedelta(days=number % 3 - 1), [source(f"artifact:{number}")])

    await asyncio.gather(*(build(number) for number in range(24)))
    assert len(await record.listing("lab", "task", "task-17")) == 24


async def test_days_past_their_time_are_dropped_and_coming_ones_made(
    either: PackageRecord, clock: StoppedClock, database: asyncpg.Connection
) -> None:
    await built(either, "cpk_1", START, [source("artifact:a", "A peculiar sentence.")])
    await either.feedback("lab", "cpk_1", "ann", 1.0, {"artifact:a": 1.0}, "peculiar")
    assert await either.maintain("lab") == 0
    clock.move(days=90)
    assert await either.latest("lab", "cpk_1") is not None
    assert await either.maintain("lab") == 0
    clock.move(days=1)
    assert await either.latest("lab", "cpk_1") is None
    assert await either.audit("lab", "cpk_1") is None
    assert await either.listing("lab", "task", "task-17") == []
    assert await either.maintain("lab") == 5
    assert "peculiar" not in await everything(database)
    assert await database.fetchval("SELECT count(*) FROM policy_audit") == 0
    await built(either, "cpk_2", clock.time)


async def test_an_old_day_in_use_holds_up_nobody(
    record: PackageRecord, clock: StoppedClock, database: asyncpg.Connection
) -> None:
    await built(record, "cpk_1", START)
    clock.move(days=100)
    async with database.transaction():
        await database.fetch("SELECT * FROM context_packages")
        assert await record.maintain("lab") < 5
        await built(record, "cpk_2", clock.time)
    await record.maintain("lab")
    assert await database.fetchval("SELECT to_regclass('context_packages_20211122')") is None


@pytest.mark.parametrize("role", ["context_builder_app", "service_role", "anon"])
async def test_nobody_reaches_the_tables(
    supabase_project: PostgrestFront, database_url: str, database: asyncpg.Connection, role: str
) -> None:
    await apply(database_url)
    record = PackageRecord(PostgresDatabase(database_url), clock=StoppedClock())
    await built(record, "cpk_1", START)
    await record.close()
    await database.execute(f"SET ROLE {role}")
    for table in ("policy_audit", "context_packages", "context_packages_20211122", "context_package_contents"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await database.fetch(f"SELECT * FROM {table}")
    may = await database.fetchval("SELECT has_table_privilege($1, 'policy_audit_20211122', 'TRUNCATE')", role)
    assert not may
    if role != "service_role":  # which only our own servers hold, and which names the tenant it acts for
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await database.fetch("SELECT context_package_latest('lab', 'cpk_1', now())")


async def test_what_json_cannot_hold_is_left_out(either: PackageRecord) -> None:
    await begun(either, "cpk_1")
    await either.finish("lab", revision("cpk_1", START, [source("artifact:a", "NUL \x00, half \ud83d of a pair.")]))
    held = await either.latest("lab", "cpk_1")
    assert held is not None
    assert held.body["sources"][0]["content"] == "NUL , half ? of a pair."
