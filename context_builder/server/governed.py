"""Artifacts and memories as the policies know them."""

from __future__ import annotations

from context_builder.knowledge.artifact import Sensitivity, StoredArtifact, stricter
from context_builder.knowledge.governance import GovernedSource
from context_builder.memory.memory import Memory


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


def memory_source(tenant_id: str, memory: Memory) -> GovernedSource:
    """Return a memory as policies know it: what was said in a session is internal."""
    return GovernedSource(
        ref=memory.id,
        tenant=tenant_id,
        kind=memory.kind,
        sensitivity=Sensitivity.INTERNAL.value,
        session=memory.session_id or "",
        tags=frozenset(memory.tags),
    )
