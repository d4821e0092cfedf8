"""What people said is a graph by itself: the points of a session, who said them, what they cite and replace."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from context_builder.knowledge.artifact import Edge
from context_builder.memory.memory import Memory, MemoryFilter, point_id
from tests.knowledge.packages.conftest import ANN, Lab

pytestmark = pytest.mark.engines

MONDAY = datetime(2026, 11, 2, 10, tzinfo=UTC)


def message(number: int, text: str, session: str = "monday", speaker: str = "Ann Lee") -> Memory:
    return Memory(
        f"{session}:message:{number}",
        text,
        session_id=session,
        speaker=speaker,
        time=MONDAY + timedelta(minutes=number),
        position=number,
    )


def point(number: int, text: str, kind: str = "claim", session: str = "monday", **more: Any) -> Memory:
    at = MONDAY + timedelta(minutes=number)
    described = {"point": kind, "cites": [number], "speakers": ["Ann Lee", "Bo"], **more}
    return Memory(
        point_id(session, number, at.timestamp()),
        text,
        kind="point",
        session_id=session,
        speaker="Ann Lee, Bo",
        time=at,
        tags=("Physics / Astronomy",),
        metadata=described,
    )


async def edges(database: asyncpg.Connection, of: str = "%") -> set[tuple[str, str, str]]:
    found = await database.fetch("SELECT from_ref, type, to_ref FROM context_edges WHERE from_ref LIKE $1", of)
    return {tuple(row) for row in found}


async def test_a_point_has_its_edges(lab: Lab, database: asyncpg.Connection) -> None:
    await lab.put("docs/labelling.md", "Hydrophone clips are labelled by two people.")
    said = [
        point(1, "Clips are labelled by hand."),
        point(2, "We follow docs/labelling.md.", "decision", supersedes=1),
    ]
    await lab.memory.remember("lab", said)
    ann, physics = [
        await database.fetchval("SELECT context_knowledge_name($1)", name)
        for name in ("Ann Lee", "Physics / Astronomy")
    ]
    assert (ann[:8], physics[:18]) == ("Ann-Lee/", "Physics-Astronomy/")
    assert await edges(database, "point:monday/2") == {
        ("point:monday/2", "said_in", "session:monday"),
        ("point:monday/2", "decided_in", "session:monday"),
        ("point:monday/2", "said_by", f"person:{ann}"),
        ("point:monday/2", "said_by", "person:Bo"),
        ("point:monday/2", "cites", "message:monday/2"),
        ("point:monday/2", "about", f"domain:{physics}"),
        ("point:monday/2", "about", "docs/labelling.md"),
        ("point:monday/2", "follows", "point:monday/1"),
        ("point:monday/2", "supersedes", "point:monday/1"),
    }
    assert "follows" not in {kind for _, kind, _ in await edges(database, "point:monday/1")}


async def test_names_that_look_alike_are_different_people(database: asyncpg.Connection, lab: Lab) -> None:
    names = ["Ann Lee", "Ann-Lee", "Ann  Lee", "ann lee", "Ànn Lee", "", "李", "王", "x" * 101, "x" * 102, "a/b", "a:b"]
    refs = [await database.fetchval("SELECT context_knowledge_name($1)", name) for name in names]
    assert len(set(refs)) == len(names)
    assert all(re.fullmatch("[A-Za-z0-9:._/@-]+", ref) for ref in refs)


async def test_remembering_the_same_again_changes_nothing(lab: Lab, database: asyncpg.Connection) -> None:
    said = [point(number, f"Whistles are event {number}.") for number in (1, 2, 3)]
    await lab.memory.remember("lab", said)
    before = await database.fetch("SELECT e.ctid, e.xmin::text, e.* FROM context_edges AS e ORDER BY e.ctid")
    await lab.memory.remember("lab", said)
    await lab.memory.embed_missing("lab")
    assert await database.fetch("SELECT e.ctid, e.xmin::text, e.* FROM context_edges AS e ORDER BY e.ctid") == before


async def test_merged_points_give_way(lab: Lab, database: asyncpg.Connection) -> None:
    said = [point(number, f"Whistles are event {number}.") for number in (1, 2, 4)]
    await lab.memory.remember("lab", said)
    await lab.memory.remember("lab", [point(3, "Whistles and clicks.", cites=[1, 2])])
    assert ("point:monday/4", "follows", "point:monday/3") in await edges(database)
    await lab.memory.forget("lab", ids=[said[1].id])
    left = await edges(database)
    assert ("point:monday/3", "follows", "point:monday/1") in left
    assert not [edge for edge in left if "point:monday/2" in edge]


async def test_forgetting_a_session_leaves_no_edge_and_no_node(lab: Lab, database: asyncpg.Connection) -> None:
    await lab.memory.remember("lab", [message(1, "Whistles!"), point(1, "Whistles."), point(2, "Clicks.")])
    await lab.memory.remember("lab", [point(1, "Soup.", session="tuesday")])
    await lab.memory.forget("lab", filter=MemoryFilter(session_id="monday"))
    assert {edge[0] for edge in await edges(database)} == {"point:tuesday/1"}
    assert await lab.store.nodes("lab", ["point:monday/1", "message:monday/1", "point:tuesday/1"], 1_000) == (
        await lab.store.nodes("lab", ["point:tuesday/1"], 1_000)
    )


async def test_an_edge_of_somebodys_own_outlives_the_point(lab: Lab, database: asyncpg.Connection) -> None:
    before = Edge(from_ref="point:monday/1", to_ref="session:monday", type="said_in")
    after = Edge(from_ref="point:monday/1", to_ref="message:monday/1", type="cites")
    await lab.store.link("lab", [before])
    await lab.memory.remember("lab", [point(1, "Whistles.")])
    await lab.store.link("lab", [after])
    await lab.memory.forget("lab", filter=MemoryFilter(session_id="monday"))
    assert await edges(database) == {(one.from_ref, one.type, one.to_ref) for one in (before, after)}


async def test_a_point_of_two_runs_of_a_session_keeps_its_edges(lab: Lab, database: asyncpg.Connection) -> None:
    first, again = point(1, "Whistles."), point(1, "Clicks.")
    again = Memory(f"{again.id}9", again.text, again.kind, again.session_id, speaker="Cy", time=again.time)
    await lab.memory.remember("lab", [first, again])
    await lab.memory.forget("lab", ids=[first.id])
    assert await edges(database) == {
        ("point:monday/1", "said_in", "session:monday"),
        ("point:monday/1", "said_by", "person:Cy"),
    }


async def test_what_belongs_to_somebody_or_another_tenant_is_no_node(lab: Lab) -> None:
    await lab.memory.remember("club", [point(1, "Whistles.")])
    await lab.memory.remember(
        "lab", [Memory("monday:message:9", "Mine.", session_id="monday", user_id="u", position=9)]
    )
    assert (
        await lab.store.nodes(
            "lab", ["point:monday/1", "message:monday/9", "point:x", "point:a/b/1", f"point:monday/{10**30}"], 1_000
        )
        == {}
    )


async def test_a_package_holds_what_people_said(lab: Lab) -> None:
    await lab.memory.remember(
        "lab",
        [
            message(1, "Let us label hydrophone clips by hand."),
            message(2, "Label them by model instead."),
            point(1, "Hydrophone clips are labelled by hand.", "decision"),
            point(2, "Hydrophone clips are labelled by machine.", "decision", supersedes=1),
        ],
    )
    package = await lab.build("how are hydrophone clips labelled?")
    by_ref = {one.ref: one for one in package.sources}
    newer, older = by_ref["point:monday/2"], by_ref["point:monday/1"]
    assert (newer.kind, newer.version, newer.cites) == ("decision", 0, ("message:monday/2",))
    assert newer.link == "/sessions/monday/messages?around=point:monday%2F2"
    assert newer.score > older.score
    assert newer.signals["recency"] > 2 * older.signals["recency"]
    assert "superseded by point:monday/2" in await lab.service.prompt(package)
    assert {"message:monday/1", "message:monday/2"} <= set(by_ref)


async def test_what_is_too_long_is_told_by_its_beginning(lab: Lab) -> None:
    await lab.memory.remember("lab", [message(1, "Whistles " * 100)])
    (node,) = (await lab.store.nodes("lab", ["message:monday/1"], 40)).values()
    assert (node.content, node.projections) == (None, ("Whistles Whistles Whistles Whistles",))
    assert len(node.title) <= 80


async def test_a_message_that_a_point_repeats_is_not_told_twice(lab: Lab) -> None:
    said = "So then: hydrophone clips are labelled by hand."
    await lab.memory.remember("lab", [message(1, said), point(1, "Hydrophone clips are labelled by hand.", "decision")])
    package = await lab.build("how are hydrophone clips labelled?")
    assert [one.ref for one in package.sources] == ["point:monday/1"]
    assert package.excluded == 1
    audit = await lab.service.audit(ANN, package.context_package_id, of_others=False)
    (left,) = [one for one in audit.candidates if one.ref == "message:monday/1"]
    assert (left.verdict, left.reason) == ("excluded", "point:monday/1 says so")
    kept = await lab.build("how are hydrophone clips labelled?", pinned=["message:monday/1"])
    assert {one.ref for one in kept.sources} == {"message:monday/1", "point:monday/1"}
    only = await lab.build("hydrophone clips", retrieval={"graph": None, "semantic": {"kinds": ["message"]}})
    assert [one.ref for one in only.sources] == ["message:monday/1"]


async def test_a_session_that_says_nothing_more_keeps_its_edges_and_its_record(
    lab: Lab, database: asyncpg.Connection
) -> None:
    await lab.memory.remember("lab", [point(1, "Whistles are events.")])
    await lab.put("session:monday", "", sensitivity="public")
    (source,) = (await lab.build("whistles")).sources
    assert (source.ref, source.sensitivity) == ("point:monday/1", "public")
    before = await edges(database), await database.fetchval("SELECT count(*) FROM context_package_contents")
    assert await lab.store.erase("lab", "session:monday")
    assert before == (await edges(database), await database.fetchval("SELECT count(*) FROM context_package_contents"))
    assert (await lab.store.nodes("lab", [source.ref], 1_000))[source.ref].sensitivity == "internal"


async def test_the_audit_shows_where_and_by_whom_something_was_said_to_those_who_may_see_it(lab: Lab) -> None:
    secret = point(2, "Whistles are sold.", "decision", speakers=["Cyd"])
    await lab.memory.remember("lab", [point(1, "Whistles are events."), secret])
    await lab.store.link("lab", [Edge(from_ref="point:monday/1", to_ref="task:t-1", type="about")])
    package = await lab.build("whistles", task_id="t-1")

    async def shown() -> tuple[set[tuple[str, str, str]], set[str]]:
        audit = await lab.service.audit(ANN, package.context_package_id, of_others=False)
        graph = audit.revisions[-1].graph
        assert graph is not None
        assert graph["id"] == package.graph_projection_id
        refs = {one["ref"] for one in graph["nodes"]}
        joined = {(one["from"], one["type"], one["to"]) for one in graph["edges"]}
        assert {ref for one, _, other in joined for ref in (one, other)} <= refs
        return joined, {ref for ref in refs if not ref.startswith("point:")}

    joined, entities = await shown()
    assert joined >= {
        ("point:monday/1", "said_in", "session:monday"),
        ("point:monday/1", "said_by", "person:Bo"),
        ("point:monday/1", "about", "task:t-1"),
        ("point:monday/2", "decided_in", "session:monday"),
        ("point:monday/2", "said_by", "person:Cyd"),
        ("point:monday/2", "follows", "point:monday/1"),
    }
    assert {one.partition(":")[0] for one in entities} == {"session", "person", "task"}
    await lab.policies.put("lab", "shut", 'forbid (principal, action, resource) when { resource.kind == "decision" };')
    without, left = await shown()
    assert without == {one for one in joined if "point:monday/2" not in one}
    assert entities - left == {"person:Cyd"}
    await lab.memory.forget("lab", filter=MemoryFilter(session_id="monday"))
    assert (await shown())[1] == set()


@pytest.mark.parametrize("session", ["room:42", "ann@acme", "café", "वर्ग:7", "a+b~c=d,e", "x:point:1"])
async def test_a_session_of_any_id_is_a_source_and_as_sensitive_as_it_is_stated(lab: Lab, session: str) -> None:
    said = [message(1, "Whistles are heard at night.", session), point(1, "Whistles are events.", session=session)]
    await lab.memory.remember("lab", said)
    await lab.memory.embed_missing("lab")
    scope = {"sessionIds": [session]}
    built = await lab.build("whistles", scope=scope)
    assert {one.ref for one in built.sources} == {f"point:{session}/1", f"message:{session}/1"}
    await lab.put(f"session:{session}", "Between us.", sensitivity="restricted")
    assert (await lab.build("whistles", scope=scope)).sources == ()
    await lab.memory.forget("lab", filter=MemoryFilter(session_id=session))
    assert await lab.store.nodes("lab", [f"point:{session}/1", f"message:{session}/1"], 1_000) == {}
