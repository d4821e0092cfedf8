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
from context_builder.server.access.caller import Caller, Role
from context_builder.server.asgi.callers import PAGE
from context_builder.server.guarded_route import ADMIN, READER, CallerHere, ServicesHere
from context_builder.server.page.choices import documents_to_choose, sessions_to_choose, with_chosen
from context_builder.server.page.form_page import form_page, values_of
from context_builder.server.page.graph_drawing import GraphDrawing, drawn
from context_builder.server.page.page_route import FormHere, page_router, pairs_of
from context_builder.server.problem import Problem, invalid, problem_of
from context_builder.server.routes.packages import LONGEST_OUTCOME_DAYS, OUTCOME_DAYS, Feedback, PackageId
from context_builder.server.services import Services
from context_builder.tracing import current_trace

KINDS: Final[Mapping[str, str]] = {
    "id": "Its own name",
    "task": "The task that it was for",
    "trace": "The trace of a call",
    "ref": "A source that is in it",
}
"""What packages are found by."""

_LISTED: Final[Mapping[str, Literal["task", "trace", "ref"]]] = {"task": "task", "trace": "trace", "ref": "ref"}
_LONGEST: Final = 512

PACKAGES_A_PAGE: Final = 50
RECENT: Final = 10
"""Newest packages that are listed."""

_OUTCOMES: Final = {"good": 1.0, "fair": 0.5, "bad": 0.0}

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
    by, value = asked.get("by", "id"), asked.get("value", "").strip()
    if by == "id" and value:
        return RedirectResponse(f"{PAGE}/packages/{quote(value, safe='')}", 303)
    kind = _LISTED.get(by)
    found, following = None, ""
    if kind is not None and value:
        before = asked.get("before", "")[:_LONGEST] or None
        is_admin = Role.ADMIN in caller.roles
        found = await services.packages.listing(
            caller.agent, kind, value[:_LONGEST], PACKAGES_A_PAGE + 1, before, of_any_source=is_admin
        )
        if len(found) > PACKAGES_A_PAGE:
            found = found[:PACKAGES_A_PAGE]
            following = urlencode({"by": by, "value": value, "before": found[-1].package_id})
    known = by if by in KINDS else "id"
    listed: dict[str, Any] = {"by": known, "value": value, "found": found, "next": following}
    return await _packages_page(request, services, caller, BuildForm(), **listed)


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
    sessions, documents, recent = await asyncio.gather(
        sessions_to_choose(services, caller),
        documents_to_choose(services, caller),
        services.packages.recent(caller.agent, RECENT, of_others=is_admin),
    )
    offered = {
        "sessions": with_chosen(sessions, *form.sessions),
        "documents": documents.documents,
        "projects": with_chosen(documents.projects, form.project),
        "recent": recent,
    }
    known = {"by": "id", "value": "", "found": None, "next": "", "sizes": None, "budget": 0}
    values = {"form": form, "kinds": KINDS, "is_admin": is_admin, **offered, **known, **shown}
    return form_page(request, "packages.html", title="Packages of context", problem=problem, **values)


@router.get("/packages/outcomes", openapi_extra=ADMIN)
async def outcomes_page(request: Request, services: ServicesHere, caller: CallerHere) -> Response:
    """Show how packages did, as feedback says, by what they were made of."""
    days, found, problem = request.query_params.get("days", str(OUTCOME_DAYS)).strip(), None, None
    if len(days) < 6 and days.isascii() and days.isdigit() and 0 < int(days) <= LONGEST_OUTCOME_DAYS:
        since = datetime.now(UTC) - timedelta(days=int(days))
        found = await services.packages.outcomes(caller.agent, since)
    else:
        problem = Problem(422, "invalid_request", f"the days are not a whole number from 1 to {LONGEST_OUTCOME_DAYS:,}")
    return form_page(
        request, "outcomes.html", title="How packages did", problem=problem, days=days, found=found, few=FEW
    )


@router.get("/packages/{package_id}", openapi_extra=READER)
async def package_page(package_id: PackageId, request: Request, services: ServicesHere, caller: CallerHere) -> Response:
    """Show a package as the caller may see it now, and how it came about where it is the caller's, or for an admin."""
    package, _ = await services.packages.get(caller.agent, package_id)
    audit = await _audit(services, caller, package_id)
    titles = {one.ref: one.title for one in package.sources}
    return form_page(
        request,
        "package.html",
        title="Package",
        package=package,
        audit=audit,
        intent=str(audit.request.get("intent", "")) if audit else "",
        drawing=_drawing(audit, titles) if audit else None,
        prompt=services.packages.prompt(package),
        titles=defaultdict(str, titles),
        few=FEW,
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
    return form_page(request, "audit.html", title="Audit", report=None)


@router.post("/audit", openapi_extra=ADMIN)
async def verify_audit(request: Request, services: ServicesHere, caller: CallerHere) -> Response:
    """Verify the chain of the caller's tenant."""
    report = await services.verify_audit(caller.tenant_id)
    return form_page(request, "audit.html", title="Audit", report=report)


async def _audit(services: Services, caller: Caller, package_id: str) -> PackageAudit | None:
    try:
        return await services.packages.audit(caller.agent, package_id, of_others=Role.ADMIN in caller.roles)
    except AuditOfAnother:
        return None


def _drawing(audit: PackageAudit, titles: Mapping[str, str]) -> GraphDrawing | None:
    graph = audit.revisions[-1].graph
    return drawn(graph, titles, frozenset(titles)) if graph else None
