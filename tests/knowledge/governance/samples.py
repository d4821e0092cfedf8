"""Agents, sources and policies that the tests of governance share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from context_builder.knowledge.governance import (
    Access,
    AccessDecision,
    Agent,
    DecisionContext,
    GovernedSource,
    PolicySet,
    decide,
    default_policies,
    parse_policies,
)

NOW = datetime(2026, 11, 22, 10, 30, 45, 123_456, tzinfo=UTC)
WRITER = Agent("lab", frozenset({"writer"}), "agent-7")
ADMIN = Agent("lab", frozenset({"admin", "writer"}), "agent-1")
OVERFLOW = "9223372036854775807 + 1 > 0"
PERMIT_ALL = "permit (principal, action, resource);"


def source(ref: str = "artifact:protocol", **attributes: Any) -> GovernedSource:
    return GovernedSource(ref, **{"tenant": "lab", "sensitivity": "internal", **attributes})


def default() -> PolicySet:
    return parse_policies(default_policies())


def with_default(**texts: str) -> PolicySet:
    return parse_policies({**default_policies(), **texts})


def only(text: str) -> PolicySet:
    return parse_policies({"ours": text})


def decision(
    policies: PolicySet,
    of: GovernedSource | None = None,
    agent: Agent = WRITER,
    intent: str = "Label the clips",
    time: datetime = NOW,
) -> AccessDecision:
    (decided,) = decide(policies, agent, [of or source()], DecisionContext(intent, time))
    return decided


def access(*arguments: Any, **named: Any) -> Access:
    return decision(*arguments, **named).access
