"""A view is a package as one caller may see it now, with access decided again by its sources' present state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.govern import RedactionPolicy
from context_builder.assembly.section import Item
from context_builder.clock import Clock
from context_builder.concurrency import beside_loop
from context_builder.errors import ContextBuilderError
from context_builder.knowledge.artifact import ENTITY_REFS, MAX_CONTENT, Sensitivity, stricter
from context_builder.knowledge.audit import CandidateAudit, PackageAudit
from context_builder.knowledge.excerpt import excerpts, parts_of
from context_builder.knowledge.fit import bundle_tokens, entry_tokens, heading, rendered
from context_builder.knowledge.govern import PreparedRedactor
from context_builder.knowledge.governance import Access, Agent, DecisionContext, GovernedSource
from context_builder.knowledge.node import KnowledgeNode, heading_of
from context_builder.knowledge.package import NEVER, PROJECTIONS, ContextPackage, ContextSource, view_of
from context_builder.knowledge.services import AccessReport, MemoryPolicy, MetadataIndex, SessionSensitivities

SESSION: Final = "session:"

_ERASED: Final = "erased"
"""Marks a source in the record that was erased since."""

_NOTHING: Final = DecisionContext("", datetime.fromtimestamp(0, UTC))
"""Context of a question about no source at all, which tells what decisions are made by."""


class Standing(NamedTuple):
    """What holds for an agent: the version of ``governance``, None where no decision can be had, and the
    ``sensitivities`` of what it may see, and of what it may see or know of, ``known``, each where nothing else tells
    sources apart, and it may see what is internal, but not all; empty otherwise."""

    governance: int | None
    sensitivities: frozenset[str]
    known: frozenset[str]


class Viewer:
    """Decides about sources, and shows packages that were built before.

    Everything raises :class:`~context_builder.errors.DatabaseError` where no decision can be had. ``count`` is in
    tokens.
    """

    def __init__(
        self,
        index: MetadataIndex,
        policy: MemoryPolicy,
        redactor: PreparedRedactor,
        count: Callable[[str], int],
        clock: Clock,
        sensitivities: SessionSensitivities,
    ) -> None:
        self._sensitivities = sensitivities
        self._index = index
        self._policy = policy
        self._redactor = redactor
        self._count = count
        self._clock = clock

    async def governance(self, agent: Agent) -> int | None:
        """Return which version of governance holds; None where that cannot be told."""
        report = await self._report(agent)
        return report.governance if report else None

    async def policy_version(self, agent: Agent) -> str:
        """Return the version of the policies in force; empty where that cannot be told."""
        report = await self._report(agent)
        return report.policy_version if report else ""

    async def _report(self, agent: Agent) -> AccessReport | None:
        try:
            return await self._policy.decide(agent, (), _NOTHING)
        except ContextBuilderError:
            return None

    async def standing(self, agent: Agent, intent: str = "") -> Standing:
        """Return which version of governance holds for the agent, and what it says of sensitivities."""
        asked = [GovernedSource(one.value, agent.tenant, sensitivity=one) for one in Sensitivity]
        try:
            report = await self._policy.decide(agent, asked, DecisionContext(intent, self._now()))
        except ContextBuilderError:
            return Standing(None, frozenset(), frozenset())
        allowed = frozenset(one.ref for one in report.decisions if one.access is not Access.DENIED)
        told = [
            among
            if report.by_sensitivity and Sensitivity.INTERNAL in among and len(among) < len(asked)
            else frozenset()
            for among in (allowed, allowed | report.known)
        ]
        return Standing(report.governance, *told)

    async def access(self, agent: Agent, sources: Sequence[GovernedSource]) -> list[Access]:
        """Return how the agent may see each source."""
        report = await self._policy.decide(agent, sources, DecisionContext("", self._now()))
        return [one.access for one in report.decisions]

    async def access_to(self, agent: Agent, ref: str) -> Access:
        """Return how the agent may see what a ref names; what is not there is taken for restricted."""
        node = (await self._index.nodes(agent.tenant, [ref], 0)).get(ref)
        source = node.governed(agent.tenant) if node is not None else missing_source(agent.tenant, ref)
        return (await self.access(agent, [source]))[0]

    async def redacted(self, *texts: str) -> list[str]:
        """Return the texts without what must not be shown; a mark in place of one that cannot be redacted."""

        def show(policy: RedactionPolicy) -> list[str]:
            return [policy.text(text).shown for text in texts]

        await self._redactor.prepare(show)
        return await beside_loop(show, self._redactor.policy)

    async def view(self, agent: Agent) -> str:
        """Return the agent's present view: a package of the same may be seen as it was built. Empty where none may."""
        return view_of(agent, await self._policy.decide(agent, (), _NOTHING))

    async def seen(self, agent: Agent, package: ContextPackage, intent: str, denied: int) -> ContextPackage:
        """Return the package as the agent may see it, decided by its sources' present attributes.

        ``denied`` is how many others were denied that the agent may know of.
        """
        nodes = await self._index.nodes(agent.tenant, [one.ref for one in package.sources], 0)
        asked = [governed(one, nodes[one.ref], agent.tenant) for one in package.sources if one.ref in nodes]
        report = await self._policy.decide(agent, asked, DecisionContext(intent, self._now()))
        redacted = {one.ref for one in report.decisions if one.access is Access.REDACTED}
        parts = [one.ref for one in package.sources if one.ref in redacted and one.projection.is_summarised]
        if parts:
            nodes |= await self._index.nodes(agent.tenant, parts, MAX_CONTENT)
        await self._redactor.prepare(lambda policy: seen(package, nodes, report, policy, lambda _: 0, denied, intent))
        policy = self._redactor.policy
        return await beside_loop(seen, package, nodes, report, policy, self._count, denied, intent)

    async def seen_audit(self, agent: Agent, audit: PackageAudit, intent: str, *, of_everything: bool) -> PackageAudit:
        """Return an audit as the agent may see it: what it may not know of is not named, unless ``of_everything``."""
        known = None if of_everything else await self._known(agent, _refs_of(audit), intent)
        revisions = []
        for one in audit.revisions:
            candidates = one.candidates
            if known is not None:
                candidates = await beside_loop(known.candidates, candidates)
            denied = sum(each.verdict == Access.DENIED for each in candidates)
            update: dict[str, Any] = {
                "package": await self._seen_body(agent, one.package, intent, None if known is None else denied),
                "candidates": candidates,
            }
            if known is not None:
                sources = tuple(each for each in one.policy_decision.sources if known.names(each.ref, each.access))
                update["policy_decision"] = one.policy_decision.model_copy(update={"sources": sources})
            if one.graph is not None:
                graph = one.graph if known is None else known.graph(one.graph)
                update["graph"] = await self._seen_graph(agent, graph, intent)
            revisions.append(one.model_copy(update=update))
        newest = revisions[-1]
        return audit.model_copy(
            update={
                "revisions": tuple(revisions),
                "policy_decision": newest.policy_decision,
                "candidates": newest.candidates,
            }
        )

    async def _known(self, agent: Agent, refs: Sequence[str], intent: str) -> KnownSources:
        """Return what the agent may know of what the refs name; of a session, as sensitive as that is stated to be."""
        nodes = await self._index.nodes(agent.tenant, list(refs), 0)
        sessions = [ref.removeprefix(SESSION) for ref in refs if ref.startswith(SESSION)]
        stated = await self._sensitivities(agent.tenant, sessions) if sessions else {}
        asked = [one.governed(agent.tenant) for one in nodes.values()]
        asked += [said_in(agent.tenant, one, stated.get(one)) for one in sessions]
        report = await self._policy.decide(agent, asked, DecisionContext(intent, self._now()))
        return KnownSources({one.ref: one.access for one in report.decisions}, report.known)

    async def _seen_body(
        self, agent: Agent, body: Mapping[str, Any], intent: str, denied: int | None
    ) -> dict[str, Any]:
        """Return a recorded package's JSON with the sources that the agent may see, and marks of erased ones."""
        kept = [one for one in body["sources"] if not one.get(_ERASED)]
        recorded = await beside_loop(ContextPackage.model_validate, {**body, "sources": kept, "view": NEVER})
        seen = await self.seen(agent, recorded, intent, 0)
        shown = (await beside_loop(seen.model_dump, mode="json", by_alias=True))["sources"]
        by_ref = {one["ref"]: one for one in shown}
        sources = [one if one.get(_ERASED) else by_ref.get(one["ref"]) for one in body["sources"]]
        counts = {} if denied is None else {"denied": denied}
        return {**body, **counts, "sources": [one for one in sources if one is not None]}

    async def _seen_graph(self, agent: Agent, graph: Mapping[str, Any], intent: str) -> dict[str, Any]:
        """Return a recorded neighbourhood without edges to sessions, people and tasks of what the agent may not see, or
        what is gone, and without those that nothing joins then."""
        refs = sorted({ref for edge in graph["edges"] if _of_entity(edge) for ref in _ends(edge)})
        nodes = await self._index.nodes(agent.tenant, refs, 0) if refs else {}
        asked = [one.governed(agent.tenant) for one in nodes.values()]
        report = await self._policy.decide(agent, asked, DecisionContext(intent, self._now()))
        shown = {one.ref for one in report.decisions if one.access is not Access.DENIED}
        hidden = {ref for ref in refs if ref not in shown and (ref in nodes or not ref.startswith(ENTITY_REFS))}
        edges = [
            edge
            for edge in graph["edges"]
            if not _of_entity(edge) or (shown.intersection(_ends(edge)) and not hidden.intersection(_ends(edge)))
        ]
        joined = {ref for edge in edges for ref in _ends(edge)}
        kept = [one for one in graph["nodes"] if one["ref"] in joined or not one["ref"].startswith(ENTITY_REFS)]
        return {**graph, "nodes": kept, "edges": edges}

    def admission(self, agent: Agent, intent: str, standing: Standing | None = None) -> ViewerAdmission:
        """Return what tells the sources of a package what the agent may see, as it stood if that is known."""
        return ViewerAdmission(self, agent, intent, standing)

    async def decided(
        self, agent: Agent, sources: Sequence[GovernedSource], intent: str, governance: int | None = None
    ) -> dict[str, Access]:
        """Return how the agent may see each source, by its ref; nothing where no decision can be had.

        Decisions may be by the version of ``governance``, if that is given, though it may not be the present one.
        """
        try:
            report = await self._policy.decide(agent, sources, DecisionContext(intent, self._now(), governance))
        except ContextBuilderError:
            return {}
        return {one.ref: one.access for one in report.decisions}

    async def begins(
        self, agent: Agent, refs: Sequence[str], intent: str, governance: int | None = None
    ) -> frozenset[str]:
        """Return those of the refs that name what the agent may see, or a session that it may; none where that cannot
        be told."""
        sessions = [ref.removeprefix(SESSION) for ref in refs if ref.startswith(SESSION)]
        try:
            nodes = await self._index.nodes(agent.tenant, list(refs), 0)
            stated = await self._sensitivities(agent.tenant, sessions) if sessions else {}
        except ContextBuilderError:
            return frozenset()
        asked = [one.governed(agent.tenant) for one in nodes.values()]
        asked += [said_in(agent.tenant, one, stated.get(one)) for one in sessions]
        decided = await self.decided(agent, asked, intent, governance)
        return frozenset(ref for ref, access in decided.items() if access is not Access.DENIED)

    async def titles(self, agent: Agent, refs: Sequence[str], intent: str) -> dict[str, str]:
        """Return the titles of those of the refs that the agent may see whole; a message's and a point's is how it
        begins. Empty where that cannot be told."""
        try:
            nodes = await self._index.nodes(agent.tenant, refs, 0)
        except ContextBuilderError:
            return {}
        decided = await self.decided(agent, [one.governed(agent.tenant) for one in nodes.values()], intent)
        return {ref: one.title for ref, one in nodes.items() if decided.get(ref) is Access.READ and one.title}

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now().wall, UTC)


class ViewerAdmission:
    """Implements :class:`~context_builder.knowledge.sources.Admission` for an agent.

    It tells what the agent may see as that stood when the request began: what is found is decided about once more.
    """

    def __init__(self, viewer: Viewer, agent: Agent, intent: str, standing: Standing | None) -> None:
        self._viewer = viewer
        self._agent = agent
        self._intent = intent
        self._standing = standing
        self._governance = standing.governance if standing is not None else None

    async def access(self, nodes: Sequence[KnowledgeNode]) -> Mapping[str, Access]:
        sources = [one.governed(self._agent.tenant) for one in nodes]
        return await self._viewer.decided(self._agent, sources, self._intent, self._governance) if sources else {}

    async def sensitivities(self) -> frozenset[str]:
        standing = self._standing or await self._viewer.standing(self._agent, self._intent)
        return standing.known

    async def begins(self, refs: Sequence[str]) -> frozenset[str]:
        return await self._viewer.begins(self._agent, refs, self._intent, self._governance)


class KnownSources:
    """Tells which sources an agent may know of, and hides the others in an audit."""

    def __init__(self, access: Mapping[str, Access], known: frozenset[str]) -> None:
        self._access = access
        self._known = known

    def names(self, ref: str, recorded: str) -> bool:
        """Return whether a source may be named that was decided about as ``recorded``; what is gone if it was not
        denied."""
        access = self._access.get(ref)
        if access is None:
            return recorded != Access.DENIED
        return access is not Access.DENIED or ref in self._known

    def candidates(self, recorded: Sequence[CandidateAudit]) -> tuple[CandidateAudit, ...]:
        """Return the outcomes that may be told; of what is denied no score, which would tell what is in it."""
        may_name = {(one.ref, one.verdict): self.names(one.ref, one.verdict) for one in recorded}
        told: list[CandidateAudit] = []
        hidden = [ref for (ref, _), is_named in may_name.items() if not is_named]
        for one in recorded:
            if not may_name[one.ref, one.verdict]:
                continue
            update: dict[str, Any] = {}
            if one.verdict == Access.DENIED or not self._shows(one.ref):
                update = {"score": 0.0, "signals": {}, "origins": ()}
            if any(ref in one.reason for ref in hidden):
                update["reason"] = ""
            told.append(one.model_copy(update=update) if update else one)
        return tuple(told)

    def graph(self, recorded: Mapping[str, Any]) -> dict[str, Any]:
        """Return a neighbourhood without what the agent may not see."""
        nodes = [one for one in recorded["nodes"] if self._shows(one["ref"])]
        refs = {one["ref"] for one in nodes}
        return {**recorded, "nodes": nodes, "edges": [one for one in recorded["edges"] if refs.issuperset(_ends(one))]}

    def _shows(self, ref: str) -> bool:
        access = self._access.get(ref)
        return ref.startswith(ENTITY_REFS) if access is None else access is not Access.DENIED


def _refs_of(audit: PackageAudit) -> list[str]:
    """Return the refs of all that an audit names."""
    refs: dict[str, None] = {}
    for one in audit.revisions:
        refs |= dict.fromkeys(each.ref for each in one.candidates)
        refs |= dict.fromkeys(each.ref for each in one.policy_decision.sources)
        refs |= dict.fromkeys(each["ref"] for each in (one.graph or {"nodes": ()})["nodes"])
    return list(refs)


def _ends(edge: Mapping[str, Any]) -> tuple[str, str]:
    return edge["from"], edge["to"]


def _of_entity(edge: Mapping[str, Any]) -> bool:
    return any(ref.startswith(ENTITY_REFS) for ref in _ends(edge))


def missing_source(tenant_id: str, ref: str) -> GovernedSource:
    """Return a source to be decided about in place of one that is not there, so that this takes as long."""
    return GovernedSource(ref=ref, tenant=tenant_id, sensitivity=Sensitivity.RESTRICTED.value)


def said_in(tenant_id: str, session_id: str, sensitivity: str | None) -> GovernedSource:
    """Return what was said in a session as policies know it; None is for a session of which nothing is stated."""
    return GovernedSource(
        ref=f"{SESSION}{session_id}",
        tenant=tenant_id,
        kind="message",
        sensitivity=sensitivity or Sensitivity.INTERNAL.value,
        session=session_id,
    )


def rendered_package(package: ContextPackage) -> str:
    """Return what goes into a model's prompt; empty without sources."""
    return rendered([_item(one) for one in package.sources])


def governed(source: ContextSource, node: KnowledgeNode, tenant_id: str) -> GovernedSource:
    """Return what policies may know of a source of a package: of its node at present, and where the package shows
    another version, whichever sensitivity is the stricter.
    """
    known = node.governed(tenant_id)
    if source.version == node.version:
        return known
    return replace(known, sensitivity=stricter(source.sensitivity, known.sensitivity))


def seen(
    package: ContextPackage,
    nodes: Mapping[str, KnowledgeNode],
    report: AccessReport,
    redaction: RedactionPolicy,
    count: Callable[[str], int],
    denied: int,
    intent: str = "",
) -> ContextPackage:
    """Return the package as the report's agent may see it: without what is denied or gone, redacted where that is so.

    ``denied`` is how many others were denied that the agent may know of. ``stale`` names the sources of which there is
    a newer version. Where a part of a source has to be redacted, the ``intent`` chooses its passages anew.
    """
    known = report.known | report.readable()
    access = {one.ref: one.access for one in report.decisions}
    shown: list[ContextSource] = []
    for source in package.sources:
        allowed = access.get(source.ref, Access.DENIED) if source.ref in nodes else Access.DENIED
        if allowed is Access.REDACTED and not source.projection.is_redacted:
            redacted = _redacted(source, nodes[source.ref], redaction, count, intent)
            if redacted is not None:
                shown.append(redacted)
        elif allowed is not Access.DENIED:
            shown.append(source)
    named = {one.ref for one in shown}
    shown = [one if one.superseded_by is None or one.superseded_by in named else _unnamed(one) for one in shown]
    denied += sum(
        1 for one in report.decisions if one.access is Access.DENIED and one.ref in nodes and one.ref in known
    )
    while shown and bundle_tokens([_item(one) for one in shown], count) > package.token_budget:
        shown.pop()  # redaction can make a text longer
    tokens = entry_tokens([_item(one) for one in shown], count)
    counted = tuple(one.model_copy(update={"tokens": its}) for one, its in zip(shown, tokens, strict=True))
    return package.model_copy(
        update={
            "sources": counted,
            "tokens_used": bundle_tokens([_item(one) for one in counted], count),
            "denied": denied,
            "redacted": sum(one.projection.is_redacted and one.ref in known for one in counted),
            "policy_version": report.policy_version,
            "stale": tuple(one.ref for one in counted if 0 < one.version < nodes[one.ref].version),
        }
    )


def _unnamed(source: ContextSource) -> ContextSource:
    """Return the source without the ref of what replaces it, which the caller may not be allowed to know."""
    return _titled(source.model_copy(update={"superseded_by": None}), is_replaced=True)


def _titled(source: ContextSource, *, is_replaced: bool = False) -> ContextSource:
    """Return the source under the heading that its title makes; one that ``is_replaced`` does not say by what."""
    newer = "" if is_replaced else source.superseded_by
    label = heading_of(source.title, source.kind, source.status, newer)
    titled = Item(source.ref, "", candidate=Candidate(source.ref, "", label=label))
    return source.model_copy(update={"heading": heading(titled)})


def _item(source: ContextSource) -> Item:
    return Item(source.ref, source.content, candidate=Candidate(source.ref, source.content, label=source.heading))


def _redacted(
    source: ContextSource, node: KnowledgeNode, redaction: RedactionPolicy, count: Callable[[str], int], intent: str
) -> ContextSource | None:
    """Return the source redacted; None where that is not possible.

    What shows a part of its content is made anew, of the whole one: a part may lack what tells that it is secret.
    """
    is_part = source.projection.is_summarised
    if is_part and (node.content is None or node.version != source.version):
        return None
    given = replace(node, title=source.title, content=node.content if is_part else source.content)
    shown, _, withheld = given.redacted(redaction)
    if withheld or shown.content is None:
        return None
    parts = [shown.content]
    if is_part:
        alike = excerpts(parts_of(shown.content, node.kind, node.ref, intent, floor=1.0), node.title)
        most = count(source.content)
        parts = [text for text in (*alike, *shown.projections) if count(text) <= most]
    if not parts:
        return None
    is_replaced = source.superseded_by is None and "superseded" in source.heading
    projection = PROJECTIONS[True, is_part]
    update = {"content": parts[0], "title": shown.title, "projection": projection}
    return _titled(source.model_copy(update=update), is_replaced=is_replaced)
