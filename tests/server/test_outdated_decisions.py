"""An artifact is erased by what policies say when it is erased, not by what they said when it was looked at."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from context_builder.errors import ArtifactChanged
from context_builder.knowledge.artifact import StoredArtifact
from context_builder.knowledge.governance import Access
from context_builder.server.access.caller import local_caller
from context_builder.server.routes.artifacts import _shown, _tag, delete_artifact

REF = "artifact:clips"


def stored(version: int) -> StoredArtifact:
    at = f"2026-11-01T10:00:0{version}+00:00"
    described: dict[str, Any] = {"kind": "document", "title": "Clips", "content": f"Version {version}."}
    return StoredArtifact(**described, ref=REF, version=version, current=True, created_at=at, updated_at=at)


def services_with(*read: StoredArtifact) -> Any:
    """What is read one time after the other; what is to be erased first is decided about by what no longer holds."""
    knowledge = SimpleNamespace(
        get=AsyncMock(side_effect=[{REF: one} for one in read]),
        erase=AsyncMock(side_effect=[ArtifactChanged("the artifact is not what it was when it was read"), True]),
    )
    packages = SimpleNamespace(
        viewer=SimpleNamespace(access=AsyncMock(return_value=[Access.READ])),
        erasure=SimpleNamespace(uncache=AsyncMock()),
    )
    policies = SimpleNamespace(version=AsyncMock(side_effect=[1, 2]))
    return SimpleNamespace(knowledge=knowledge, packages=packages, policies=policies)


async def tag_of(artifact: StoredArtifact) -> str:
    shown = await _shown(services_with(), local_caller("lab"), REF, artifact, artifact)
    assert shown is not None
    return _tag(shown)


async def test_where_only_a_policy_changed_it_is_decided_again() -> None:
    services = services_with(stored(1), stored(1))
    answer = await delete_artifact(REF, services, local_caller("lab"), await tag_of(stored(1)))
    assert answer.version == 1
    assert [call.kwargs["decided"].governance for call in services.knowledge.erase.await_args_list] == [1, 2]


async def test_where_the_artifact_changed_that_is_told() -> None:
    with pytest.raises(ArtifactChanged):
        await delete_artifact(REF, services_with(stored(1), stored(2)), local_caller("lab"), await tag_of(stored(1)))
