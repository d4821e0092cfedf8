"""The knowledge store keeps artifacts, edges and assessments, apart by tenant, in PostgreSQL, behind SQL functions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import orjson
import structlog

from context_builder.analysis.processes import Runner, TooBusy, TookTooLong, in_thread
from context_builder.concurrency import beside_loop
from context_builder.database.database import Database, readable_rows, reading_row
from context_builder.errors import (
    ArtifactChanged,
    DatabaseRejected,
    DatabaseUnavailable,
    DataRejected,
    DecisionOutdated,
)
from context_builder.knowledge.artifact import Artifact, Assessment, Edge, Link, Sensitivity, StoredArtifact
from context_builder.knowledge.excerpt import Part
from context_builder.knowledge.node import KnowledgeNode, projections
from context_builder.knowledge.passages import Passage, passages_of
from context_builder.memory.memory import Memory, SearchResult
from context_builder.memory.rows import as_key, as_row, storable

log = structlog.get_logger(__name__)

NOTHING: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""Stands for when an artifact was updated that is not there."""

LONG: Final = 20_000
"""Characters of a content that is prepared beside the event loop."""

Redact: TypeAlias = Callable[[Sequence[str]], Awaitable[list[str | None]]]
"""Redacts texts where it holds up nobody; None is for one that it fails at."""

_LONGEST_HEADINGS: Final = 500
"""Characters of title and headings that a passage is found by."""

SEPARATOR: Final = "\x1f"
"""Stands between a tenant and ``documents`` in the name of the space where its documents are searched."""


def document_space(tenant_id: str) -> str:
    """Return the tenant under which a memory store finds the passages of a tenant's artifacts."""
    return f"{tenant_id}{SEPARATOR}documents"


def check_tenant(tenant_id: str) -> None:
    """Raise :class:`DatabaseRejected` for what cannot name a tenant."""
    if not tenant_id or SEPARATOR in tenant_id or storable(tenant_id) != tenant_id:
        raise DatabaseRejected("a tenant is named by text without control characters")


class PutResult(NamedTuple):
    """An artifact's version, and whether the call changed anything."""

    version: int
    changed: bool


_ARTIFACTS: Final = "context_artifacts"


@dataclass(frozen=True, slots=True)
class ArtifactFilter:
    """Selects artifacts; an empty field does not restrict. All ``tags`` must match."""

    project_id: str | None = None
    kinds: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


class Decided(NamedTuple):
    """What access to an artifact was decided by: a version of the tenant's governance, and the artifact, if any."""

    governance: int
    artifact: StoredArtifact | None

    def sent(self) -> dict[str, Any]:
        """Return this as the database compares it with what is there."""
        fields = {"kind", "sensitivity", "status", "project_id", "module_id", "tags"}
        held = None if self.artifact is None else self.artifact.model_dump(mode="json", include=fields)
        return {"governance": self.governance, "artifact": held}


class ArtifactOutline(NamedTuple):
    """An artifact's fields, without its content, and its edges to others, to be compared with what is sent."""

    fields: dict[str, Any]
    edges: frozenset[Edge]

    def describes(self, artifact: Artifact) -> bool:
        """Return whether to put ``artifact`` would change nothing."""
        digest = sha256(artifact.content.encode()).hexdigest()
        return self.fields == artifact.model_dump(mode="json", exclude={"content"}) | {"digest": digest}


class NearbyNode(NamedTuple):
    """A ref, and over how many edges it was reached."""

    ref: str
    steps: int


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The nodes around some refs, nearest first, and the edges among them."""

    nodes: tuple[NearbyNode, ...]
    edges: tuple[Link, ...]


class KnowledgeStore:
    """Keeps artifacts, edges and assessments. Every call raises :class:`~context_builder.errors.DatabaseError`."""

    def __init__(self, database: Database, run: Runner = in_thread, redact: Redact | None = None) -> None:
        """``redact`` is what confidential artifacts go through before they are made searchable."""
        self._database = database
        self._run = run
        self._redact = redact

    @property
    def name(self) -> str:
        return self._database.name

    async def put(
        self,
        tenant_id: str,
        ref: str,
        artifact: Artifact,
        *,
        over: StoredArtifact | Literal["nothing"] | None = None,
        decided: Decided | None = None,
        may_supersede: bool = True,
    ) -> PutResult:
        """Store the artifact: new content makes the next version; what is equal changes nothing.

        What it says to supersede stays as it is unless it ``may_supersede`` that. Raises
        :class:`~context_builder.errors.ArtifactChanged` unless it is stored ``over`` what is there, if given, and
        :class:`~context_builder.errors.DecisionOutdated` where what was ``decided`` no longer holds.
        """
        document = _document(ref)
        described = artifact.model_dump(mode="json") | {"ref": ref, "supersedes_is_refused": not may_supersede}
        found = artifact
        if self._redact is not None and artifact.sensitivity is Sensitivity.CONFIDENTIAL:
            found = await _redacted(artifact, self._redact)
        if len(artifact.content) > LONG:
            try:
                rows, shorter = await self._run(_prepared, document, ref, found, artifact.content)
            except TooBusy:
                raise DatabaseUnavailable("this machine is too busy to part the content into passages") from None
            except TookTooLong:
                raise DataRejected("the content takes too long to be parted into passages") from None
        else:
            rows, shorter = _prepared(document, ref, found, artifact.content)
        made: dict[str, Any] = {"projections": orjson.Fragment(shorter)} if shorter else {}
        if over is not None:
            made["seen"] = NOTHING if over == "nothing" else datetime.fromisoformat(over.updated_at)
        if decided is not None:
            made["decided"] = decided.sent()
        answer = await self._one(
            "context_knowledge_put",
            tenant_id,
            artifact=described,
            document=document,
            passages=orjson.Fragment(rows),
            **made,
        )
        if answer.get("conflict"):
            raise ArtifactChanged("the artifact is not what it was when it was read")
        if answer.get("undecided"):
            raise DecisionOutdated("policies or the artifact have changed since access was decided")
        return PutResult(int(answer["version"]), bool(answer["changed"]))

    async def get(self, tenant_id: str, refs: Sequence[str], version: int | None = None) -> dict[str, StoredArtifact]:
        """Return the artifacts that there are, by ref: their current version, or the one asked for."""
        rows = await self._call("context_knowledge_get", tenant_id, refs=list(refs), wanted=version)
        return {row["ref"]: _artifact(row) for row in rows}

    async def outlines(
        self, tenant_id: str, refs: Sequence[str], edge_types: Sequence[str]
    ) -> dict[str, ArtifactOutline]:
        """Return the outlines of the artifacts that there are, by ref, with their edges of these types."""
        rows = await self._call("context_knowledge_outlines", tenant_id, refs=list(refs), types=list(edge_types))
        return {
            row["ref"]: ArtifactOutline(
                row["fields"],
                frozenset(
                    Edge(from_ref=row["ref"], to_ref=to, type=kind, weight=weight) for to, kind, weight in row["edges"]
                ),
            )
            for row in rows
        }

    async def erase(
        self, tenant_id: str, ref: str, *, over: StoredArtifact | None = None, decided: Decided | None = None
    ) -> bool:
        """Erase all versions, passages, edges and assessments of an artifact; return whether there was one.

        Raises :class:`~context_builder.errors.ArtifactChanged` unless it is ``over`` that is there, if given, and
        what was ``decided`` holds.
        """
        named: dict[str, Any] = {"artifact": ref, "document": _document(ref)}
        if over is not None:
            named["seen"] = datetime.fromisoformat(over.updated_at)
        if decided is not None:
            named["decided"] = decided.sent()
        there = await self._one("context_knowledge_erase", tenant_id, **named)
        if there is None:
            raise ArtifactChanged("the artifact is not what it was when it was read")
        return bool(there)

    async def matching(self, tenant_id: str, where: ArtifactFilter, limit: int) -> list[str]:
        """Return the refs of the current artifacts that meet the filter, the newest first."""
        condition = {name: value for name, value in asdict(where).items() if value}
        return await self._call("context_knowledge_matching", tenant_id, filter=storable(condition), most=limit)

    async def nodes(self, tenant_id: str, refs: Sequence[str], longest: int) -> dict[str, KnowledgeNode]:
        """Return the artifacts that there are, by ref, as candidates for a package: without the content of those longer
        than ``longest`` characters, which so are found by their projections only."""
        if not refs:
            return {}
        rows = await self._call("context_package_nodes", tenant_id, refs=list(refs), longest=longest)
        return {one.ref: one for one in readable_rows(_ARTIFACTS, "ref", KnowledgeNode.of_row, rows)}

    async def sensitivities(self, tenant_id: str, sessions: Iterable[str]) -> dict[str, str]:
        """Return the sensitivities of the sessions of which artifacts under their refs state any."""
        rows = await self._call("context_session_sensitivities", tenant_id, sessions=list(sessions))
        return {row["session"]: row["sensitivity"] for row in rows}

    async def unprojected(self, tenant_id: str, longest: int, most: int) -> list[StoredArtifact]:
        """Return current artifacts of at most ``longest`` characters with extracts only that a model may read."""
        rows = await self._call("context_knowledge_unprojected", tenant_id, longest=longest, most=most)
        return [*readable_rows(_ARTIFACTS, "ref", lambda row: StoredArtifact(**row), rows)]

    async def project(self, tenant_id: str, ref: str, version: int, model: str, texts: Mapping[int, str]) -> bool:
        """Put a model's shorter texts, by their most words, in place of extracts, also where there are none: it is not
        asked again. Return whether the version is the current one still."""
        rows = [{"words": words, "text": text} for words, text in texts.items()]
        named = {"artifact": ref, "of_version": version, "named": model}
        made = {"projections": storable(rows)} if rows else {}
        return bool(await self._one("context_knowledge_project", tenant_id, **named, **made))

    async def sources(self, tenant_id: str, project_id: str) -> dict[str, str]:
        """Return where each current artifact of a project is from, by ref, of those that tell."""
        rows = await self._call("context_knowledge_sources", tenant_id, project=project_id)
        return {row["ref"]: row["source"] for row in rows}

    async def link(self, tenant_id: str, edges: Iterable[Edge]) -> int:
        """Store the edges; return how many different ones these were."""
        rows = await beside_loop(_rows, edges)
        return int(await self._one("context_knowledge_link", tenant_id, edges=rows)) if rows else 0

    async def unlink(self, tenant_id: str, edges: Iterable[Edge]) -> int:
        """Delete the edges, whatever their weight; return how many there were."""
        rows = await beside_loop(_rows, edges)
        return int(await self._one("context_knowledge_unlink", tenant_id, edges=rows)) if rows else 0

    async def assess(self, tenant_id: str, assessments: Iterable[Assessment], caller: str = "") -> None:
        """Note what assessors think, as a caller says: the latest of each, and all of a caller's as one voice."""
        if rows := [{**assessment.model_dump(mode="json"), "caller": caller} for assessment in assessments]:
            await self._call("context_knowledge_assess", tenant_id, assessments=rows)

    async def quality(self, tenant_id: str, refs: Sequence[str]) -> dict[str, float]:
        """Return the mean quality, 0 to 1, of those that were assessed: that of callers, each of whom is one voice."""
        rows = await self._call("context_knowledge_quality", tenant_id, refs=list(refs))
        return {row["ref"]: float(row["quality"]) for row in rows}

    async def neighbourhood(
        self,
        tenant_id: str,
        seeds: Sequence[str],
        *,
        depth: int = 2,
        edge_types: Sequence[str] = (),
        fan_out: int = 10,
        limit: int = 200,
    ) -> Neighbourhood:
        """Return what is at most ``depth`` edges away, in both directions, over edges of these types or of every type.

        Of each node the ``fan_out`` heaviest edges are followed each way; at most ``limit`` nodes are returned.
        """
        found = await self._one(
            "context_knowledge_neighbourhood",
            tenant_id,
            seeds=list(dict.fromkeys(seeds)),
            depth=depth,
            types=list(edge_types) or None,
            fan_out=fan_out,
            most=limit,
        )
        refs = found["nodes"]
        return Neighbourhood(
            tuple(map(NearbyNode, refs, found["steps"])),
            tuple(Link(refs[one], refs[other], kind, weight) for one, other, kind, weight in found["edges"]),
        )

    async def close(self) -> None:
        await self._database.close()

    async def _call(self, function: str, tenant_id: str, **arguments: Any) -> list[Any]:
        check_tenant(tenant_id)
        return await self._database.call(function, tenant_id, arguments)

    async def _one(self, function: str, tenant_id: str, **arguments: Any) -> Any:
        return (await self._call(function, tenant_id, **arguments))[0]


def _artifact(row: Mapping[str, Any]) -> StoredArtifact:
    with reading_row(_ARTIFACTS, str(row["ref"])):
        return StoredArtifact(**row)


def _rows(edges: Iterable[Edge]) -> list[dict[str, Any]]:
    return [edge.model_dump(mode="json") for edge in edges]


def _prepared(document: str, ref: str, found: Artifact, content: str) -> tuple[bytes, bytes]:
    """Return the passages that an artifact is ``found`` by as rows, and the projections of its content, both as JSON;
    nothing where there are none."""
    rows = [as_row(one) for one in passage_memories(document, ref, found)]
    shorter = [{"words": words, "text": text} for words, text in projections(content).items()]
    return orjson.dumps(rows), orjson.dumps(shorter) if shorter else b""


def _document(ref: str) -> str:
    """Return the session under which the passages of an artifact are remembered."""
    return as_key(ref) or ref


async def _redacted(artifact: Artifact, redact: Redact) -> Artifact:
    """Return what is searched of a confidential artifact: what is shown of it, or no more than its kind."""
    kind = artifact.kind.value
    shown = [text for text in await redact((artifact.title, artifact.content, *artifact.tags)) if text is not None]
    if len(shown) < 2 + len(artifact.tags):
        log.warning("knowledge.not_redacted")
        return artifact.model_copy(update={"title": kind, "content": "", "tags": ()})
    title, content, *tags = shown
    return artifact.model_copy(update={"title": title or kind, "content": content, "tags": tuple(tags)})


def passage_memories(document: str, ref: str, artifact: Artifact) -> list[Memory]:
    """Return what the artifact is found by: its passages as memories; its title, where there is nothing else."""
    split = passages_of(artifact.content, artifact.kind.value, ref) or (Passage(artifact.title),)
    return [_passage(document, ref, artifact, place, one) for place, one in enumerate(split)]


def _passage(document: str, ref: str, artifact: Artifact, place: int, passage: Passage) -> Memory:
    """Return a passage as a memory: said by its title and headings, which so weigh as a speaker does, and are embedded
    with it.

    It belongs to its project as what is said to a user, so that a search can be of one project.
    """
    above = (artifact.title, *(one for one in passage.headings if one != artifact.title))
    return Memory(
        id=f"{document}#{place}",
        text=passage.text,
        kind=artifact.kind.value,
        session_id=document,
        user_id=artifact.project_id or None,
        speaker=" › ".join(above)[:_LONGEST_HEADINGS],
        position=place,
        tags=artifact.tags,
        metadata={"ref": ref, "headings": passage.headings, "opens": passage.opens},
    )


def passage_of(found: SearchResult) -> Part | None:
    """Return the passage that a search of documents found; None for what is not a passage of an artifact."""
    memory = found.memory
    if memory.position is None or "headings" not in memory.metadata:
        return None
    passage = Passage(memory.text, tuple(memory.metadata["headings"]), opens=bool(memory.metadata["opens"]))
    return Part(memory.position, passage, found.score)
