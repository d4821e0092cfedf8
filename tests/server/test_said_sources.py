"""What was said is the same source everywhere: policies that hide it in packages hide it in searches."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import httpx
import pytest

from context_builder.memory.memory import Memory, point_id
from context_builder.memory.sql_memory import PostgresMemory
from context_builder.server.access.caller import Role
from tests.server.page.conftest import logged_in
from tests.services.api_server import ApiServer

pytestmark = pytest.mark.engines

AT = datetime(2026, 11, 2, 10, tzinfo=UTC)
QUERY = "porpoises at the pier"


def point(number: int, kind: str, text: str, session: str = "monday") -> Memory:
    made_of = {"point": kind, "cites": [1]}
    name = point_id(session, number, AT.timestamp())
    return Memory(name, text, "point", session, speaker="Ann Lee", time=AT, metadata=made_of)


SAID = (
    Memory("monday:message:1", "Porpoises again!", session_id="monday", speaker="Ann Lee", time=AT, position=1),
    point(1, "decision", "The pier gets a second hydrophone for porpoises."),
    point(2, "claim", "At dusk porpoises feed below the pier."),
    point(1, "question", "Do porpoises avoid boats at night?", session="tuesday"),
)
MESSAGE, DECISION, CLAIM, QUESTION = (one.text for one in SAID)
ALL = {MESSAGE, DECISION, CLAIM, QUESTION}


@pytest.fixture
async def tenant(api: ApiServer) -> str:
    """A tenant of this test's own that remembers what was said on Monday, and a question of Tuesday."""
    name = f"lab-{uuid4().hex[:8]}"
    memory = PostgresMemory(api.database_url)
    await memory.remember(name, SAID)
    await memory.close()
    return name


async def seen(client: httpx.AsyncClient) -> set[str]:
    """The texts that a package shows, and that a search shows just so."""
    asked = {"intent": QUERY, "tokenBudget": 2000}
    sources = (await client.post("/knowledge/context/build", json=asked)).raise_for_status().json()["sources"]
    found = (await client.get("/memories/search", params={"q": QUERY})).raise_for_status().json()["memories"]
    shown = {one["content"] for one in sources}
    assert {one["text"] for one in found} == shown
    return shown


@pytest.mark.parametrize(
    ("condition", "hidden"),
    [
        ('when { resource.kind == "decision" }', {DECISION}),
        ('when { resource.kind == "message" }', {MESSAGE}),
        ('when { resource == Source::"point:monday/2" }', {CLAIM}),
        ('when { resource == Source::"message:monday/1" }', {MESSAGE}),
        ('when { resource.session == "tuesday" }', {QUESTION}),
    ],
)
async def test_a_policy_hides_the_same_in_packages_and_in_searches(
    api: ApiServer, tenant: str, condition: str, hidden: set[str]
) -> None:
    async with api.client(api.key(Role.WRITER, tenant)) as client, api.client(api.key(Role.ADMIN, tenant)) as admin:
        assert await seen(client) == ALL
        forbidden = f"forbid (principal, action, resource) {condition};"
        (await admin.put("/knowledge/policies/shut", content=forbidden)).raise_for_status()
        assert await seen(client) == ALL - hidden


async def test_a_session_says_how_sensitive_it_is(api: ApiServer, tenant: str) -> None:
    path = "/knowledge/artifacts/session:monday"
    stated = {"kind": "document", "title": "A porpoise meeting at the pier", "content": "Behind closed doors."}
    async with api.client(api.key(Role.WRITER, tenant)) as client, api.client(api.key(Role.ADMIN, tenant)) as admin:
        assert await seen(client) == ALL
        answer = await client.put(path, json={**stated, "sensitivity": "internal"})
        assert answer.json() == {"ref": "session:monday", "version": 1, "changed": True}
        assert await seen(client) == ALL  # what is stated is no source itself
        package = (await client.post("/knowledge/context/build", json={"intent": QUERY, "tokenBudget": 2000})).json()
        cached = f"/knowledge/context/{package['contextPackageId']}"
        (await client.put(path, json={**stated, "sensitivity": "restricted"})).raise_for_status()
        assert await seen(client) == {QUESTION}
        assert await seen(admin) == ALL
        answer = await client.get(cached)
        assert (answer.headers["x-context-cache"], answer.json()["denied"]) == ("hit", 0)
        assert [one["content"] for one in answer.json()["sources"]] == [QUESTION]
        assert (await client.delete(path)).status_code == 404  # what cannot be read is not the caller's to delete
        (await admin.delete(path)).raise_for_status()
        assert await seen(client) == ALL
        assert [one["ref"] for one in (await client.get(cached)).json()["sources"]] == [
            one["ref"] for one in package["sources"]
        ]


async def test_what_was_said_confidentially_is_redacted_everywhere(api: ApiServer, tenant: str) -> None:
    stated = {"kind": "document", "title": "Monday", "content": "", "sensitivity": "confidential"}
    memory = PostgresMemory(api.database_url)
    secret = "Write to ann@example.org about porpoises."
    await memory.remember(tenant, [point(3, "action", secret)])
    await memory.close()
    async with api.client(api.key(Role.WRITER, tenant)) as client:
        assert await seen(client) == {*ALL, secret}
        (await client.put("/knowledge/artifacts/session:monday", json=stated)).raise_for_status()
        assert "ann@example.org" not in str(await seen(client))


async def test_who_sees_a_session_redacted_cannot_state_it_less_sensitive(api: ApiServer, tenant: str) -> None:
    path = "/knowledge/artifacts/session:monday"
    stated = {"kind": "document", "title": "Monday", "content": "Behind closed doors."}
    async with api.client(api.key(Role.WRITER, tenant)) as client, api.client(api.key(Role.ADMIN, tenant)) as admin:
        (await client.put(path, json={**stated, "sensitivity": "confidential"})).raise_for_status()
        for answer in (await client.put(path, json={**stated, "sensitivity": "public"}), await client.delete(path)):
            assert (answer.status_code, answer.json()["type"]) == (403, "urn:context-builder:forbidden")
        assert (await client.get(path)).json()["sensitivity"] == "confidential"
        (await admin.put(path, json={**stated, "sensitivity": "internal"})).raise_for_status()
        (await client.delete(path)).raise_for_status()


async def test_a_session_that_policies_hide_is_not_opened_by_stating_it_public(api: ApiServer, tenant: str) -> None:
    condition = 'resource.session == "monday" && resource.sensitivity != "public"'
    hide = f"forbid (principal, action, resource) when {{ {condition} }};"
    stated = {"kind": "document", "title": "Monday", "content": "", "sensitivity": "public"}
    async with api.client(api.key(Role.WRITER, tenant)) as client, api.client(api.key(Role.ADMIN, tenant)) as admin:
        (await admin.put("/knowledge/policies/shut", content=hide)).raise_for_status()
        assert (await client.put("/knowledge/artifacts/session:monday", json=stated)).status_code == 404
        assert await seen(client) == {QUESTION}


async def test_the_page_names_candidates_by_their_words_to_who_may_see_them(api: ApiServer, tenant: str) -> None:
    async with api.client(api.key(Role.ADMIN, tenant)) as admin, api.client() as browser:
        asked = {"intent": QUERY, "tokenBudget": 60}
        package = (await admin.post("/knowledge/context/build", json=asked)).raise_for_status().json()
        left_out = ALL - {one["content"] for one in package["sources"]}
        assert left_out
        await logged_in(api, browser, api.key(Role.ADMIN, tenant))
        address = f"/ui/packages/{package['contextPackageId']}"
        shown = (await browser.get(address)).raise_for_status().text
        assert all(text in shown for text in left_out)
        shut = "forbid (principal, action, resource);"
        (await admin.put("/knowledge/policies/shut", content=shut)).raise_for_status()
        shown = (await browser.get(address)).raise_for_status().text
        assert not any(text in shown for text in ALL)
