"""What a caller may see of sources: decided by the tenant's policies as they are now, redacted where they say so."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import structlog

from context_builder.knowledge.artifact import Sensitivity, StoredArtifact
from context_builder.knowledge.governance import Access, DecisionContext, GovernedSource, decide
from context_builder.memory.memory import Memory
from context_builder.redaction.redactor import RedactorProtocol
from context_builder.server.access.caller import Caller
from context_builder.server.services import Services

log = structlog.get_logger(__name__)

WITHHELD: Final = "[withheld: it could not be redacted]"


async def access_to(services: Services, caller: Caller, sources: Sequence[GovernedSource]) -> list[Access]:
    """Return how the caller may see each source."""
    policies = (await services.policies.governance(caller.tenant_id)).policy_set
    context = DecisionContext("", datetime.now(UTC))
    return [one.access for one in decide(policies, caller.agent, sources, context)]


async def redacted(redactor: RedactorProtocol, *texts: str) -> list[str]:
    """Return the texts without what must not be shown; none of one that the redactor fails at."""

    def redact(text: str) -> str:
        try:
            return redactor.redact(text)
        except Exception as error:  # noqa: BLE001 whatever it stumbles over, the text must not be shown
            log.error("redaction.failed", kind=type(error).__name__)
            return WITHHELD

    return await asyncio.to_thread(lambda: [redact(text) for text in texts])


def artifact_source(tenant_id: str, artifact: StoredArtifact) -> GovernedSource:
    """Return the artifact as policies know it."""
    return GovernedSource(
        ref=artifact.ref,
        tenant=tenant_id,
        kind=artifact.kind.value,
        sensitivity=artifact.sensitivity.value,
        status=artifact.status.value,
        project=artifact.project_id,
        module=artifact.module_id,
        tags=frozenset(artifact.tags),
    )


def missing_source(tenant_id: str, ref: str) -> GovernedSource:
    """Return a source to be decided about in place of one that is not there, so that this takes as long."""
    return GovernedSource(ref=ref, tenant=tenant_id, sensitivity=Sensitivity.RESTRICTED.value)


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
