"""These routes store, return and delete a tenant's Cedar policies."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from fastapi import Path, Request, Response

from context_builder.errors import PolicyError
from context_builder.knowledge.artifact import CamelModel
from context_builder.server.guarded_route import ADMIN, READER, CallerHere, ServicesHere, guarded_router
from context_builder.server.problem import Missing, Problem, not_found

router = guarded_router("policies")

PolicyName = Annotated[str, Path(max_length=128)]

_CEDAR: Final = {"requestBody": {"required": True, "content": {"text/plain": {"schema": {"type": "string"}}}}}
_PLAIN: Final[dict[str, Any]] = {"content": {"text/plain": {"schema": {"type": "string"}}}}

_QUOTED: Final = re.compile(r"`[^`]*`|\"[^\"]*\"|'[^']*'")
"""What Cedar repeats of a text; the caller has the line and column of it."""

_WEIGHT: Final = re.compile(r"q=([01](?:\.\d{0,3})?)")


class PolicyAnswer(CamelModel):
    """Names the policies that hold from now on."""

    name: str
    policy_version: str


class PolicyText(PolicyAnswer):
    """A policy text."""

    text: str


@router.put("/knowledge/policies/{name}", openapi_extra={**ADMIN, **_CEDAR})
async def put_policy(name: PolicyName, request: Request, services: ServicesHere, caller: CallerHere) -> PolicyAnswer:
    """Store a policy text; it decides from the next call on."""
    try:
        text = (await request.body()).decode()
    except UnicodeDecodeError:
        raise Problem(422, "invalid_policy", "the text is not UTF-8", line=1, column=1) from None
    try:
        policy_set = await services.policies.put(caller.tenant_id, name, text)
    except PolicyError as error:
        detail = f"line {error.line}, column {error.column}: {_QUOTED.sub('…', error.message)}"
        raise Problem(422, "invalid_policy", detail, line=error.line, column=error.column) from None
    return PolicyAnswer(name=name, policy_version=policy_set.version)


@router.get("/knowledge/policies/{name}", openapi_extra=READER, response_model=PolicyText, responses={200: _PLAIN})
async def get_policy(name: PolicyName, request: Request, services: ServicesHere, caller: CallerHere) -> Response:
    """Return a policy text; alone, where ``Accept`` prefers ``text/plain``."""
    governance = await services.policies.governance(caller.tenant_id)
    if (text := governance.texts.get(name)) is None:
        raise not_found(Missing.POLICY)
    version = governance.policy_set.version
    headers = {"X-Policy-Version": version, "Vary": "Accept"}
    if _prefers_text(",".join(request.headers.getlist("accept"))):
        return Response(text, headers=headers, media_type="text/plain")
    answer = PolicyText(name=name, text=text, policy_version=version)
    return Response(answer.model_dump_json(by_alias=True), headers=headers, media_type="application/json")


@router.delete("/knowledge/policies/{name}", openapi_extra=ADMIN)
async def delete_policy(name: PolicyName, services: ServicesHere, caller: CallerHere) -> PolicyAnswer:
    """Delete a policy text. A tenant without any policy sees nothing."""
    if not await services.policies.delete(caller.tenant_id, name):
        raise not_found(Missing.POLICY)
    governance = await services.policies.governance(caller.tenant_id)
    return PolicyAnswer(name=name, policy_version=governance.policy_set.version)


def _prefers_text(accept: str) -> bool:
    """Return whether an ``Accept`` header names ``text/plain``, and above JSON."""
    weights: dict[str, float] = {}
    for one in accept.lower().split(","):
        kind, *parameters = (part.strip() for part in one.split(";"))
        weights[kind] = next((float(found[1]) for found in map(_WEIGHT.fullmatch, parameters) if found), 1.0)
    json = next((weights[kind] for kind in ("application/json", "application/*", "*/*") if kind in weights), 0.0)
    return weights.get("text/plain", 0.0) > json
