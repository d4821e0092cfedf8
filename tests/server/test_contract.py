"""The published forms of requests and packages, as a program that knows nothing but them finds them."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest

from context_builder.server.access.caller import Role
from context_builder.tokens.counter import count_tokens
from tests.server.test_answers import PARENT, TRACE
from tests.services.api_server import ApiServer
from tests.services.problems import problem

pytestmark = pytest.mark.engines

BUILD = "/knowledge/context/build"
ULID = "[0-9A-HJKMNP-TV-Z]{26}"

WHOLE = {
    "taskId": "task-17",
    "intent": "Choose a labelling strategy for the hydrophone clips",
    "tokenBudget": 4000,
    "ttlSeconds": 600,
    "agent": {"id": "agent-7", "role": "admin"},
    "scope": {"projectId": "kelp", "moduleId": "acoustics", "sessionIds": ["monday"]},
    "retrieval": {
        "graph": {"depth": 2, "edgeTypes": ["decided_in", "depends_on"], "limit": 50},
        "semantic": {"topK": 50, "threshold": 0.0, "kinds": ["document", "code", "blueprint", "pattern", "point"]},
        "metadata": {"types": ["contract"], "statuses": ["approved"], "modules": [], "tags": [], "limit": 50},
    },
    "pinned": ["artifact:protocol"],
    "model": "gpt-4o",
}

ARTIFACT = {
    "kind": "document",
    "title": "Labelling protocol",
    "content": "Two people label all of the hydrophone clips.",
    "projectId": "kelp",
    "moduleId": "acoustics",
    "status": "approved",
    "sensitivity": "internal",
    "type": "contract",
    "tags": ["labels"],
    "source": "docs/labelling.md",
    "supersedes": None,
}

PACKAGE = {
    "contextPackageId": f"cpk_{ULID}",
    "contextBuildRequestId": f"cbr_{ULID}",
    "graphProjectionId": f"gpr_{ULID}",
    "policyDecisionId": f"pdn_{ULID}",
    "policyVersion": "sha256:[0-9a-f]{64}",
    "traceId": "[0-9a-f]{32}",
}
"""Forms of ids."""


@pytest.fixture
def tenant() -> str:
    return f"contract-{uuid4().hex[:8]}"


@pytest.fixture
def writer(api: ApiServer, tenant: str) -> httpx.AsyncClient:
    return api.client(api.key(Role.WRITER, tenant))


async def put(client: httpx.AsyncClient, ref: str = "artifact:protocol", **fields: Any) -> dict[str, Any]:
    answer = await client.put(f"/knowledge/artifacts/{ref}", json={**ARTIFACT, **fields})
    assert answer.status_code == 200, answer.text
    stored: dict[str, Any] = answer.json()
    return stored


async def built(client: httpx.AsyncClient, **asked: Any) -> dict[str, Any]:
    answer = await client.post(BUILD, json={"intent": "hydrophone clips", "tokenBudget": 1000, **asked})
    assert answer.status_code == 200, answer.text
    package: dict[str, Any] = answer.json()
    return package


async def test_a_package_has_every_field_in_its_form(writer: httpx.AsyncClient, tenant: str) -> None:
    async with writer as client:
        await put(client)
        await put(client, "artifact:other", content="Clips of the hydrophone are stored for a year.")
        answer = await client.post(BUILD, json=WHOLE, headers={"traceparent": PARENT})
        package = answer.json()
        prompt = (await client.get(f"/knowledge/context/{package['contextPackageId']}?format=prompt")).text
    for name, form in PACKAGE.items():
        assert re.fullmatch(form, package[name]), name
    expected = {"revision": 1, "taskId": "task-17", "traceId": TRACE, "tenantId": tenant, "ttlSeconds": 600}
    expected |= {"tokenBudget": 4000, "tokenEncoding": "o200k_base", "denied": 0, "redacted": 0, "excluded": 0}
    expected |= {"rebuilt": False, "stale": []}
    assert {name: package[name] for name in expected} == expected
    created, expires = (datetime.fromisoformat(package[name]) for name in ("createdAt", "expiresAt"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", package["createdAt"])
    assert expires - created == timedelta(seconds=600)
    assert abs(datetime.now(UTC) - created) < timedelta(minutes=1)
    assert package["tokensUsed"] == count_tokens(prompt)
    first, second = package["sources"]
    expected = {"ref": "artifact:protocol", "version": 1, "kind": "document", "title": ARTIFACT["title"]}
    expected |= {"pinned": True, "projection": "full", "content": ARTIFACT["content"], "sensitivity": "internal"}
    expected |= {"status": "approved", "link": "/knowledge/artifacts/artifact:protocol?version=1", "cites": []}
    assert {name: first[name] for name in expected} == expected
    assert set(first["origins"]) == {"pinned", "semantic", "graph", "metadata"}
    assert first["signals"].keys() == {"semantic", "graph", "recency", "quality", "reuse"}
    assert all(0 <= value <= 1 for value in (first["score"], *first["signals"].values()))
    assert first["score"] >= second["score"]
    assert not second["pinned"]
    assert type(first["tokens"]) is int
    assert first["tokens"] > 0
    coverage = package["coverage"]
    assert (coverage["graph"], coverage["metadata"], coverage["cache"]) == ("ok", "ok", "ok")
    assert (coverage["semantic"], coverage["reduced"]) == ("degraded", True)  # nothing embeds here
    assert coverage["reasons"] == ["semantic: found by words alone"]


async def test_what_is_left_out_of_a_request_has_its_default(writer: httpx.AsyncClient) -> None:
    async with writer as client:
        package = await built(client)
        partly = await built(client, retrieval={"semantic": {"kinds": ["code"]}, "metadata": None})
        kept, kept_partly = [
            (await client.get(f"/knowledge/context/{one['contextPackageId']}/audit")).json()["request"]
            for one in (package, partly)
        ]
    assert (package["ttlSeconds"], package["taskId"]) == (1800, "")
    graph, semantic = {"depth": 2, "edgeTypes": [], "limit": 50}, {"topK": 50, "threshold": 0.0, "kinds": []}
    metadata = {"types": [], "statuses": [], "modules": [], "tags": [], "limit": 50}
    assert kept["retrieval"] == {"graph": graph, "semantic": semantic, "metadata": metadata}
    assert (kept["ttlSeconds"], kept["pinned"], kept["scope"]["sessionIds"]) == (1800, [], [])
    assert kept_partly["retrieval"] == {"graph": graph, "semantic": {**semantic, "kinds": ["code"]}, "metadata": None}


@pytest.mark.parametrize("off", ["graph", "semantic", "metadata"])
async def test_null_switches_a_source_off(writer: httpx.AsyncClient, off: str) -> None:
    async with writer as client:
        await put(client)
        package = await built(client, retrieval={off: None}, scope={"projectId": "kelp"})
    assert [name for name, state in package["coverage"].items() if state == "off"] == [off]
    assert all(off not in source["origins"] for source in package["sources"])
    assert [source["ref"] for source in package["sources"]] == ["artifact:protocol"]


async def test_with_every_source_off_there_is_what_is_pinned(writer: httpx.AsyncClient) -> None:
    off = {"graph": None, "semantic": None, "metadata": None}
    async with writer as client:
        await put(client)
        empty = await built(client, retrieval=off)
        pinned = await built(client, retrieval=off, pinned=["artifact:protocol"])
    assert empty["coverage"] == {**off, "graph": "off", "semantic": "off", "metadata": "off", "cache": "ok"} | {
        "reduced": False,
        "reasons": [],
    }
    assert [source["origins"] for source in pinned["sources"]] == [["pinned"]]


async def test_an_empty_package_is_as_valid_as_another(api: ApiServer, writer: httpx.AsyncClient) -> None:
    async with writer as client:
        package = await built(client, intent="nothing of the kind")
        answer = await client.get(f"/knowledge/context/{package['contextPackageId']}?format=prompt")
    assert (package["sources"], package["denied"], package["tokensUsed"]) == ([], 0, 0)
    assert all(re.fullmatch(form, package[name]) for name, form in PACKAGE.items()), package
    assert (answer.status_code, answer.text) == (200, "")
    assert answer.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize("intent", [" ", "\n\t", "?!", "\U0001f40b", "x" * 8_000, "\U0001f40b" * 8_000])
async def test_what_is_pinned_is_in_whatever_the_intent_is(writer: httpx.AsyncClient, intent: str) -> None:
    async with writer as client:
        await put(client)
        package = await built(client, intent=intent, pinned=["artifact:protocol"])
    assert [source["ref"] for source in package["sources"]] == ["artifact:protocol"]
    assert "unavailable" not in package["coverage"].values()


@pytest.mark.parametrize(
    "asked",
    [
        {"tokenBudget": 1},
        {"tokenBudget": 2},
        {"tokenBudget": 2_000_000},
        {"ttlSeconds": 1},
        {"ttlSeconds": 86_400},
        {"pinned": [f"artifact:{number}" for number in range(100)]},
        {"scope": {}, "agent": {}, "retrieval": {}},
        {"retrieval": {"graph": {"depth": 4, "limit": 1000}, "semantic": {"topK": 1000, "threshold": 1}}},
    ],
)
async def test_what_is_just_within_its_bounds_is_taken(writer: httpx.AsyncClient, asked: dict[str, Any]) -> None:
    async with writer as client:
        await put(client)
        package = await built(client, **asked)
        prompt = (await client.get(f"/knowledge/context/{package['contextPackageId']}?format=prompt")).text
    assert package["tokensUsed"] == count_tokens(prompt) <= package["tokenBudget"]


@pytest.mark.parametrize(
    ("asked", "place"),
    [
        ({"intent": None}, "body.intent"),
        ({"intent": 7}, "body.intent"),
        ({"intent": ["clips"]}, "body.intent"),
        ({"intent": "x" * 8_001}, "body.intent"),
        ({"tokenBudget": None}, "body.tokenBudget"),
        ({"tokenBudget": "1000"}, "body.tokenBudget"),
        ({"tokenBudget": True}, "body.tokenBudget"),
        ({"tokenBudget": 1.5}, "body.tokenBudget"),
        ({"tokenBudget": -1}, "body.tokenBudget"),
        ({"tokenBudget": 10**30}, "body.tokenBudget"),
        ({"ttlSeconds": 86_401}, "body.ttlSeconds"),
        ({"ttlSeconds": "60"}, "body.ttlSeconds"),
        ({"pinned": [f"artifact:{number}" for number in range(101)]}, "body.pinned"),
        ({"pinned": "artifact:protocol"}, "body.pinned"),
        ({"pinned": [1]}, "body.pinned.0"),
        ({"taskId": 17}, "body.taskId"),
        ({"agent": "agent-7"}, "body.agent"),
        ({"agent": {"name": "agent-7"}}, "body.agent.name"),
        ({"scope": []}, "body.scope"),
        ({"scope": {"project": "kelp"}}, "body.scope.project"),
        ({"scope": {"sessionIds": "monday"}}, "body.scope.sessionIds"),
        ({"retrieval": {"graphs": None}}, "body.retrieval.graphs"),
        ({"retrieval": {"graph": {"depth": 0}}}, "body.retrieval.graph.depth"),
        ({"retrieval": {"graph": {"depth": "2"}}}, "body.retrieval.graph.depth"),
        ({"retrieval": {"graph": {"limit": True}}}, "body.retrieval.graph.limit"),
        ({"retrieval": {"semantic": {"topK": 0}}}, "body.retrieval.semantic.topK"),
        ({"retrieval": {"semantic": {"threshold": "0.5"}}}, "body.retrieval.semantic.threshold"),
        ({"retrieval": {"semantic": {"threshold": 1.1}}}, "body.retrieval.semantic.threshold"),
        ({"retrieval": {"metadata": {"tags": "labels"}}}, "body.retrieval.metadata.tags"),
        ({"tenantId": "other"}, "body.tenantId"),
        ({"roles": ["admin"]}, "body.roles"),
    ],
)
async def test_what_is_wrong_in_a_request_is_named(
    writer: httpx.AsyncClient, asked: dict[str, Any], place: str
) -> None:
    async with writer as client:
        answer = await client.post(BUILD, json={"intent": "clips", "tokenBudget": 1000, **asked})
    assert answer.status_code == 422
    found = problem(answer)
    assert [error["at"] for error in found["errors"]] == [place]
    assert not re.search("tuple|dict|validation|NoneType|pydantic", found["detail"])


@pytest.mark.parametrize("missing", ["intent", "tokenBudget"])
async def test_two_fields_are_required(writer: httpx.AsyncClient, missing: str) -> None:
    asked = {"intent": "clips", "tokenBudget": 1000}
    async with writer as client:
        answer = await client.post(BUILD, json={name: asked[name] for name in asked if name != missing})
    assert (answer.status_code, problem(answer)["errors"][0]["at"]) == (422, f"body.{missing}")


@pytest.mark.parametrize("wrong", ["a\\u0000b", "a\\ud800b", "\\udc00"])
@pytest.mark.parametrize("field", ["intent", "taskId", "model", "content"])
async def test_what_no_text_holds_is_refused(writer: httpx.AsyncClient, field: str, wrong: str) -> None:
    body = {"kind": "document", "title": "T", "content": "c"} if field == "content" else {"tokenBudget": 9}
    text = json.dumps({"intent": "i", **body, field: "@"} if field != "content" else {**body, field: "@"})
    async with writer as client:
        headers = {"content-type": "application/json"}
        if field == "content":
            answer = await client.put("/knowledge/artifacts/a:b", content=text.replace("@", wrong), headers=headers)
        else:
            answer = await client.post(BUILD, content=text.replace("@", wrong), headers=headers)
    assert answer.status_code == 422
    problem(answer)


@pytest.mark.parametrize("name", ["kind", "title", "content"])
async def test_an_artifact_needs_three_fields(writer: httpx.AsyncClient, name: str) -> None:
    async with writer as client:
        body = {one: value for one, value in ARTIFACT.items() if one != name}
        answer = await client.put("/knowledge/artifacts/artifact:x", json=body)
    assert (answer.status_code, problem(answer)["errors"][0]["at"]) == (422, f"body.{name}")


async def test_an_artifact_comes_back_with_every_field(writer: httpx.AsyncClient) -> None:
    kinds = "document code blueprint pattern contract decision runtime_signal task".split()
    least = {"kind": "task", "title": "T", "content": "c"}
    async with writer as client:
        for kind in kinds:
            assert (await put(client, f"artifact:{kind}", kind=kind))["version"] == 1
        for status in ("draft", "approved", "superseded", "stale"):
            await put(client, "artifact:code", kind="code", status=status)
            assert (await client.get("/knowledge/artifacts/artifact:code")).json()["status"] == status
        for sensitivity in ("public", "internal"):
            await put(client, "artifact:code", kind="code", sensitivity=sensitivity)
        answer = (await client.get("/knowledge/artifacts/artifact:code")).json()
        assert (await client.put("/knowledge/artifacts/artifact:least", json=least)).status_code == 200
        defaults = (await client.get("/knowledge/artifacts/artifact:least")).json()
        longest = "Az09:._/@-" * 51 + "zz"
        assert (await put(client, longest))["ref"] == longest
    expected = {**ARTIFACT, "kind": "code", "sensitivity": "internal", "ref": "artifact:code", "version": 1}
    assert {name: answer[name] for name in expected} == expected
    expected = {"status": "draft", "sensitivity": "internal", "tags": [], "supersedes": None, "source": None}
    expected |= dict.fromkeys(("projectId", "moduleId", "type"), "")
    assert {name: defaults[name] for name in expected} == expected


async def test_a_new_version_supersedes_the_one_before(writer: httpx.AsyncClient) -> None:
    async with writer as client:
        await put(client)
        await put(client, content="Three people label the hydrophone clips.")
        before = (await client.get("/knowledge/artifacts/artifact:protocol?version=1")).json()
        assert (before["current"], before["content"]) == (False, ARTIFACT["content"])
        (source,) = (await built(client))["sources"]
        assert (source["version"], source["link"]) == (2, "/knowledge/artifacts/artifact:protocol?version=2")
        assert (await client.get(source["link"])).json()["content"] == source["content"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/knowledge/artifacts/a:b", {**ARTIFACT, "kind": "poem"}),
        ("/knowledge/artifacts/a:b", {**ARTIFACT, "status": "done"}),
        ("/knowledge/artifacts/a:b", {**ARTIFACT, "sensitivity": "secret"}),
        ("/knowledge/artifacts/a:b", {**ARTIFACT, "tags": "labels"}),
        ("/knowledge/artifacts/a:b", {**ARTIFACT, "version": 7}),
        ("/knowledge/artifacts/a:b", {**ARTIFACT, "supersedes": "a b"}),
        ("/knowledge/edges", {"from": "a", "to": "b", "type": "c"}),
        ("/knowledge/edges", [{"from": "a", "to": "b"}]),
        ("/knowledge/edges", [{"from": "a", "to": "b", "type": "c", "weight": "2"}]),
        ("/knowledge/assessments", {"ref": "a", "quality": 1.1, "assessor": "Ida"}),
        ("/knowledge/assessments", {"ref": "a", "quality": -0.1, "assessor": "Ida"}),
        ("/knowledge/assessments", {"ref": "a", "quality": True, "assessor": "Ida"}),
        ("/knowledge/assessments", {"ref": "a", "quality": 1}),
        ("/knowledge/context/x/feedback", {"outcome": 2}),
        ("/knowledge/context/x/feedback", {"outcome": "1"}),
        ("/knowledge/context/x/feedback", {"helped": ["a"]}),
        ("/knowledge/context/x/feedback", {"helped": {"a": 2}}),
        ("/knowledge/context/x/feedback", {"useful": True}),
    ],
)
async def test_what_is_wrong_in_another_body_is_a_problem(writer: httpx.AsyncClient, path: str, body: Any) -> None:
    method = "PUT" if "artifacts" in path or "edges" in path else "POST"
    async with writer as client:
        answer = await client.request(method, path, json=body)
    assert answer.status_code == 422
    problem(answer)
