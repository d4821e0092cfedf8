"""Style sheets, scripts and the icon are read once, and served by name only."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final, NamedTuple

from fastapi import APIRouter, Request
from starlette.responses import Response

from context_builder.server.problem import Missing, not_found

router = APIRouter(include_in_schema=False)

_TYPES: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


class _File(NamedTuple):
    content: bytes
    media_type: str
    etag: str


@cache
def _files() -> dict[str, _File]:
    found = {}
    for one in (files("context_builder.server.page") / "static").iterdir():
        if (media_type := _TYPES.get(one.name.rpartition(".")[2])) is not None:
            content = one.read_bytes()
            found[one.name] = _File(content, media_type, f'W/"{sha256(content).hexdigest()[:32]}"')
    return found


@router.get("/static/{name}")
async def static_file(name: str, request: Request) -> Response:
    """Return a file; browsers ask again each time whether it is another one."""
    file = _files().get(name)
    if file is None:
        raise not_found(Missing.ADDRESS)
    headers = {"Cache-Control": "no-cache", "ETag": file.etag}
    if request.headers.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)
