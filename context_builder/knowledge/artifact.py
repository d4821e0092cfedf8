"""An artifact is a document, a decision, a piece of code or the like; edges join artifacts and other nodes."""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final, NamedTuple

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticKnownError

from context_builder.clock import in_utc

MAX_CONTENT: Final = 2_000_000
"""Characters of an artifact's content."""

ENTITY_REFS: Final = ("session:", "person:", "task:")
"""Refs that begin so are known by their edges: where something was said or decided, by whom, and for what."""

_REF: Final = re.compile(r"[A-Za-z0-9:._/@-]{1,512}")
_SESSION: Final = r"[A-Za-z0-9._:@+~=,\-\u0080-\ud7ff\ue000-\U0010ffff]{1,128}"
_OF_A_SESSION: Final = re.compile(rf"session:{_SESSION}|(?:point|message):{_SESSION}/[0-9]{{1,18}}")
"""Refs made of a session's id, which may have letters of any script; SQL makes them in ``context_session_point``."""

_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")


def check_ref(ref: str) -> str:
    """Return the ref itself.

    Raises :class:`ValueError` unless it is 1 to 512 of ``A-Z a-z 0-9 : . _ / @ -``, or made of the id of a session.
    """
    if _REF.fullmatch(ref) is None and _OF_A_SESSION.fullmatch(ref) is None:
        raise ValueError("a ref is 1 to 512 characters of A-Z a-z 0-9 : . _ / @ -, or session: and a session's id")
    return ref


def _check_text(text: str) -> str:
    if _UNSTORABLE.search(text):
        raise ValueError("holds NUL or half of a surrogate pair")
    return text


def _check_number(value: object) -> object:
    if isinstance(value, bool | str):
        raise ValueError("should be a number")
    return value


def _written(time: datetime) -> str:
    """Return the time as packages have theirs."""
    return in_utc(time).isoformat(timespec="microseconds")


def at_most(count: int) -> BeforeValidator:
    """Return what refuses a longer array or object before any of its items is looked at."""

    def check(value: object) -> object:
        if isinstance(value, list | tuple | dict) and len(value) > count:
            bounds = {"field_type": "Value", "max_length": count, "actual_length": len(value)}
            raise PydanticKnownError("too_long", bounds)
        return value

    return BeforeValidator(check)


Ref = Annotated[str, AfterValidator(check_ref)]
Whole = Annotated[int, BeforeValidator(_check_number)]
Number = Annotated[float, Field(allow_inf_nan=False), BeforeValidator(_check_number)]
Text = Annotated[str, AfterValidator(_check_text)]
Name = Annotated[str, Field(max_length=200), AfterValidator(_check_text)]
Time = Annotated[
    datetime,
    PlainSerializer(_written, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]


class ArtifactKind(StrEnum):
    """Tells what an artifact is."""

    DOCUMENT = "document"
    CODE = "code"
    BLUEPRINT = "blueprint"
    PATTERN = "pattern"
    CONTRACT = "contract"
    DECISION = "decision"
    RUNTIME_SIGNAL = "runtime_signal"
    TASK = "task"


class Status(StrEnum):
    """Tells whether an artifact counts."""

    DRAFT = "draft"
    APPROVED = "approved"
    SUPERSEDED = "superseded"
    STALE = "stale"


class Sensitivity(StrEnum):
    """Tells how freely an artifact may be read; policies decide what follows from it."""

    PUBLIC = "public"
    INTERNAL = "internal"
    CONFIDENTIAL = "confidential"
    RESTRICTED = "restricted"


def stricter(one: str, other: str) -> str:
    """Return the stricter of two sensitivities; any other value counts as ``restricted``."""
    order = list(Sensitivity)
    places = [order.index(Sensitivity(name)) if name in order else len(order) - 1 for name in (one, other)]
    return order[max(places)].value


class CamelModel(BaseModel):
    """Is frozen, refuses unknown fields, and has its JSON names in camelCase."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, hide_input_in_errors=True
    )


class Artifact(CamelModel):
    """An artifact as its owner describes it; JSON names are camelCase. ``supersedes`` is the ref that it replaces."""

    kind: ArtifactKind
    title: Annotated[Text, Field(min_length=1, max_length=1_000)]
    content: Annotated[Text, Field(max_length=MAX_CONTENT)]
    project_id: Name = ""
    module_id: Name = ""
    status: Status = Status.DRAFT
    sensitivity: Sensitivity = Sensitivity.INTERNAL
    type: Name = ""
    tags: Annotated[tuple[Name, ...], Field(max_length=100), at_most(100)] = ()
    source: Annotated[Text, Field(max_length=2_000)] | None = None
    supersedes: Ref | None = None


class StoredArtifact(Artifact):
    """One version of an artifact as it is stored; times are ISO 8601 in UTC.

    ``current`` is false of a version that was replaced by a newer one; ``superseded_by`` is the ref of another artifact
    that replaces this one.
    """

    ref: Ref
    version: int
    current: bool
    created_at: str
    updated_at: str
    superseded_by: str | None = None


class Edge(CamelModel):
    """Joins two refs, which need not exist yet; a heavier edge leads nearer."""

    from_ref: Annotated[Ref, Field(alias="from")]
    to_ref: Annotated[Ref, Field(alias="to")]
    type: Annotated[Name, Field(min_length=1)]
    weight: Annotated[Number, Field(gt=0, le=1_000)] = 1.0


class Link(NamedTuple):
    """An edge as the store has it, which is not checked again: a neighbourhood has a thousand of them."""

    from_ref: str
    to_ref: str
    type: str = ""
    weight: float = 1.0


class Assessment(CamelModel):
    """What an assessor thinks of an artifact: ``quality`` from 0 to 1. The latest of each assessor counts."""

    ref: Ref
    quality: Annotated[Number, Field(ge=0, le=1)]
    assessor: Annotated[Name, Field(min_length=1)]
    reason: Annotated[Text, Field(max_length=2_000)] = ""
