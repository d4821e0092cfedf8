"""Calls the server at a URL with a key through the client that was generated; run where that is installed."""

import asyncio
import sys

from context_builder_client import AuthenticatedClient
from context_builder_client.api.knowledge import (
    assess,
    delete_artifact,
    delete_edges,
    get_artifact,
    put_artifact,
    put_edges,
)
from context_builder_client.api.memories import search_memories
from context_builder_client.api.packages import audit_package, build_package, get_package, list_packages, rate_package
from context_builder_client.api.sessions import (
    build_turn,
    list_sessions,
    send_messages,
    session_messages,
    session_state,
)
from context_builder_client.models import (
    Artifact,
    ArtifactKind,
    Assessment,
    ContextBuildRequest,
    Edge,
    Feedback,
    ProblemDocument,
    SendMessagesBodyType0,
    TurnRequest,
)

url, key = sys.argv[1:]
ref = "artifact:docs/labels.md@generated"


async def drive(client):
    artifact = Artifact(kind=ArtifactKind.DOCUMENT, title="Labels", content="Label every call of a humpback.")
    put = await put_artifact.asyncio(ref, client=client, body=artifact)
    got = await get_artifact.asyncio(ref, client=client)
    assert (put.version, got.content, got.projection) == (1, artifact.content, "full"), got
    edges = [Edge(from_=ref, to="task:17", type_="for")]
    assert (await put_edges.asyncio(client=client, body=edges)).count == 1
    assert (await delete_edges.asyncio(client=client, body=edges)).count == 1
    assessment = Assessment(ref=ref, quality=0.9, assessor="Ida")
    assert (await assess.asyncio_detailed(client=client, body=assessment)).status_code == 204

    intent = "How are calls labelled?"
    request = ContextBuildRequest(intent=intent, token_budget=500, pinned=[ref], task_id="task-17")
    package = await build_package.asyncio(client=client, body=request)
    assert [source.ref for source in package.sources][:1] == [ref], package
    package_id = package.context_package_id
    again = await get_package.asyncio(package_id, client=client)
    assert (again.context_package_id, again.tokens_used) == (package_id, package.tokens_used)
    listed = (await list_packages.asyncio(client=client, task_id="task-17")).packages
    assert package_id in [one.context_package_id for one in listed]
    rated = await rate_package.asyncio_detailed(package_id, client=client, body=Feedback(outcome=1.0))
    assert rated.status_code == 204
    assert (await audit_package.asyncio(package_id, client=client)) is not None

    assert [one.additional_properties["session_id"] for one in await list_sessions.asyncio(client=client)] == ["monday"]
    state = await session_state.asyncio("monday", client=client)
    assert state.additional_properties["session_id"] == "monday"
    said = await session_messages.asyncio("monday", client=client, limit=10)
    assert [one.additional_properties["text"] for one in said] == ["Whales sing."]
    sent = await send_messages.asyncio(
        "monday", client=client, body=SendMessagesBodyType0.from_dict({"text": "Where?"})
    )
    assert sent.accepted == 1
    turn = await build_turn.asyncio("monday", client=client, body=TurnRequest(query="What sings?", token_budget=300))
    assert 0 < turn.tokens_used <= 300
    assert (await search_memories.asyncio(client=client, q="humpback")).memories is not None

    assert (await delete_artifact.asyncio(ref, client=client)).version == 1
    gone = await get_artifact.asyncio(ref, client=client)
    assert isinstance(gone, ProblemDocument)
    assert gone.status == 404


asyncio.run(drive(AuthenticatedClient(base_url=url, token=key)))
print("driven")
