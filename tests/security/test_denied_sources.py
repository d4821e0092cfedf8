"""What is denied stays unknown: to count, to pin, to search, to audit and to write tell nothing of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import asyncpg
import httpx
import pytest
from structlog.testing import capture_logs

from context_builder.analysis.processes import IN_THREADS
from context_builder.clock import SystemClock
from context_builder.database.postgres import PostgresDatabase
from context_builder.knowledge.denials import LATEST, UnknownDenials
from context_builder.knowledge.govern import BoundedRedaction, PreparedRedactor
from context_builder.knowledge.governance import Access, Agent
from context_builder.knowledge.local import LocalNodes, LocalVectors
from context_builder.knowledge.policies import PolicyDecisions, PolicyStore
from context_builder.knowledge.request import ContextBuildRequest, Scope, SemanticRetrieval
from context_builder.knowledge.sources import PackageQuery, similar
from context_builder.knowledge.store import KnowledgeStore
from context_builder.knowledge.view import Viewer
from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery, SearchResult
from context_builder.memory.sql_memory import PostgresMemory
from context_builder.server.access.caller import Caller, Role, caller_of, local_caller
from context_builder.server.problem import Problem
from context_builder.server.routes.memories import found_memories
from context_builder.server.routes.sessions import list_sessions
from context_builder.wiring.knowledge import redactor_of_packages
from tests.services.api_server import ApiServer
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines

SECRET = "hunter22xyzzy"
DENIED, UNKNOWN = "artifact:merger", "artifact:nowhere"
GUESSES = ("cormorant", "herring", "walrus", "kestrel", "marmot")
WORD = "porpoise"


@pytest.fixture
def tenant() -> str:
    return f"lab-{uuid4().hex[:8]}"


@pytest.fixture
async def admin(api: ApiServer, tenant: str) -> AsyncIterator[httpx.AsyncClient]:
    async with api.client(api.key(Role.ADMIN, tenant)) as client:
        yield client


@pytest.fixture
async def writer(api: ApiServer, tenant: str) -> AsyncIterator[httpx.AsyncClient]:
    async with api.client(api.key(Role.WRITER, tenant)) as client:
        yield client


async def put(client: httpx.AsyncClient, ref: str, content: str, **fields: Any) -> httpx.Response:
    artifact = {"kind": "document", "title": f"On {ref}", "content": content, "status": "approved", **fields}
    return (await client.put(f"/knowledge/artifacts/{ref}", json=artifact)).raise_for_status()


async def built(client: httpx.AsyncClient, intent: str = "plans", **asked: Any) -> Any:
    body = {"intent": intent, "tokenBudget": 2000, **asked}
    return (await client.post("/knowledge/context/build", json=body)).raise_for_status().json()


def told(package: Any) -> dict[str, Any]:
    """What a package tells, but for ids, times and its intent."""
    sources = [
        {**one, "signals": {**one["signals"], "recency": 0}, "score": round(one["score"], 4)}
        for one in package["sources"]
    ]
    return {
        "sources": sources,
        "coverage": package["coverage"],
        **{name: package[name] for name in ("denied", "redacted", "excluded", "tokensUsed", "stale")},
    }


async def test_no_word_of_a_restricted_source_tells_that_it_is_there(
    admin: httpx.AsyncClient, writer: httpx.AsyncClient
) -> None:
    await put(admin, DENIED, f"The {WORD} is sold.", sensitivity="restricted")
    await put(admin, "artifact:open", "Plans for the pier.")
    await put(admin, "artifact:linked", "Plans for the bay.")
    edge = {"from": DENIED, "to": "artifact:linked", "type": "about"}
    (await admin.put("/knowledge/edges", json=[edge])).raise_for_status()
    for retrieval in ({}, {"semantic": {"topK": 1}}, {"semantic": {"topK": 1}, "graph": None, "metadata": None}):
        answers = [told(await built(writer, f"plans {word}", retrieval=retrieval)) for word in (WORD, *GUESSES)]
        assert answers == [answers[0]] * len(answers), retrieval
        assert answers[0]["denied"] == 0


async def test_a_pinned_source_that_is_denied_is_as_one_that_is_unknown(
    admin: httpx.AsyncClient, writer: httpx.AsyncClient
) -> None:
    await put(admin, DENIED, "The plan.", sensitivity="restricted")
    await put(admin, "artifact:linked", "Plans for the bay.")
    edge = {"from": DENIED, "to": "artifact:linked", "type": "about"}
    (await admin.put("/knowledge/edges", json=[edge])).raise_for_status()
    off = {"semantic": None, "metadata": None}
    answers = [await built(writer, pinned=[ref], retrieval=off) for ref in (DENIED, UNKNOWN)]
    shown = [str(told(one)).replace(DENIED, "@").replace(UNKNOWN, "@") for one in answers]
    assert shown[0] == shown[1]


async def test_an_audit_of_a_reader_names_nothing_that_is_denied(
    admin: httpx.AsyncClient, writer: httpx.AsyncClient
) -> None:
    await put(admin, "artifact:open", "Plans for the pier.")
    await put(admin, DENIED, "Plans to sell.", sensitivity="restricted", supersedes="artifact:open")
    await put(admin, "artifact:vault", "Plans of a vault.", sensitivity="restricted")
    edges = [
        {"from": one, "to": other, "type": "about"}
        for one, other in ((DENIED, "artifact:vault"), (DENIED, "artifact:open"))
    ]
    (await admin.put("/knowledge/edges", json=edges)).raise_for_status()
    package = await built(writer)
    path = f"/knowledge/context/{package['contextPackageId']}"
    of_admin = (await built(admin))["contextPackageId"]
    for shown in (f"{path}/audit", path, f"{path}?format=prompt", f"/knowledge/context/{of_admin}",
                  f"/knowledge/context/{of_admin}?format=prompt", "/knowledge/artifacts/artifact:open"):  # fmt: skip
        text = (await writer.get(shown)).raise_for_status().text
        assert "merger" not in text, shown
        assert "vault" not in text, shown
    assert "merger" in (await admin.get(f"{path}/audit")).text
    assert (await writer.get(f"/knowledge/context/{of_admin}")).json()["denied"] == 0


async def test_what_a_policy_lets_be_known_is_counted_and_named(
    admin: httpx.AsyncClient, writer: httpx.AsyncClient
) -> None:
    await put(admin, DENIED, "Plans to sell.", sensitivity="restricted")
    assert (await built(writer))["denied"] == 0
    assert (await built(admin))["denied"] == 0
    knows = 'permit (principal, action == Action::"know", resource);'
    (await admin.put("/knowledge/policies/open-book", content=knows)).raise_for_status()
    package = await built(writer)
    assert (package["sources"], package["denied"]) == ([], 1)
    audit = (await writer.get(f"/knowledge/context/{package['contextPackageId']}/audit")).json()
    (outcome,) = audit["candidates"]
    assert (outcome["ref"], outcome["verdict"], outcome["score"], outcome["signals"]) == (DENIED, "denied", 0, {})


async def test_who_is_refused_changes_nothing(admin: httpx.AsyncClient, writer: httpx.AsyncClient) -> None:
    await put(admin, "artifact:open", "Plans for the pier.")
    await put(admin, DENIED, "Plans to sell.", sensitivity="restricted")
    edge = {"from": "artifact:open", "to": DENIED, "type": "about"}
    await admin.put("/knowledge/edges", json=[edge])
    await admin.post("/knowledge/assessments", json={"ref": DENIED, "quality": 1, "assessor": "root"})
    before = {one["ref"]: one for one in (await built(admin, pinned=[DENIED]))["sources"]}

    answers = []
    for ref in (DENIED, UNKNOWN):
        mine = f"artifact:mine-{ref[9:]}"
        await put(writer, mine, "Mine.", supersedes=ref)
        other = {**edge, "to": ref, "weight": 9}
        deleted = await writer.post("/knowledge/edges/delete", json=[other])
        stored = await writer.put("/knowledge/edges", json=[other])
        again = await writer.post("/knowledge/edges/delete", json=[other])
        assessed = await writer.post("/knowledge/assessments", json={"ref": ref, "quality": 0, "assessor": "eve"})
        kept = (await writer.get(f"/knowledge/artifacts/{mine}")).json()["supersedes"] == ref
        answers.append((deleted.text, stored.text, again.text, assessed.status_code, kept))
    assert answers[0] == answers[1]

    after = {one["ref"]: one for one in (await built(admin, pinned=[DENIED]))["sources"]}
    assert after[DENIED]["supersededBy"] is None
    assert after[DENIED]["signals"]["quality"] == before[DENIED]["signals"]["quality"]
    assert (await admin.post("/knowledge/edges/delete", json=[edge])).json() == {"count": 1}


async def test_no_guess_of_a_confidential_value_is_told_from_another(
    admin: httpx.AsyncClient, writer: httpx.AsyncClient
) -> None:
    await put(
        admin, "artifact:mail", f"The password is {SECRET}", sensitivity="confidential", tags=[f"password={SECRET}"]
    )
    await put(admin, "artifact:open", "Nothing of it.")
    found = [told(await built(writer, guess)) for guess in (SECRET, *GUESSES)]
    assert found == [found[0]] * len(found)


RESTRICTED = "UPDATE context_artifacts SET sensitivity = 'restricted' WHERE tenant_id = $1"
FORBIDDEN = """WITH now AS (INSERT INTO context_governance AS g (tenant_id, version) VALUES ($1, 1)
    ON CONFLICT (tenant_id) DO UPDATE SET version = g.version + 1 RETURNING version)
    INSERT INTO context_policies (tenant_id, name, text, version)
    SELECT $1, 'frozen', 'forbid(principal, action, resource);', version FROM now"""


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
@pytest.mark.parametrize("change", [RESTRICTED, FORBIDDEN], ids=["restricted", "forbidden"])
async def test_who_loses_the_right_before_something_is_stored_does_not_change_it(
    api: ApiServer, writer: httpx.AsyncClient, tenant: str, method: str, change: str
) -> None:
    await put(writer, DENIED, "Plans.")
    path, body = f"/knowledge/artifacts/{DENIED}", {"kind": "document", "title": "Mine", "content": "Mine."}
    connection = await asyncpg.connect(api.database_url)
    try:
        async with connection.transaction():
            lock = "SELECT pg_advisory_xact_lock(hashtextextended('context_artifacts ' || $1 || ' ' || $2, 0))"
            await connection.execute(lock, tenant, DENIED)
            sent = asyncio.create_task(writer.request(method, path, json=body if method == "PUT" else None))

            async def waits() -> bool:
                return bool(await connection.fetchval("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)"))

            await wait_until(waits, "the server waits to store it")
            await connection.execute(change, tenant)
        assert (await sent).status_code == 404
        held = await connection.fetch("SELECT title, content FROM context_artifacts WHERE tenant_id = $1", tenant)
        assert [tuple(one) for one in held] == [(f"On {DENIED}", "Plans.")]
    finally:
        await connection.close()


async def test_no_guess_of_what_a_confidential_session_hides_is_told_from_another(
    api: ApiServer, admin: httpx.AsyncClient, writer: httpx.AsyncClient, tenant: str
) -> None:
    memory = PostgresMemory(api.database_url)
    said = Memory("m1", f"The password is {SECRET}", session_id="monday", speaker="Ann", position=1)
    await memory.remember(tenant, [said])
    await memory.close()
    await put(admin, "session:monday", "", sensitivity="confidential")
    answers = [(await writer.get("/memories/search", params={"q": guess})).json() for guess in (SECRET, *GUESSES)]
    assert answers == [{"memories": []}] * len(answers)
    memory = PostgresMemory(api.database_url)
    heard = [Memory(f"o{n}", f"We heard of {SECRET} by mail.", session_id="open", position=n) for n in (1, 2)]
    await memory.remember(tenant, heard)
    await memory.close()
    found = (await writer.get("/memories/search", params={"q": SECRET, "limit": 1})).json()["memories"]
    assert [one["sessionId"] for one in found] == ["open"], "what is masked takes no place"
    assert (await writer.get("/memories/search", params={"q": "password"})).json()["memories"]


SAID = (
    Memory("m1", f"The {WORD} is sold.", session_id="board", speaker="Ann", position=1),
    Memory("m2", "The pier is open.", session_id="monday", speaker="Ann", position=1),
    Memory("p1", "Ann likes the kestrel.", "preference", user_id="ann"),
)


class AskedMemory:
    """A memory that notes what it is asked for."""

    def __init__(self, memory: PostgresMemory) -> None:
        self._memory = memory
        self.asked: list[MemoryFilter] = []

    async def search(self, tenant_id: str, query: MemoryQuery) -> list[SearchResult]:
        self.asked.append(query.filter)
        return await self._memory.search(tenant_id, query)


@pytest.fixture
async def asked(api: ApiServer, admin: httpx.AsyncClient, tenant: str) -> AsyncIterator[AskedMemory]:
    """A memory in which a word was said in a restricted session alone, and another one is in a preference alone."""
    memory = PostgresMemory(api.database_url)
    await memory.remember(tenant, SAID)
    await put(admin, "session:board", "", sensitivity="restricted")
    await put(admin, DENIED, f"The {WORD} is sold.", sensitivity="restricted")
    await put(admin, "artifact:open", "Plans for the pier.")
    yield AskedMemory(memory)
    await memory.close()


@pytest.fixture
async def database(api: ApiServer) -> AsyncIterator[PostgresDatabase]:
    opened = PostgresDatabase(api.database_url)
    yield opened
    await opened.close()


def viewer_of(store: KnowledgeStore, database: PostgresDatabase) -> Viewer:
    policy, redactor = (
        PolicyDecisions(PolicyStore(database)),
        PreparedRedactor(BoundedRedaction(redactor_of_packages, IN_THREADS)),
    )
    return Viewer(LocalNodes(store), policy, redactor, len, SystemClock(), store.sensitivities)


@pytest.mark.parametrize("word", [WORD, "kestrel", "pier", "cormorant"])
async def test_a_search_asks_for_as_much_whatever_of_it_is_denied(
    asked: AskedMemory, database: PostgresDatabase, tenant: str, word: str
) -> None:
    store = KnowledgeStore(database)
    viewer = viewer_of(store, database)
    services: Any = SimpleNamespace(memory=asked, knowledge=store, packages=SimpleNamespace(viewer=viewer))
    found = await found_memories(services, caller_of(tenant, "eve", frozenset({"reader"})), MemoryQuery(word))
    assert [one.id for one in found] == (["m2"] if word == "pier" else [])
    assert len(asked.asked) == 1


@pytest.mark.parametrize("word", [WORD, "pier", "cormorant"])
async def test_a_package_asks_for_as_much_whatever_of_it_is_denied(
    asked: AskedMemory, database: PostgresDatabase, tenant: str, word: str
) -> None:
    store = KnowledgeStore(database)
    agent = Agent(tenant, frozenset({"reader"}), "eve")
    request = ContextBuildRequest(intent=word, token_budget=1000)
    admission = viewer_of(store, database).admission(agent, word)
    query = PackageQuery(request=request, tenant=tenant, longest=1000, admission=admission)
    vectors: Any = LocalVectors(store, asked)  # type: ignore[arg-type]
    found = await similar(vectors, query, SemanticRetrieval())
    shown = {WORD: [], "pier": ["artifact:open", "message:monday/1"], "cormorant": []}
    assert sorted(one.node.ref for one in found.leading) == shown[word]
    assert sorted(one.node.ref for one in found.found) == shown[word]
    assert found.unsearched == {"restricted"}
    assert len(asked.asked) == 2  # what was said, and documents


async def test_what_the_caller_may_not_know_of_is_recorded_once_it_is_answered(
    admin: httpx.AsyncClient, writer: httpx.AsyncClient
) -> None:
    await put(admin, DENIED, f"The {WORD} is sold.", sensitivity="restricted")
    by_meaning = {"semantic": {"topK": 5}, "graph": None, "metadata": None}
    package = await built(writer, WORD, retrieval=by_meaning)
    path = f"/knowledge/context/{package['contextPackageId']}"
    assert (package["sources"], package["denied"], package["excluded"]) == ([], 0, 0)

    async def audited() -> list[Any]:
        audit = (await admin.get(f"{path}/audit")).raise_for_status().json()
        sources = [(one["ref"], one["access"]) for one in audit["policyDecision"]["sources"]]
        assert sources == [(one["ref"], one["verdict"]) for one in audit["candidates"]]
        return sources

    async def is_recorded() -> bool:
        return await audited() == [(DENIED, "denied")]

    await wait_until(is_recorded, "the denial is recorded")
    assert (await admin.get(path)).json()["denied"] == 1
    of_writer = (await writer.get(f"{path}/audit")).raise_for_status()
    assert of_writer.json()["candidates"] == []
    assert DENIED not in of_writer.text
    assert (await writer.get(path)).json()["denied"] == 0


class BusySources:
    """Sources in which nothing is found, after some ``seconds``; they count who looks for something, and how many at
    the same time."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.began = self.most = self._running = 0
        self._seconds = seconds

    async def unknown(self, *_: object) -> list[Any]:
        self.began += 1
        self._running += 1
        self.most = max(self.most, self._running)
        try:
            await asyncio.sleep(self._seconds)
        finally:
            self._running -= 1
        return []


def unsearched() -> Any:
    similar = SimpleNamespace(unsearched={"restricted"})
    request = SimpleNamespace(request=SimpleNamespace(intent=WORD))
    return SimpleNamespace(
        agent=Agent("lab", frozenset(), "eve"), query=request, found=SimpleNamespace(similar=similar)
    )


PACKAGE: Any = SimpleNamespace(context_package_id="cpk_1", revision=1)


def looking(sources: BusySources, **options: float) -> UnknownDenials:
    denials = UnknownDenials(sources, None, None, **options)  # type: ignore[arg-type]
    for _ in range(20):
        denials.start(unsearched(), PACKAGE)
    return denials


async def test_what_is_denied_is_looked_for_at_a_moment_that_nobody_can_tell_and_never_much_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moments = iter([0.0, *[3600.0] * 19])
    drawn: list[tuple[float, float]] = []
    monkeypatch.setattr("random.uniform", lambda *bounds: drawn.append(bounds) or next(moments))
    sources = BusySources()
    denials = looking(sources)
    await wait_until(lambda: sources.began, "the first one is looked for")
    assert (sources.began, set(drawn)) == (1, {(0, LATEST)})
    await denials.close()  # which waits for no moment
    assert (sources.began, sources.most) == (20, 1)


async def test_to_wait_for_others_takes_no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.uniform", lambda *_: 0.0)
    sources = BusySources(0.02)
    denials = looking(sources, patience=0.1)
    await wait_until(lambda: sources.began == 20, "all are looked for")
    await denials.close()


async def test_a_search_without_end_holds_up_no_other_and_no_end_of_the_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("random.uniform", lambda *_: 0.0)
    sources = BusySources(3600)
    denials = looking(sources, patience=0.02)
    with capture_logs() as told:
        await wait_until(lambda: sources.began > 2, "the next ones are looked for")
        await denials.close()
    assert {(one["event"], one.get("reason")) for one in told} >= {("package.denials_unrecorded", "it took too long")}


async def test_who_may_know_of_what_is_denied_is_answered_with_its_count(
    admin: httpx.AsyncClient, writer: httpx.AsyncClient
) -> None:
    await put(admin, DENIED, f"The {WORD} is sold.", sensitivity="restricted")
    knows = 'permit (principal, action == Action::"know", resource);'
    (await admin.put("/knowledge/policies/open-book", content=knows)).raise_for_status()
    by_meaning = {"semantic": {"topK": 5}, "graph": None, "metadata": None}
    assert [(await built(writer, word, retrieval=by_meaning))["denied"] for word in (WORD, "cormorant")] == [1, 0]


@pytest.mark.parametrize("length", [200, 201, 512])
async def test_a_restricted_document_with_a_long_ref_is_no_internal_one_to_a_search(
    api: ApiServer, admin: httpx.AsyncClient, database: PostgresDatabase, tenant: str, length: int
) -> None:
    await put(admin, DENIED.ljust(length, "x"), f"The {WORD} is sold.", sensitivity="restricted")
    memory = PostgresMemory(api.database_url)
    vectors = LocalVectors(KnowledgeStore(database), memory)
    asked = (tenant, WORD, SemanticRetrieval(), Scope(), 1000)
    assert len(await vectors.search(*asked, sensitivities=("restricted",))) == 1
    assert await vectors.search(*asked, sensitivities=("internal", "public")) == []
    await memory.close()


@pytest.mark.parametrize("names", [[], ["kept-quiet"]])
async def test_to_ask_for_what_comes_after_a_denied_session_takes_what_an_unknown_one_takes(names: list[str]) -> None:
    looked: list[list[str]] = []

    async def access(_: Agent, sources: list[Any]) -> list[Access]:
        looked.append([one.ref for one in sources])
        return [Access.DENIED for _ in sources]

    async def nothing(*_: object) -> Any:
        return {}

    async def of_caller(_: Caller) -> Any:
        return [SimpleNamespace(session_id=name) for name in names]

    services: Any = SimpleNamespace(
        sessions=SimpleNamespace(of_caller=of_caller),
        knowledge=SimpleNamespace(sensitivities=nothing),
        packages=SimpleNamespace(viewer=SimpleNamespace(access=access)),
    )
    with pytest.raises(Problem, match=r"query\.after: is no session that there is"):
        await list_sessions(None, services, local_caller("lab"), 5, "kept-quiet")  # type: ignore[arg-type]
    assert looked == [["session:kept-quiet"]]
