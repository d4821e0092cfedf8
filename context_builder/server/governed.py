"""Artifacts and memories as the policies know them."""

from __future__ import annotations

from collections.abc import Sequence

from context_builder.knowledge.artifact import Sensitivity, StoredArtifact, stricter
from context_builder.knowledge.governance import GovernedSource
from context_builder.knowledge.local import said_ref
from context_builder.knowledge.store import KnowledgeStore
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


def session_source(tenant_id: str, session_id: str, stated: StoredArtifact | None) -> GovernedSource:
    """Return what was said in a session as policies know it, as sensitive as the session's artifact states."""
    return GovernedSource(
        ref=f"session:{session_id}",
        tenant=tenant_id,
        kind="message",
        sensitivity=stated.sensitivity if stated is not None else Sensitivity.INTERNAL.value,
        session=session_id,
    )


async def memory_sources(tenant_id: str, memories: Sequence[Memory], knowledge: KnowledgeStore) -> list[GovernedSource]:
    """Return memories as policies know them: messages and points as in packages, under the same refs."""
    sessions = {one.session_id for one in memories if one.session_id is not None}
    stated = await knowledge.sensitivities(tenant_id, sessions) if sessions else {}
    return [
        GovernedSource(
            ref=said_ref(one) or one.id,
            tenant=tenant_id,
            kind=one.metadata.get("point") or "claim" if one.kind == "point" else one.kind,
            sensitivity=stated.get(one.session_id or "", Sensitivity.INTERNAL.value),
            session=one.session_id or "",
            tags=frozenset(one.tags),
        )
        for one in memories
    ]
