"""The documented JSON Schemas, and what is published held to them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

FOLDER = Path(__file__).parents[2] / "docs" / "reference" / "schemas"


@cache
def validator(name: str, *, closed: bool = False) -> Draft202012Validator:
    """The schema of that name; ``closed`` lets no field pass that it does not describe."""
    schema = json.loads((FOLDER / f"{name}.schema.json").read_text("utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(_closed(schema) if closed else schema)


def conforms(name: str, document: object) -> bool:
    """Whether the document is as the schema has it, every field being described; the failure says where not."""
    wrong = [f"{error.json_path}: {error.message}" for error in validator(name, closed=True).iter_errors(document)]
    assert not wrong, wrong
    return True


def _closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {key: _closed(part) for key, part in schema.items()}
    describes = "properties" in schema and isinstance(schema["properties"], dict) and "type" in schema
    return {**parts, "additionalProperties": False} if describes else parts
