"""This view builds, lists, explains and rates context packages, shows how they did, and verifies the audit."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, Self
from urllib.parse import quote, urlencode

from fastapi import Request, Response
from pydantic import ValidationError
from starlette.responses import RedirectResponse

from context_builder.errors import AuditOfAnother, PinnedOverBudget
from context_builder.knowledge.audit import PackageAudit
from context_builder.knowledge.request import ContextBuildRequest
from context_builder.knowledge.revision import RecentPackage
from context_builder.knowledge.view import SESSION
from context_builder.server.access.caller import Caller, Role
from context_builder.server.asgi.callers import PAGE
from context_builder.server.guarded_route import ADMIN, READER, CallerHere, ServicesHere
from context_builder.server.page.choices import documents_to_choose, names_of_keys, sessions_to_choose, with_chosen
from context_builder.server.page.page_route import FormHere, form_page, page_router, pairs_of, values_of
from context_builder.server.problem import Problem, invalid, problem_of
from context_builder.server.routes.packages import LONGEST_OUTCOME_DAYS, OUTCOME_DAYS, Feedback, PackageId
from context_builder.server.services import Services
from context_builder.tracing import current_trace

MOST: Final = 36
"""Nodes that are drawn, those nearest to what was asked for; all are in the list beside the drawing."""

_COLUMN: Final = 300
_ROW: Final = 34
_MARGIN: Final = 24
_LABEL: Final = 30
"""Characters of a label."""

_CHARACTER: Final = 7
"""About how wide a character of a label is, in pixels."""

_SWEEPS: Final = 4

_COLUMNS: Final = (("Documents", ("artifact",)), ("Points", ("point",)), ("Messages", ("message",)), ("Others", ()))


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A node and the middle of its sign. ``is_in`` tells whether the package holds it."""

    ref: str
    label: str
    title: str
    proximity: float
    is_in: bool
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class DrawnEdge:
    """An edge as the path of a line."""

    source: str
    target: str
    type: str
    path: str


@dataclass(frozen=True, slots=True)
class Heading:
    """Names a column."""

    text: str
    x: int


@dataclass(frozen=True, slots=True)
class GraphDrawing:
    """What is drawn; ``listed`` and ``links`` are all nodes and edges, ``left_out`` counts nodes not drawn.

    That something is of a session is not drawn: its sign says so.
    """

    width: int
    height: int
    headings: tuple[Heading, ...]
    nodes: tuple[DrawnNode, ...]
    edges: tuple[DrawnEdge, ...]
    listed: tuple[DrawnNode, ...]
    links: tuple[DrawnEdge, ...]

    @property
    def left_out(self) -> int:
        return len(self.listed) - len(self.nodes)


def drawn(graph: Mapping[str, Any], titles: Mapping[str, str], held: frozenset[str]) -> GraphDrawing:
    """Return the drawing of a recorded graph. ``titles`` are known titles by ref, ``held`` what is in the package."""
    near = {str(one["ref"]): float(one["proximity"]) for one in graph.get("nodes", ())}
    edges = [(str(one["from"]), str(one["to"]), str(one["type"])) for one in graph.get("edges", ())]
    ordered = sorted(near, key=lambda ref: (ref not in held, -near[ref], ref))
    chosen = ordered[:MOST]
    columns = [[ref for ref in chosen if _column(ref) == place] for place in range(len(_COLUMNS))]
    present = [place for place, refs in enumerate(columns) if refs]
    _untangle([columns[place] for place in present], edges)
    places = {
        ref: (_MARGIN + 10 + at * _COLUMN, _MARGIN + 30 + row * _ROW)
        for at, place in enumerate(present)
        for row, ref in enumerate(columns[place])
    }

    def node(ref: str) -> DrawnNode:
        x, y = places.get(ref, (0, 0))
        return DrawnNode(ref, labels[ref], titles.get(ref, ""), near[ref], ref in held, x, y)

    labels = {ref: _short(titles.get(ref, "") or ref) for ref in near}
    links = [DrawnEdge(one, other, kind, _path(places, labels, one, other)) for one, other, kind in edges]
    rows = max((len(columns[place]) for place in present), default=0)
    return GraphDrawing(
        width=2 * _MARGIN + _COLUMN * max(1, len(present)),
        height=2 * _MARGIN + 30 + _ROW * max(1, rows),
        headings=tuple(Heading(_COLUMNS[place][0], _MARGIN + at * _COLUMN) for at, place in enumerate(present)),
        nodes=tuple(map(node, chosen)),
        edges=tuple(one for one in links if one.path and not one.target.startswith(SESSION)),
        listed=tuple(map(node, ordered)),
        links=tuple(links),
    )


def _column(ref: str) -> int:
    kind = ref.partition(":")[0]
    return next((place for place, (_, kinds) in enumerate(_COLUMNS) if kind in kinds), len(_COLUMNS) - 1)


def _untangle(columns: Sequence[list[str]], edges: Sequence[tuple[str, str, str]]) -> None:
    """Sort each column by the mean place of what its nodes are linked with (Sugiyama, Tagawa and Toda 1981)."""
    linked: dict[str, list[str]] = {}
    for one, other, _ in edges:
        linked.setdefault(one, []).append(other)
        linked.setdefault(other, []).append(one)
    for _ in range(_SWEEPS):
        for column in columns:
            at = {ref: row / max(1, len(other)) for other in columns for row, ref in enumerate(other)}
            wanted = {ref: _mean([at[one] for one in linked.get(ref, ()) if one in at], at[ref]) for ref in column}
            column[:] = [ref for _, ref in sorted((wanted[ref], ref) for ref in column)]


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _path(places: Mapping[str, tuple[int, int]], labels: Mapping[str, str], one: str, other: str) -> str:
    """Return the line between two nodes: an arc to the left within a column, else from label to sign."""
    if one not in places or other not in places or one == other:
        return ""
    (x, y), (to_x, to_y) = places[one], places[other]
    if x == to_x:
        bend = min(26, 8 + abs(to_y - y) // 4)
        return f"M{x - 8} {y}C{x - bend} {y} {x - bend} {to_y} {to_x - 8} {to_y}"
    if x > to_x:
        (x, y), (to_x, to_y), one = (to_x, to_y), (x, y), other
    begin = min(x + _COLUMN - 60, x + 18 + _CHARACTER * len(labels[one]))
    return f"M{begin} {y}C{begin + 40} {y} {to_x - 44} {to_y} {to_x - 9} {to_y}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LABEL else f"{line[: _LABEL - 1]}…"


KINDS: Final[Mapping[str, str]] = {
    "any": "Anything",
    "id": "Its id",
    "task": "The task it was for",
    "trace": "The trace of a call",
    "ref": "A source in it",
}
"""What packages are found by."""

_LISTED: Final[Mapping[str, Literal["task", "trace", "ref"]]] = {"task": "task", "trace": "trace", "ref": "ref"}
_LONGEST: Final = 512

SEARCHED: Final = 1000
"""Newest packages among which words are looked for."""

PACKAGES_A_PAGE: Final = 50
RECENT: Final = 25
"""Newest packages that are listed."""

_OUTCOMES: Final = {"good": 1.0, "fair": 0.5, "bad": 0.0}

SPANS: Final = ("7", "30", "90", "365")
"""Days of feedback that are offered."""

UNFOLDED: Final = 6
"""Sources of a package that are shown on a narrow screen; the others behind a tap."""

FEW: Final = 15
"""Candidates, or sources of rated packages, that are shown at once; the others behind a click."""


@dataclass(frozen=True, slots=True)
class BuildForm:
    """The fields of a build as they were sent."""

    intent: str = ""
    budget: str = "4000"
    project: str = ""
    task: str = ""
    others: str = ""
    sessions: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()

    @classmethod
    def read(cls, sent: Sequence[tuple[str, str]]) -> Self:
        """Return the form of these fields, in which those of ticked boxes come as often as there are any."""
        said = {name: value.strip() for name, value in sent}
        texts = {name: said.get(name, "") for name in ("intent", "budget", "project", "task", "others")}
        sessions = tuple(value for name, value in sent if name == "sessions")
        return cls(**texts, sessions=sessions, pinned=tuple(value for name, value in sent if name == "pinned"))

    def request(self) -> ContextBuildRequest:
        """Return what is asked for. Raises a :class:`Problem` that says what is wrong with it."""
        if not (self.budget.isascii() and self.budget.isdigit() and len(self.budget) < 10):
            raise Problem(422, "invalid_request", "the tokens are not a whole number")
        fields = {
            "intent": self.intent,
            "token_budget": int(self.budget),
            "task_id": self.task,
            "scope": {"project_id": self.project, "session_ids": self.sessions},
            "pinned": [*self.pinned, *self.others.split()],
        }
        try:
            return ContextBuildRequest.model_validate(fields)
        except ValidationError as error:
            raise invalid(error.errors()) from None


router = page_router()


@router.get("/packages", openapi_extra=READER)
async def packages_page(request: Request, services: ServicesHere, caller: CallerHere) -> Response:
    """Show the form of a new package, and those that were looked for."""
    asked = request.query_params
    by, value = asked.get("by", "any"), asked.get("value", "").replace("\0", "").strip()
    if by == "id" and value:
        return RedirectResponse(f"{PAGE}/packages/{quote(value, safe='')}", 303)
    kind = _LISTED.get(by)
    listed: dict[str, Any] = {"by": by if by in KINDS else "any", "value": value}
    if value:
        before = asked.get("before", "")[:_LONGEST] or None
        if kind is not None:
            found = await _found(services, caller, kind, value[:_LONGEST], before)
        else:
            found = await _found_by_words(services, caller, value[:_LONGEST], before)
        if len(found) > PACKAGES_A_PAGE:
            found = found[:PACKAGES_A_PAGE]
            listed["next"] = urlencode({"by": by, "value": value, "before": found[-1].package_id})
        listed["found"] = found
    return await _packages_page(
        request, services, caller, BuildForm(project=asked.get("project", "")[:_LONGEST]), **listed
    )


async def _found(
    services: Services, caller: Caller, by: Literal["task", "trace", "ref"], value: str, before: str | None
) -> list[RecentPackage]:
    """Return packages, each described where the caller asked for it or is an admin."""
    is_admin = Role.ADMIN in caller.roles
    most = PACKAGES_A_PAGE + 1
    found = await services.packages.listing(caller.agent, by, value, most, before, of_any_source=is_admin)
    ids = [one.package_id for one in found]
    known = {
        one.package_id: one for one in await services.packages.recent(caller.agent, most, of_others=is_admin, among=ids)
    }
    return [known.get(one.package_id) or RecentPackage(one.package_id, one.created_at) for one in found]


async def _found_by_words(services: Services, caller: Caller, value: str, before: str | None) -> list[RecentPackage]:
    """Return packages that hold a source of this ref, and of the newest those that every word fits: their intent, task,
    project, id, or who asked for them."""
    recent, names, of_source = await asyncio.gather(
        services.packages.recent(caller.agent, SEARCHED, of_others=Role.ADMIN in caller.roles),
        names_of_keys(services, caller.tenant_id),
        _found(services, caller, "ref", value, before),
    )
    words = value.casefold().split()

    def fits(one: RecentPackage) -> bool:
        asked_by = names.get(one.caller, one.caller)
        told = " ".join((one.intent, one.task_id, one.project, one.package_id, asked_by)).casefold()
        return all(word in told for word in words)

    found = {one.package_id: one for one in of_source}
    found |= {one.package_id: one for one in recent if fits(one) and (before is None or one.package_id < before)}
    return sorted(found.values(), key=lambda one: one.package_id, reverse=True)


@router.post("/packages", openapi_extra=READER)
async def build_package(request: Request, services: ServicesHere, caller: CallerHere) -> Response:
    """Build a package, and go on to it."""
    form = BuildForm.read(await pairs_of(request))
    try:
        built = await services.packages.build(caller.agent, form.request(), current_trace())
    except Problem as problem:
        return await _packages_page(request, services, caller, form, problem)
    except PinnedOverBudget as error:
        sizes = {"sizes": error.sizes, "budget": error.limit}
        return await _packages_page(request, services, caller, form, problem_of(error), **sizes)
    return RedirectResponse(f"{PAGE}/packages/{built.context_package_id}", 303)


async def _packages_page(
    request: Request,
    services: Services,
    caller: Caller,
    form: BuildForm,
    problem: Problem | None = None,
    **shown: Any,
) -> Response:
    is_admin = Role.ADMIN in caller.roles
    sessions, documents, recent, callers = await asyncio.gather(
        sessions_to_choose(services, caller),
        documents_to_choose(services, caller),
        services.packages.recent(caller.agent, RECENT, of_others=is_admin),
        names_of_keys(services, caller.tenant_id),  # shown to admins alone
    )
    offered = {
        "sessions": with_chosen(sessions, *form.sessions),
        "documents": documents.documents,
        "projects": with_chosen(documents.projects, form.project),
        "recent": recent,
        "callers": callers,
    }
    known = {"by": "any", "value": "", "found": None, "next": "", "sizes": None, "budget": 0}
    values = {"form": form, "kinds": KINDS, "is_admin": is_admin, **offered, **known, **shown}
    return await form_page(request, "packages.html", title="Packages of context", problem=problem, **values)


@router.get("/packages/outcomes", openapi_extra=ADMIN)
async def outcomes_page(request: Request, services: ServicesHere, caller: CallerHere) -> Response:
    """Show how packages did, as feedback says, by what they were made of."""
    days, found, problem = request.query_params.get("days", str(OUTCOME_DAYS)).strip(), None, None
    if len(days) < 6 and days.isascii() and days.isdigit() and 0 < int(days) <= LONGEST_OUTCOME_DAYS:
        since = datetime.now(UTC) - timedelta(days=int(days))
        found = await services.packages.outcomes(caller.agent, since)
    else:
        problem = Problem(422, "invalid_request", f"the days are not a whole number from 1 to {LONGEST_OUTCOME_DAYS:,}")
    refs = [one.name for one in found.by_source[:FEW]] if found else []
    return await form_page(
        request,
        "outcomes.html",
        title="How packages did",
        problem=problem,
        days=days,
        offered=with_chosen(SPANS, days if found else ""),
        found=found,
        titles=defaultdict(str, await services.packages.viewer.titles(caller.agent, refs, "")),
        few=FEW,
    )


@router.get("/packages/{package_id}", openapi_extra=READER)
async def package_page(package_id: PackageId, request: Request, services: ServicesHere, caller: CallerHere) -> Response:
    """Show a package as the caller may see it now, and how it came about where it is the caller's, or for an admin."""
    package, _ = await services.packages.get(caller.agent, package_id)
    audit = await _audit(services, caller, package_id)
    intent = str(audit.request.get("intent", "")) if audit else ""
    held = {one.ref: one.title for one in package.sources}
    titles = await services.packages.viewer.titles(caller.agent, _refs(audit), intent) | held if audit else held
    return await form_page(
        request,
        "package.html",
        title="Package",
        package=package,
        audit=audit,
        intent=intent,
        drawing=_drawing(audit, titles, frozenset(held)) if audit else None,
        prompt=await services.packages.prompt(package),
        titles=defaultdict(str, titles),
        callers=await names_of_keys(services, caller.tenant_id) if audit else {},
        few=FEW,
        unfolded=UNFOLDED,
        noted="noted" in request.query_params,
    )


@router.post("/packages/{package_id}/feedback", openapi_extra=READER)
async def rate_package(
    package_id: PackageId, request: Request, sent: FormHere, services: ServicesHere, caller: CallerHere
) -> Response:
    """Note what helped; of each caller the latest counts."""
    fields = {
        "outcome": _OUTCOMES.get(sent.get("outcome", "")),
        "helped": dict.fromkeys(await values_of(request, "helped"), 1.0),
        "note": sent.get("note", ""),
    }
    try:
        said = Feedback.model_validate(fields)
    except ValidationError as error:
        raise invalid(error.errors()) from None
    await services.packages.feedback(caller.agent, package_id, said.outcome, said.helped, said.note)
    return RedirectResponse(f"{PAGE}/packages/{package_id}?noted", 303)


@router.get("/audit", openapi_extra=ADMIN)
async def audit_page(request: Request) -> Response:
    """Tell what the audit is, and offer to verify it."""
    return await form_page(request, "audit.html", title="Audit", report=None)


@router.post("/audit", openapi_extra=ADMIN)
async def verify_audit(request: Request, services: ServicesHere, caller: CallerHere) -> Response:
    """Verify the chain of the caller's tenant."""
    report = await services.verify_audit(caller.tenant_id)
    return await form_page(request, "audit.html", title="Audit", report=report)


async def _audit(services: Services, caller: Caller, package_id: str) -> PackageAudit | None:
    try:
        return await services.packages.audit(caller.agent, package_id, of_others=Role.ADMIN in caller.roles)
    except AuditOfAnother:
        return None


def _refs(audit: PackageAudit) -> list[str]:
    """Return what a package's candidates and its neighbourhood in the graph are called, each once."""
    near = (str(one["ref"]) for one in (audit.revisions[-1].graph or {}).get("nodes", ()))
    return [*dict.fromkeys((*(one.ref for one in audit.candidates), *near))]


def _drawing(audit: PackageAudit, titles: Mapping[str, str], held: frozenset[str]) -> GraphDrawing | None:
    graph = audit.revisions[-1].graph
    return drawn(graph, titles, held) if graph else None
