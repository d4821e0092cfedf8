"""Fields of JSON that somebody else wrote: each is what it must be, or an error says which is not."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from context_builder.transcript.source import Source

Object = Mapping[str, Any]

_DEEPEST: Final = 200
_PRINTED: Final = 2 * 2**20
"""Most characters of what Python printed, which takes long to read."""

_GUARD: Final = re.compile(r"^\s*(?:\)\]\}'?,?|(?:window\.|var |const )?[\w.]{1,80}\s*=(?=\s*[\[{]))\s*")
"""Stands before JSON that a page must not run as a script, or that a script is (of an archive of Twitter)."""

_BEGINS: Final = re.compile(
    r"\s*(?:\)\]\}'?,?\s*)?(?:(?://[^\n]*\n|/\*.{0,2000}?\*/)\s*){0,50}"
    r"(?:\{\s*(?:[\"'}]|//|/\*|\w+\s*:)|\[\s*(?:[{\]]|//|/\*))",
    re.DOTALL,
)
"""A label or a time may begin with a bracket, too; comments may stand before JSON."""

_EDITED: Final = re.compile(
    r" \((?:edited|bearbeitet|modifié|editado|modificato|bewerkt|redigerad|redigeret|redigert|edytowano|изменено|"
    r"編集済|編集済み|已编辑|已編輯|수정됨)\)$"
)

_DIGITS: Final = 300
"""Most digits of an integer: a longer one is not a floating-point number, and Python refuses to read some thousands."""


def parse(text: str | bytes) -> Any:
    """Return what a JSON text holds, also NaN, infinities and control characters, which Python's programs write, JSON5
    and comments, which people do.

    Raises :class:`ValueError` that says where it is not JSON.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        strict = error
    try:
        lenient = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        return json.loads(lenient, strict=False, parse_int=_integer)
    except RecursionError:
        raise ValueError("not JSON: nested too deeply") from None
    except ValueError:
        pass
    try:
        return _as_people_write(_GUARD.sub("", lenient, count=1))
    except ValueError:
        raise ValueError(f"not JSON: {strict}") from None


def is_json(text: str) -> bool:
    """Return whether a text begins as JSON does, or as people write it."""
    return bool(_BEGINS.match(text[:8000]))


def _as_people_write(text: str) -> Any:
    """Return what JSON5 or JSON with comments holds, or an object as Python prints it. Raises :class:`ValueError`."""
    import pyjson5

    try:
        return pyjson5.decode(text, maxdepth=_DEEPEST)
    except pyjson5.Json5Exception:
        pass
    if len(text) > _PRINTED or not text.lstrip().startswith(("{'", "[{'")):
        raise ValueError("not JSON")
    try:
        return ast.literal_eval(text.strip())
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(f"not what Python prints: {error}") from None


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= _DIGITS else digits


def objects(value: object, name: str) -> Sequence[Object]:
    """Return a list of objects. Raises :class:`ValueError` naming what is not one."""
    if not isinstance(value, list):
        raise ValueError(f"{name} is not a list")
    for place, one in enumerate(value):
        if not isinstance(one, dict):
            raise ValueError(f"{name}[{place}] is not an object")
    return value


def each_object(value: object, name: str, source: Source) -> Iterator[tuple[str, Object]]:
    """Yield the objects of a list with their places; others are noted. Raises :class:`ValueError` for no list."""
    if not isinstance(value, list):
        raise ValueError(f"{name} is not a list")
    for place, one in enumerate(value):
        if isinstance(one, dict):
            yield f"{name}[{place}]", one
        else:
            source.problem(f"{name}[{place}] is not an object")


def some_objects(value: object, most: int | None = None) -> list[dict[str, Any]]:
    """Return the objects in a list, or among its first ``most`` entries; none where it is not a list."""
    return [one for one in value[:most] if isinstance(one, dict)] if isinstance(value, list) else []


def first_object(value: object) -> Object:
    """Return the first object in a list, such as the likeliest alternative; an empty one where there is none."""
    return next((one for one in value if isinstance(one, dict)), {}) if isinstance(value, list) else {}


def inner(entry: Object, *keys: str) -> Object:
    """Return the object within an object; an empty one where there is none."""
    for key in keys:
        found = entry.get(key)
        entry = found if isinstance(found, dict) else {}
    return entry


def text(entry: Object, key: str, name: str) -> str:
    """Return a text with single blanks between its words. Raises :class:`ValueError`."""
    value = entry.get(key)
    if not isinstance(value, str):
        raise ValueError(f'{name} has no "{key}"')
    return plain(value)


def optional_text(entry: Object, *keys: str) -> str:
    """Return the first of the fields that is a text which says something, with single blanks; else nothing."""
    for key in keys:
        value = entry.get(key)
        if isinstance(value, str) and (words := plain(value)):
            return words
    return ""


def plain(value: str) -> str:
    """Return a text with single blanks between its words, which is Unicode that can be written."""
    return " ".join(value.replace("\0", " ").encode("utf-8", "replace").decode("utf-8").split())


def unedited(text: str) -> str:
    """Return a message without the remark of a chat program, at its end, that it was edited."""
    return _EDITED.sub("", text) if text.endswith(")") else text


_REACTED: Final = re.compile(r"\s*\(- [^()\n]{1,200}: \S{1,20}(?:, [^()\n]{1,200}: \S{1,20}){0,20} -\)\s*")


def is_reaction(line: str) -> bool:
    """Return whether a line tells how people reacted to the message above: ``(- Ida: 👍 -)`` (signal-export)."""
    return _REACTED.fullmatch(line) is not None


def number(entry: Object, key: str, name: str) -> float | None:
    """Return a finite number, also of a text that is one; None where there is none, or NaN or an infinity.

    Raises :class:`ValueError`.
    """
    value = entry.get(key)
    if value is None:
        return None
    try:
        found = math.nan if isinstance(value, bool | list | dict) else float(value)
    except OverflowError:
        return None
    except (TypeError, ValueError):
        raise ValueError(f'"{key}" of {name} is not a number') from None
    if isinstance(value, bool | list | dict):
        raise ValueError(f'"{key}" of {name} is not a number')
    return found if math.isfinite(found) else None


def seconds(entry: Object, key: str, name: str, source: Source, unit: float = 1.0) -> float | None:
    """Return a time that is given in units of so many seconds; None of what is not a number, which is noted."""
    try:
        found = number(entry, key, name)
    except ValueError as error:
        source.problem(error)
        return None
    return None if found is None else found * unit


def span(
    entry: Object, keys: tuple[str, str], name: str, source: Source, unit: float = 1.0
) -> tuple[float | None, float | None]:
    """Return when something begins and when it ends, from two fields in units of so many seconds."""
    start, end = (seconds(entry, key, name, source, unit) for key in keys)
    return start, end
