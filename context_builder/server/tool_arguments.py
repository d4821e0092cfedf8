"""Arguments of a tool as models write them, and as its schema describes them.

Many clients send an argument that is not given as ``null``, ``"null"`` or ``""``, numbers as text, and lists as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson
from pydantic.alias_generators import to_camel

_NOT_GIVEN: Final = frozenset({"", "null", "none", "nil", "undefined"})
_BETWEEN: Final = re.compile(r"[,;\s]+")


def given_arguments(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are given, of the kinds that the tool's JSON ``schema`` describes.

    What cannot be read so stays as it is, for the tool to refuse by name.
    """
    properties: Mapping[str, Any] = schema.get("properties", {})
    required = schema.get("required", ())
    given: dict[str, Any] = {}
    for written, value in arguments.items():
        name = written if written in properties else to_camel(written)
        if name in required or not _is_absent(value):
            given[name] = _as_described(value, properties.get(name, {}))
    return given


def _is_absent(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.strip().casefold() in _NOT_GIVEN)


def _as_described(value: Any, described: Mapping[str, Any]) -> Any:
    kinds = {each.get("type") for each in (described, *described.get("anyOf", ()))}
    if "array" in kinds:
        return [_text_of(item) for item in _items_of(value) if not _is_absent(item)]
    if "string" in kinds:
        return _text_of(value)
    return value.strip() if isinstance(value, str) else value


def _text_of(value: Any) -> Any:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _items_of(value: Any) -> Iterator[Any]:
    """Yield the items of a list, of one in JSON, or of names in a text with commas or blanks between them."""
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            value = [name.strip("'\"") for name in _BETWEEN.split(value.strip("[]() \n"))]
    yield from value if isinstance(value, list | tuple) else [value]
