"""The tenant's Cedar policies."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Path, Request, Response

from context_builder.errors import PolicyError
from context_builder.knowledge.artifact import CamelModel
from context_builder.server.guarded_route import ADMIN, guarded_router
from context_builder.server.problem import Problem, not_found
from context_builder.server.services import CallerHere, ServicesHere

router = guarded_router("policies")

PolicyName = Annotated[str, Path(max_length=128)]

_CEDAR: Final = {"requestBody": {"required": True, "content": {"text/plain": {"schema": {"type": "string"}}}}}


class PolicyAnswer(CamelModel):
    """Names the policies that hold from now on."""

    name: str
    policy_version: str


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
        detail = f"line {error.line}, column {error.column}: {error.message}"
        raise Problem(422, "invalid_policy", detail, line=error.line, column=error.column) from None
    return PolicyAnswer(name=name, policy_version=policy_set.version)


@router.get("/knowledge/policies/{name}", openapi_extra=ADMIN, response_class=Response)
async def get_policy(name: PolicyName, services: ServicesHere, caller: CallerHere) -> Response:
    """Return a policy text."""
    governance = await services.policies.governance(caller.tenant_id)
    if (text := governance.texts.get(name)) is None:
        raise not_found()
    return Response(text, headers={"X-Policy-Version": governance.policy_set.version}, media_type="text/plain")


@router.delete("/knowledge/policies/{name}", openapi_extra=ADMIN)
async def delete_policy(name: PolicyName, services: ServicesHere, caller: CallerHere) -> PolicyAnswer:
    """Delete a policy text. A tenant without any policy sees nothing."""
    if not await services.policies.delete(caller.tenant_id, name):
        raise not_found()
    governance = await services.policies.governance(caller.tenant_id)
    return PolicyAnswer(name=name, policy_version=governance.policy_set.version)
