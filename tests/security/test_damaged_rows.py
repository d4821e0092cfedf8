"""Whatever somebody writes into rows of knowledge and packages, only what needs such a row fails, and names it."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final

import asyncpg
import httpx
import pytest
from redis.asyncio import Redis

from context_builder.database.database import readable_rows, reading_row
from context_builder.errors import RowDamaged
from context_builder.knowledge.artifact import StoredArtifact
from context_builder.server.access.caller import Role
from tests.damage import damaged
from tests.server.page.conftest import logged_in
from tests.services.api_server import ApiServer

TENANT: Final = "rows"
WRONG: Final = (None, True, -1, 1e300, 10**400, "x", "9" * 400, [[]], {"x": {}})
"""Values of other types, and numbers beyond what is counted."""

NESTED: Final = json.loads("[" * 200 + "]" * 200)
LOOKED_AT: Final = 3
"""Damages of a column of which every route is asked."""

FINE: Final = (200, 404, 409)
BUILD: Final = {"intent": "Where does the otter sleep?", "tokenBudget": 2_000, "pinned": ["artifact:otter"]}


class Rows:
    """Asks for everything that is made of the rows of a package, which the owner of the tables damages."""

    def __init__(self, admin: httpx.AsyncClient, page: httpx.AsyncClient, database: asyncpg.Connection, redis: Redis):
        self.admin = admin
        self.page = page
        self.database = database
        self.redis = redis
        self.package_id = ""

    async def store(self) -> None:
        """Store two documents that are joined, and a package of them with an audit and feedback."""
        for name in ("otter", "kelp"):
            body = {"kind": "document", "title": f"The {name}", "content": f"The {name} sleeps. " * 40, "tags": ["sea"]}
            (await self.admin.put(f"/knowledge/artifacts/artifact:{name}", json=body)).raise_for_status()
        edge = {"from": "artifact:otter", "to": "artifact:kelp", "type": "depends_on"}
        assessed = {"ref": "artifact:otter", "quality": 1, "assessor": "Ann"}
        said = {"outcome": 1, "helped": {"artifact:otter": 1}, "note": "It helped."}
        (await self.admin.put("/knowledge/edges", json=[edge])).raise_for_status()
        (await self.admin.post("/knowledge/assessments", json=assessed)).raise_for_status()
        (
            await self.admin.put("/knowledge/policies/more", content="permit(principal, action, resource);")
        ).raise_for_status()
        built = (await self.admin.post("/knowledge/context/build", json=BUILD)).raise_for_status()
        self.package_id = str(built.json()["contextPackageId"])
        path = f"/knowledge/context/{self.package_id}/feedback"
        (await self.admin.post(path, json=said)).raise_for_status()

    async def failures(self, table: str) -> list[tuple[str, int, str]]:
        """Which routes fail otherwise than by naming a row of the table."""
        await self.redis.delete(f"context_builder:package:{self.package_id}")
        path = f"/knowledge/context/{self.package_id}"
        gets = ("/knowledge/outcomes", "/knowledge/context?ref=artifact:otter", f"{path}/audit", path)
        gets += (
            "/knowledge/artifacts/artifact:otter",
            "/knowledge/artifacts/artifact:kelp",
            "/knowledge/policies/more",
        )
        pages = ("/ui/packages", f"/ui/packages/{self.package_id}", "/ui/packages/outcomes")
        answers = [(one, await self.admin.get(one)) for one in gets]
        answers += [(one, await self.page.get(one)) for one in pages]
        answers.append(("build", await self.admin.post("/knowledge/context/build", json=BUILD)))
        return [
            (asked, one.status_code, one.text[:300])
            for asked, one in answers
            if one.status_code not in FINE and not (one.status_code == 503 and table in one.text)
        ]


@pytest.fixture
async def rows(own_api: ApiServer, redis: Redis) -> AsyncIterator[Rows]:
    database = await asyncpg.connect(own_api.database_url)
    await database.execute("SET session_replication_role = replica")  # no trigger stops who owns the tables
    admin = own_api.client(own_api.key(Role.ADMIN, TENANT), timeout=60)
    page = own_api.client(timeout=60)
    await logged_in(own_api, page, own_api.key(Role.ADMIN, TENANT))
    stored = Rows(admin, page, database, redis)
    await stored.store()
    yield stored
    for one in (admin, page):
        await one.aclose()
    await database.close()


GOVERNED: Final = f"UPDATE context_governance SET version = version + 1 WHERE tenant_id = '{TENANT}'"
"""Has policies and attributes be read anew."""

DOCUMENTS: Final = (
    ("context_packages", "id", "body"),
    ("context_packages", "id", "candidates"),
    ("context_packages", "id", "graph"),
    ("context_build_requests", "package_id", "request"),
    ("policy_decisions", "package_id", "agent"),
    ("policy_decisions", "package_id", "sources"),
    ("context_package_feedback", "package_id", "helped"),
)


@pytest.mark.engines
@pytest.mark.parametrize(("table", "key", "column"), DOCUMENTS)
async def test_every_document_of_a_package(rows: Rows, table: str, key: str, column: str) -> None:
    change = f"UPDATE {table} SET {column} = $2::jsonb WHERE tenant_id = '{TENANT}' AND {key} = $1"
    read = f"SELECT {column}::text FROM {table} WHERE tenant_id = '{TENANT}' AND {key} = $1"
    was = await rows.database.fetchval(read, rows.package_id)
    every = [*damaged(json.loads(was), WRONG), ("nested", NESTED)]
    wrong: list[Any] = []
    for place, value in random.Random(7).sample(every, min(LOOKED_AT, len(every))):
        await rows.database.execute(change, rows.package_id, json.dumps(value))
        wrong += [(place, *one) for one in await rows.failures("context_")]
        await rows.database.execute(change, rows.package_id, was)
    assert wrong == []


TEXTS: Final = ("", "x", "x" * 20_000, "\u202e'; --")
COLUMNS: Final = (
    ("context_artifacts", "kind", "title", "content", "project_id", "status", "sensitivity", "type", "supersedes"),
    ("context_projections", "text", "model"),
    ("context_edges", "from_ref", "to_ref", "type"),
    ("context_assessments", "assessor", "caller"),
    ("context_policies", "text"),
    ("context_source_usefulness", "ref"),
)


@pytest.mark.engines
@pytest.mark.parametrize("columns", COLUMNS, ids=lambda columns: columns[0])
async def test_every_text_of_knowledge(rows: Rows, columns: tuple[str, ...]) -> None:
    table, *texts = columns
    of_tenant = f"{table} WHERE tenant_id = '{TENANT}'"
    place = await rows.database.fetchval(f"SELECT ctid FROM {of_tenant} LIMIT 1")
    wrong: list[Any] = []
    every = [(column, value) for column in texts for value in TEXTS]
    for column, value in random.Random(7).sample(every, min(LOOKED_AT, len(every))):
        was = await rows.database.fetchval(f"SELECT {column} FROM {table} WHERE ctid = $1", place)
        change = f"UPDATE {table} SET {column} = $2 WHERE ctid = $1 RETURNING ctid"
        with suppress(asyncpg.PostgresError):  # what a column cannot hold it refuses by itself
            place = await rows.database.fetchval(change, place, value)
        await rows.database.execute(GOVERNED)
        wrong += [(column, value[:9], *one) for one in await rows.failures("context_")]
        place = await rows.database.fetchval(change, place, was)
    assert wrong == []


@pytest.mark.engines
async def test_a_damaged_policy_is_named_and_can_be_replaced(rows: Rows) -> None:
    damage = f"UPDATE context_policies SET text = 'permit(hunter22' WHERE tenant_id = '{TENANT}' AND name = 'more'"
    await rows.database.execute(damage)
    await rows.database.execute(GOVERNED)
    refused = await rows.admin.get("/knowledge/artifacts/artifact:otter")
    assert refused.status_code == 503
    assert "row more of context_policies is damaged" in refused.json()["detail"]
    assert "hunter22" not in refused.text
    text = "permit(principal, action, resource);"
    (await rows.admin.put("/knowledge/policies/more", content=text)).raise_for_status()
    assert (await rows.admin.get("/knowledge/artifacts/artifact:otter")).status_code == 200


def test_a_damaged_row_is_named_without_what_it_holds() -> None:
    with pytest.raises(RowDamaged) as raised, reading_row("context_artifacts", "artifact:otter"):
        StoredArtifact(kind="hunter22", hunter23=1)
    assert "row artifact:otter of context_artifacts is damaged (kind: enum)" in str(raised.value)
    assert "hunter" not in str(raised.value)


def test_of_many_rows_the_damaged_ones_are_left_out() -> None:
    found = readable_rows(
        "context_artifacts", "ref", lambda row: int(row["version"]), [{"version": 1}, {}, {"version": 3}]
    )
    assert [*found] == [1, 3]
