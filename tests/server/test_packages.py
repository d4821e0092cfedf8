"""Packages over HTTP: built, opened, rated, explained, and governed by the tenant's policies."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx
import pytest
from redis.asyncio import Redis

from context_builder.server.access.caller import Role
from context_builder.session.keys import PACKAGE as PREFIX
from context_builder.tokens.counter import count_tokens
from tests.services.api_server import ApiServer
from tests.services.problems import problem

pytestmark = pytest.mark.engines

CLIPS = {"kind": "document", "title": "Clips", "content": "Hydrophone clips are labelled.", "status": "approved"}


@pytest.fixture
def tenant() -> str:
    return f"lab-{uuid4().hex[:8]}"


async def put(client: httpx.AsyncClient, ref: str, **fields: Any) -> None:
    (await client.put(f"/knowledge/artifacts/{ref}", json={**CLIPS, **fields})).raise_for_status()


async def build(client: httpx.AsyncClient, status: int = 200, **fields: Any) -> dict[str, Any]:
    headers = fields.pop("headers", {})
    asked = {"intent": "hydrophone clips", "tokenBudget": 1000, **fields}
    answer = await client.post("/knowledge/context/build", json=asked, headers=headers)
    assert answer.status_code == status, answer.text
    document: dict[str, Any] = answer.json()
    return document


async def test_a_package_is_built_opened_rated_and_explained(api: ApiServer, tenant: str) -> None:
    async with api.client(api.key(Role.WRITER, tenant)) as client:
        await put(client, "artifact:clips")
        package = await build(client, taskId="t-1")
        package_id = package["contextPackageId"]
        assert [one["ref"] for one in package["sources"]] == ["artifact:clips"]
        answer = await client.get(f"/knowledge/context/{package_id}")
        assert (answer.headers["x-context-cache"], answer.json()) == ("hit", package)
        prompt = (await client.get(f"/knowledge/context/{package_id}?format=prompt")).text
        assert count_tokens(prompt) == package["tokensUsed"]
        listed = (await client.get("/knowledge/context?taskId=t-1")).json()["packages"]
        assert [one["contextPackageId"] for one in listed] == [package_id]
        by_ref = (await client.get("/knowledge/context", params={"ref": "artifact:clips"})).json()["packages"]
        assert by_ref == listed
        rated = await client.post(f"/knowledge/context/{package_id}/feedback", json={"helped": {"artifact:clips": 1}})
        assert rated.status_code == 204
        audit = (await client.get(f"/knowledge/context/{package_id}/audit")).json()
        assert audit["request"]["intent"] == "hydrophone clips"
        assert audit["candidates"][0]["verdict"] == "included"
        assert audit["policyDecision"]["policyVersion"] == package["policyVersion"]


async def test_outcomes_are_an_admins_to_see(api: ApiServer, tenant: str) -> None:
    async with api.client(api.key(Role.WRITER, tenant)) as client:
        await put(client, "artifact:clips")
        package_id = (await build(client))["contextPackageId"]
        feedback = {"outcome": 0.25, "note": "The days are missing; the password is hunter22xyzzy"}
        await client.post(f"/knowledge/context/{package_id}/feedback", json=feedback)
        assert (await client.get("/knowledge/outcomes")).status_code == 403
    async with api.client(api.key(Role.ADMIN, tenant)) as client:
        told = (await client.get("/knowledge/outcomes?days=7")).json()
    assert (told["packages"], told["overall"]["mean"]) == (1, 0.25)
    assert [one["name"] for one in told["bySource"]] == ["artifact:clips"]
    (note,) = told["notes"]
    assert note["note"].startswith("The days are missing; the password is §§secret")
    async with api.client(api.key(Role.ADMIN, f"{tenant}-other")) as client:
        assert (await client.get("/knowledge/outcomes")).json()["packages"] == 0


async def test_pinned_sources_over_the_budget_are_a_conflict_with_their_sizes(api: ApiServer, tenant: str) -> None:
    async with api.client(api.key(Role.WRITER, tenant)) as client:
        await put(client, "artifact:clips")
        problem = await build(client, 409, tokenBudget=3, pinned=["artifact:clips"])
        assert problem["type"].endswith("pinned_over_budget")
        assert problem["sizes"].keys() == {"artifact:clips"}


async def test_a_package_whose_pinned_sources_have_grown_is_a_conflict_too(
    api: ApiServer, tenant: str, redis: Redis
) -> None:
    async with api.client(api.key(Role.WRITER, tenant)) as client:
        await put(client, "artifact:clips")
        package_id = (await build(client, tokenBudget=40, pinned=["artifact:clips"]))["contextPackageId"]
        await put(client, "artifact:clips", content="word" * 500)
        await redis.delete(f"{PREFIX}{package_id}")
        answer = await client.get(f"/knowledge/context/{package_id}")
        assert (answer.status_code, answer.json()["tokenBudget"]) == (409, 40)


async def test_the_same_key_answers_the_first_package_and_refuses_another_body(api: ApiServer, tenant: str) -> None:
    async with api.client(api.key(Role.WRITER, tenant)) as client:
        headers = {"Idempotency-Key": "k-1"}
        first, second = [await build(client, headers=headers) for _ in range(2)]
        assert first["contextPackageId"] == second["contextPackageId"]
        await build(client, 422, headers=headers, taskId="other")


async def test_policies_are_an_admins_and_hold_at_once(api: ApiServer, tenant: str) -> None:
    async with api.client(api.key(Role.WRITER, tenant)) as client, api.client(api.key(Role.ADMIN, tenant)) as admin:
        await put(client, "artifact:clips")
        package = await build(client)
        text = 'forbid (principal, action, resource) when { resource.kind == "document" };'
        assert (await client.put("/knowledge/policies/shut", content=text)).status_code == 403
        answer = await admin.put("/knowledge/policies/shut", content=text)
        assert answer.json()["policyVersion"].startswith("sha256:")
        for one in (client, admin):
            read = (await one.get("/knowledge/policies/shut")).json()
            assert read == {"name": "shut", "text": text, "policyVersion": answer.json()["policyVersion"]}
        again = (await client.get(f"/knowledge/context/{package['contextPackageId']}")).json()
        assert (again["sources"], again["denied"]) == ([], 0)
        assert (await client.get("/knowledge/artifacts/artifact:clips")).status_code == 404
        assert (await admin.delete("/knowledge/policies/shut")).status_code == 200
        assert (await admin.get("/knowledge/policies/shut")).status_code == 404
        wrong = await admin.put(
            "/knowledge/policies/shut", content="// everybody\npermit (principal,\n action resource);"
        )
        told = wrong.json()  # where the policy begins, and what Cedar says of it
        assert (wrong.status_code, told["line"], told["column"]) == (422, 2, 1)
        assert told["detail"].startswith("line 2, column 1: unexpected token")


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("text/plain", "text/plain"),
        ("Text/Plain, */*;q=0.8", "text/plain"),
        ("application/json;q=0.5, text/plain; q=0.9", "text/plain"),
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/*", "application/json"),
        ("text/plain, application/json", "application/json"),
        ("text/plain;q=0.1, */*", "application/json"),
        ("text/plain;q=nan", "text/plain"),
        ("text/plain;q=0", "application/json"),
    ],
)
async def test_a_policy_is_text_alone_for_whoever_prefers_that(
    api: ApiServer, tenant: str, accept: str, kind: str
) -> None:
    async with api.client(api.key(Role.READER, tenant)) as client:
        answer = await client.get("/knowledge/policies/default", headers={"Accept": accept})
    text = answer.text if kind == "text/plain" else answer.json()["text"]
    assert (answer.headers["content-type"].partition(";")[0], "permit" in text) == (kind, True)
    assert answer.headers["x-policy-version"].startswith("sha256:")


async def test_audits_of_others_are_an_admins(api: ApiServer, tenant: str) -> None:
    async with (
        api.client(api.key(Role.WRITER, tenant)) as client,
        api.client(api.key(Role.READER, tenant)) as reader,
        api.client(api.key(Role.ADMIN, tenant)) as admin,
    ):
        package_id = (await build(client))["contextPackageId"]
        path = f"/knowledge/context/{package_id}/audit"
        assert [(await one.get(path)).status_code for one in (client, reader, admin)] == [200, 403, 200]
        assert problem(await reader.get(path))["type"] == "urn:context-builder:forbidden"
        assert (await reader.get(f"/knowledge/context/cpk_{'0' * 26}/audit")).status_code == 404


async def test_an_admin_lists_packages_by_a_source_that_is_erased(api: ApiServer, tenant: str) -> None:
    ref = "artifact:clips"
    async with api.client(api.key(Role.WRITER, tenant)) as client, api.client(api.key(Role.ADMIN, tenant)) as admin:
        await put(client, ref)
        package_id = (await build(client))["contextPackageId"]
        assert (await client.delete(f"/knowledge/artifacts/{ref}")).status_code == 200
        found = [(await one.get("/knowledge/context", params={"ref": ref})).json() for one in (client, admin)]
    listed = [[one["contextPackageId"] for one in page["packages"]] for page in found]
    assert listed == [[], [package_id]]


async def test_a_package_of_another_tenant_is_not_there(api: ApiServer, tenant: str) -> None:
    async with api.client(api.key(Role.ADMIN, tenant)) as client, api.client(api.key(Role.ADMIN, "club")) as stranger:
        package_id = (await build(client))["contextPackageId"]
        for path in ("", "/audit", "?format=prompt"):
            assert (await stranger.get(f"/knowledge/context/{package_id}{path}")).status_code == 404
        assert (await stranger.post(f"/knowledge/context/{package_id}/feedback", json={})).status_code == 404


@pytest.mark.parametrize(
    "wrong",
    [
        {"tokenBudget": 0},
        {"tokenBudget": 2_000_001},
        {"ttlSeconds": 0},
        {"intent": ""},
        {"intent": "x" * 8_001},
        {"pinned": ["a b"]},
        {"unknown": 1},
    ],
)
async def test_a_wrong_request_is_refused(api: ApiServer, tenant: str, wrong: dict[str, Any]) -> None:
    async with api.client(api.key(Role.READER, tenant)) as client:
        asked = {"intent": "clips", "tokenBudget": 10, **wrong}
        answer = await client.post("/knowledge/context/build", json=asked)
        assert answer.status_code == 422
