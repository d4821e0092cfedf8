"""Artifacts over HTTP: kept by version, seen as policies say, and not there for anybody else."""

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from context_builder.server.access.caller import Role
from tests.services.api_server import ApiServer
from tests.services.problems import problem

pytestmark = pytest.mark.engines

SECRET = "The gate opens with password=hunter2-Tango-7 at night."


def path(ref: str) -> str:
    return f"/knowledge/artifacts/{quote(ref, safe='')}"


def artifact(content: str = "Label every call.", **fields: Any) -> dict[str, Any]:
    return {"kind": "document", "title": "Labelling protocol", "content": content, **fields}


async def put(client: httpx.AsyncClient, ref: str, content: str = "Label every call.", **fields: Any) -> dict[str, Any]:
    answer = await client.put(path(ref), json=artifact(content, **fields))
    assert answer.status_code == 200, answer.text
    stored: dict[str, Any] = answer.json()
    return stored


async def test_new_content_makes_a_version_other_metadata_keeps_it(api: ApiServer) -> None:
    ref = "artifact:docs/labels.md@v1"
    async with api.client(api.key()) as client:
        assert await put(client, ref) == {"ref": ref, "version": 1, "changed": True}
        assert await put(client, ref) == {"ref": ref, "version": 1, "changed": False}
        assert await put(client, ref, status="approved") == {"ref": ref, "version": 1, "changed": True}
        assert await put(client, ref, "Label every click.", projectId="kelp") == {
            "ref": ref,
            "version": 2,
            "changed": True,
        }
        now, first = (await client.get(path(ref))).json(), (await client.get(path(ref), params={"version": 1})).json()
        assert (now["version"], now["content"], now["projectId"], now["projection"]) == (
            2,
            "Label every click.",
            "kelp",
            "full",
        )
        assert (first["version"], first["content"], first["current"]) == (1, "Label every call.", False)
        assert [one["status"] for one in (first, now)] == ["superseded", "draft"]
        assert (await client.get(f"/knowledge/artifacts/{ref}")).json() == now  # a slash need not be encoded
        assert (await client.get(path(ref), params={"version": 3})).status_code == 404
        assert (await client.delete(path(ref))).json() == {"ref": ref, "version": 2}
        assert (await client.delete(path(ref))).status_code == 404
        assert (await client.get(path(ref))).status_code == 404


@pytest.mark.parametrize("ref", ["artifact:a b", "x" * 513, "artifact:wäl", "artifact:a%2541?", "artifact:\x00"])
async def test_what_is_no_ref_is_refused(api: ApiServer, ref: str) -> None:
    async with api.client(api.key()) as client:
        for answer in (await client.get(path(ref)), await client.put(path(ref), json=artifact())):
            assert answer.status_code == 422
            assert problem(answer)["errors"][0]["at"] == "path.ref"


@pytest.mark.parametrize(
    "ref",
    [
        "point:monday/1",
        "point:monday",
        "message:monday/1",
        "session:",
        "session:monday/1",
        "session:a:b/1",
        "person:Ida",
    ],
)
async def test_what_was_said_cannot_be_put(api: ApiServer, ref: str) -> None:
    async with api.client(api.key()) as client:
        assert (await client.put(path(ref), json=artifact())).status_code == 422


async def test_sensitivity_decides_what_is_seen(api: ApiServer) -> None:
    admin = api.client(api.key(Role.ADMIN))
    async with api.client(api.key(Role.READER)) as reader, api.client(api.key()) as writer, admin:
        for sensitivity in ("public", "internal", "confidential", "restricted"):
            await put(writer, f"artifact:gate/{sensitivity}", SECRET, sensitivity=sensitivity, source=SECRET)

        async def seen(client: httpx.AsyncClient, sensitivity: str) -> tuple[int, str | None, bool]:
            answer = await client.get(path(f"artifact:gate/{sensitivity}"))
            return answer.status_code, answer.json().get("projection"), "hunter2" in answer.text

        for client in (reader, writer, admin):
            assert await seen(client, "public") == (200, "full", True)
            assert await seen(client, "internal") == (200, "full", True)
            assert await seen(client, "confidential") == (200, "redacted", False)
        assert await seen(reader, "restricted") == (404, None, False)
        assert await seen(writer, "restricted") == (404, None, False)
        assert await seen(admin, "restricted") == (200, "full", True)


async def test_what_one_may_not_read_is_as_if_it_were_not_there(api: ApiServer) -> None:
    there, gone, elsewhere, never = (f"artifact:hidden/{name}" for name in ("there", "gone", "elsewhere", "never"))
    async with api.client(api.key()) as writer, api.client(api.key(tenant="other")) as other:
        await put(writer, there, SECRET, sensitivity="restricted")
        await put(writer, gone, SECRET)
        await writer.delete(path(gone))
        await put(other, elsewhere, SECRET)
        refs = (there, gone, elsewhere, never)
        answers = [await writer.get(path(ref)) for ref in refs]
        assert {answer.status_code for answer in answers} == {404}
        assert len({str(problem(answer) | {"traceId": ""}) for answer in answers}) == 1
        assert len({str(sorted(set(answer.headers) - {"x-trace-id", "date"})) for answer in answers}) == 1
        assert (await other.get(path(gone))).status_code == 404
        assert (await other.delete(path(there))).status_code == 404

        times: dict[str, list[float]] = {ref: [] for ref in refs}
        for _ in range(60):
            for ref in refs:
                began = perf_counter()
                await writer.get(path(ref))
                times[ref].append(perf_counter() - began)
        medians = [median(taken) for taken in times.values()]
        assert max(medians) < 1.5 * min(medians) + 0.001


async def test_edges_are_counted_and_wait_for_their_ends(api: ApiServer) -> None:
    edges = [
        {"from": "artifact:one", "to": "artifact:two", "type": "cites"},
        {"from": "artifact:one", "to": "task:3", "type": "for", "weight": 2},
    ]
    async with api.client(api.key()) as client:
        assert (await client.put("/knowledge/edges", json=edges)).json() == {"count": 2}
        assert (await client.post("/knowledge/edges/delete", json=edges[:1])).json() == {"count": 1}
        assert (await client.post("/knowledge/edges/delete", json=edges)).json() == {"count": 1}
        wrong = [*edges, {"from": "a b", "to": "c", "type": "cites"}]
        answer = await client.put("/knowledge/edges", json=wrong)
        assert (answer.status_code, problem(answer)["errors"][0]["at"]) == (422, "body.2.from")


async def test_an_assessment_is_noted(api: ApiServer) -> None:
    body = {"ref": "artifact:one", "quality": 0.9, "assessor": "Ida", "reason": "It is exact."}
    async with api.client(api.key()) as client:
        answer = await client.post("/knowledge/assessments", json=body)
        assert (answer.status_code, answer.content) == (204, b"")


async def test_what_a_writer_may_not_read_is_not_the_writers_to_replace_or_erase(api: ApiServer) -> None:
    ref = "artifact:sealed"
    async with api.client(api.key()) as writer, api.client(api.key(Role.ADMIN)) as admin:
        await put(admin, ref, SECRET, sensitivity="restricted")
        for content in (SECRET, "A guess."):
            answer = await writer.put(path(ref), json=artifact(content, sensitivity="public"))
            assert answer.status_code == 404
        for there in (ref, "artifact:nowhere"):  # they are told apart by what would store something, and no otherwise
            matched = await writer.put(path(there), json=artifact(), headers={"If-Match": "*"})
            versioned = await writer.put(path(there), json=artifact(version=1))
            assert (matched.status_code, versioned.status_code) == (412, 422)
        assert (await writer.delete(path(ref))).status_code == 404
        kept = (await admin.get(path(ref))).json()
        assert (kept["version"], kept["content"], kept["sensitivity"]) == (1, SECRET, "restricted")
        assert (await admin.delete(path(ref))).status_code == 200


async def test_an_older_version_is_as_restricted_as_the_newer_one_or_itself(api: ApiServer) -> None:
    async with api.client(api.key()) as writer, api.client(api.key(Role.ADMIN)) as admin:
        await put(admin, "artifact:closed", SECRET)
        await put(admin, "artifact:closed", "Closed.", sensitivity="restricted")
        await put(admin, "artifact:opened", SECRET, sensitivity="restricted")
        await put(admin, "artifact:opened", "Opened.", sensitivity="public")
        for ref in ("artifact:closed", "artifact:opened"):
            assert (await writer.get(path(ref), params={"version": 1})).status_code == 404
            assert (await admin.get(path(ref), params={"version": 1})).json()["content"] == SECRET
        assert (await writer.get(path("artifact:opened"))).json()["content"] == "Opened."
