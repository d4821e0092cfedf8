"""A turn over HTTP in which the knowledge of a project takes part, as far as the caller may see it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from redis.asyncio import Redis

from context_builder.memory.memory import Memory
from context_builder.memory.sql_memory import PostgresMemory
from context_builder.server.access.caller import Role
from tests.cli.publishing import publish
from tests.cli.samples import sample, sample_state
from tests.services.api_server import ApiServer
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines

QUERY = "Who labels the hydrophone clips?"


@pytest.fixture
async def client(api: ApiServer, redis: Redis) -> AsyncIterator[httpx.AsyncClient]:
    await publish(redis, sample(state=sample_state(session_id="point-arlen")))
    async with api.client(api.key(Role.WRITER)) as client:
        yield client


async def put(client: httpx.AsyncClient, name: str, content: str, project: str, **fields: Any) -> str:
    ref = f"artifact:{project}/{name}"
    described = {"kind": "document", "title": name, "content": content, "projectId": project, "status": "approved"}
    (await client.put(f"/knowledge/artifacts/{ref}", json={**described, **fields})).raise_for_status()
    return ref


async def turn(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    answer = await client.post("/sessions/point-arlen/turn", json={"query": QUERY, "tokenBudget": 3000, **fields})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def turn_with(client: httpx.AsyncClient, project: str) -> dict[str, Any]:
    """A turn with a project's knowledge, which a busy machine may not have within a turn's deadline at once."""
    found: dict[str, Any] = {}

    async def answered() -> bool:
        found.update(await turn(client, packageScope={"projectId": project}))
        return bool(found["debug"]["memory"] == "ok")

    await wait_until(answered, "knowledge answers in time")
    return found


async def test_documents_of_the_scope_take_part_as_far_as_the_caller_may_see_them(client: httpx.AsyncClient) -> None:
    project = f"kelp-{uuid4().hex[:8]}"
    open_ref = await put(client, "labels", "The hydrophone clips are labelled by Ines and Kai.", project)
    secret = "The hydrophone clips are labelled with password=tulip-7391-Vault, ask ines@example.org."
    masked = await put(client, "vault", secret, project, sensitivity="confidential")
    denied = await put(
        client, "pay", "Who labels hydrophone clips is paid 31 euros.", project, sensitivity="restricted"
    )
    without = await turn(client)
    assert "labelled by Ines and Kai" not in str(without)
    found = await turn_with(client, project)
    prompt = str(found["messages"])
    assert "labelled by Ines and Kai" in prompt
    assert "hydrophone clips are labelled with" in prompt
    assert "tulip-7391" not in str(found)
    assert "ines@example.org" not in str(found)
    assert "31 euros" not in str(found)
    assert denied not in str(found)
    receipts = {one["id"]: one for one in found["receipts"]}
    assert "knowledge" in receipts[open_ref]["origins"]
    assert receipts[masked]["outcome"] == "redacted"
    assert found["tokensUsed"] <= 3000


async def test_a_policy_holds_for_the_next_turn(api: ApiServer, client: httpx.AsyncClient) -> None:
    project = f"kelp-{uuid4().hex[:8]}"
    ref = await put(client, "labels", "The hydrophone clips are labelled by Ines and Kai.", project)
    assert ref in str(await turn_with(client, project))
    async with api.client(api.key(Role.ADMIN)) as admin:
        text = f'forbid (principal, action, resource) when {{ resource.project == "{project}" }};'
        (await admin.put(f"/knowledge/policies/{project}", content=text)).raise_for_status()
        try:
            found = await turn_with(client, project)
        finally:
            await admin.delete(f"/knowledge/policies/{project}")
    assert ref not in str(found)
    assert "labelled by Ines and Kai" not in str(found)


async def test_another_tenants_documents_take_no_part(api: ApiServer, client: httpx.AsyncClient) -> None:
    project = f"kelp-{uuid4().hex[:8]}"
    async with api.client(api.key(Role.WRITER, "club")) as stranger:
        ref = await put(stranger, "labels", "The hydrophone clips are labelled by Ines and Kai.", project)
    asked = {"query": QUERY, "tokenBudget": 3000, "packageScope": {"projectId": project}}
    refused = await client.post("/sessions/point-arlen/turn", json=asked)
    assert refused.status_code == 404
    assert ref not in refused.text


async def test_memories_are_narrowed_down_by_speaker_and_session(api: ApiServer, client: httpx.AsyncClient) -> None:
    other = f"board-{uuid4().hex[:8]}"
    memory = PostgresMemory(api.database_url)
    said = [
        Memory(
            f"{other}:{place}", f"{name} labels the hydrophone clips.", session_id=other, speaker=name, position=place
        )
        for place, name in enumerate(("Zoe", "Yann"))
    ]
    await memory.remember("lab", said)
    await memory.close()
    found = str((await turn(client, memories={"speaker": "Zoe", "session": other}))["messages"])
    assert ("Zoe labels" in found, "Yann labels" in found) == (True, False)
    asked = {"query": QUERY, "tokenBudget": 3000, "memories": {"since": "soon"}}
    refused = await client.post("/sessions/point-arlen/turn", json=asked)
    assert (refused.status_code, "since" in refused.json()["detail"]) == (422, True)


async def test_what_was_said_in_other_sessions_takes_part_as_far_as_the_caller_may_see_it(
    api: ApiServer, client: httpx.AsyncClient
) -> None:
    other, secret = f"board-{uuid4().hex[:8]}", "The hydrophone clips are labelled by Ines, ines@example.org."
    memory = PostgresMemory(api.database_url)
    await memory.remember("lab", [Memory(f"{other}:1", secret, session_id=other, speaker="Kai", position=1)])
    await memory.close()

    async def state(sensitivity: str) -> None:
        stated = {"kind": "document", "title": "Board", "content": "", "sensitivity": sensitivity}
        async with api.client(api.key(Role.ADMIN)) as admin:
            (await admin.put(f"/knowledge/artifacts/session:{other}", json=stated)).raise_for_status()

    assert "labelled by Ines, ines@example.org" in str((await turn(client))["messages"])
    await state("confidential")
    found = str(await turn(client))
    assert "labelled by Ines, " in found
    assert "ines@example.org" not in found
    await state("restricted")
    found = str(await turn(client))
    assert "labelled by Ines" not in found
    assert other not in found
