"""Every error is a problem document (RFC 9457). What it says is ours: it quotes neither content nor secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from http import HTTPStatus
from traceback import extract_tb
from typing import Any, Final

import orjson
import structlog
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from context_builder.errors import (
    ArtifactChanged,
    AuditOfAnother,
    ContextBuilderError,
    DatabaseRejected,
    DatabaseUnavailable,
    DataRejected,
    FilterInvalid,
    IdempotencyClash,
    PackageUnknown,
    PinnedOverBudget,
    ProjectUnknown,
    RowDamaged,
    StoreError,
    StoreUnavailable,
    WrongKeyType,
)
from context_builder.tracing import TraceContext, current_trace

MEDIA_TYPE: Final = "application/problem+json"

log = structlog.get_logger(__name__)

SHOWN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")
_MOST_ERRORS: Final = 20

_UNPROCESSABLE: Final = 422
_TITLES: Final = {413: "Content Too Large", _UNPROCESSABLE: "Unprocessable Content"}
"""Of statuses whose names differ between versions of Python."""


class ProblemDocument(BaseModel):
    """Describes an error: ``type`` names its kind for programs, ``detail`` says what was wrong with this request."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
    traceId: str  # noqa: N815 (as it is called in the document)


class Problem(Exception):
    """Raised to answer with an error. ``kind`` names it for programs; ``members`` go into the document."""

    def __init__(
        self, status: int, kind: str, detail: str, *, headers: Mapping[str, str] | None = None, **members: Any
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail
        self.headers = dict(headers or {})
        self.members = members


class Missing(StrEnum):
    """Tells of what is asked for that it is not there, and where to look instead."""

    ADDRESS = "there is no such address; GET /docs lists those there are"
    ARTIFACT = "there is no such artifact, or you may not see it; `context-builder ingest` stores a folder's files"
    MESSAGE = "there is no such message in this session; GET /sessions/{id}/messages lists them"
    PACKAGE = "there is no such context package, or it is not yours; GET /knowledge/context lists yours"
    POLICY = "there is no policy text of that name; `context-builder policy list` names them"
    SESSION = "there is no such session, or you may not see it; GET /sessions lists those you may"


def not_found(what: Missing = Missing.SESSION) -> Problem:
    """Return the one answer for what is not there, what is another tenant's, and what may not be read."""
    return Problem(404, "not_found", what)


def problem_document(problem: Problem, trace: TraceContext) -> dict[str, Any]:
    """Return the document."""
    return {
        "type": f"urn:context-builder:{problem.kind}",
        "title": _TITLES.get(problem.status) or HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": problem.detail,
        "traceId": trace.trace_id,
        **problem.members,
    }


def problem_response(problem: Problem) -> Response:
    """Return the answer."""
    document = problem_document(problem, current_trace())
    return Response(orjson.dumps(document), problem.status, problem.headers, MEDIA_TYPE)


async def answer(_: Request, error: Exception) -> Response:
    """Answer what a route, the framework or a store raised."""
    return problem_response(answered(error))


def answered(error: Exception) -> Problem:
    """Return the answer; of what should not have happened, the log has kind and place: its text may quote people."""
    problem = as_problem(error)
    if problem.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        log.error("http.failed", kind=type(error).__name__, at=_raised_at(error))
    return problem


def _raised_at(error: Exception) -> str:
    """Return file and line where it was raised, and the last of ours before that."""
    frames = extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "context_builder" in frame.filename]
    named = dict.fromkeys(
        f"{one.filename.rpartition('context_builder/')[2]}:{one.lineno}" for one in (*ours[-1:], *frames[-1:])
    )
    return " ".join(named)


def as_problem(error: Exception) -> Problem:
    """Return the answer to what a route, the framework or a store raised."""
    match error:
        case Problem():
            return error
        case HTTPException():
            return _of_framework(error)
        case RequestValidationError():
            return invalid(error.errors())
        case ContextBuilderError():
            return problem_of(error)
        case _:
            return internal_error()


def _of_framework(error: HTTPException) -> Problem:
    """Return the answer to an unknown address, a method that is not for it, and the like."""
    if error.status_code == HTTPStatus.NOT_FOUND:
        return not_found(Missing.ADDRESS)
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        detail = "this address is not for that method"
        return Problem(error.status_code, "method_not_allowed", detail, headers=error.headers)
    return Problem(error.status_code, "refused", "the request cannot be used", headers=error.headers)


def invalid(errors: Sequence[Mapping[str, Any]]) -> Problem:
    """Return the answer to what pydantic found wrong, without the values."""
    found = [{"at": _place(one["loc"]), "problem": _wrong(one)} for one in errors[:_MOST_ERRORS]]
    first = f"{found[0]['at']}: {found[0]['problem']}" if found else "the request does not fit"
    return Problem(_UNPROCESSABLE, "invalid_request", first, errors=found)


def _place(location: Sequence[Any]) -> str:
    """Return where it is, such as ``body.retrieval.graph.depth``; what the caller named freely is not repeated."""
    named = (str(part).replace("-", "_") if location[0] == "header" else str(part) for part in location)
    shown = map(SHOWN_NAME.fullmatch, named)
    return ".".join(
        str(part) if isinstance(part, int) or is_shown else "?" for part, is_shown in zip(location, shown, strict=True)
    )


_WORDS: Final = {
    "json_invalid": "is not JSON in UTF-8",
    "model_attributes_type": "should be an object",
    "model_type": "should be an object",
    "dict_type": "should be an object",
    "tuple_type": "should be an array",
    "list_type": "should be an array",
    "int_parsing": "should be a whole number",
    "int_from_float": "should be a whole number",
    "int_type": "should be a whole number",
    "float_parsing": "should be a number",
    "bool_parsing": "should be true or false",
    "missing": "is required",
    "extra_forbidden": "is not known here",
}
"""What is wrong in JSON's words, by pydantic's, which are Python's."""


def _wrong(error: Mapping[str, Any]) -> str:
    if (words := _WORDS.get(error["type"])) is not None:
        return words
    if error["type"] in ("too_long", "too_short", "string_too_long", "string_too_short"):  # of texts and arrays alike
        bounds = error["ctx"]
        return f"is longer than {bounds['max_length']:,}" if "max_length" in bounds else "is empty"
    text = str(error["msg"]).removeprefix("Value error, ")
    return text[:1].lower() + text[1:]


_UNAVAILABLE: Final = (StoreUnavailable, DatabaseUnavailable)


def problem_of(error: ContextBuilderError) -> Problem:
    """Return the answer to an error of this package; its text names servers, which are not the caller's business."""
    if isinstance(error, _UNAVAILABLE) and not isinstance(error, WrongKeyType):  # which no patience mends
        detail = "a store that this needs does not answer; try again"
        return Problem(503, "unavailable", detail, headers={"Retry-After": "1"})
    if isinstance(error, PackageUnknown):
        return not_found(Missing.PACKAGE)
    if isinstance(error, ProjectUnknown):
        return Problem(404, "unknown_project", str(error))
    if isinstance(error, AuditOfAnother):
        return Problem(403, "forbidden", "audits of others need the role admin")
    if isinstance(error, PinnedOverBudget):  # also where a package is built again, of sources that have grown
        detail = "even the shortest projections of all pinned sources exceed the token budget"
        return Problem(409, "pinned_over_budget", detail, sizes=error.sizes, tokenBudget=error.limit)
    if isinstance(error, ArtifactChanged):
        return Problem(412, "changed", "it is not, or no longer, what If-Match or If-None-Match says")
    if isinstance(error, FilterInvalid):
        return Problem(_UNPROCESSABLE, "invalid_request", str(error))
    if isinstance(error, IdempotencyClash):
        return Problem(_UNPROCESSABLE, "idempotency_clash", str(error))
    if isinstance(error, DataRejected):
        detail = "the database cannot hold this, or it takes too long to part into passages; send less at once"
        return Problem(_UNPROCESSABLE, "refused_data", detail)
    if isinstance(error, RowDamaged):
        return Problem(503, "damaged", str(error))
    if isinstance(error, DatabaseRejected):
        detail = "the database does not let this server do its work; `context-builder doctor` there says what to do"
        return Problem(503, "refused", detail)
    if isinstance(error, StoreError):
        detail = (
            "Redis does not let this server do its work, or somebody else wrote into the keys of this session; "
            "`context-builder doctor` and `context-builder state` there say which"
        )
        return Problem(503, "refused", detail)
    return internal_error()


def internal_error() -> Problem:
    """Return the answer to what should not have happened."""
    return Problem(500, "internal_error", "something went wrong here; the log has it under the trace's id")
