"""Whoever asks over HTTP, however: nothing is seen or changed without the right, not even whether it is there."""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from statistics import median
from typing import Any, NamedTuple
from urllib.parse import quote
from uuid import uuid4

import httpx
import jwt
import orjson
import pytest
from redis.asyncio import Redis

from context_builder.memory.memory import Memory
from context_builder.memory.sql_memory import PostgresMemory
from context_builder.server.access.caller import Role
from context_builder.server.app import ROUTERS
from context_builder.server.asgi.callers import MOST_BYTES
from context_builder.session.client import SessionClient
from context_builder.session.messages.message_index import IndexedMessage, id_field
from context_builder.session.messages.revision import read_reference
from tests.services.api_server import ApiServer
from tests.services.problems import problem
from tests.services.waiting import seconds_until, wait_until

pytestmark = pytest.mark.engines

MARKER = "hunter2-the-otter"
"""Is in all that another tenant must not see."""

REF, SESSION, POLICY = "artifact:embargo/plan", "monday", "house"
KELP = {"kind": "document", "title": MARKER, "content": f"{MARKER} sleeps.", "projectId": "kelp"}
QUERY = "Where does the otter sleep?"
NEVER = {"ref": "artifact:never", "session_id": "never", "name": "never", "package_id": f"cpk_{'0' * 26}"}
NEVER |= {"message": "id:9", "speaker": "Nobody"}


class Call(NamedTuple):
    """A route and the role it takes."""

    method: str
    path: str
    role: Role

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def filled(self, names: dict[str, str]) -> str:
        return re.sub(r"{(\w+)(:path)?}", lambda found: quote(names[found[1]], safe=""), self.path)

    @property
    def has_id(self) -> bool:
        return "{" in self.path


def _calls() -> Iterator[Call]:
    for router in ROUTERS:
        for route in router.routes:
            for method in route.methods:  # type: ignore[attr-defined]
                yield Call(method, route.path, Role(route.openapi_extra["x-role"]))  # type: ignore[attr-defined]


CALLS = sorted(_calls())
METHODS_WITH_BODY = {"PATCH", "POST", "PUT"}
WITH_BODY = [call for call in CALLS if call.method in METHODS_WITH_BODY]

NOT_MAKING = {"DELETE", "GET", "PATCH"}
"""Methods that need what they name to be there."""

BODIES: dict[str, Any] = {
    "/knowledge/artifacts/{ref:path}": {"kind": "document", "title": "T", "content": "c"},
    "/knowledge/edges": [],
    "/knowledge/edges/delete": [],
    "/knowledge/assessments": {"ref": "artifact:x", "quality": 1, "assessor": "x"},
    "/knowledge/context/build": {"intent": "x", "tokenBudget": 100},
    "/knowledge/context/{package_id}/feedback": {"outcome": 1},
    "/sessions/{session_id}/messages": {"text": "Hello"},
    "/sessions/{session_id}/messages/{message}": {"text": "Hello"},
    "/sessions/{session_id}/speakers/{speaker}": {"name": "Ida"},
    "/sessions/{session_id}/turn": {"query": "x", "tokenBudget": 100},
}
"""One that is right, for each call that takes JSON."""


async def ask(client: httpx.AsyncClient, call: Call, names: dict[str, str], **options: Any) -> httpx.Response:
    """The answer to the call with a body that is right, unless another one is given."""
    if call.method in METHODS_WITH_BODY and not {"json", "content"} & set(options):
        body = BODIES.get(call.path)
        options |= {"content": "permit(principal, action, resource);"} if body is None else {"json": body}
    return await client.request(call.method, call.filled(names), **options)


def told(answer: httpx.Response) -> str:
    """All that an answer tells, but for the trace's id."""
    document = answer.json() if answer.content else None
    if isinstance(document, dict):
        document.pop("traceId", None)
    headers = {name: value for name, value in answer.headers.items() if name not in {"date", "x-trace-id"}}
    return json.dumps([answer.status_code, headers, document], sort_keys=True)


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_nobody_gets_in_without_a_credential_that_holds(api: ApiServer, revoked: str, call: Call) -> None:
    issuer, now = api.issuer, int(time.time())
    admin = issuer.claims(roles=["admin"])
    credentials = {
        "none": None,
        "revoked": revoked,
        "expired": issuer.signed(roles=["admin"], exp=now - 10),
        "badly signed": issuer.signed(roles=["admin"])[:-8] + "AAAAAAAA",
        "alg none": jwt.encode(admin, None, "none", headers={"kid": "ec"}),
        "HS256": jwt.encode(admin, issuer.secret, "HS256", headers={"kid": "oct"}),
    }
    answers = []
    for credential in credentials.values():
        async with api.client(credential) as client:
            answers.append(await ask(client, call, NEVER))
    assert [answer.status_code for answer in answers] == [401] * len(credentials)
    assert len({told(answer) for answer in answers}) == 1


@pytest.fixture(scope="module")
def revoked(api: ApiServer) -> str:
    made = api.new_key(Role.ADMIN)
    api.with_keys(lambda keys: keys.revoke(made.id))
    return made.secret


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_a_role_that_may_not_is_refused_whatever_is_there(
    api: ApiServer, lab: dict[str, str], call: Call
) -> None:
    lower = list(Role)[: list(Role).index(call.role)]
    credentials = [*map(api.key, lower), api.issuer.signed(roles=[]), api.issuer.signed(roles=["owner"])]
    for credential in credentials:
        async with api.client(credential) as client:
            answers = [await ask(client, call, names) for names in (lab, NEVER)]
        assert [answer.status_code for answer in answers] == [403, 403]
        assert told(answers[0]) == told(answers[1])


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_a_page_of_another_host_reaches_nothing(api: ApiServer, call: Call) -> None:
    async with api.client(api.local_token) as client:
        for headers in ({"Host": "evil.test"}, {"Origin": "http://evil.test"}, {"Origin": "null"}):
            answer = await ask(client, call, NEVER, headers=headers)
            assert answer.status_code == 403
            problem(answer)


@pytest.fixture
async def lab(api: ApiServer, redis: Redis) -> AsyncIterator[dict[str, str]]:
    """One of each that tenant ``lab`` has, by the name that it has in paths."""
    async with api.client(api.key(Role.ADMIN)) as client:
        assert (await client.put(f"/knowledge/artifacts/{quote(REF, safe='')}", json=KELP)).status_code == 200
        request = {"intent": QUERY, "tokenBudget": 500, "pinned": [REF], "taskId": "task-17"}
        package = (await client.post("/knowledge/context/build", json=request)).json()
        text = f"// {MARKER}\npermit(principal, action, resource) when {{ false }};"
        assert (await client.put(f"/knowledge/policies/{POLICY}", content=text)).status_code == 200
        entry: dict[str, Any] = {"id": 1, "text": MARKER, "speaker": "Ida", "timestamp": "2026-11-22T10:30:45"}
        state = {"session_id": SESSION, "raw_recent_buffer": [entry], "revision": 1}
        await redis.set(f"context_builder:{SESSION}:state", orjson.dumps(state))
        indexed = IndexedMessage("00" * 16, None, False, 0.0, entry["timestamp"], entry["speaker"])
        await redis.hset(f"context_builder:{SESSION}:message_index", id_field(entry["id"]), indexed.encode())
        assert await SessionClient(redis, SESSION).held_message(read_reference("id:1", "message")) == "there"
        yield {
            "ref": REF,
            "session_id": SESSION,
            "name": POLICY,
            "package_id": package["contextPackageId"],
            "message": "id:1",
            "speaker": "Ida",
        }
        await client.delete(f"/knowledge/policies/{POLICY}")


@pytest.mark.parametrize("call", [call for call in CALLS if call.has_id], ids=str)
async def test_what_another_tenant_has_is_as_if_it_were_not_there(
    api: ApiServer, lab: dict[str, str], redis: Redis, call: Call
) -> None:
    """A ``PUT`` of knowledge makes the other tenant's own; all else is 404."""
    async with api.client(api.key(Role.ADMIN, tenant="other")) as client:
        there, never = [await ask(client, call, names) for names in (lab, NEVER)]
        if call.method != "PUT" or call.path.startswith("/sessions/"):
            assert there.status_code == 404
            assert told(there) == told(never)
        else:
            assert there.status_code == never.status_code == 200
            await client.delete(call.filled(lab))
            await client.delete(call.filled(NEVER))
    assert MARKER not in there.text
    async with api.client(api.key(Role.ADMIN)) as client:
        for path in (f"/knowledge/artifacts/{quote(REF, safe='')}", f"/knowledge/policies/{POLICY}"):
            assert MARKER in (await client.get(path)).text
        assert (await client.get(f"/knowledge/context/{lab['package_id']}")).status_code == 200
    assert await redis.exists(f"context_builder:{SESSION}:state")
    assert not await redis.exists(f"context_builder:{SESSION}:input")


async def test_what_lists_lists_nothing_of_another_tenant(api: ApiServer, lab: dict[str, str]) -> None:
    async with api.client(api.key(Role.ADMIN, tenant="stranger")) as client:
        answers = [
            await client.get("/sessions"),
            await client.get("/memories/search", params={"q": MARKER}),
            *[await client.get("/knowledge/context", params=query) for query in ({"taskId": "task-17"}, {"ref": REF})],
            await client.post("/knowledge/context/build", json={"intent": MARKER, "tokenBudget": 500, "pinned": [REF]}),
        ]
    for answer in answers:
        assert answer.status_code == 200
        assert "sleeps" not in answer.text
        assert lab["package_id"] not in answer.text
    assert answers[0].json() == []
    assert answers[1].json() == {"memories": []}
    assert [answer.json()["packages"] for answer in answers[2:4]] == [[], []]
    assert (answers[4].json()["sources"], answers[4].json()["denied"]) == ([], 0)


async def test_ids_of_another_tenant_in_a_body_lead_to_nothing_and_change_nothing(
    api: ApiServer, lab: dict[str, str]
) -> None:
    tenant, own = f"other-{uuid4().hex[:8]}", "artifact:own"
    secret = Memory("otters:message:2", f"{MARKER} dozes.", "message", session_id="otters", position=2)
    memory = PostgresMemory(api.database_url)
    await memory.remember("lab", [secret])
    await memory.close()
    request = {"intent": QUERY, "tokenBudget": 500}
    edges = [{"from": own, "to": REF, "type": "cites"}, {"from": REF, "to": own, "type": "cites"}]
    async with api.client(api.key(Role.ADMIN)) as lab_admin, api.client(api.key(Role.ADMIN, tenant)) as stranger:
        path = f"/knowledge/context/{lab['package_id']}"
        (
            await lab_admin.put("/knowledge/edges", json=[{"from": REF, "to": "task:lab", "type": "for"}])
        ).raise_for_status()

        async def seen_in_the_lab() -> list[Any]:
            package = (await lab_admin.post("/knowledge/context/build", json=request)).json()
            signals = [(one["ref"], one["signals"]["quality"], one["signals"]["reuse"]) for one in package["sources"]]
            audit = (await lab_admin.get(f"/knowledge/context/{package['contextPackageId']}/audit")).json()
            return [signals, audit["revisions"][0]["graph"]["edges"]]

        before = await seen_in_the_lab()
        (await stranger.put(f"/knowledge/artifacts/{own}", json={**KELP, "title": "Own", "content": "An otter naps."}))
        assert (await stranger.put("/knowledge/edges", json=edges)).json() == {"count": 2}
        taken = [{"from": REF, "to": "task:lab", "type": "for"}]
        assert (await stranger.post("/knowledge/edges/delete", json=taken)).json() == {"count": 0}
        assessed = {"ref": REF, "quality": 0, "assessor": "Eve"}
        assert (await stranger.post("/knowledge/assessments", json=assessed)).status_code == 204
        scope = {"projectId": "kelp", "sessionIds": [SESSION, "otters"]}
        package = (
            await stranger.post("/knowledge/context/build", json={**request, "scope": scope, "pinned": [own]})
        ).json()
        assert [one["ref"] for one in package["sources"]] == [own]
        assert package["denied"] == 0
        rated = {"outcome": 0, "helped": {REF: 0, own: 1}}
        own_path = f"/knowledge/context/{package['contextPackageId']}"
        assert (await stranger.post(f"{own_path}/feedback", json=rated)).status_code == 204
        assert (await stranger.post(f"{path}/feedback", json=rated)).status_code == 404
        for answer in (await stranger.get(own_path), await stranger.get(f"{own_path}/audit")):
            assert (answer.status_code, MARKER in answer.text) == (200, False)
        body = {"query": QUERY, "tokenBudget": 500, "packageScope": scope}
        assert (await stranger.post(f"/sessions/{SESSION}/turn", json=body)).status_code == 404
        assert await seen_in_the_lab() == before


HOSTILE: dict[str, bytes] = {
    "not UTF-8": b'{"title": "\xff\xfe"}',
    "half a surrogate pair": b'{"kind": "document", "title": "\\ud800", "content": "\\ud800"}',
    "deep": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "no end": b'{"kind": "document',
    "nothing": b"",
    "a number": b"1e999",
    "NaN": b'{"ref": "artifact:x", "quality": NaN, "assessor": "x"}',
    "another shape": b'{"hunter2-the-otter": {"role": "admin"}, "tenantId": "other", "roles": ["admin"]}',
    "many": b"[" + b",".join([b'{"from": "a", "to": "b", "type": "c"}'] * 10_001) + b"]",
}


@pytest.mark.parametrize("call", WITH_BODY, ids=str)
async def test_a_hostile_body_is_refused_and_not_quoted(api: ApiServer, redis: Redis, call: Call) -> None:
    names = {**NEVER, "session_id": "hostile"}
    async with api.client(api.key(Role.ADMIN)) as client:
        for name, body in HOSTILE.items():
            answer = await ask(client, call, names, content=body, headers={"content-type": "application/json"})
            if call.path == "/knowledge/policies/{name}" and name == "nothing":
                continue  # a text without policies is one
            assert answer.status_code == 422, name
            problem(answer)
            assert MARKER not in answer.text
        huge = await ask(client, call, names, content=b" " * (MOST_BYTES + 1))
        assert huge.status_code == 413
        for kind in ("text/html", "application/x-www-form-urlencoded", "multipart/form-data", ""):
            if call.path in BODIES:
                body = json.dumps(BODIES[call.path]).encode()
                answer = await ask(client, call, names, content=body, headers={"content-type": kind})
                assert answer.status_code == 415
    assert not await redis.keys("context_builder:hostile:*")


NULS: dict[str, Any] = {
    "/knowledge/artifacts/{ref:path}": {"kind": "document", "title": "a\x00b", "content": "c"},
    "/knowledge/edges": [{"from": "a", "to": "b", "type": "a\x00b"}],
    "/knowledge/assessments": {"ref": "artifact:x", "quality": 1, "assessor": "a\x00b"},
    "/knowledge/context/build": {"intent": "a\x00b", "tokenBudget": 100},
    "/sessions/{session_id}/turn": {"query": "a\x00b", "tokenBudget": 100},
}


@pytest.mark.parametrize("path", NULS)
async def test_nul_is_refused(api: ApiServer, path: str) -> None:
    (call,) = [call for call in WITH_BODY if call.path == path]
    async with api.client(api.key(Role.ADMIN)) as client:
        assert (await ask(client, call, NEVER, json=NULS[path])).status_code in {404, 422}


@pytest.mark.parametrize(
    "hostile", ["a\x00b", "\ud800", "../../etc/passwd", "%2e%2e%2f", "' OR 1=1 --", "*", "x" * 3000, "\U0001f40b"]
)
@pytest.mark.parametrize("call", [call for call in CALLS if call.has_id and call.method in NOT_MAKING], ids=str)
async def test_a_hostile_id_finds_nothing(api: ApiServer, lab: dict[str, str], call: Call, hostile: str) -> None:
    raw = quote(hostile.encode("utf-8", "surrogatepass"), safe="")
    path = re.sub(r"{\w+(:path)?}", lambda _: raw, call.path)
    async with api.client(api.key(Role.ADMIN)) as client:
        answer = await client.request(call.method, path, json=BODIES[call.path] if call.method == "PATCH" else None)
    assert answer.status_code in {404, 422}
    problem(answer)
    assert MARKER not in answer.text


@pytest.mark.parametrize("name", ["q", "limit", "after", "version", "taskId"])
async def test_a_hostile_query_breaks_nothing(api: ApiServer, lab: dict[str, str], name: str) -> None:
    paths = ("/memories/search", f"/sessions/{SESSION}/messages", f"/knowledge/artifacts/{REF}", "/knowledge/context")
    async with api.client(api.key(Role.ADMIN)) as client:
        for value in ("%00", "%ed%a0%80", "%ff", "-1", "9" * 400, "NaN", "x" * 9_000, "%27%20OR%201%3D1"):
            for path in paths:
                assert (await client.get(f"{path}?{name}={value}")).status_code in {200, 404, 422}


class Looking(NamedTuple):
    """Those who look for the artifact of project ``kelp``, or for what was said about it, and the package's id."""

    admin: httpx.AsyncClient
    writer: httpx.AsyncClient
    reader: httpx.AsyncClient
    package_id: str

    async def got(self, path: str, **query: str) -> bool:
        return "sleeps" in (await self.reader.get(path, params=query)).text

    async def remembered(self) -> bool:
        return "naps" in (await self.reader.get("/memories/search", params={"q": "Where does the otter nap?"})).text

    async def listed(self) -> bool:
        return self.package_id in (await self.reader.get("/knowledge/context", params={"ref": REF})).text

    async def built(self) -> bool:
        request = {"intent": QUERY, "tokenBudget": 500, "pinned": [REF]}
        return "sleeps" in (await self.reader.post("/knowledge/context/build", json=request)).text

    async def put(self) -> bool:
        return (await self.writer.put(f"/knowledge/artifacts/{REF}", json=KELP)).status_code == 200

    async def deleted(self) -> bool:
        (await self.admin.put(f"/knowledge/artifacts/{REF}", json=KELP)).raise_for_status()
        return (await self.writer.delete(f"/knowledge/artifacts/{REF}")).status_code == 200

    async def explained(self) -> bool:
        return "sleeps" in (await self.admin.get(f"/knowledge/context/{self.package_id}/audit")).text

    async def in_a_turn(self) -> bool | None:
        """None where knowledge did not answer in time."""
        body = {"query": QUERY, "tokenBudget": 3000, "packageScope": {"projectId": "kelp"}}
        answer = (await self.reader.post(f"/sessions/{SESSION}/turn", json=body)).json()
        return "sleeps" in str(answer["messages"]) if answer["debug"]["memory"] == "ok" else None


LOOKS: dict[str, Callable[[Looking], Awaitable[bool | None]]] = {
    "GET artifact": lambda looking: looking.got(f"/knowledge/artifacts/{REF}"),
    "PUT artifact": Looking.put,
    "DELETE artifact": Looking.deleted,
    "build": Looking.built,
    "GET package": lambda looking: looking.got(f"/knowledge/context/{looking.package_id}"),
    "GET prompt": lambda looking: looking.got(f"/knowledge/context/{looking.package_id}", format="prompt"),
    "audit": Looking.explained,
    "packages by ref": Looking.listed,
    "search": Looking.remembered,
    "turn": Looking.in_a_turn,
}


@pytest.mark.parametrize("look", LOOKS)
async def test_a_policy_holds_within_a_second(api: ApiServer, lab: dict[str, str], look: str) -> None:
    forbid = (
        """forbid(principal, action, resource) when { resource.project == "kelp" || resource.session == "otters" };"""
    )
    memory = PostgresMemory(api.database_url)
    said = Memory("otters:message:1", "The otter naps in the kelp.", "message", session_id="otters", position=1)
    await memory.remember("lab", [said])
    await memory.close()
    admin, writer, reader = (api.client(api.key(role)) for role in (Role.ADMIN, Role.WRITER, Role.READER))
    async with admin, writer, reader:
        looking = Looking(admin, writer, reader, lab["package_id"])

        async def shows(wanted: bool) -> bool:
            return await LOOKS[look](looking) is wanted

        await wait_until(lambda: shows(True), "it is allowed")
        for _ in range(10):
            assert (await admin.put("/knowledge/policies/embargo", content=forbid)).status_code == 200
            try:
                forbidden = await seconds_until(lambda: shows(False), "it is forbidden")
            finally:
                await admin.delete("/knowledge/policies/embargo")
            allowed = await seconds_until(lambda: shows(True), "it is allowed again")
            if max(forbidden, allowed) < 1:
                return
        pytest.fail(f"it was forbidden after {forbidden:.1f} s, and allowed after {allowed:.1f} s")


async def medians(client: httpx.AsyncClient, call: Call, named: Sequence[dict[str, str]]) -> list[float]:
    """The seconds that 300 calls take with each of the names, in turns."""
    times: list[list[float]] = [[] for _ in named]
    for _ in range(150):
        for taken, names in zip(times, named, strict=True):
            began = time.perf_counter()
            await client.get(call.filled(names))
            taken.append(time.perf_counter() - began)
    return [median(taken) for taken in times]


@pytest.mark.slow
async def test_the_time_of_an_answer_does_not_tell_what_is_there(api: ApiServer, lab: dict[str, str]) -> None:
    async with api.client(api.key(Role.ADMIN, tenant="other")) as client:
        for path in ("/knowledge/artifacts/{ref}", "/sessions/{session_id}/state", "/knowledge/context/{package_id}"):
            call = Call("GET", path, Role.READER)
            for _ in range(10):  # what tells something tells it each time; a busy machine does not
                there, never = await medians(client, call, (lab, NEVER))
                if abs(there - never) < 0.1 * max(there, never):
                    break
            else:
                raise AssertionError(f"{path}: {there:.6f} s for what is there, {never:.6f} s for what is not")


async def test_neither_credentials_nor_content_are_in_the_log(api: ApiServer, lab: dict[str, str]) -> None:
    del lab
    for secret in (MARKER, api.local_token, *(api.key(role) for role in Role)):
        assert secret not in api.daemon.output
    assert "Traceback" not in api.daemon.output
