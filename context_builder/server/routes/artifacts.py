"""These routes store, return and erase artifacts, edges and assessments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal

from fastapi import Path, Query, Response
from pydantic import AfterValidator, Field

from context_builder.knowledge.artifact import (
    Artifact,
    Assessment,
    CamelModel,
    Edge,
    Ref,
    Status,
    StoredArtifact,
)
from context_builder.knowledge.governance import Access
from context_builder.knowledge.store import SEPARATOR
from context_builder.knowledge.viewer import missing_source
from context_builder.server.access.caller import Caller, Role
from context_builder.server.governed import artifact_source, session_source
from context_builder.server.guarded_route import READER, WRITER, guarded_router
from context_builder.server.problem import Problem, not_found
from context_builder.server.seen_session import access_to_sessions
from context_builder.server.services import CallerHere, Services, ServicesHere
from context_builder.session.keys import is_session_id

router = guarded_router("knowledge")

MADE_HERE: Final = ("point:", "message:", "session:", "person:")
"""Refs that begin so are of what was said, and no artifact's, but for a session's: that states how sensitive it is."""

_SESSION: Final = "session:"


def _is_free(ref: str) -> str:
    if ref.startswith(MADE_HERE) and not is_session_id(ref.removeprefix(_SESSION)):
        raise ValueError(f"refs that begin with {', '.join(MADE_HERE)} are made here")
    return ref


RefInPath = Annotated[Ref, Path(description="The artifact's ref, percent-encoded.")]
Edges = Annotated[list[Edge], Field(max_length=10_000)]


class PutAnswer(CamelModel):
    """Tells an artifact's version, and whether the call changed anything."""

    ref: str
    version: int
    changed: bool


class ArtifactAnswer(StoredArtifact):
    """Holds an artifact as the caller may see it."""

    projection: Literal["full", "redacted"]


class ErasedAnswer(CamelModel):
    """Tells which version was the last of what was erased."""

    ref: str
    version: int


class CountAnswer(CamelModel):
    """Tells how many edges were stored, or were there and are deleted."""

    count: int


@router.put("/knowledge/artifacts/{ref:path}", openapi_extra=WRITER)
async def put_artifact(
    ref: Annotated[RefInPath, AfterValidator(_is_free)],
    artifact: Artifact,
    services: ServicesHere,
    caller: CallerHere,
) -> PutAnswer:
    """Store an artifact: new content makes the next version, other metadata keeps it, what is equal changes nothing.

    What the caller may not read is not the caller's to replace, but for admins; nor is what a session's artifact states
    where the caller sees redacted what was said there.
    """
    await _check_change(services, caller, ref, await _current(services, caller, ref))
    hidden = await _hidden(services, caller, [artifact.supersedes] if artifact.supersedes else [])
    version, changed = await services.knowledge.put(caller.tenant_id, ref, artifact, may_supersede=not hidden)
    if changed:
        for work in services.after_put:
            work.start(caller.tenant_id)
    return PutAnswer(ref=ref, version=version, changed=changed)


@router.get("/knowledge/artifacts/{ref:path}", openapi_extra=READER)
async def get_artifact(
    ref: RefInPath,
    services: ServicesHere,
    caller: CallerHere,
    version: Annotated[int | None, Query(ge=1, lt=2**31, description="Another version than the current one.")] = None,
) -> ArtifactAnswer:
    """Return an artifact, redacted where policies let the caller read it only so."""
    current = await _current(services, caller, ref)
    found = current
    if version is not None:
        found = (await services.knowledge.get(caller.tenant_id, [ref], version)).get(ref)
    known = artifact_source(caller.tenant_id, current, found) if current else missing_source(caller.tenant_id, ref)
    viewer = services.packages.viewer
    (access,) = await viewer.access(caller.agent, [known])
    if found is None or access is Access.DENIED:
        raise not_found()
    fields = found.model_dump() | ({} if found.current else {"status": Status.SUPERSEDED})
    if access is Access.REDACTED:
        written = (found.title, found.content, found.type, found.project_id, found.module_id, found.source or "")
        title, content, kind, project, module, origin, *tags = await viewer.redacted(*written, *found.tags)
        fields |= {"title": title, "content": content, "type": kind, "project_id": project, "module_id": module}
        fields |= {"source": origin if found.source is not None else None, "tags": tuple(tags)}
    if found.superseded_by and await _hidden(services, caller, [found.superseded_by]):
        fields["superseded_by"] = None
    return ArtifactAnswer.model_construct(**fields, projection="full" if access is Access.READ else "redacted")


@router.delete("/knowledge/artifacts/{ref:path}", openapi_extra=WRITER)
async def delete_artifact(ref: RefInPath, services: ServicesHere, caller: CallerHere) -> ErasedAnswer:
    """Erase all versions of an artifact, what it is found by, its edges and assessments, and what was served of it."""
    found = await _current(services, caller, ref)
    if found is None:
        raise not_found()
    await _check_change(services, caller, ref, found)
    if not await services.knowledge.erase(caller.tenant_id, ref):
        raise not_found()
    await services.packages.erasure.uncache(caller.tenant_id, ref)
    return ErasedAnswer(ref=ref, version=found.version)


@router.put("/knowledge/edges", openapi_extra=WRITER)
async def put_edges(edges: Edges, services: ServicesHere, caller: CallerHere) -> CountAnswer:
    """Store edges; their ends need not be there yet. Those of what the caller may not see stay as they are."""
    return CountAnswer(count=await services.knowledge.link(caller.tenant_id, await _own(services, caller, edges)))


@router.post("/knowledge/edges/delete", openapi_extra=WRITER)
async def delete_edges(edges: Edges, services: ServicesHere, caller: CallerHere) -> CountAnswer:
    """Delete edges, whatever their weight; those of what the caller may not see stay as they are."""
    return CountAnswer(count=await services.knowledge.unlink(caller.tenant_id, await _own(services, caller, edges)))


@router.post("/knowledge/assessments", openapi_extra=WRITER, status_code=204, response_class=Response)
async def assess(assessment: Assessment, services: ServicesHere, caller: CallerHere) -> Response:
    """Note what an assessor thinks of an artifact; the latest of each counts. Of what one may not see, none does."""
    if await _hidden(services, caller, [assessment.ref]):
        return Response(status_code=204)
    await services.knowledge.assess(caller.tenant_id, [assessment])
    return Response(status_code=204)


async def _hidden(services: Services, caller: Caller, refs: Sequence[str]) -> frozenset[str]:
    """Return those of the refs that name something which the caller may not see; for admins, none."""
    if caller.may(Role.ADMIN) or not refs:
        return frozenset()
    nodes = await services.knowledge.nodes(caller.tenant_id, list(dict.fromkeys(refs)), 0)
    sources = [one.governed(caller.tenant_id) for one in nodes.values()]
    access = await services.packages.viewer.access(caller.agent, sources) if sources else []
    sessions = {ref: ref.removeprefix(_SESSION) for ref in refs if ref.startswith(_SESSION)}
    of_sessions = await access_to_sessions(services, caller, dict.fromkeys(sessions.values()))
    hidden = {one.ref for one, how in zip(sources, access, strict=True) if how is Access.DENIED}
    return frozenset(hidden | {ref for ref, name in sessions.items() if of_sessions[name] is Access.DENIED})


async def _own(services: Services, caller: Caller, edges: Sequence[Edge]) -> list[Edge]:
    """Return the edges with an end that never is there in place of each that the caller may not see.

    So they join nothing, and are stored, deleted and counted as those of an end that is not there yet.
    """
    hidden = await _hidden(services, caller, [ref for one in edges for ref in (one.from_ref, one.to_ref)])
    if not hidden:
        return list(edges)
    ends = {ref: f"{ref}{SEPARATOR}" for ref in hidden}
    return [
        one.model_copy(
            update={"from_ref": ends.get(one.from_ref, one.from_ref), "to_ref": ends.get(one.to_ref, one.to_ref)}
        )
        for one in edges
    ]


async def _current(services: Services, caller: Caller, ref: str) -> StoredArtifact | None:
    return (await services.knowledge.get(caller.tenant_id, [ref])).get(ref)


async def _check_change(services: Services, caller: Caller, ref: str, held: StoredArtifact | None) -> None:
    """Raise :class:`Problem` unless the caller may replace and erase what is ``held`` under the ref.

    Admins may, unread. Under a session's ref it decides who sees what was said, and those who see less must not.
    """
    if caller.may(Role.ADMIN):
        return
    if is_session := ref.startswith(_SESSION):
        source = session_source(caller.tenant_id, ref.removeprefix(_SESSION), held)
    elif held is not None:
        source = artifact_source(caller.tenant_id, held)
    else:
        return
    (access,) = await services.packages.viewer.access(caller.agent, [source])
    if access is Access.DENIED:
        raise not_found()
    if is_session and access is Access.REDACTED:
        raise Problem(403, "forbidden", "what was said there is shown to you redacted; this needs the role admin")
