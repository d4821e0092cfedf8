"""This module describes artifacts and sessions as policies see them."""

from __future__ import annotations

from context_builder.knowledge.artifact import StoredArtifact, stricter
from context_builder.knowledge.governance import GovernedSource
from context_builder.knowledge.view import said_in


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
