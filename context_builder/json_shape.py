"""A shape says what JSON a stored value holds; the value is read whole, or as far as it has that shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Generic, TypeVar, cast

import orjson
from pydantic import Field, TypeAdapter
from pydantic_core import SchemaValidator, ValidationError, core_schema

T = TypeVar("T")

Number = Annotated[float, Field(allow_inf_nan=False)]
"""A finite number."""

Count = Annotated[int, Field(ge=0, lt=2**53)]
"""A whole number that every reader of JSON can hold."""

Time = Annotated[float, Field(ge=-62e9, le=253e9, allow_inf_nan=False)]
"""Epoch seconds of a moment that a calendar has."""


class Misshapen(ValueError):
    """Names the field of a stored value that is missing or of another type, and nothing of what it holds."""


def loads(raw: bytes | str) -> Any:
    """Return what a JSON text holds. Raises :class:`ValueError`, also where that is too deep to be written again."""
    value = orjson.loads(raw)
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        raise Misshapen("it: nested too deeply") from None
    return value


class Shape(Generic[T]):
    """Reads JSON objects of the shape that a typed dictionary describes; what it does not describe is left as it is."""

    def __init__(self, kind: type[T]) -> None:
        described = TypeAdapter(kind).core_schema
        self._fields = frozenset(_fields_in(described))
        self._whole = SchemaValidator(_open(described))
        self._known = SchemaValidator(_open(described, omits=True))

    def whole(self, raw: bytes) -> T:
        """Return the object. Raises :class:`Misshapen`."""
        try:
            return cast("T", self._whole.validate_json(orjson.dumps(loads(raw)), strict=True))
        except ValidationError as error:
            raise Misshapen(self._explained(error)) from None
        except orjson.JSONDecodeError:
            raise Misshapen("it: invalid JSON") from None

    def known(self, value: object) -> dict[str, Any]:
        """Return of an object what has the shape: a field of another type counts as missing, and so does an item of a
        list. Anything else is an empty object.
        """
        known: dict[str, Any] = self._known.validate_python(value if isinstance(value, dict) else {}, strict=True)
        return known

    def read(self, raw: bytes | str | None) -> dict[str, Any]:
        """Return what a JSON text holds as :meth:`known` does; an empty object for a text that is not JSON."""
        try:
            return self.known(loads(raw) if raw else {})
        except ValueError:
            return self.known({})

    def _explained(self, error: ValidationError) -> str:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = [str(part) for part in first["loc"] if isinstance(part, int) or part in self._fields]
        return f"{'.'.join(place) or 'it'}: {first['msg'][:1].lower()}{first['msg'][1:]}"


def _fields_in(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if schema.get("type") == "typed-dict":
            yield from schema["fields"]
        schema = [*schema.values()]
    if isinstance(schema, list):
        for inner in schema:
            yield from _fields_in(inner)


def _open(schema: Any, *, omits: bool = False) -> Any:
    """Return the schema of a typed dictionary that allows further fields, and ``omits`` what has another type."""

    def part(inner: Any) -> Any:
        opened = _open(inner, omits=omits)
        return core_schema.with_default_schema(opened, on_error="omit") if omits else opened

    opened = {**schema}
    if schema["type"] == "typed-dict":
        fields = {name: {**one, "schema": part(one["schema"])} for name, one in schema["fields"].items()}
        fields = {name: {**one, "required": False} for name, one in fields.items()} if omits else fields
        opened |= {"fields": fields, "extra_behavior": "allow"}
    elif schema["type"] == "definitions":
        opened["definitions"] = [_open(one, omits=omits) for one in schema["definitions"]]
        opened["schema"] = _open(schema["schema"], omits=omits)
    elif schema["type"] in {"list", "dict"}:
        opened |= {name: part(schema[name]) for name in ("items_schema", "values_schema") if name in schema}
    elif schema["type"] == "nullable":
        opened["schema"] = _open(schema["schema"], omits=omits)
    return opened
