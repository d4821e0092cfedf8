"""These routes store, return and erase artifacts, edges and assessments."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Annotated, Any, Final, Literal

from fastapi import Header, Path, Query, Response
from pydantic import AfterValidator, FailFast, Field
from pydantic.alias_generators import to_camel

from context_builder.concurrency import beside_loop
from context_builder.errors import ArtifactChanged, DatabaseUnavailable, DecisionOutdated
from context_builder.knowledge.artifact import (
    Artifact as KnownArtifact,
)
from context_builder.knowledge.artifact import (
    Assessment,
    CamelModel,
    Edge,
    Ref,
    Status,
    StoredArtifact,
    at_most,
    stricter,
)
from context_builder.knowledge.cache import CACHED
from context_builder.knowledge.governance import Access, GovernedSource
from context_builder.knowledge.store import SEPARATOR, Decided
from context_builder.knowledge.view import missing_source, said_in
from context_builder.memory.rows import as_key
from context_builder.server.access.caller import Caller, Role
from context_builder.server.guarded_route import READER, WRITER, CallerHere, ServicesHere, as_json, guarded_router
from context_builder.server.problem import Missing, Problem, not_found
from context_builder.server.seen_session import access_to_sessions
from context_builder.server.services import Services
from context_builder.session.keys import is_session_id

router = guarded_router("knowledge")

_UNCHANGED: Final[dict[int | str, dict[str, Any]]] = {
    200: {"headers": {"ETag": {"schema": {"type": "string"}}}},
    304: {"description": "It is what `If-None-Match` names."},
}

MADE_HERE: Final = ("point:", "message:", "session:", "person:")
"""Refs that begin so are of what was said, and no artifact's, but for a session's: that states how sensitive it is."""

_SESSION: Final = "session:"


def _is_free(ref: str) -> str:
    states_a_session = ref.startswith(_SESSION) and is_session_id(ref.removeprefix(_SESSION))
    if ref.startswith(MADE_HERE) and not states_a_session:
        raise ValueError(f"refs that begin with {', '.join(MADE_HERE)} are made here")
    return ref


_ATTEMPTS: Final = 5
_TOO_MANY_CHANGES: Final = "others change this artifact, or policies, at the same time; try again"

MOST_EDGES: Final = 10_000
"""In one call."""

RefInPath = Annotated[Ref, Path(description="The artifact's ref, percent-encoded.")]
Edges = Annotated[list[Edge], FailFast(), Field(max_length=MOST_EDGES), at_most(MOST_EDGES)]


READ_ONLY: Final = ("ref", "version", "current", "created_at", "updated_at", "superseded_by", "projection")
"""Fields that an answer has beside the artifact's own."""

IfMatch = Annotated[str | None, Header(max_length=1_000, description="The ETag of what is to be replaced, or *.")]
IfNoneMatch = Annotated[str | None, Header(max_length=1_000, description="ETags of what is known already, or *.")]


class Artifact(KnownArtifact):
    """An artifact to store; what was read may be sent back with its read-only fields, as they are.

    Clients that are generated from the OpenAPI document know it by this name.
    """

    ref: Ref | None = None
    version: int | None = None
    current: bool | None = None
    created_at: str | None = None
    updated_at: str | None = None
    superseded_by: Ref | None = None
    projection: Literal["full", "redacted"] | None = None


class PutAnswer(CamelModel):
    """Tells an artifact's version, and whether the call changed anything."""

    ref: str
    version: int
    changed: bool


class ArtifactAnswer(StoredArtifact):
    """An artifact as the caller may see it."""

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
    sent: Artifact,
    services: ServicesHere,
    caller: CallerHere,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> PutAnswer:
    """Store an artifact: new content makes the next version, other metadata keeps it, what is equal changes nothing.

    With `If-Match` it is stored only over what has that ETag, with `If-None-Match: *` only where nothing is there yet.

    What the caller may not read is not the caller's to replace, but for admins; nor is what a session's artifact states
    where the caller sees redacted what was said there.
    """
    for _ in range(_ATTEMPTS):
        try:
            return await _put(ref, sent, services, caller, if_match, if_none_match)
        except DecisionOutdated:
            continue
    raise DatabaseUnavailable(_TOO_MANY_CHANGES)


async def _put(
    ref: str, sent: Artifact, services: Services, caller: Caller, if_match: str | None, if_none_match: str | None
) -> PutAnswer:
    decided = await _before(services, caller, ref)
    held = decided.artifact
    shown = await _shown(services, caller, ref, held, held)
    if shown is None:  # what the caller may not know of answers as what is not there
        _check_matches(if_match, if_none_match, shown)
    _check_read_only(sent, shown)
    await _check_change(services, caller, ref, held)
    over: StoredArtifact | Literal["nothing"] | None = None
    if if_match is not None or if_none_match is not None:
        over = held or "nothing"
        _check_matches(if_match, if_none_match, shown)
    artifact = KnownArtifact.model_construct(**{name: getattr(sent, name) for name in KnownArtifact.model_fields})
    hidden = await _hidden(services, caller, [artifact.supersedes] if artifact.supersedes else [])
    version, changed = await services.knowledge.put(
        caller.tenant_id, ref, artifact, over=over, decided=decided, may_supersede=not hidden
    )
    if changed:
        if artifact.sensitivity not in CACHED:
            await services.packages.erasure.uncache(caller.tenant_id, ref)
        for work in services.after_put:
            work.start(caller.tenant_id)
    return PutAnswer(ref=ref, version=version, changed=changed)


@router.get(
    "/knowledge/artifacts/{ref:path}", openapi_extra=READER, response_model=ArtifactAnswer, responses=_UNCHANGED
)
async def get_artifact(
    ref: RefInPath,
    services: ServicesHere,
    caller: CallerHere,
    version: Annotated[int | None, Query(ge=1, lt=2**31, description="A version other than the current one.")] = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Return an artifact, redacted where policies let the caller read it only so."""
    current = await _current(services, caller, ref)
    found = current
    if version is not None:
        found = (await services.knowledge.get(caller.tenant_id, [ref], version)).get(ref)
    shown = await _shown(services, caller, ref, current, found)
    if shown is None:
        raise not_found(Missing.ARTIFACT)
    tag = await beside_loop(_tag, shown)
    if if_none_match is not None and _names(if_none_match, tag):
        return Response(status_code=304, headers={"ETag": tag})
    return await as_json(lambda: shown.model_dump(mode="json", by_alias=True), ETag=tag)


async def _shown(
    services: Services, caller: Caller, ref: str, current: StoredArtifact | None, found: StoredArtifact | None
) -> ArtifactAnswer | None:
    """Return a version of an artifact as the caller may see it; None where there is none that may be known of."""
    known = artifact_source(caller.tenant_id, current, found) if current else missing_source(caller.tenant_id, ref)
    viewer = services.packages.viewer
    (access,) = await viewer.access(caller.agent, [known])
    if found is None or access is Access.DENIED:
        return None
    fields = found.model_dump() | ({} if found.current else {"status": Status.SUPERSEDED})
    if access is Access.REDACTED:
        written = (found.title, found.content, found.type, found.project_id, found.module_id, found.source or "")
        title, content, kind, project, module, origin, *tags = await viewer.redacted(*written, *found.tags)
        fields |= {"title": title, "content": content, "type": kind, "project_id": project, "module_id": module}
        fields |= {"source": origin if found.source is not None else None, "tags": tuple(tags)}
    if found.superseded_by and await _hidden(services, caller, [found.superseded_by]):
        fields["superseded_by"] = None
    return ArtifactAnswer.model_construct(**fields, projection="full" if access is Access.READ else "redacted")


def _tag(shown: ArtifactAnswer) -> str:
    return f'"{sha256(shown.model_dump_json().encode()).hexdigest()[:32]}"'


def _names(header: str, tag: str) -> bool:
    """Return whether a header of ETags names one."""
    return header.strip() == "*" or tag in (one.strip().removeprefix("W/") for one in header.split(","))


def _check_matches(if_match: str | None, if_none_match: str | None, shown: ArtifactAnswer | None) -> None:
    """Raise :class:`ArtifactChanged` unless the headers fit what is there, as the caller sees it."""
    tag = "" if shown is None else _tag(shown)
    fits = if_match is None or (shown is not None and _names(if_match, tag))
    if not fits or (if_none_match is not None and shown is not None and _names(if_none_match, tag)):
        raise ArtifactChanged("the artifact is another one")


def _check_read_only(sent: Artifact, shown: ArtifactAnswer | None) -> None:
    """Raise :class:`Problem` for a field that only the server sets, and another value than it has."""
    for name in READ_ONLY:
        value = getattr(sent, name)
        if name in sent.model_fields_set and (value != getattr(shown, name, None) or value == "redacted"):
            told = "is another than it has, and only the server sets it"
            if value == "redacted":
                told = "is redacted: to store that would replace what it hides"
            at = f"body.{to_camel(name)}"
            raise Problem(422, "invalid_request", f"{at}: {told}", errors=[{"at": at, "problem": told}])


@router.delete("/knowledge/artifacts/{ref:path}", openapi_extra=WRITER)
async def delete_artifact(
    ref: RefInPath, services: ServicesHere, caller: CallerHere, if_match: IfMatch = None
) -> ErasedAnswer:
    """Erase all versions of an artifact, what it is found by, its edges and assessments, and what was served of it."""
    for _ in range(_ATTEMPTS):
        decided = await _before(services, caller, ref)
        if (found := decided.artifact) is None:
            raise not_found(Missing.ARTIFACT)
        await _check_change(services, caller, ref, found)
        if if_match is not None:
            _check_matches(if_match, None, await _shown(services, caller, ref, found, found))
        over = None if if_match is None else found
        try:
            is_erased = await services.knowledge.erase(caller.tenant_id, ref, over=over, decided=decided)
        except ArtifactChanged:
            continue
        if not is_erased:
            raise not_found(Missing.ARTIFACT)
        await services.packages.erasure.uncache(caller.tenant_id, ref)
        return ErasedAnswer(ref=ref, version=found.version)
    raise DatabaseUnavailable(_TOO_MANY_CHANGES)


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
    """Note what an assessor thinks of an artifact; the latest of each counts. Of what one may not see, none does.

    Assessors are whom the caller names; however many these are, a caller is one voice in the artifact's quality.
    """
    if await _hidden(services, caller, [assessment.ref]):
        return Response(status_code=204)
    await services.knowledge.assess(caller.tenant_id, [assessment], as_key(caller.sub) or "")
    return Response(status_code=204)


async def _hidden(services: Services, caller: Caller, refs: Sequence[str]) -> frozenset[str]:
    """Return those of the refs that name something which the caller may not see; for admins, none."""
    if Role.ADMIN in caller.roles or not refs:
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


async def _before(services: Services, caller: Caller, ref: str) -> Decided:
    """Return what access to an artifact is decided by; that it changes meanwhile is noticed when it is stored."""
    governance = await services.policies.version(caller.tenant_id)
    return Decided(governance, await _current(services, caller, ref))


async def _check_change(services: Services, caller: Caller, ref: str, held: StoredArtifact | None) -> None:
    """Raise :class:`Problem` unless the caller may replace and erase what is ``held`` under the ref.

    Admins may, unread. Under a session's ref it decides who sees what was said, and those who see less must not.
    """
    if Role.ADMIN in caller.roles:
        return
    if is_session := ref.startswith(_SESSION):
        source = session_source(caller.tenant_id, ref.removeprefix(_SESSION), held)
    elif held is not None:
        source = artifact_source(caller.tenant_id, held)
    else:
        return
    (access,) = await services.packages.viewer.access(caller.agent, [source])
    if access is Access.DENIED:
        raise not_found(Missing.ARTIFACT)
    if is_session and access is Access.REDACTED:
        raise Problem(403, "forbidden", "what was said there is shown to you redacted; this needs the role admin")


def artifact_source(tenant_id: str, artifact: StoredArtifact, shown: StoredArtifact | None = None) -> GovernedSource:
    """Return the artifact as policies know it; where another version of it is ``shown``, with the stricter sensitivity
    of the two."""
    sensitivity = artifact.sensitivity if shown is None else stricter(artifact.sensitivity, shown.sensitivity)
    return GovernedSource(
        ref=artifact.ref,
        tenant=tenant_id,
        kind=artifact.kind.value,
        sensitivity=sensitivity,
        status=artifact.status.value,
        project=artifact.project_id,
        module=artifact.module_id,
        tags=frozenset(artifact.tags),
    )


def session_source(tenant_id: str, session_id: str, stated: StoredArtifact | None) -> GovernedSource:
    """Return what was said in a session as policies know it, as sensitive as the session's artifact states."""
    return said_in(tenant_id, session_id, stated.sensitivity if stated is not None else None)
