"""A decision says how an agent may see a source: as it is, redacted, or not at all; whatever goes wrong denies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from context_builder.assembly.govern import Access
from context_builder.knowledge.artifact import Sensitivity
from context_builder.knowledge.governance import cedar
from context_builder.knowledge.governance.policy_set import (
    Agent,
    DecisionContext,
    GovernedSource,
    NotUnicode,
    PolicySet,
    entity,
)

if TYPE_CHECKING:
    import cedarpy

ACTIONS: Final = ("read", "readRedacted")
KNOW: Final = "know"
_OTHER_ACTION: Final = {"read": "readRedacted", "readRedacted": "read"}


@dataclass(frozen=True, slots=True)
class AccessDecision:
    """How a source may be seen, the ids of the policies that determined it, and why, for the audit.

    ``reason`` quotes neither the intent nor an attribute.
    """

    ref: str
    access: Access
    policies: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class _Resource:
    """A source as it is passed to Cedar; ``attributes`` are JSON."""

    name: str
    attributes: str
    is_confidential: bool


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What the policies say of one action on one source; without a ``reason``, none mentions it."""

    action: str
    allowed: bool
    policies: tuple[str, ...]
    reason: str

    @property
    def is_unmentioned(self) -> bool:
        """Return whether no policy says anything of it, neither permits nor forbids."""
        return not self.reason


@dataclass(frozen=True, slots=True)
class AccessExplanation:
    """A decision, and what the policies say of each action; of none, where Cedar was not asked or failed."""

    decision: AccessDecision
    actions: tuple[ActionResult, ...]


def decide(
    policy_set: PolicySet, agent: Agent, sources: Iterable[GovernedSource], context: DecisionContext
) -> tuple[AccessDecision, ...]:
    """Return a decision for each source, in their order; there is neither I/O nor a clock in it.

    ``read`` allowed: as it is, but a confidential source redacted. Only ``readRedacted`` allowed: redacted. Neither:
    denied. An action at which a policy erred is not allowed, whatever the others say. If Cedar fails, all are denied.
    Denied without Cedar are sources of another tenant, and attributes, of a source or of the agent, with half of a
    surrogate pair; NUL is a character like any other. Takes up to 0.1 ms for each source unlike the others,
    in which other threads wait.
    """
    asked = tuple(sources)
    try:
        principal = entity("Agent", agent.sub, agent.attributes())
        alike, decisions = _grouped(policy_set, agent, asked)
        for groups in _rounds(alike):
            for group, decision in _decide(policy_set, agent, principal, groups, context).items():
                decisions |= {place: replace(decision, ref=asked[place].ref) for place in alike[group]}
    except NotUnicode:
        return tuple(_denied(source, "an attribute of the agent has half of a surrogate pair") for source in asked)
    except cedar.CedarFailure as failure:
        return tuple(_denied(source, str(failure)) for source in asked)
    return tuple(decisions[place] for place in range(len(asked)))


def known(
    policy_set: PolicySet, agent: Agent, sources: Iterable[GovernedSource], context: DecisionContext
) -> frozenset[str]:
    """Return the refs of the sources that the agent may know of, by the action ``know``; whatever goes wrong, of none.

    An agent that knows all may know of all that is the tenant's.
    """
    asked = tuple(sources)
    if agent.knows_all:
        return frozenset(one.ref for one in asked if one.tenant == agent.tenant)
    refs: set[str] = set()
    try:
        principal = entity("Agent", agent.sub, agent.attributes())
        alike, _ = _grouped(policy_set, agent, asked)
        attributes = context.attributes(policy_set.context_read)
        for groups in _rounds(alike):
            entities = _entities(principal, groups)
            requests = [_request(agent, KNOW, group.name, attributes) for group in groups]
            for group, answer in zip(
                groups, cedar.authorize(_read_by_cedar(policy_set), entities, requests), strict=True
            ):
                if _action_result(policy_set, KNOW, answer).allowed:
                    refs.update(asked[place].ref for place in alike[group])
    except (NotUnicode, cedar.CedarFailure):
        return frozenset()
    return frozenset(refs)


def explained(
    policy_set: PolicySet, agent: Agent, source: GovernedSource, context: DecisionContext
) -> AccessExplanation:
    """Return the decision on a source as :func:`decide` makes it, and what the policies say of both actions."""
    (decision,) = decide(policy_set, agent, (source,), context)
    if source.tenant != agent.tenant:
        return AccessExplanation(decision, ())
    try:
        told = (entity("Agent", agent.sub, agent.attributes()), entity("Source", source.ref, source.attributes()))
        entities = cedar.read_entities(f"[{','.join(told)}]")
        requests = [
            _request(agent, action, source.ref, context.attributes(policy_set.context_read)) for action in ACTIONS
        ]
        answers = cedar.authorize(_read_by_cedar(policy_set), entities, requests)
    except (NotUnicode, cedar.CedarFailure):
        return AccessExplanation(decision, ())
    results = (_action_result(policy_set, action, answer) for action, answer in zip(ACTIONS, answers, strict=True))
    return AccessExplanation(decision, tuple(results))


def _grouped(
    policy_set: PolicySet, agent: Agent, sources: Sequence[GovernedSource]
) -> tuple[dict[_Resource, list[int]], dict[int, AccessDecision]]:
    """Return the places of the sources that are one resource to Cedar, and denials of those that it is not asked for.

    Where no policy names sources, those that are equal in what policies read are one resource, named by a number and
    told with the attributes of the first.
    """
    alike: dict[_Resource, list[int]] = {}
    denied: dict[int, AccessDecision] = {}
    numbered: dict[tuple[str, bool], _Resource] = {}
    for place, source in enumerate(sources):
        if source.tenant != agent.tenant:
            denied[place] = _denied(source, "another tenant's")
            continue
        try:
            attributes = source.attributes()
        except NotUnicode:
            denied[place] = _denied(source, "an attribute has half of a surrogate pair")
            continue
        is_confidential = source.sensitivity == Sensitivity.CONFIDENTIAL
        if policy_set.names_sources:
            resource = _Resource(source.ref, attributes, is_confidential)
        else:
            number = _Resource(str(len(numbered)), attributes, is_confidential)
            resource = numbered.setdefault((source.attributes(policy_set.source_read), is_confidential), number)
        alike.setdefault(resource, []).append(place)
    return alike, denied


def _rounds(resources: Iterable[_Resource]) -> Iterator[list[_Resource]]:
    """Yield the resources in lists in which no name is there twice; a ref may come with several attributes."""
    rest = list(resources)
    while rest:
        first = {resource.name: resource for resource in reversed(rest)}
        yield list(first.values())
        rest = [resource for resource in rest if resource is not first[resource.name]]


def _decide(
    policy_set: PolicySet, agent: Agent, principal: str, resources: Sequence[_Resource], context: DecisionContext
) -> dict[_Resource, AccessDecision]:
    """Return the decisions: the action that tells most is asked first, the other where that is not allowed."""
    entities = _entities(principal, resources)
    attributes = context.attributes(policy_set.context_read)

    def results(actions: Mapping[_Resource, str]) -> dict[_Resource, ActionResult]:
        requests = [_request(agent, action, resource.name, attributes) for resource, action in actions.items()]
        answers = cedar.authorize(_read_by_cedar(policy_set), entities, requests) if requests else []
        return {
            resource: _action_result(policy_set, action, answer)
            for (resource, action), answer in zip(actions.items(), answers, strict=True)
        }

    first = results({one: "readRedacted" if one.is_confidential else "read" for one in resources})
    second = results({one: _OTHER_ACTION[result.action] for one, result in first.items() if not result.allowed})
    return {one: _decision(one, first[one], second.get(one)) for one in resources}


def _entities(principal: str, resources: Iterable[_Resource]) -> cedarpy.Entities:
    told = (principal, *(entity("Source", resource.name, resource.attributes) for resource in resources))
    return cedar.read_entities(f"[{','.join(told)}]")


def _read_by_cedar(policy_set: PolicySet) -> cedarpy.PolicySet:
    if policy_set.cedar is None:
        raise cedar.CedarFailure("the policies are in another process")
    return policy_set.cedar


def _request(agent: Agent, action: str, source: str, context: str) -> dict[str, object]:
    return {
        "principal": {"type": "Agent", "id": agent.sub},
        "action": {"type": "Action", "id": action},
        "resource": {"type": "Source", "id": source},
        "context": context,
    }


def _action_result(policy_set: PolicySet, action: str, answer: cedar.Answer) -> ActionResult:
    ids = tuple(policy_set.policy_ids[place] for place in answer.policies)
    if answer.errors or not answer.decided:
        erred = [(policy_set.policy_ids[one.policy], one.kind) for one in answer.errors if one.policy is not None]
        reason = ", ".join(f"policy {policy} erred: {kind}" for policy, kind in erred)
        return ActionResult(
            action, allowed=False, policies=tuple(dict(erred)), reason=reason or "Cedar made no decision"
        )
    reason = _reason(ids, "permit" if answer.allowed else "forbid", action) if ids else ""
    return ActionResult(action, answer.allowed, ids, reason)


def _reason(policies: tuple[str, ...], verb: str, action: str) -> str:
    if len(policies) == 1:
        return f"policy {policies[0]} {verb}s {action}"
    return f"policies {', '.join(policies)} {verb} {action}"


def _decision(resource: _Resource, first: ActionResult, second: ActionResult | None) -> AccessDecision:
    allowed = first if first.allowed else second if second and second.allowed else None
    if allowed is None:
        refused = [one for one in (first, second) if one]
        policies = dict.fromkeys(policy for one in refused for policy in one.policies)
        reasons = dict.fromkeys(one.reason for one in refused if not one.is_unmentioned)
        return AccessDecision(resource.name, Access.DENIED, tuple(policies), "; ".join(reasons) or "no policy permits")
    if resource.is_confidential or allowed.action == "readRedacted":
        return AccessDecision(resource.name, Access.REDACTED, allowed.policies, _redacted_reason(first, allowed))
    return AccessDecision(resource.name, Access.READ, allowed.policies, allowed.reason)


def _redacted_reason(first: ActionResult, allowed: ActionResult) -> str:
    if allowed.action == "read":
        return f"{allowed.reason}, and confidential sources are redacted"
    return "; ".join(dict.fromkeys(one.reason for one in (first, allowed) if one.reason))


def _denied(source: GovernedSource, reason: str) -> AccessDecision:
    return AccessDecision(source.ref, Access.DENIED, (), reason)
