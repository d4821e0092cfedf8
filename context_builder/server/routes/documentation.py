"""The description of all calls (OpenAPI), for programs and, as a page, for people; nothing comes from another host."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse, JSONResponse, Response

from context_builder.server.problem import not_found

router = APIRouter(include_in_schema=False)

_ASSETS: Final = {
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui.css": "text/css",
    "favicon.png": "image/png",
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
            for operations in schema["paths"].values():
                for operation in operations.values():
                    operation["security"] = [{"bearer": []}]
                    _as_problems(operation["responses"])
            _without_default_objects(schema["components"]["schemas"])
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]


def _as_problems(responses: dict[str, Any]) -> None:
    """Describe errors as the problem documents that they are."""
    responses.pop("422", None)
    content = responses["default"]["content"]
    content["application/problem+json"] = content.pop("application/json")


def _without_default_objects(schemas: dict[str, Any]) -> None:
    """Leave out defaults that are objects, which programs that generate clients stumble over."""
    for described in schemas.values():
        for one in described.get("properties", {}).values():
            if isinstance(one.get("default"), dict):
                del one["default"]


@router.get("/openapi.json")
async def openapi(request: Request) -> JSONResponse:
    """Return the description."""
    return JSONResponse(request.app.openapi())


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
        raise not_found()
    return Response(_file(name), media_type=_ASSETS[name], headers={"Cache-Control": "max-age=86400"})


@cache
def _file(name: str) -> bytes:
    return (files("fastapi_offline") / "static" / name).read_bytes()
