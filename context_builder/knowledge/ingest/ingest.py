"""Ingestion brings a project's artifacts and edges in line with the files of a folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final

from context_builder.knowledge.artifact import Artifact, ArtifactKind, Edge, Sensitivity, Status
from context_builder.knowledge.ingest.folder import DOCUMENTS, Skipped, TextFile, files_in
from context_builder.knowledge.ingest.references import IMPORTS, LINKS, FolderIndex, references
from context_builder.knowledge.passages import passages
from context_builder.knowledge.store import ArtifactOutline, KnowledgeStore

MOST_FILES: Final = 100_000

_OUTSIDE_REFS: Final = re.compile(r"[^A-Za-z0-9:._/@-]")
_TITLED: Final = 50_000
"""Characters of a document in which its title is looked for."""

_LONGEST_TITLE: Final = 200
_LONGEST_PATH: Final = 300

_AT_ONCE: Final = 500
"""Files that the store is asked about in one call."""


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """Says whose the files are; ``prune`` erases the project's artifacts whose file is gone."""

    project_id: str
    module_id: str = ""
    status: Status = Status.APPROVED
    sensitivity: Sensitivity = Sensitivity.INTERNAL
    prune: bool = False


@dataclass(slots=True)
class IngestResult:
    """Counts what an ingestion did: artifacts that are new, changed or as before, and edges stored."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    edges: int = 0
    erased: list[str] = field(default_factory=list)
    """Refs of artifacts whose file is gone."""
    skipped: list[Skipped] = field(default_factory=list)


OnFile = Callable[[int, int], None]
"""Told how many files are done, and of how many."""


def ref_of(project_id: str, path: str) -> str:
    """Return the ref of a project's file; signs that a ref has not are replaced, and told apart by a digest."""
    name = f"{project_id}/{path}"
    plain = _OUTSIDE_REFS.sub("-", name)
    if plain != name or len(plain) > _LONGEST_PATH:
        plain = f"{plain[:_LONGEST_PATH]}@{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
    return f"artifact:{plain}"


def artifact_of(file: TextFile, options: IngestOptions) -> Artifact:
    """Return the artifact that a file is; its title is the first heading of a document, else the path."""
    is_document = file.suffix in DOCUMENTS
    headings = (one.headings[0] for one in passages(file.text[:_TITLED]) if one.headings) if is_document else iter(())
    heading = " ".join(next(headings, "").split())[:_LONGEST_TITLE]
    return Artifact(
        kind=ArtifactKind.DOCUMENT if is_document else ArtifactKind.CODE,
        title=heading or file.path[-1_000:],
        content=file.text,
        project_id=options.project_id,
        module_id=options.module_id,
        status=options.status,
        sensitivity=options.sensitivity,
        source=file.path[-2_000:],
    )


async def ingest(
    store: KnowledgeStore, tenant_id: str, folder: Path, options: IngestOptions, on_file: OnFile | None = None
) -> IngestResult:
    """Store the folder's text files as artifacts, and their links and imports as edges.

    Of a file that is as it was nothing is sent. Raises :class:`~context_builder.errors.DatabaseError`,
    :class:`OSError` for a folder that cannot be read, and :class:`ValueError` for more than :data:`MOST_FILES`.
    """
    result = IngestResult()
    files: list[TextFile] = []
    for one in files_in(folder):
        if isinstance(one, Skipped):
            result.skipped.append(one)
        else:
            files.append(one)
        if len(files) > MOST_FILES:
            raise ValueError(f"more than {MOST_FILES:,} files; ingest its folders one by one")
    index = FolderIndex(files)
    for start in range(0, len(files), _AT_ONCE):
        some = {ref_of(options.project_id, file.path): file for file in files[start : start + _AT_ONCE]}
        held = await store.outlines(tenant_id, list(some), (LINKS, IMPORTS))
        for done, (ref, file) in enumerate(some.items(), start + 1):
            wanted = {
                Edge(from_ref=ref, to_ref=ref_of(options.project_id, one.path), type=one.type)
                for one in references(file, index)
            }
            await _store(store, tenant_id, ref, artifact_of(file, options), wanted, held.get(ref), result)
            if on_file is not None:
                on_file(done, len(files))
    if options.prune:
        unread = [one.path for one in result.skipped if one.unread]
        result.erased = await _erase_missing(store, tenant_id, files, unread, options)
    return result


async def _store(
    store: KnowledgeStore,
    tenant_id: str,
    ref: str,
    artifact: Artifact,
    edges: set[Edge],
    held: ArtifactOutline | None,
    result: IngestResult,
) -> None:
    """Send what of the artifact and its edges differs from those ``held``."""
    if held is not None and held.describes(artifact):
        result.unchanged += 1
    else:
        version, changed = await store.put(tenant_id, ref, artifact)
        if not changed:
            result.unchanged += 1
        elif version == 1:
            result.new += 1
        else:
            result.changed += 1
    before = held.edges if held is not None else frozenset()
    await store.unlink(tenant_id, before - edges)
    await store.link(tenant_id, edges - before)
    result.edges += len(edges)


async def _erase_missing(
    store: KnowledgeStore, tenant_id: str, files: Sequence[TextFile], unread: Sequence[str], options: IngestOptions
) -> list[str]:
    """Erase what was ingested of the project and has no file any more; what came in other ways has no such ref.

    What is, or is below, an ``unread`` path may still be there, and stays.
    """
    present = {ref_of(options.project_id, file.path) for file in files}
    held = await store.sources(tenant_id, options.project_id)
    gone = [
        ref
        for ref, source in held.items()
        if ref == ref_of(options.project_id, source)
        and ref not in present
        and not (source in unread or source.startswith(tuple(f"{path}/" for path in unread)))
    ]
    for ref in gone:
        await store.erase(tenant_id, ref)
    return gone
