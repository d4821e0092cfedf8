"""A Supabase project keeps knowledge as any PostgreSQL does, for its service key alone."""

from __future__ import annotations

import pytest

from context_builder.database.supabase import SupabaseDatabase
from context_builder.errors import DatabaseRejected, DatabaseUnavailable
from context_builder.knowledge.artifact import Artifact, ArtifactKind, Assessment, Edge, Link
from context_builder.knowledge.store import ArtifactFilter, KnowledgeStore
from tests.services.postgrest import PostgrestFront, api_key

pytestmark = pytest.mark.engines

REF = "artifact:protocol"
PROTOCOL = Artifact(kind=ArtifactKind.DOCUMENT, title="Protocol", content="Label it.", project_id="kelp", source="a.md")


def knowledge_of(project: PostgrestFront, role: str = "service_role") -> KnowledgeStore:
    return KnowledgeStore(SupabaseDatabase(project.url, api_key(role)))


async def test_knowledge_is_kept_found_and_erased_by_tenant(
    supabase_project: PostgrestFront, migrated_url: str
) -> None:
    knowledge = knowledge_of(supabase_project)
    edge = Edge(from_ref=REF, to_ref="artifact:b", type="cites")
    assert await knowledge.put("lab", REF, PROTOCOL) == (1, True)
    assert await knowledge.put("lab", REF, PROTOCOL) == (1, False)
    assert (await knowledge.get("lab", [REF]))[REF].content == "Label it."
    assert await knowledge.get("lab", [REF], version=2) == {}
    assert await knowledge.matching("lab", ArtifactFilter(project_id="kelp"), 5) == [REF]
    assert await knowledge.sources("lab", "kelp") == {REF: "a.md"}
    assert await knowledge.link("lab", [edge]) == 1
    assert (await knowledge.neighbourhood("lab", [REF], edge_types=["cites"])).edges == (
        Link(REF, "artifact:b", "cites"),
    )
    await knowledge.assess("lab", [Assessment(ref=REF, quality=0.5, assessor="ann")])
    assert await knowledge.quality("lab", [REF]) == {REF: 0.5}
    assert await knowledge.get("club", [REF]) == {}
    assert await knowledge.unlink("lab", [edge]) == 1
    assert not await knowledge.erase("club", REF)
    assert await knowledge.erase("lab", REF)
    assert await knowledge.get("lab", [REF]) == {}
    await knowledge.close()


@pytest.mark.parametrize("role", ["anon", "authenticated"])
async def test_other_keys_reach_nothing(supabase_project: PostgrestFront, migrated_url: str, role: str) -> None:
    knowledge = knowledge_of(supabase_project, role)
    for refused in (knowledge.put("lab", REF, PROTOCOL), knowledge.get("lab", [REF]), knowledge.erase("lab", REF)):
        with pytest.raises(DatabaseRejected, match="use the project's service key"):
            await refused
    await knowledge.close()


async def test_a_project_that_lacks_the_functions_or_is_down_says_so(supabase_project: PostgrestFront) -> None:
    knowledge = knowledge_of(supabase_project)
    with pytest.raises(DatabaseRejected, match="run the SQL that `context-builder migrate` prints"):
        await knowledge.get("lab", [REF])
    supabase_project.stop()
    with pytest.raises(DatabaseUnavailable):
        await knowledge.get("lab", [REF])
    await knowledge.close()


async def test_a_folder_of_more_files_than_the_api_returns_rows_is_known_whole(
    supabase_project: PostgrestFront, migrated_url: str
) -> None:
    knowledge = knowledge_of(supabase_project)
    supabase_project.max_rows = 2
    refs = {f"artifact:{number}": f"{number}.md" for number in range(5)}
    for ref, source in refs.items():
        await knowledge.put("lab", ref, PROTOCOL.model_copy(update={"source": source}))
    assert await knowledge.sources("lab", "kelp") == refs
    await knowledge.close()
