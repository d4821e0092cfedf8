"""Artifacts have versions, are found by what is in them, and are gone everywhere once erased."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest
from pydantic import ValidationError

from context_builder.analysis.processes import TooBusy
from context_builder.errors import ArtifactChanged, DatabaseRejected, DatabaseUnavailable
from context_builder.knowledge.artifact import Artifact, ArtifactKind, Assessment, Edge, Link, Sensitivity, Status
from context_builder.knowledge.store import LONG, ArtifactFilter, KnowledgeStore, document_space
from context_builder.memory.memory import MemoryQuery
from context_builder.memory.sql_memory import PostgresMemory

pytestmark = pytest.mark.engines

REF = "artifact:protocol"


def document(content: str = "Label every call of a whale.", **fields: Any) -> Artifact:
    return Artifact(kind=ArtifactKind.DOCUMENT, title="Labelling protocol", content=content, **fields)


def edge(one: str, other: str, kind: str = "cites", weight: float = 1.0) -> Edge:
    return Edge(from_ref=one, to_ref=other, type=kind, weight=weight)


async def found(memory: PostgresMemory, query: str, tenant: str = "lab") -> list[str]:
    hits = await memory.search(document_space(tenant), MemoryQuery(text=query, limit=5))
    return [hit.memory.metadata["ref"] for hit in hits]


async def test_an_artifact_comes_back_as_it_was_put(knowledge: KnowledgeStore) -> None:
    put = document(
        project_id="kelp",
        module_id="acoustics",
        status=Status.APPROVED,
        sensitivity=Sensitivity.CONFIDENTIAL,
        type="contract",
        tags=("labels", "whales"),
        source="docs/labelling.md",
        supersedes="artifact:old",
    )
    assert await knowledge.put("lab", REF, put) == (1, True)
    held = (await knowledge.get("lab", [REF]))[REF]
    assert held.model_dump(include=set(Artifact.model_fields)) == put.model_dump()
    assert (held.ref, held.version, held.current, held.superseded_by) == (REF, 1, True, None)


async def test_new_content_makes_a_version_and_other_metadata_keeps_it(knowledge: KnowledgeStore) -> None:
    assert await knowledge.put("lab", REF, document()) == (1, True)
    assert await knowledge.put("lab", REF, document()) == (1, False)
    assert await knowledge.put("lab", REF, document(status=Status.APPROVED)) == (1, True)
    assert await knowledge.put("lab", REF, document("Label every click.")) == (2, True)
    assert (await knowledge.get("lab", [REF]))[REF].content == "Label every click."
    first = (await knowledge.get("lab", [REF], version=1))[REF]
    assert (first.content, first.status, first.current) == ("Label every call of a whale.", Status.APPROVED, False)
    assert await knowledge.get("lab", [REF], version=3) == {}


async def test_many_at_once_make_one_version_each(knowledge: KnowledgeStore) -> None:
    await asyncio.gather(*(knowledge.put("lab", REF, document(f"Version {number}.")) for number in range(8)))
    held = [await knowledge.get("lab", [REF], version=version) for version in range(1, 9)]
    assert len({one[REF].content for one in held}) == 8
    assert [one[REF].current for one in held].count(True) == 1


async def test_an_artifact_is_found_by_its_present_content_alone(knowledge: KnowledgeStore, migrated_url: str) -> None:
    memory = PostgresMemory(migrated_url)
    long = "\n\n".join(f"Paragraph {number} tells of hydrophones. " + "word " * 70 for number in range(3))
    await knowledge.put("lab", REF, document(long))
    await knowledge.put("lab", "artifact:other", document("Bees dance."))
    assert set(await found(memory, "hydrophones")) == {REF}
    await knowledge.put("lab", REF, document("Now it is of turbines."))
    assert await found(memory, "hydrophones") == []
    assert await found(memory, "turbines") == [REF]
    assert await knowledge.erase("lab", REF)
    assert await found(memory, "turbines") == []
    await memory.close()


async def test_documents_are_not_among_what_was_said(knowledge: KnowledgeStore, migrated_url: str) -> None:
    memory = PostgresMemory(migrated_url)
    await knowledge.put("lab", REF, document("A secret of turbines.", sensitivity=Sensitivity.RESTRICTED))
    assert await memory.search("lab", MemoryQuery(text="turbines", limit=5)) == []
    await memory.close()


async def test_what_is_erased_is_gone_everywhere_and_never_has_a_version_again(
    knowledge: KnowledgeStore, database: asyncpg.Connection
) -> None:
    await knowledge.put("lab", REF, document("A peculiar sentence."))
    await knowledge.put("lab", REF, document("A peculiar successor."))
    await knowledge.link("lab", [edge(REF, "artifact:b"), edge("artifact:b", REF)])
    await knowledge.assess("lab", [Assessment(ref=REF, quality=0.9, assessor="ann")])
    assert await knowledge.erase("lab", REF)
    assert not await knowledge.erase("lab", REF)
    assert await knowledge.get("lab", [REF]) == {}
    assert await knowledge.quality("lab", [REF]) == {}
    tables = await database.fetch("SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'")
    for table in tables:
        rows = await database.fetchval(f"SELECT json_agg(t)::text FROM {table['name']} AS t")
        assert "peculiar" not in (rows or "")
    assert await knowledge.put("lab", REF, document()) == (3, True)


async def test_artifacts_are_found_by_their_fields(knowledge: KnowledgeStore) -> None:
    await knowledge.put("lab", "artifact:a", document(type="contract", tags=("x", "y"), module_id="m"))
    await knowledge.put("lab", "artifact:b", document(status=Status.APPROVED, tags=("x",), project_id="kelp"))

    async def refs(**where: Any) -> set[str]:
        return set(await knowledge.matching("lab", ArtifactFilter(**where), 10))

    assert await refs() == {"artifact:a", "artifact:b"}
    assert await refs(types=("contract",)) == {"artifact:a"}
    assert await refs(statuses=("approved", "stale")) == {"artifact:b"}
    assert await refs(tags=("x",)) == {"artifact:a", "artifact:b"}
    assert await refs(tags=("x", "y")) == {"artifact:a"}
    assert await refs(modules=("m",)) == {"artifact:a"}
    assert await refs(project_id="kelp") == {"artifact:b"}
    assert await refs(kinds=("code",)) == set()
    assert await refs(project_id="' OR true --", types=("it's", "'} OR true --"), tags=("\\'}",)) == set()
    assert len(await knowledge.matching("lab", ArtifactFilter(), 1)) == 1


async def test_who_replaces_an_artifact_is_told(knowledge: KnowledgeStore) -> None:
    await knowledge.put("lab", "artifact:new", document(supersedes=REF))
    await knowledge.put("lab", REF, document())
    assert (await knowledge.get("lab", [REF]))[REF].superseded_by == "artifact:new"
    await knowledge.erase("lab", "artifact:new")
    assert (await knowledge.get("lab", [REF]))[REF].superseded_by is None


async def test_a_neighbourhood_has_what_few_edges_lead_to(knowledge: KnowledgeStore) -> None:
    chain = [edge(f"n:{number}", f"n:{number + 1}") for number in range(5)]
    assert await knowledge.link("lab", [*chain, edge("n:9", "n:0", "owns")]) == 6
    near = await knowledge.neighbourhood("lab", ["n:1"], depth=2)
    assert {node.ref: node.steps for node in near.nodes} == {"n:1": 0, "n:0": 1, "n:2": 1, "n:3": 2, "n:9": 2}
    links = {Link(one.from_ref, one.to_ref, one.type) for one in chain[:3]}
    assert set(near.edges) == {Link("n:9", "n:0", "owns"), *links}
    near = await knowledge.neighbourhood("lab", ["n:1"], depth=2, edge_types=["cites"])
    assert "n:9" not in {node.ref for node in near.nodes}
    assert await knowledge.unlink("lab", [chain[0], edge("n:0", "n:9", "owns")]) == 1
    assert {node.ref for node in (await knowledge.neighbourhood("lab", ["n:1"], depth=1)).nodes} == {"n:1", "n:2"}


async def test_of_a_hub_the_heaviest_edges_are_followed(knowledge: KnowledgeStore) -> None:
    await knowledge.link("lab", [edge("hub", f"n:{number}", weight=number) for number in range(1, 501)])
    near = await knowledge.neighbourhood("lab", ["hub"], depth=3, fan_out=10)
    assert {node.ref for node in near.nodes} == {"hub", *(f"n:{number}" for number in range(491, 501))}
    assert len((await knowledge.neighbourhood("lab", ["hub"], depth=1, limit=4)).nodes) == 4


async def test_equal_edges_count_once_and_the_last_weight_holds(knowledge: KnowledgeStore) -> None:
    assert await knowledge.link("lab", [edge("a", "b", weight=1), edge("a", "b", weight=3)]) == 1
    assert await knowledge.link("lab", [edge("a", "b", weight=2)]) == 1
    assert (await knowledge.neighbourhood("lab", ["a"])).edges == (Link("a", "b", "cites", 2),)


async def test_the_latest_assessment_of_each_counts(knowledge: KnowledgeStore) -> None:
    await knowledge.assess("lab", [Assessment(ref=REF, quality=0.1, assessor="ann")])
    await knowledge.assess(
        "lab",
        [Assessment(ref=REF, quality=1.0, assessor="ann"), Assessment(ref=REF, quality=0.5, assessor="bob")],
    )
    assert await knowledge.quality("lab", [REF, "artifact:b"]) == {REF: 0.75}


async def test_a_caller_is_one_voice_however_many_assessors_it_names(knowledge: KnowledgeStore) -> None:
    await knowledge.assess("lab", [Assessment(ref=REF, quality=1.0, assessor="ann")], "key:1")
    invented = [Assessment(ref=REF, quality=0.0, assessor=name) for name in ("ann", "bob", "cem")]
    await knowledge.assess("lab", invented, "key:2")
    assert await knowledge.quality("lab", [REF]) == {REF: 0.5}


async def test_what_changed_since_it_was_seen_is_not_erased(knowledge: KnowledgeStore) -> None:
    await knowledge.put("lab", REF, document("Of turbines."))
    seen = (await knowledge.get("lab", [REF]))[REF]
    await knowledge.put("lab", REF, document("Of propellers."))
    with pytest.raises(ArtifactChanged):
        await knowledge.erase("lab", REF, over=seen)
    assert await knowledge.erase("lab", REF, over=(await knowledge.get("lab", [REF]))[REF])


async def test_what_a_busy_machine_has_no_time_for_may_be_sent_again(knowledge: KnowledgeStore) -> None:
    async def busy(*_: object, **__: object) -> Any:
        raise TooBusy("ended")

    with pytest.raises(DatabaseUnavailable):
        await KnowledgeStore(knowledge._database, busy).put("lab", REF, document("word " * LONG))


async def test_tenants_know_nothing_of_each_other(knowledge: KnowledgeStore, migrated_url: str) -> None:
    memory = PostgresMemory(migrated_url)
    await knowledge.put("lab", REF, document("Of turbines."))
    await knowledge.link("lab", [edge(REF, "artifact:b")])
    await knowledge.assess("lab", [Assessment(ref=REF, quality=1.0, assessor="ann")])
    assert await knowledge.get("club", [REF]) == {}
    assert await knowledge.matching("club", ArtifactFilter(), 10) == []
    assert len((await knowledge.neighbourhood("club", [REF])).nodes) == 1
    assert await knowledge.quality("club", [REF]) == {}
    assert not await knowledge.erase("club", REF)
    assert await found(memory, "turbines", "club") == []
    assert await knowledge.put("club", REF, document("Of bees.")) == (1, True)
    assert (await knowledge.get("lab", [REF]))[REF].content == "Of turbines."
    await memory.close()


@pytest.mark.parametrize("tenant", ["", "lab\x1fdocuments", "lab\x00", "lab\ud800"])
async def test_a_tenant_that_could_be_another_s_documents_is_refused(knowledge: KnowledgeStore, tenant: str) -> None:
    with pytest.raises(DatabaseRejected):
        await knowledge.put(tenant, REF, document())


@pytest.mark.parametrize(
    "ref", ["a", "artifact:" + "x" * 503, "a/b@c:d.e_f-g", "message:" + "9" * 300], ids=lambda ref: ref[:10]
)
async def test_long_refs_are_kept_apart(knowledge: KnowledgeStore, migrated_url: str, ref: str) -> None:
    memory = PostgresMemory(migrated_url)
    await knowledge.put("lab", ref, document("Of turbines."))
    assert await found(memory, "turbines") == [ref]
    await memory.close()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ref", ""), ("ref", "x" * 513), ("ref", "a b"), ("ref", "a\n"), ("ref", "ä"),
        ("quality", -0.1), ("quality", 1.1), ("quality", float("nan")), ("assessor", ""),
        ("reason", "\x00"), ("reason", "\ud800"),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_is_refused_before(field: str, value: object) -> None:
    fields = {"ref": REF, "quality": 0.5, "assessor": "ann"} | {field: value}
    with pytest.raises(ValidationError):
        Assessment.model_validate(fields)


def test_an_unknown_field_is_refused_and_json_is_in_camel_case() -> None:
    read = Artifact.model_validate({"kind": "code", "title": "t", "content": "c", "projectId": "kelp"})
    assert read.project_id == "kelp"
    with pytest.raises(ValidationError):
        Artifact.model_validate({"kind": "code", "title": "t", "content": "c", "project": "kelp"})
