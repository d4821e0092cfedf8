"""These routes build, return, rate and explain context packages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal

from fastapi import Header, Path, Query, Response
from pydantic import Field

from context_builder.concurrency import beside_loop
from context_builder.knowledge.artifact import CamelModel, Number, Ref, Text, Time, at_most
from context_builder.knowledge.audit import PackageAudit
from context_builder.knowledge.outcomes import Outcomes
from context_builder.knowledge.package import ContextPackage
from context_builder.knowledge.request import ContextBuildRequest
from context_builder.server.access.caller import Role
from context_builder.server.guarded_route import ADMIN, READER, CallerHere, ServicesHere, as_json, guarded_router
from context_builder.server.problem import Problem
from context_builder.tracing import current_trace

router = guarded_router("packages")

OUTCOME_DAYS: Final = 90
LONGEST_OUTCOME_DAYS: Final = 3_650
"""Days of feedback that outcomes are made of, unless a call says how many, and at most."""

_MOST_RATED: Final = 1_000

_PINNED_OVER_BUDGET: Final[dict[int | str, dict[str, Any]]] = {
    409: {"description": "Even the shortest projections of all pinned sources, of these `sizes`, exceed the budget."}
}
_AS_PROMPT: Final = {
    "content": {"text/plain": {"schema": {"type": "string"}}},
    "headers": {"X-Context-Cache": {"schema": {"type": "string", "enum": ["hit", "rebuilt"]}}},
}

PackageId = Annotated[str, Path(max_length=100, description="The package's id, such as cpk_01J….")]
Share = Annotated[Number, Field(ge=0, le=1)]


class PackageEntryAnswer(CamelModel):
    """A package's id, and when it was first built."""

    context_package_id: str
    created_at: Time


class ListingAnswer(CamelModel):
    """Packages, newest first; ``next`` is the ``before`` of the next page, null on the last."""

    packages: list[PackageEntryAnswer]
    next: str | None


class Feedback(CamelModel):
    """Says how good a package was, and which sources helped how much, each 0 to 1."""

    outcome: Share | None = None
    helped: Annotated[dict[Ref, Share], Field(max_length=_MOST_RATED, default_factory=dict), at_most(_MOST_RATED)]
    note: Annotated[Text, Field(max_length=8_000)] = ""


@router.post(
    "/knowledge/context/build", openapi_extra=READER, response_model=ContextPackage, responses=_PINNED_OVER_BUDGET
)
async def build_package(
    request: ContextBuildRequest,
    services: ServicesHere,
    caller: CallerHere,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=255)] = None,
) -> Response:
    """Build the context of a task: what fits its intent, that the caller may see, within the token budget."""
    package = await services.packages.build(caller.agent, request, current_trace(), idempotency_key=idempotency_key)
    return await _answer(package)


async def _answer(package: ContextPackage, headers: Mapping[str, str] | None = None) -> Response:
    text = await beside_loop(lambda: package.json_text)
    return Response(text, headers=headers, media_type="application/json")


@router.get("/knowledge/context", openapi_extra=READER)
async def list_packages(
    services: ServicesHere,
    caller: CallerHere,
    task_id: Annotated[str | None, Query(alias="taskId", max_length=200)] = None,
    trace_id: Annotated[str | None, Query(alias="traceId", max_length=64)] = None,
    ref: Annotated[str | None, Query(max_length=512)] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 50,
    before: Annotated[str | None, Query(max_length=100, description="Last id of the page before.")] = None,
) -> ListingAnswer:
    """List the packages that led to a task or to a trace, or that a source was in."""
    by: dict[Literal["task", "trace", "ref"], str | None] = {"task": task_id, "trace": trace_id, "ref": ref}
    asked = [(kind, value) for kind, value in by.items() if value is not None]
    if len(asked) != 1:
        raise Problem(422, "invalid_request", "query: one of taskId, traceId and ref is needed")
    ((kind, value),) = asked
    if before is not None and not await services.packages.knows(caller.agent, before):
        raise Problem(422, "invalid_request", "query.before: is no package that there is")
    is_admin = Role.ADMIN in caller.roles
    found = await services.packages.listing(caller.agent, kind, value, limit + 1, before, of_any_source=is_admin)
    page = [PackageEntryAnswer(context_package_id=one.package_id, created_at=one.created_at) for one in found[:limit]]
    return ListingAnswer(packages=page, next=page[-1].context_package_id if len(found) > limit else None)


@router.get(
    "/knowledge/context/{package_id}",
    openapi_extra=READER,
    response_model=ContextPackage,
    responses={200: _AS_PROMPT, **_PINNED_OVER_BUDGET},
)
async def get_package(
    package_id: PackageId,
    services: ServicesHere,
    caller: CallerHere,
    format: Annotated[Literal["json", "prompt"], Query(description="prompt: as text for a model.")] = "json",  # noqa: A002
) -> Response:
    """Return a package as the caller may see it now; one that expired is built again from its request."""
    package, cache = await services.packages.get(caller.agent, package_id)
    headers = {"X-Context-Cache": cache}
    if format == "prompt":
        return Response(await services.packages.prompt(package), headers=headers, media_type="text/plain")
    return await _answer(package, headers)


@router.post("/knowledge/context/{package_id}/feedback", openapi_extra=READER, status_code=204, response_class=Response)
async def rate_package(
    package_id: PackageId, feedback: Feedback, services: ServicesHere, caller: CallerHere
) -> Response:
    """Say what helped; of each caller the latest counts."""
    await services.packages.feedback(caller.agent, package_id, feedback.outcome, feedback.helped, feedback.note)
    return Response(status_code=204)


@router.get("/knowledge/outcomes", openapi_extra=ADMIN)
async def package_outcomes(
    services: ServicesHere,
    caller: CallerHere,
    days: Annotated[
        int, Query(ge=1, le=LONGEST_OUTCOME_DAYS, description="Days of feedback to include.")
    ] = OUTCOME_DAYS,
) -> Outcomes:
    """Tell how packages did, as feedback says: by size, policy, signal and source, with counts and 95 % intervals."""
    return await services.packages.outcomes(caller.agent, datetime.now(UTC) - timedelta(days=days))


@router.get("/knowledge/context/{package_id}/audit", openapi_extra=READER, response_model=PackageAudit)
async def audit_package(package_id: PackageId, services: ServicesHere, caller: CallerHere) -> Response:
    """Explain a package: the request, its revisions, the policy decision, and every candidate with its verdict."""
    audit = await services.packages.audit(caller.agent, package_id, of_others=Role.ADMIN in caller.roles)
    return await as_json(lambda: audit.model_dump(mode="json", by_alias=True))
