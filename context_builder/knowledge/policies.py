"""The policies of each tenant are stored in the database and decide about access."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

from context_builder.analysis.processes import Runner, TookTooLong, in_thread
from context_builder.concurrency import beside_loop
from context_builder.database.database import Database, damaged_row
from context_builder.errors import DatabaseUnavailable, PolicyError
from context_builder.knowledge.governance import (
    Access,
    AccessDecision,
    Agent,
    DecisionContext,
    GovernedSource,
    PolicySet,
    decide,
    default_policies,
    known,
    parse_policies,
)
from context_builder.knowledge.services import AccessReport

_KEPT: Final = 1_000
"""Tenants whose parsed policies are kept."""

_ATTEMPTS: Final = 5

QUICK_CHARACTERS: Final = 8_000
"""Characters of policies that are read in some milliseconds."""

QUICK_DECISIONS: Final = 200
"""Sources, for each policy, that are decided about in some milliseconds. Patterns (``like``) may take longer."""

_LIKE: Final = re.compile(r"\blike\b")

_UNREAD: Final = -1
"""No version: what was written is read once more before anything is decided by it."""


class Governance(NamedTuple):
    """A tenant's policies as they are at a version of its governance."""

    version: int
    texts: Mapping[str, str]
    policy_set: PolicySet


class Decided(NamedTuple):
    """A decision for each source, and the refs of those that the agent may know of, though it may not read them as
    they are."""

    decisions: tuple[AccessDecision, ...]
    known: frozenset[str]


class PolicyStore:
    """Keeps Cedar policies by name; a tenant begins with those of the start, which it may replace and delete.

    Every call raises :class:`~context_builder.errors.DatabaseError`.
    """

    def __init__(self, database: Database, run: Runner = in_thread) -> None:
        self._database = database
        self._run = run
        self._parsed: OrderedDict[str, Governance] = OrderedDict()

    async def version(self, tenant_id: str) -> int:
        """Return which version of governance holds: it counts all changes of what may be seen."""
        return int((await self._database.call("context_knowledge_governance", tenant_id, {}))[0])

    async def governance(self, tenant_id: str, version: int | None = None) -> Governance:
        """Return the policies that hold now, or those of the ``version``, where these are at hand."""
        held = self._parsed.get(tenant_id)
        if held is not None and held.version == (await self.version(tenant_id) if version is None else version):
            self._parsed.move_to_end(tenant_id)
            return held
        version, texts = await self._stored(tenant_id)
        if held is not None and held.texts == texts:
            policy_set = held.policy_set
        else:
            try:
                policy_set = await self._policy_set(texts)
            except PolicyError as error:
                raise damaged_row("context_policies", error.name, error) from None
        governance = Governance(version, texts, policy_set)
        self._parsed[tenant_id] = governance
        self._parsed.move_to_end(tenant_id)
        while len(self._parsed) > _KEPT:
            self._parsed.popitem(last=False)
        return governance

    async def _stored(self, tenant_id: str) -> tuple[int, dict[str, str]]:
        """Return the version of governance and the tenant's texts, by name, though they may not be readable."""
        rows: list[Any] = await self._database.call("context_knowledge_policies", tenant_id, {})
        kept: Mapping[str, str | None] = rows[0]["policies"]
        texts = {name: text for name, text in {**default_policies(), **kept}.items() if text is not None}
        return int(rows[0]["version"]), texts

    async def put(self, tenant_id: str, name: str, text: str) -> PolicySet:
        """Store a policy text; return the policies with it. Raises :class:`~context_builder.errors.PolicyError`."""
        return await self._replace(tenant_id, name, text)

    async def delete(self, tenant_id: str, name: str) -> bool:
        """Delete a policy text; return whether there was one."""
        if name not in (await self._stored(tenant_id))[1]:
            return False
        await self._replace(tenant_id, name, None)
        return True

    async def decide(
        self, governance: Governance, agent: Agent, sources: Sequence[GovernedSource], context: DecisionContext
    ) -> Decided:
        """Return what is decided, where it holds up nobody; all is denied and unknown where that takes too long."""
        policy_set = governance.policy_set
        if policy_set.cedar is not None and len(sources) * len(policy_set.policy_ids) <= QUICK_DECISIONS:
            return _decided_by(policy_set, agent, sources, context)
        try:
            return await self._run(_decided, tuple(governance.texts.items()), agent, tuple(sources), context)
        except TookTooLong:
            reason = "the decision took too long"
            return Decided(tuple(AccessDecision(one.ref, Access.DENIED, (), reason) for one in sources), frozenset())

    async def _policy_set(self, texts: Mapping[str, str]) -> PolicySet:
        """Return the policies; of those that cannot be read, or decided by, at once, without what Cedar decides by."""
        if sum(map(len, texts.values())) > QUICK_CHARACTERS or any(_LIKE.search(text) for text in texts.values()):
            return await self._run(_outline, tuple(texts.items()))
        return await beside_loop(parse_policies, texts)

    async def _replace(self, tenant_id: str, name: str, text: str | None) -> PolicySet:
        for _ in range(_ATTEMPTS):
            version, held = await self._stored(tenant_id)
            texts = {other: kept for other, kept in held.items() if other != name}
            if text is not None:
                texts[name] = text
            try:
                policy_set = await self._policy_set(texts)
            except PolicyError as error:
                if error.name == name or error.name not in held:  # a name that none may have is told in ASCII
                    raise
                raise damaged_row("context_policies", error.name, error) from None
            except TookTooLong:
                raise PolicyError(name, 1, 1, "takes too long to read, with the others of the tenant") from None
            arguments = {"policy": name, "new_text": text, "seen": version}
            if (await self._database.call("context_knowledge_govern", tenant_id, arguments))[0]:
                self._parsed[tenant_id] = Governance(_UNREAD, texts, policy_set)
                return policy_set
        raise DatabaseUnavailable("others change this tenant's policies at the same time; try again")


@lru_cache(maxsize=16)
def _read(texts: tuple[tuple[str, str], ...]) -> PolicySet:
    return parse_policies(dict(texts))


def _outline(texts: tuple[tuple[str, str], ...]) -> PolicySet:
    return replace(_read(texts), cedar=None)


def _decided(
    texts: tuple[tuple[str, str], ...], agent: Agent, sources: Sequence[GovernedSource], context: DecisionContext
) -> Decided:
    return _decided_by(_read(texts), agent, sources, context)


def _decided_by(
    policy_set: PolicySet, agent: Agent, sources: Sequence[GovernedSource], context: DecisionContext
) -> Decided:
    decisions = decide(policy_set, agent, sources, context)
    unread = [one for one, its in zip(sources, decisions, strict=True) if its.access is not Access.READ]
    return Decided(decisions, known(policy_set, agent, unread, context) if unread else frozenset())


class PolicyDecisions:
    """Decides by the policies of a store; implements :class:`~context_builder.knowledge.services.MemoryPolicy`."""

    def __init__(self, policies: PolicyStore) -> None:
        self._policies = policies

    async def decide(self, agent: Agent, sources: Sequence[GovernedSource], context: DecisionContext) -> AccessReport:
        governance = await self._policies.governance(agent.tenant, context.governance)
        policy_set = governance.policy_set
        decided = await self._policies.decide(governance, agent, sources, context)
        return AccessReport(
            decided.decisions,
            policy_set.version,
            governance.version,
            policy_set.reads_time,
            decided.known,
            policy_set.is_by_sensitivity,
        )
