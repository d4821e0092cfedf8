"""This view shows health, queues, the cost of model calls, and dead letters."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import structlog
from fastapi import Query, Request
from redis.asyncio import Redis
from starlette.responses import RedirectResponse, Response

from context_builder.analysis.text.analyst import NAME as TEXT_ANALYST
from context_builder.errors import ContextBuilderError
from context_builder.memory.memory import MemoryQuery
from context_builder.server.access.caller import Caller, Role
from context_builder.server.asgi.callers import PAGE
from context_builder.server.guarded_route import READER, WRITER, CallerHere, OwnRedis, ServicesHere, SessionId
from context_builder.server.page.cost_chart import CostBar, cost_bars, first_instant
from context_builder.server.page.health_history import STATES, Check, HealthHistory
from context_builder.server.page.page_route import FormHere, page_router
from context_builder.server.page.rendering import render
from context_builder.server.page.session_list import SessionList, SessionLister, SessionRow, as_seen
from context_builder.server.problem import Problem, not_found, problem_of
from context_builder.server.seen_session import MUST_BE_READ
from context_builder.server.services import Services
from context_builder.session.client import JsonObject, SessionClient
from context_builder.session.conversation.usage_history import UsageHistory
from context_builder.session.servers import SessionServer, SessionServers
from context_builder.session.store.dead_letters import ORIGINS, DeadLetter, DeadLetters, Origin
from context_builder.session.store.registry import SessionRegistry
from context_builder.storage.redis import clock_skew, durability_of, server_info
from context_builder.storage.redis_availability import translated

if TYPE_CHECKING:
    from context_builder.fleet.status import FleetStatus

log = structlog.get_logger(__name__)

PATIENCE: Final = 5.0
"""Seconds that each check may take."""

EVERY: Final = 60.0
"""Seconds between two looks for the history."""

MOST_WATCHED: Final = 20
"""Tenants whose health is looked at for the history."""

SKEW: Final = 2.0
"""Seconds between this machine's clock and Redis' that are worth a word."""

_NAMES: Final = {TEXT_ANALYST: "plain text analysis"}

MOST_NAMED: Final = 5
"""Sessions that a check names."""

MOST_COSTS: Final = 100
"""Sessions whose costs are read, the most recently active ones."""


@dataclass(frozen=True, slots=True)
class SessionCost:
    """What a session's model calls have cost, by task and over time."""

    session_id: str
    dollars: float
    tokens: int
    tasks: JsonObject
    bars: Sequence[CostBar]


@dataclass(slots=True)
class Costs:
    """The costs by session, the dearest first, by task, and over time; ``unpriced`` are models without a price."""

    sessions: list[SessionCost] = field(default_factory=list)
    tasks: dict[str, dict[str, float]] = field(default_factory=dict)
    unpriced: set[str] = field(default_factory=set)
    history: UsageHistory = field(default_factory=UsageHistory)

    @property
    def dollars(self) -> float:
        return sum(one.dollars for one in self.sessions)

    @property
    def bars(self) -> list[CostBar]:
        return cost_bars(self.history)

    @property
    def first_instant(self) -> int | None:
        """Return the time at the left end of the bars in epoch seconds; None where they leave time out."""
        return first_instant(self.bars)


@dataclass(slots=True)
class HealthReport:
    """All checks, the fleet, the costs and the sessions with dead letters; None where one could not be read.

    ``sessions`` there are in all. A fleet without workers is none: ``has_fleet`` is then false.
    """

    checks: list[Check] = field(default_factory=list)
    sessions: int = 0
    has_fleet: bool | None = None
    fleet: FleetStatus | None = None
    costs: Costs | None = None
    dead: list[SessionRow] | None = None

    @property
    def state(self) -> str:
        """Return the worst state of any check."""
        return max((one.state for one in self.checks), key=STATES.index, default="good")


async def health_report(services: Services, caller: Caller) -> HealthReport:
    """Look at everything, and name no session that the caller may not see.

    What does not answer is part of the report.
    """
    servers = services.sessions.servers.of_tenant(caller.tenant_id)
    report = HealthReport()
    checks, found = await _looked_at(services, caller.tenant_id, SessionLister())
    shown = SessionList((), 0)
    with suppress(ContextBuilderError):  # what does not answer is named above
        if found is not None:
            report.fleet = await _fleet(servers)
            report.has_fleet = report.fleet is not None
            shown = await as_seen(services, caller, found)
            report.sessions = shown.total
            report.dead = [row for row in shown.rows if row.dead]
            report.costs = await _costs(servers, shown.rows)
    names = {row.session_id for row in shown.rows}
    report.checks = [replace(one, sessions=tuple(name for name in one.sessions if name in names)) for one in checks]
    return report


async def _looked_at(
    services: Services, tenant_id: str, lister: SessionLister
) -> tuple[list[Check], SessionList | None]:
    """Return what each check finds, and the sessions; None where a server does not answer."""
    servers = services.sessions.servers.of_tenant(tenant_id)
    names = {one: f"Redis {one.name}" if len(servers) > 1 else "Redis" for one in servers}
    of_servers = asyncio.gather(*(_checked(name, _redis_check(one, name)) for one, name in names.items()))
    of_database = _checked("Database", lambda: _database(services))
    of_memory = _checked("Memory", lambda: _memory(services, tenant_id))
    redis_checks, database, memory = await asyncio.gather(of_servers, of_database, of_memory)
    checks = [*redis_checks, database, memory]
    with suppress(ContextBuilderError):
        found = await lister.find(servers)
        rows = found.rows
        scope = "" if found.total <= len(rows) else f", of the {len(rows):,} newest sessions"
        checks += [_model(rows, has_model=services.has_model), _archive(rows, scope), _delivery(rows, scope)]
        return checks, found
    return checks, None


class _Watched(NamedTuple):
    lister: SessionLister
    history: HealthHistory


class HealthWatch:
    """Looks at the health of tenants once a minute: of this process's own, and of those that asked for it lately."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._watched: OrderedDict[str, _Watched] = OrderedDict()
        self.of_tenant(services.sessions.tenant_id)

    def of_tenant(self, tenant_id: str) -> HealthHistory:
        """Return a tenant's history; that of the latest tenants is kept, and that of this process's own."""
        found = self._watched.setdefault(tenant_id, _Watched(SessionLister(), HealthHistory()))
        self._watched.move_to_end(tenant_id)
        self._watched.move_to_end(self._services.sessions.tenant_id)
        while len(self._watched) > MOST_WATCHED:
            self._watched.popitem(last=False)
        return found.history

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Look meanwhile."""
        async with asyncio.TaskGroup() as tasks:
            watch = tasks.create_task(self._watch(), name="watch the health")
            yield
            watch.cancel()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            for tenant_id, watched in list(self._watched.items()):
                try:
                    checks, _ = await _looked_at(self._services, tenant_id, watched.lister)
                except Exception as error:  # the server goes on without a look that fails
                    log.exception("health.unread", error=type(error).__name__)
                    continue
                watched.history.note(time.time(), checks)


async def _checked(name: str, check: Callable[[], Awaitable[Check]]) -> Check:
    try:
        async with asyncio.timeout(PATIENCE):
            return await check()
    except TimeoutError:
        return Check(name, "bad", f"no answer within {PATIENCE:g} s")
    except ContextBuilderError as error:
        return Check(name, "bad", "does not answer", (problem_of(error).detail,))


def _redis_check(server: SessionServer, name: str) -> Callable[[], Awaitable[Check]]:
    async def check() -> Check:
        began = time.perf_counter()
        async with translated():
            await server.redis.ping()
            took = time.perf_counter() - began
        info = await server_info(server.redis)
        skew = abs(await clock_skew(server.redis))
        durable = await durability_of(server.redis, server.known_settings)
        advice = [*durable.faults, *durable.notes]
        if skew > SKEW:
            advice.append(f"its clock is {skew:.1f} s from this machine's: set both by NTP")
        state = "warn" if durable.faults or skew > SKEW else "good"
        found = f"version {info.get('redis_version', '?')}, {1000 * took:.1f} ms"
        if "used_memory" in info:
            found += f", {info['used_memory'] / 1e6:,.1f} MB of memory"
        return Check(name, state, found, tuple(advice), measured=1000 * took, unit="ms")

    return check


async def _database(services: Services) -> Check:
    began = time.perf_counter()
    await services.database.ping()
    took = 1000 * (time.perf_counter() - began)
    return Check("Database", "good", f"answers in {took:.1f} ms", measured=took, unit="ms")


async def _memory(services: Services, tenant_id: str) -> Check:
    began = time.perf_counter()
    await services.memory.search(tenant_id, MemoryQuery("", 1, with_texts=False))  # the newest: nothing is embedded
    took = 1000 * (time.perf_counter() - began)
    return Check("Memory", "good", f"answers in {took:.1f} ms", measured=took, unit="ms")


def _model(rows: Sequence[SessionRow], *, has_model: bool) -> Check:
    """Tell which analysts made what the sessions publish: a model that does not answer is stood in for."""
    affected = [row for row in rows if row.status.is_run and row.failing]
    failing = Counter(task for row in affected for task in row.failing)
    advice = tuple(
        f"{task} fails in {count} session{'s' * (count != 1)}; open {'one of them' if count != 1 else 'it'} to see why"
        for task, count in failing.items()
    )
    used = Counter(row.analyst for row in rows if row.analyst and row.status.is_run)
    if not used and not failing:
        return Check("Model", "good", "no running session has asked one yet")
    found = ", ".join(
        f"{_NAMES.get(name, name)} in {count} session{'s' * (count != 1)}" for name, count in used.most_common(4)
    )
    if has_model and used[TEXT_ANALYST]:
        advice += ("plain text analysis stands in where the model does not answer",)
    state = "bad" if failing else "warn" if advice else "good"
    named = tuple(row.session_id for row in affected[:MOST_NAMED])
    found = found or "nothing has come of it yet"
    return Check("Model", state, found, advice, named, len(affected), "sessions in which it fails")


def _archive(rows: Sequence[SessionRow], scope: str) -> Check:
    """Tell what waits for the archive, and what it refused for good, of the sessions that ``scope`` names."""
    waiting, refused = sum(row.to_archive for row in rows), sum(row.refused_by_archive for row in rows)
    wait = f"{'waits' if waiting == 1 else 'wait'} for it"
    found = f"{_summaries(waiting)} {wait}" if waiting else "every summary is in it"
    if refused:
        found = f"{_summaries(refused)} {'was' if refused == 1 else 'were'} refused for good, {waiting:,} {wait}"
    return Check("Archive", "warn" if refused else "good", found + scope, measured=waiting, unit="waiting")


def _summaries(count: int) -> str:
    return f"{count:,} {'summary' if count == 1 else 'summaries'}"


def _delivery(rows: Sequence[SessionRow], scope: str) -> Check:
    waiting, dead = sum(row.to_deliver for row in rows), sum(row.dead for row in rows)
    found = f"{waiting:,} on the way to archive and memory" if waiting else "nothing waits"
    advice = (f"{dead:,} could not be read or delivered: see the dead letters below",) if dead else ()
    if not waiting and not dead:
        found = "everything is delivered"
    return Check("Delivery", "warn" if dead else "good", found + scope, advice, measured=waiting, unit="waiting")


async def _fleet(servers: SessionServers) -> FleetStatus | None:
    """Return the workers that told of their load lately, with what they run; None without any."""
    if find_spec("docket") is None:
        return None
    await asyncio.to_thread(import_module, "context_builder.fleet.status")  # others are answered meanwhile
    from context_builder.fleet.process import Workload
    from context_builder.fleet.status import FleetStatus, status_of
    from context_builder.fleet.worker import WORKLOAD
    from context_builder.session.keys import SLEEPERS

    parts = []
    for server in servers:
        async with translated():
            keys = [key async for key in server.redis.scan_iter(f"{WORKLOAD}*", count=1000)]
            told = await server.redis.mget(keys) if keys else []
            sleeping = int(await server.redis.zcard(SLEEPERS))
        names = [key.decode().removeprefix(WORKLOAD) for key in keys]
        loads = {name: Workload.read(raw) for name, raw in zip(names, told, strict=True)}
        sessions = await SessionRegistry(server.redis).sessions()
        parts.append(status_of(server.name, dict.fromkeys(names, 0.0), loads, sleeping, sessions))
    if not any(part.workers for part in parts):
        return None
    return FleetStatus(
        tuple(worker for part in parts for worker in part.workers),
        sum(part.elsewhere for part in parts),
        sum(part.sleeping for part in parts),
        sum(part.unowned for part in parts),
    )


async def _costs(servers: SessionServers, rows: Sequence[SessionRow]) -> Costs:
    costs = Costs()
    for row in rows[:MOST_COSTS]:
        server = await servers.find(row.session_id)
        cost = await SessionClient(server.redis, row.session_id).cost() if server is not None else None
        if cost is None:
            continue
        history = UsageHistory()
        history.restore(cost.get("history"))
        costs.history.absorb(history)
        tokens = sum(one["prompt_tokens"] + one["completion_tokens"] for one in cost["tasks"].values())
        costs.sessions.append(SessionCost(row.session_id, cost["dollars"], tokens, cost["tasks"], cost_bars(history)))
        costs.unpriced.update(map(str, cost.get("unpriced", ())))
        for task, spent in cost["tasks"].items():
            total = costs.tasks.setdefault(task, dict.fromkeys(spent, 0.0))
            for name, amount in spent.items():
                total[name] = total.get(name, 0.0) + amount
    costs.sessions.sort(key=lambda one: (-one.dollars, -one.tokens, one.session_id))
    return costs


EXCERPT: Final = 400
MOST_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class ShownLetter:
    """A dead letter of a session. ``name`` is a hash: numbers change when another letter is put back."""

    origin: Origin
    name: str
    letter: DeadLetter

    @property
    def begins(self) -> str:
        return self.letter.begins(self.origin, EXCERPT)


async def letters_of(redis: Redis, session_id: str) -> list[ShownLetter]:
    """Return the session's dead letters, the newest of each origin first."""
    found = []
    for origin in ORIGINS:
        letters = await DeadLetters(redis, session_id, origin).all()
        found += [ShownLetter(origin, _name(origin, one), one) for one in reversed(letters)]
    return found


async def put_back(redis: Redis, session_id: str, name: str) -> int:
    """Put a letter back to where it came from, or with ``all`` every one that was kept whole; return how many."""
    moved = 0
    for one in reversed(await letters_of(redis, session_id)):
        if (name == "all" and one.letter.is_whole) or name == one.name:
            moved += await DeadLetters(redis, session_id, one.origin).requeue(one.letter)
    return moved


def _name(origin: Origin, letter: DeadLetter) -> str:
    return sha256(origin.encode() + letter.encode()).hexdigest()[:32]


router = page_router()

_NAME: Final = re.compile("all|[0-9a-f]{32}")


@router.get("/health", openapi_extra=READER)
async def health(request: Request, services: ServicesHere, caller: CallerHere) -> Response:
    """Show how everything is, and what it costs."""
    report = await health_report(services, caller)
    watch: HealthWatch = request.app.state.health
    history, now = watch.of_tenant(caller.tenant_id), time.time()
    history.note(now, report.checks)
    bars = {one.name: history.bars(one.name, now) for one in report.checks}
    return await render(request, "health.html", title="Health & cost", report=report, bars=bars, most_costs=MOST_COSTS)


@router.get("/dead/{session_id}", openapi_extra=READER, dependencies=[MUST_BE_READ])
async def dead(
    session_id: SessionId,
    request: Request,
    redis: OwnRedis,
    caller: CallerHere,
    put: Annotated[str, Query(max_length=32)] = "",
    done: Annotated[int | None, Query(ge=0, le=10**9)] = None,
) -> Response:
    """Show a session's dead letters; with ``put`` ask first whether that one, or ``all``, is to be put back."""
    if await SessionRegistry(redis).find(session_id) is None:
        raise not_found()
    letters = await letters_of(redis, session_id)
    asked = [one for one in letters if put in ("all", one.name)] if _NAME.fullmatch(put) else []
    return await render(
        request,
        "dead.html",
        title=f"Dead letters of {session_id}",
        session_id=session_id,
        letters=letters[:MOST_SHOWN],
        total=len(letters),
        put=put if asked else "",
        asked=asked,
        done=done,
        may_put_back=Role.WRITER in caller.roles,
    )


@router.post("/dead/{session_id}", openapi_extra=WRITER, dependencies=[MUST_BE_READ])
async def requeue(session_id: SessionId, redis: OwnRedis, form: FormHere) -> Response:
    """Put dead letters back to where they came from."""
    name = form.get("letter", "")
    if not _NAME.fullmatch(name):
        raise Problem(422, "invalid_request", "say which dead letter is to be put back")
    moved = await put_back(redis, session_id, name)
    return RedirectResponse(f"{PAGE}/dead/{session_id}?done={moved}", 303)
