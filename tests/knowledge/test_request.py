"""A request needs an intent and a budget; what is wrong is refused, what is left out has the documented defaults."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from context_builder.knowledge.request import ContextBuildRequest, GraphRetrieval, MetadataRetrieval, SemanticRetrieval

DOCUMENTED = {
    "taskId": "task-17",
    "intent": "Choose a labelling strategy for the hydrophone clips",
    "tokenBudget": 4000,
    "ttlSeconds": 1800,
    "agent": {"id": "agent-7", "role": "writer"},
    "scope": {"projectId": "kelp", "moduleId": "acoustics", "sessionIds": ["monday"]},
    "retrieval": {
        "graph": {"depth": 2, "edgeTypes": ["decided_in", "depends_on"], "limit": 50},
        "semantic": {"topK": 50, "threshold": 0.0, "kinds": ["document", "point", "message"]},
        "metadata": {
            "types": ["contract"],
            "statuses": ["approved"],
            "modules": ["acoustics"],
            "tags": [],
            "limit": 50,
        },
    },
    "pinned": ["artifact:protocol"],
    "model": "gpt-4o",
}
LEAST = {"intent": "Choose", "tokenBudget": 1}


def test_the_documented_request_is_read_and_written_as_it_was() -> None:
    assert ContextBuildRequest.model_validate(DOCUMENTED).model_dump(mode="json", by_alias=True) == DOCUMENTED


def test_what_is_left_out_has_its_defaults() -> None:
    read = ContextBuildRequest.model_validate(LEAST)
    assert (read.ttl_seconds, read.pinned) == (1800, ())
    assert (read.retrieval.graph, read.retrieval.semantic) == (GraphRetrieval(), SemanticRetrieval())
    assert read.retrieval.metadata == MetadataRetrieval()
    assert (GraphRetrieval().depth, GraphRetrieval().limit, SemanticRetrieval().top_k) == (2, 50, 50)


def test_null_switches_a_source_off() -> None:
    read = ContextBuildRequest.model_validate(LEAST | {"retrieval": {"graph": None}})
    assert read.retrieval.graph is None
    assert read.retrieval.semantic == SemanticRetrieval()


@pytest.mark.parametrize(
    "wrong",
    [
        {"intent": ""}, {"intent": "x" * 8_001}, {"intent": None}, {"intent": "a\x00"}, {"intent": "\ud800"},
        {"tokenBudget": 0}, {"tokenBudget": 2_000_001}, {"tokenBudget": 1.5}, {"tokenBudget": "many"},
        {"tokenBudget": "5"}, {"tokenBudget": True}, {"retrieval": {"graph": {"limit": "5"}}},
        {"ttlSeconds": 0}, {"ttlSeconds": 86_401}, {"pinned": ["a b"]}, {"pinned": ["a"] * 101},
        {"tenant": "club"}, {"retrieval": {"graph": {"depth": 0}}}, {"retrieval": {"graph": {"depth": 99}}},
        {"retrieval": {"semantic": {"threshold": float("nan")}}}, {"retrieval": {"vector": {}}},
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_and_not_quoted(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refused:
        ContextBuildRequest.model_validate(LEAST | wrong)
    assert "input_value" not in str(refused.value)
