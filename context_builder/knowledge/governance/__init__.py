"""Governance decides with Cedar policies which sources an agent may read, redacted or as they are, or not at all.

In: named policy texts, an agent, sources, a context. Out: a decision for each source, with the policies that made it.
"""

from context_builder.assembly.govern import Access
from context_builder.knowledge.governance.decision import AccessDecision, AccessExplanation, decide, explained, known
from context_builder.knowledge.governance.policy_set import (
    Agent,
    DecisionContext,
    GovernedSource,
    PolicySet,
    default_policies,
    parse_policies,
)

__all__ = [
    "Access",
    "AccessDecision",
    "AccessExplanation",
    "Agent",
    "DecisionContext",
    "GovernedSource",
    "PolicySet",
    "decide",
    "default_policies",
    "explained",
    "known",
    "parse_policies",
]
