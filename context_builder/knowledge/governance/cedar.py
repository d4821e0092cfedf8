"""Cedar evaluates policies, through ``cedarpy``; its import, its errors and its panics stay in this module."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from context_builder.errors import require_extra

if TYPE_CHECKING:
    import cedarpy

UNFINISHED: Final = "unexpected end of input"
"""What Cedar says of a text that would parse if it went on."""

_POLICY: Final = re.compile(r"policy(\d+)")
_ABOUT: Final = re.compile(r"for policy `policy\d+`, ")
_EVALUATION: Final = re.compile(r"error while evaluating policy `policy(\d+)`")
_ERROR_KINDS: Final = (
    "integer overflow",
    "does not have the attribute",
    "does not exist",
    "type error",
    "extension",
    "recursion limit",
)


class CedarFailure(Exception):
    """Raised when Cedar fails; the message contains none of Cedar's input."""


@dataclass(frozen=True, slots=True)
class EvaluationError:
    """Why a policy could not be evaluated: ``policy`` is its place in the set, None where it was not told.

    ``kind`` never quotes a value that was compared.
    """

    policy: int | None
    kind: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Cedar's answer to one request: whether it decided at all, and the places of the policies that decided."""

    allowed: bool
    decided: bool
    policies: tuple[int, ...]
    errors: tuple[EvaluationError, ...]


def require_cedar() -> None:
    """Raise :class:`~context_builder.errors.MissingExtra` unless Cedar is installed."""
    require_extra("server", "cedarpy", "governance of context packages")


def read_policies(text: str) -> cedarpy.PolicySet:
    """Return the parsed policies. Raises :class:`CedarFailure`."""
    import cedarpy

    with _translated():
        return cedarpy.PolicySet.from_str(text)


def parse_error(text: str) -> str | None:
    """Return what Cedar says against the first policy that does not parse, None if they all do."""
    import cedarpy

    with _translated():
        try:
            cedarpy.PolicySet.from_str(text)
        except ValueError as error:
            return str(error)
    return None


def schema_error(text: str) -> tuple[int, str] | None:
    """Return the place of the first policy that does not fit the schema and what is wrong with it, None if all do."""
    import cedarpy

    with _translated():
        result = cedarpy.validate_policies(text, _schema())
    if result.validation_passed:
        return None
    errors = ((_place(str(error.policy_id)), _ABOUT.sub("", str(error.error))) for error in result.errors)
    # Their order is not the text's, nor the same each time; one that quotes a name says more than one that does not.
    return min(errors, key=lambda one: (one[0], "`" not in one[1], one[1]), default=(0, "does not fit the schema"))


def read_entities(entities: str) -> cedarpy.Entities:
    """Return the entities, which are held to the schema, from JSON. Raises :class:`CedarFailure`."""
    import cedarpy

    with _translated():
        return cedarpy.Entities.from_json_str(entities, _schema())


def authorize(
    policies: cedarpy.PolicySet, entities: cedarpy.Entities, requests: list[dict[str, object]]
) -> list[Answer]:
    """Return the answers to the requests, in their order. Raises :class:`CedarFailure`.

    The requests are not held to the schema, which takes a third off the time: in one that does not fit, policies err.
    """
    import cedarpy

    with _translated():
        results = cedarpy.is_authorized_batch(requests, policies, entities)
        if len(results) != len(requests):
            raise CedarFailure("Cedar left requests without an answer")
        return [_answer(result) for result in results]


def _answer(result: cedarpy.AuthzResult) -> Answer:
    decision, diagnostics = result.decision.name, result.diagnostics
    return Answer(
        allowed=decision == "Allow",
        decided=decision in ("Allow", "Deny"),
        policies=tuple(sorted(map(_place, diagnostics.reasons))),
        errors=tuple(sorted(map(_evaluation_error, diagnostics.errors), key=lambda one: one.policy or 0)),
    )


def _evaluation_error(message: str) -> EvaluationError:
    found = _EVALUATION.match(message)
    kind = next((kind for kind in _ERROR_KINDS if kind in message), "it cannot be evaluated")
    return EvaluationError(int(found[1]) if found else None, kind)


def _place(policy_id: str) -> int:
    found = _POLICY.fullmatch(policy_id)
    if found is None:
        raise CedarFailure("Cedar named a policy that it was not given")
    return int(found[1])


@cache
def _schema() -> cedarpy.Schema:
    import cedarpy

    return cedarpy.Schema.from_str(files(__package__).joinpath("schema.cedarschema").read_text("utf-8"))


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except CedarFailure:
        raise
    except BaseException as error:
        # A panic of the library is not an Exception: PyO3 derives it from BaseException, as Python does Ctrl-C's.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise CedarFailure(f"Cedar failed with {type(error).__name__}") from None
