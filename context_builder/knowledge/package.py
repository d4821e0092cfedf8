"""A context package is a ranked bundle of sources that fits its budget, with how it came about."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal, Self

from context_builder.knowledge.artifact import CamelModel, Ref

CoverageState = Literal["ok", "off", "unavailable", "degraded"]


class Projection(StrEnum):
    """Tells how much of a source is shown."""

    FULL = "full"
    REDACTED = "redacted"
    SUMMARISED = "summarised"
    REDACTED_AND_SUMMARISED = "redacted+summarised"

    @classmethod
    def of(cls, *, redacted: bool, summarised: bool) -> Projection:
        if redacted:
            return cls.REDACTED_AND_SUMMARISED if summarised else cls.REDACTED
        return cls.SUMMARISED if summarised else cls.FULL

    @property
    def is_redacted(self) -> bool:
        return self in (self.REDACTED, self.REDACTED_AND_SUMMARISED)

    @property
    def is_summarised(self) -> bool:
        return self in (self.SUMMARISED, self.REDACTED_AND_SUMMARISED)


class ContextSource(CamelModel):
    """One source as it is shown. ``tokens`` are those of its entry as rendered; ``link`` leads to the whole source.

    ``heading`` is the line that it stands under, beside its number.
    """

    ref: Ref
    version: int
    kind: str
    title: str
    heading: str
    origins: tuple[str, ...]
    pinned: bool
    projection: Projection
    content: str
    tokens: int
    score: float
    signals: dict[str, float]
    sensitivity: str
    status: str
    link: str
    cites: tuple[str, ...] = ()
    superseded_by: str | None = None


class Coverage(CamelModel):
    """Tells which sources answered; ``reduced`` unless all that were asked did, wholly."""

    graph: CoverageState
    semantic: CoverageState
    metadata: CoverageState
    cache: CoverageState
    reduced: bool
    reasons: tuple[str, ...] = ()


class ContextPackage(CamelModel):
    """A package as it is served; times are ISO 8601 in UTC.

    ``tokens_used`` is the exact count of what it renders to. ``view`` names for whom, and by which policies, it was
    decided what is in it: whoever has the same view may be served it as it is.
    """

    context_package_id: str
    context_build_request_id: str
    revision: int
    task_id: str
    trace_id: str
    tenant_id: str
    graph_projection_id: str
    policy_decision_id: str
    policy_version: str
    created_at: str
    expires_at: str
    ttl_seconds: int
    token_budget: int
    tokens_used: int
    token_encoding: str
    sources: tuple[ContextSource, ...]
    coverage: Coverage
    denied: int
    redacted: int
    excluded: int
    rebuilt: bool = False
    stale: tuple[str, ...] = ()
    view: str = ""

    @cached_property
    def json_text(self) -> str:
        """The package's JSON as it is served, recorded and cached, which is made once."""
        return self.model_dump_json(by_alias=True)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("json_text", None)  # which pydantic copies, too
        return copied
