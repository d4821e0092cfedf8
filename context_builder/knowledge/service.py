"""The package service builds, serves and explains context packages.

request ─► recorded ─► pipeline (sources side by side ─► access ─► redaction ─► ranking ─► budget) ─► recorded ─► cached
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final, Literal, NamedTuple

import structlog
from ulid import ULID

from context_builder.assembly.budget import Receipt
from context_builder.assembly.config import AssemblyConfig
from context_builder.assembly.govern import (
    AccessPolicy,
    Governed,
    RedactionPolicy,
    decided,
    each_once,
    govern,
    redacting_beside,
)
from context_builder.assembly.metrics import Metrics, record_prompt
from context_builder.assembly.select import select
from context_builder.assembly.sources import MemorySource
from context_builder.clock import Clock
from context_builder.concurrency import Background, FairTurns, beside_loop
from context_builder.database.database import reading_row
from context_builder.errors import AuditOfAnother, ContextBuilderError, DatabaseError, PackageUnknown, ProjectUnknown
from context_builder.knowledge.artifact import MAX_CONTENT
from context_builder.knowledge.audit import PackageAudit, package_audit
from context_builder.knowledge.cache import TEXTS, PackageCache, PackageErasure, is_withheld
from context_builder.knowledge.denials import UnknownDenials
from context_builder.knowledge.fit import AssembledPackage, PackageFit, fit_package, package_draft
from context_builder.knowledge.govern import (
    NO_RULINGS,
    PackageAccess,
    PackageQuestion,
    PreparedRedactor,
    TurnAccess,
    TurnMemories,
)
from context_builder.knowledge.governance import Access, Agent
from context_builder.knowledge.outcomes import MOST_RATED, Outcomes, outcomes_of
from context_builder.knowledge.package import (
    NEVER,
    ContextPackage,
    PackageIds,
    Projection,
    packaged,
    revision_of,
    without_cache,
)
from context_builder.knowledge.record import PACKAGES, PackageRecord
from context_builder.knowledge.request import ContextBuildRequest, MetadataRetrieval, Scope
from context_builder.knowledge.revision import PackageEntry, RecentPackage, RecordedCaller, RecordedPackage
from context_builder.knowledge.services import (
    KnowledgeServices,
    SessionSensitivities,
    nothing_stated,
)
from context_builder.knowledge.signals import package_signals
from context_builder.knowledge.sources import LEFT_ALONE, PINNED, SEMANTIC, PackageQuery, PackageSources, VectorRecovery
from context_builder.knowledge.turn_source import TurnKnowledgeSource
from context_builder.knowledge.view import Standing, Viewer, rendered_package
from context_builder.knowledge.weights import PackageWeights
from context_builder.tracing import TraceContext, span

log = structlog.get_logger(__name__)

RETRIEVAL_TIME: Final = 0.15
"""Seconds for which every source is waited for, but for pinned ones."""

PINNED_TIME: Final = 10.0
"""Seconds for which pinned sources are waited for: longer than the database lets a statement run."""

CHARS_A_TOKEN: Final = 16
"""A text of more characters for each token of the budget is taken not to fit."""

AT_ONCE: Final = 4
"""Packages whose sources are looked for at the same time: more would wait for each other's searches, and past the time
that sources have."""

LONGEST_WAIT: Final = 1.0
"""Seconds that a package waits for others; after that it is made at once, and may miss sources."""


@dataclass(frozen=True, slots=True)
class PackageConfig:
    """How long the sources of a package, its pinned ones and those of a turn are waited for, in seconds; how many
    packages look for sources ``at_once``; and the weights of the signals."""

    retrieval_time: float = RETRIEVAL_TIME
    pinned_time: float = PINNED_TIME
    turn_time: float = RETRIEVAL_TIME
    at_once: int = AT_ONCE
    weights: PackageWeights = field(default_factory=PackageWeights)


class Served(NamedTuple):
    """A package, and whether it was cached or built for this call."""

    package: ContextPackage
    cache: Literal["hit", "rebuilt"]


class ExplainedPackage(NamedTuple):
    """A package, how it came about, and what a larger budget would add to it."""

    package: ContextPackage
    audit: PackageAudit
    added: list[Receipt]


class TurnKnowledge(NamedTuple):
    """What lets knowledge take part in a turn: its source, None where only memories do; who may see what; and how
    that is redacted."""

    source: MemorySource | None
    access: AccessPolicy
    redaction: RedactionPolicy


class _Beginning(NamedTuple):
    """What holds for who asks for a package, and whether the cache is there."""

    standing: Standing
    is_cached: bool


class _Built(NamedTuple):
    package: ContextPackage
    assembled: AssembledPackage


class PackageService:
    """Builds, serves and explains packages.

    ``sensitivities`` are those of sessions. Its ``viewer`` decides what agents may see of anything else, and its
    ``erasure`` takes erased sources out of packages.

    Everything raises :class:`~context_builder.errors.DatabaseError` where the database does not do what is asked.
    """

    def __init__(
        self,
        services: KnowledgeServices,
        record: PackageRecord,
        cache: PackageCache,
        metrics: Metrics,
        count: Callable[[str], int],
        clock: Clock,
        config: PackageConfig | None = None,
        sensitivities: SessionSensitivities = nothing_stated,
    ) -> None:
        self._services = services
        self._record = record
        self._cache = cache
        self._count = count
        self._clock = clock
        self._config = config or PackageConfig()
        self._assembly = AssemblyConfig(deadline=self._config.retrieval_time, threshold=0.0, store_summaries=False)
        self._signals = package_signals(self._config.weights)
        self._metrics = metrics
        self._sources = PackageSources(
            services.graph,
            services.vectors,
            services.index,
            self._assembly,
            metrics,
            self._config.pinned_time,
            self._monotonic,
        )
        self._redactor = PreparedRedactor(services.redaction)
        self._access = PackageAccess(services.policy, services.index, self._redactor)
        self.viewer = Viewer(services.index, services.policy, self._redactor, count, clock, sensitivities)
        self.erasure = PackageErasure(record, cache, self.viewer, services.index)
        self._background = Background()
        self._denials = UnknownDenials(self._sources, services.policy, record)
        self._at_once = FairTurns(self._config.at_once)
        self._recovery = VectorRecovery(
            services.vectors, self._sources.health, self._background, clock, self._config.retrieval_time
        )

    async def build(
        self, agent: Agent, request: ContextBuildRequest, trace: TraceContext, *, idempotency_key: str | None = None
    ) -> ContextPackage:
        """Return a package for the agent. A key that was used before gives the package that was built then.

        Raises :class:`~context_builder.errors.PinnedOverBudget`, :class:`~context_builder.errors.IdempotencyClash` and
        :class:`~context_builder.errors.ProjectUnknown`.
        """
        package_id = f"cpk_{ULID()}"
        if idempotency_key is None:
            return (await self._begun(agent, request, trace, package_id)).package
        digest = sha256(request.model_dump_json().encode()).hexdigest()
        package_id = await self._record.claim(agent.tenant, agent.sub, idempotency_key, digest, package_id)
        async with self._record.rebuilding(agent.tenant, package_id, after=0) as first:
            if first is None:
                return (await self._begun(agent, request, trace, package_id)).package
        return (await self.get(agent, package_id)).package

    async def build_explained(
        self, agent: Agent, request: ContextBuildRequest, trace: TraceContext, more: int
    ) -> ExplainedPackage:
        """Return a package for the agent with its audit, and what ``more`` tokens would add to it.

        Raises :class:`~context_builder.errors.PinnedOverBudget`.
        """
        built = await self._begun(agent, request, trace, f"cpk_{ULID()}")
        audit = await self.audit(agent, built.package.context_package_id, of_others=agent.knows_all)
        return ExplainedPackage(built.package, audit, built.assembled.added_by(more))

    async def _begun(self, agent: Agent, request: ContextBuildRequest, trace: TraceContext, package_id: str) -> _Built:
        request_id = f"cbr_{ULID()}"
        caller = RecordedCaller(agent.sub, tuple(sorted(agent.roles)))
        with span("package.begin"):
            begun = self._record.begin(
                agent.tenant,
                request_id,
                caller=caller,
                request=request.model_dump(mode="json", by_alias=True),
                trace_id=trace.trace_id,
                traceparent=trace.traceparent,
                task_id=request.task_id,
                package_id=package_id,
            )
            known = self.knows_project(agent.tenant, request.scope)
            _, beginning, is_known = await asyncio.gather(begun, self._beginning(agent, request), known)
        if not is_known:
            error = ProjectUnknown(request.scope.project_id)
            await self._failed(agent.tenant, request_id, error)
            raise error
        return await self._build(agent, request, trace, PackageIds(package_id, request_id, 1), beginning)

    async def knows_project(self, tenant_id: str, scope: Scope) -> bool:
        """Return whether the project that the scope names, if any, has artifacts; true if that is not told in time."""
        if not scope.project_id:
            return True
        try:
            async with asyncio.timeout(self._config.retrieval_time):
                whole = Scope(project_id=scope.project_id)
                return bool(await self._services.index.find(tenant_id, MetadataRetrieval(limit=1), whole, 1))
        except (DatabaseError, TimeoutError):
            return True  # the package tells what was not there

    async def get(self, agent: Agent, package_id: str) -> Served:
        """Return the package as the agent may see it; one that is not cached is built again from its request.

        Raises :class:`~context_builder.errors.PackageUnknown`.
        """
        cached, view = await asyncio.gather(self._cached(agent, package_id), self.viewer.view(agent))
        if cached is not None:
            return Served(await self._seen(agent, cached, view), "hit")
        recorded = await self._record.latest(agent.tenant, package_id)
        if recorded is None:
            raise PackageUnknown(package_id)
        async with self._record.rebuilding(agent.tenant, package_id, after=recorded.revision) as newer:
            if newer is not None:
                package = await _served(newer)
            elif (cached := await self._cached(agent, package_id)) is not None:  # another was done between both looks
                package = cached
            else:
                package = (await self._rebuilt(agent.tenant, recorded)).package
        return Served(await self._seen(agent, package, await self.viewer.view(agent)), "hit" if cached else "rebuilt")

    async def _cached(self, agent: Agent, package_id: str) -> ContextPackage | None:
        """Return the package of the agent's tenant that is cached, with those texts that only the record has."""
        found = await self._cache.get(package_id)
        if found is None or (found.tenant_id, found.context_package_id) != (agent.tenant, package_id):
            return None
        if not await self._is_as_said(found):
            return None
        if not any(map(is_withheld, found.sources)):
            return found
        recorded = await self._record.latest(agent.tenant, package_id)
        if recorded is None or recorded.revision != found.revision:
            return None
        with reading_row(PACKAGES, package_id):
            kept = {one["ref"]: {name: one[name] for name in TEXTS} for one in recorded.body["sources"]}
        sources = tuple(one.model_copy(update=kept.get(one.ref)) if is_withheld(one) else one for one in found.sources)
        return found.model_copy(update={"sources": sources})

    async def _is_as_said(self, package: ContextPackage) -> bool:
        """Return whether all that a package quotes of conversations is still so: not struck, nor corrected.

        A session takes such packages out of its own Redis; this one may be another. What is shown in part is held
        against what there is no more. While the database cannot be asked, the package is taken for true.
        """
        said = {one.ref: one for one in package.sources if one.ref.startswith(("message:", "point:"))}
        if not said:
            return True
        try:
            nodes = await self._services.index.nodes(package.tenant_id, [*said], MAX_CONTENT)
        except DatabaseError:
            return True
        return all(
            (node := nodes.get(ref)) is not None
            and (one.projection is not Projection.FULL or is_withheld(one) or one.content == node.content)
            for ref, one in said.items()
        )

    async def prompt(self, package: ContextPackage) -> str:
        """Return what goes into a model's prompt: exactly ``tokens_used`` tokens."""
        return await beside_loop(rendered_package, package)

    async def listing(
        self,
        agent: Agent,
        by: Literal["task", "trace", "ref"],
        value: str,
        limit: int,
        before: str | None,
        *,
        of_any_source: bool = False,
    ) -> list[PackageEntry]:
        """Return the packages of a task or a trace, or with a source, newest first: one that the agent may see unless
        ``of_any_source``, which includes erased ones."""
        if by == "ref" and not of_any_source and await self.viewer.access_to(agent, value) is Access.DENIED:
            return []
        return await self._record.listing(agent.tenant, by, value, limit=limit, before=before)

    async def recent(
        self, agent: Agent, limit: int, *, of_others: bool, among: Sequence[str] | None = None
    ) -> list[RecentPackage]:
        """Return the newest packages that the agent asked for, or ``of_others`` as well; ``among`` names their ids."""
        return await self._record.recent(agent.tenant, None if of_others else agent.sub, limit, among)

    async def knows(self, agent: Agent, package_id: str) -> bool:
        """Return whether the agent's tenant has such a package."""
        return await self._record.latest(agent.tenant, package_id) is not None

    async def feedback(
        self, agent: Agent, package_id: str, outcome: float | None, helped: Mapping[str, float], note: str
    ) -> list[str]:
        """Note what helped; of sources that the agent may not see, nothing.

        Returns the refs that are not in the package, or that the agent may not see: nothing is noted of them. Raises
        :class:`~context_builder.errors.PackageUnknown`.
        """
        visible, hidden = await self._refs(agent, package_id) if helped else (set[str](), set[str]())
        told = {**helped, **dict.fromkeys(hidden)}
        if not await self._record.feedback(agent.tenant, package_id, agent.sub, outcome, told, note):
            raise PackageUnknown(package_id)
        return [ref for ref in helped if ref not in visible]

    async def _refs(self, agent: Agent, package_id: str) -> tuple[set[str], set[str]]:
        """Return the refs of a package's sources that the agent may see at present, and those of the others."""
        recorded = await self._record.latest(agent.tenant, package_id)
        if recorded is None:
            raise PackageUnknown(package_id)
        package = await _served(recorded)
        seen = await self._seen(agent, package, await self.viewer.view(agent))
        visible = {one.ref for one in seen.sources}
        return visible, {one.ref for one in package.sources} - visible

    async def outcomes(self, agent: Agent, since: datetime) -> Outcomes:
        """Return how packages did that feedback since then tells of: by size, policy and signal, and of each source."""
        rated = await self._record.outcomes(agent.tenant, since, MOST_RATED)
        found = outcomes_of(rated, await self.viewer.policy_version(agent) if rated else "")
        shown = await self.viewer.redacted(*(one.note for one in found.notes))
        notes = [one.model_copy(update={"note": note}) for one, note in zip(found.notes, shown, strict=True)]
        return found.model_copy(update={"notes": tuple(notes)})

    async def audit(self, agent: Agent, package_id: str, *, of_others: bool) -> PackageAudit:
        """Return how a package came about, its texts as the agent may see them now. Raises
        :class:`~context_builder.errors.PackageUnknown`, and, for another agent's of the tenant unless ``of_others``,
        :class:`~context_builder.errors.AuditOfAnother`."""
        recorded = await self._record.latest(agent.tenant, package_id)
        found = await self._record.audit(agent.tenant, package_id) if recorded is not None else None
        if recorded is None or found is None:
            raise PackageUnknown(package_id)
        if not (of_others or recorded.caller.sub == agent.sub):
            raise AuditOfAnother(package_id)
        intent = str(recorded.request.get("intent", ""))
        with reading_row(PACKAGES, package_id):
            audit = await beside_loop(package_audit, found)
            return await self.viewer.seen_audit(agent, audit, intent, of_everything=of_others)

    def for_turn(self, agent: Agent, scope: Scope | None, memories: TurnMemories | None = None) -> TurnKnowledge:
        """Return what a turn of the agent is built with, so that the graph and documents of a scope, if any, take part
        in it, and of ``memories`` only what the agent may see."""
        source = None
        if scope is not None:
            admission = self.viewer.admission(agent, "")
            source = TurnKnowledgeSource(self._sources, agent.tenant, scope, self._config.turn_time, admission)
        return TurnKnowledge(source, TurnAccess(self._access, agent, memories), self._redactor.policy)

    async def warm_up(self, tenant_id: str) -> None:
        """Look for something, so that what connects or loads at its first use holds up nobody; nothing is recorded.

        The vectors are asked first, and without counting against their health how long that takes.
        """
        request = ContextBuildRequest(intent="What was decided?", token_budget=100)
        await beside_loop(self._count, request.intent)  # loads the vocabulary
        await self._recovery.search(tenant_id, request)
        with suppress(ContextBuilderError):
            await self._assembled(Agent(tenant_id, frozenset(), ""), request)

    async def close(self) -> None:
        """Wait for what is under way."""
        await asyncio.gather(self._background.drain(), self._denials.close())

    async def _rebuilt(self, tenant_id: str, recorded: RecordedPackage) -> _Built:
        with reading_row("context_build_requests", recorded.request_id):
            request = ContextBuildRequest.model_validate(recorded.request)
        agent = Agent(tenant_id, frozenset(recorded.caller.roles), recorded.caller.sub)
        trace = TraceContext.parse(recorded.traceparent) or TraceContext.new()
        ids = PackageIds(recorded.package_id, recorded.request_id, recorded.revision + 1)
        return await self._build(agent, request, trace, ids, await self._beginning(agent, request))

    async def _beginning(self, agent: Agent, request: ContextBuildRequest) -> _Beginning:
        """Return what has to be known before anything is retrieved."""
        return _Beginning(*await asyncio.gather(self.viewer.standing(agent, request.intent), self._cache.answers()))

    async def _build(
        self, agent: Agent, request: ContextBuildRequest, trace: TraceContext, ids: PackageIds, beginning: _Beginning
    ) -> _Built:
        standing, is_cached = beginning
        governance = standing.governance
        try:
            assembled = await self._assembled(agent, request, standing)
            package = packaged(assembled, ids, trace.trace_id, is_cached=is_cached)
            if assembled.access.report is None or assembled.access.report.governance != governance:
                # What was retrieved may be of before the change that the decisions name.
                package = package.model_copy(update={"view": NEVER})
            with span("package.finish"):
                revision = await self._record.finish(agent.tenant, revision_of(package, assembled, trace.traceparent))
        except BaseException as error:  # being cancelled, too: the request is marked
            if ids.revision == 1:
                await self._failed(agent.tenant, ids.request_id, error)
            raise
        if revision != package.revision:
            package = package.model_copy(update={"revision": revision})
        # What lacks its pins is made again when it is asked for.
        if is_cached and PINNED not in assembled.found.missing:
            if await self._cache.put(package):
                erased = (agent, package, governance)
                if not self._background.start("uncache what was erased", self.erasure.uncache_outdated(*erased)):
                    await self.erasure.uncache_outdated(*erased)  # so much is under way that it cannot be left to that
            else:
                package = package.model_copy(update={"coverage": without_cache(package.coverage)})
        if assembled.found.unsearched:
            self._denials.start(assembled, package)
        return _Built(package, assembled)

    async def _seen(self, agent: Agent, package: ContextPackage, view: str) -> ContextPackage:
        """Return the package as the agent, whose view is ``view``, may see it at present."""
        if view and package.view == view:
            return package
        recorded = await self._record.latest(agent.tenant, package.context_package_id)
        if recorded is None:
            return await self.viewer.seen(agent, package, "", 0)
        denied = 0
        if agent.knows_all:
            denied = await self._denied(agent.tenant, package.context_package_id)
        elif recorded.caller == RecordedCaller(agent.sub, tuple(sorted(agent.roles))):
            denied = package.denied
        return await self.viewer.seen(agent, package, str(recorded.request.get("intent", "")), denied)

    async def _denied(self, tenant_id: str, package_id: str) -> int:
        """Return how many sources were denied to who asked for a package, whoever may know of them."""
        found = await self._record.audit(tenant_id, package_id)
        with reading_row(PACKAGES, package_id):
            audit = await beside_loop(package_audit, found) if found else None
        return sum(one.verdict == Access.DENIED for one in audit.candidates) if audit else 0

    async def _failed(self, tenant_id: str, request_id: str, error: BaseException) -> None:
        """Mark the request as failed, which the failure at hand must not be lost for."""
        try:
            await asyncio.shield(self._record.fail(tenant_id, request_id, type(error).__name__))
        except ContextBuilderError as failure:
            log.warning("package.failure_unrecorded", error=type(failure).__name__)

    async def _assembled(
        self, agent: Agent, request: ContextBuildRequest, standing: Standing | None = None
    ) -> AssembledPackage:
        query = PackageQuery(
            request=request,
            tenant=agent.tenant,
            longest=min(request.token_budget * CHARS_A_TOKEN, 2_000_000),
            admission=self.viewer.admission(agent, request.intent, standing),
        )
        async with self._turn():
            with self._metrics.time_total(), span("context.total"):
                now = datetime.fromtimestamp(self._clock.now().wall, UTC)
                found = await self._sources.retrieve(query)
                if found.missing.get(SEMANTIC) == LEFT_ALONE:
                    self._recovery.begin(agent.tenant, request)
                offered = found.lists()
                question = PackageQuestion(agent, request.intent, now, query.longest)
                access = await decided(self._access.decide(each_once(offered), question), NO_RULINGS)
                governed = govern(offered, access.rulings)
                fit = await redacting_beside(lambda: self._fitted(query, governed, now), self._monotonic)
                with self._metrics.time_prompt(), span("context.prompt"):
                    assembled = AssembledPackage(query, agent, now, found, access, governed, fit)
                with span("context.recording"):
                    tokens = fit.bundle.tokens
                    self._metrics.record_tokens(tokens, tokens, tokens, tokens)
                    record_prompt(self._metrics, len(fit.bundle.items), tokens, request.token_budget)
                return assembled

    def _fitted(self, query: PackageQuery, governed: Governed, now: datetime) -> PackageFit:
        """Return what of the governed candidates fits into the request's budget."""
        draft, repeated = package_draft(query, governed, self._assembly, self._signals)
        selection = select(draft, governed, now, self._metrics, self._redactor.policy, redaction=None)
        with self._metrics.time_tokenisation(), span("context.tokenisation"):
            return fit_package(selection, repeated, query.request, query.request.token_budget, self._count)

    def _monotonic(self) -> float:
        return self._clock.now().monotonic

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait while as many packages are being made as the database serves in time, but not for long."""
        try:
            async with asyncio.timeout(LONGEST_WAIT):
                await self._at_once.acquire()
        except TimeoutError:
            yield
            return
        try:
            yield
        finally:
            self._at_once.release()


async def _served(recorded: RecordedPackage) -> ContextPackage:
    """Return the package of a revision as it was served."""
    with reading_row(PACKAGES, recorded.package_id):
        return await beside_loop(ContextPackage.model_validate, recorded.body)
