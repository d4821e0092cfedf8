"""These routes serve the OpenAPI description and a page that shows it; nothing is loaded from another host."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from importlib.resources import files
from typing import Any, Final

import orjson
from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse, Response

from context_builder.server.guarded_route import READER
from context_builder.server.problem import MEDIA_TYPE, Missing, not_found

router = APIRouter(include_in_schema=False)

_ASSETS: Final = {
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui.css": "text/css",
    "favicon.png": "image/png",
}


_PROBLEM: Final = {"$ref": "#/components/schemas/ProblemDocument"}
_TRACE_ID: Final = {"description": "The trace that the call belongs to.", "schema": {"type": "string"}}

_SCHEMAS: Final = "#/components/schemas/"

_IDEMPOTENCY_KEY: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Names the call for a day: made again under it, it is answered as it was, and not done again.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
}

_STATUSES: Final = {
    "401": "There is no credential, or it does not hold.",
    "403": "The role may not do this, or Host or Origin is foreign.",
    "404": "There is nothing here that the caller may see.",
    "413": "The body is too large.",
    "409": "It contradicts another call that is being answered, or came before; `detail` says which.",
    "412": "It is not, or no longer, what `If-Match` or `If-None-Match` says.",
    "415": "The body is not JSON.",
    "422": "The request does not fit; `detail` says where.",
    "429": "Too many calls of the caller or of the tenant; `Retry-After` says when to come again.",
    "503": "A store that this needs does not answer; try again.",
}

_JSON_RPC: Final = {"application/json": {"schema": {"type": "object"}}}
_AGENTS: Final[dict[str, Any]] = {
    "post": {
        "tags": ["agents"],
        "operationId": "call_agent_tools",
        "summary": "Call Agent Tools",
        "description": "Answer agents that speak the Model Context Protocol (JSON-RPC over streamable HTTP).",
        "requestBody": {"required": True, "content": _JSON_RPC},
        "responses": {
            "200": {"description": "The answer", "content": _JSON_RPC},
            "202": {"description": "A notification was taken in"},
            "default": {"description": "A problem document (RFC 9457)"},
        },
        **READER,
    }
}


def describe(app: FastAPI) -> None:
    """Make the app's description say how callers show who they are."""
    generated = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = generated()
            schemes = schema.setdefault("components", {}).setdefault("securitySchemes", {})
            schemes["bearer"] = {
                "type": "http",
                "scheme": "bearer",
                "description": "An API key, a JWT or the local token.",
            }
            schema["paths"]["/mcp"] = deepcopy(_AGENTS)
            for path, operations in schema["paths"].items():
                for method, operation in operations.items():
                    operation["x-repeats"] = method == "post" and path != "/mcp"
                    operation["security"] = [{"bearer": []}]
                    _describe_answers(path, operation)
            schemas = schema["components"]["schemas"]
            _without_default_objects(schemas)
            _open_answers(schema["paths"], schemas)
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]


def _describe_answers(path: str, operation: dict[str, Any]) -> None:
    """Describe errors as the problem documents that they are, by their statuses, and what every answer has."""
    described = operation["responses"]
    sends = "requestBody" in operation
    possible = {
        401: True,
        403: True,
        404: "{" in path,
        409: operation.get("x-repeats", False),
        412: "If-Match" in {one["name"] for one in operation.get("parameters", ())},
        413: sends,
        415: sends,
        422: True,
        429: True,
        503: True,
    }
    for status in (str(status) for status, is_possible in possible.items() if is_possible):
        described[status] = {"description": _STATUSES[status]}
    if "Idempotency-Key" not in {one["name"] for one in operation.get("parameters", ())} and operation.get("x-repeats"):
        operation.setdefault("parameters", []).append(_IDEMPOTENCY_KEY)
    operation.pop("x-repeats", None)
    for status, answer in described.items():
        if status == "default" or status >= "400":
            answer["content"] = {MEDIA_TYPE: {"schema": _PROBLEM}}
        answer.setdefault("headers", {})["X-Trace-Id"] = _TRACE_ID


def _open_answers(paths: dict[str, Any], schemas: dict[str, Any]) -> None:
    """Let answers have fields that are not described yet: only what is sent is held to what is known."""
    sent = _reached([one.get("requestBody") for operations in paths.values() for one in operations.values()], schemas)
    for name, described in schemas.items():
        if name not in sent and described.get("additionalProperties") is False:
            del described["additionalProperties"]


def _reached(found: Any, schemas: dict[str, Any]) -> set[str]:
    """Return the names of the schemas that a description leads to."""
    names: set[str] = set()
    waiting = [found]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            name = str(one.get("$ref", "")).removeprefix(_SCHEMAS)
            if name and name not in names and name in schemas:
                names.add(name)
                waiting.append(schemas[name])
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return names


def _without_default_objects(schemas: dict[str, Any]) -> None:
    """Leave out defaults that are objects, which programs that generate clients stumble over."""
    for described in schemas.values():
        for one in described.get("properties", {}).values():
            if isinstance(one.get("default"), dict):
                del one["default"]


@router.get("/openapi.json")
async def openapi(request: Request) -> Response:
    """Return the description; it is written as JSON once, since anybody may ask for it as often as they like."""
    state = request.app.state
    if not hasattr(state, "description"):
        state.description = orjson.dumps(request.app.openapi())
    return Response(state.description, media_type="application/json")


@router.get("/docs")
async def docs() -> HTMLResponse:
    """Return the page that shows the description."""
    return get_swagger_ui_html(
        openapi_url="/openapi.json",
        title="context_builder",
        swagger_js_url="/docs/swagger-ui-bundle.js",
        swagger_css_url="/docs/swagger-ui.css",
        swagger_favicon_url="/docs/favicon.png",
    )


@router.get("/docs/{name}")
async def asset(name: str) -> Response:
    """Return a file of the page."""
    if name not in _ASSETS:
        raise not_found(Missing.ADDRESS)
    return Response(_file(name), media_type=_ASSETS[name], headers={"Cache-Control": "max-age=86400"})


@cache
def _file(name: str) -> bytes:
    return (files("fastapi_offline") / "static" / name).read_bytes()
