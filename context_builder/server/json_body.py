"""A body is read as JSON in bounded time: what would become a million values is refused before it is any."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import orjson
from fastapi._compat import ModelField
from fastapi.exceptions import RequestValidationError

from context_builder.server.problem import Problem

QUICK: Final = 65_536
"""Bytes that are read and validated in some milliseconds; more is left to a thread."""

MOST_VALUES: Final = 200_000
"""Values of a body, counted by what is between them. A list of 10,000 edges has a quarter of them."""

MOST_FIELDS: Final = 1_000
"""Fields of an object."""


async def read_json(body: bytes) -> Any:
    """Return the body's value. Raises :class:`Problem`."""
    return _read(body) if len(body) <= QUICK else await asyncio.to_thread(_read, body)


async def validated(body: bytes, field: ModelField) -> Any:
    """Return the body as the field has it. Raises :class:`Problem` and :class:`RequestValidationError`."""
    if len(body) <= QUICK:
        return _validated(body, field)
    return await asyncio.to_thread(_validated, body, field)


def _validated(body: bytes, field: ModelField) -> Any:
    found, errors = field.validate(_read(body), {}, loc=("body",))
    if errors:
        raise RequestValidationError(errors)
    return found


def _read(body: bytes) -> Any:
    if len(body) > QUICK and _has_too_many_values(body):
        raise _too_many(f"the body has more than {MOST_VALUES:,} values")
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _no_json(error) from None
    _check_objects(value)
    return value


def _no_json(error: orjson.JSONDecodeError) -> Problem:
    """Return the answer to what is no JSON, with the place; what stands there is not quoted."""
    place = f"line {error.lineno}, column {error.colno}"
    what = f"is not JSON in UTF-8: {place}"
    found = [{"at": "body", "problem": what}]
    return Problem(422, "invalid_request", f"body: {what}", errors=found, line=error.lineno, column=error.colno)


def _too_many(what: str) -> Problem:
    return Problem(422, "invalid_request", what, errors=[{"at": "body", "problem": what}])


def _has_too_many_values(body: bytes) -> bool:
    """Return whether more values follow each other outside of texts than :data:`MOST_VALUES`.

    Texts are skipped from one quotation mark to the next, as fast as memory is read.
    """
    count, strings, at = 0, 0, 0
    while count <= MOST_VALUES and strings <= 2 * MOST_VALUES:
        begin = body.find(b'"', at)
        end = len(body) if begin < 0 else begin
        count += sum(body.count(sign, at, end) for sign in (b",", b"[", b"{"))
        if begin < 0:
            return count > MOST_VALUES
        at = _end_of_text(body, begin + 1)
        strings += 1
    return True


def _end_of_text(body: bytes, at: int) -> int:
    """Return the place behind the quotation mark that ends a text: one with an even number of backslashes before it."""
    while (end := body.find(b'"', at)) >= 0:
        before = end - 1
        while before >= at and body[before] == 0x5C:  # a backslash
            before -= 1
        at = end + 1
        if (end - before) % 2:
            return at
    return len(body)


def _check_objects(value: Any) -> None:
    """Raise :class:`Problem` for an object with too many fields, each of which would be found wrong by itself."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            if len(one) > MOST_FIELDS:
                raise _too_many(f"an object has more than {MOST_FIELDS:,} fields")
            waiting += [inner for inner in one.values() if isinstance(inner, dict | list)]
        elif isinstance(one, list):
            waiting += [inner for inner in one if isinstance(inner, dict | list)]
