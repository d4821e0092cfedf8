"""A context build request states an agent's intent, the scope to search, and the token budget."""

from __future__ import annotations

from operator import not_
from typing import Annotated, Final

from pydantic import Field

from context_builder.knowledge.artifact import CamelModel, Name, Number, Ref, Text, Time, Whole, at_most

MAX_BUDGET: Final = 2_000_000
"""Tokens."""

LONGEST_INTENT: Final = 8_000
"""Characters."""

LONGEST_TTL: Final = 86_400
"""Seconds that a package can be served from the cache."""

DEFAULT_TTL: Final = 1_800
"""Seconds for which a package is kept in the cache."""

Limit = Annotated[Whole, Field(ge=1, le=1_000)]


class RequestedBy(CamelModel):
    """The agent that a request names. It is recorded but grants no rights; the credential names the caller."""

    id: Name = ""
    role: Name = ""


class Scope(CamelModel):
    """The scope to search: a project, a module to search first, and sessions.

    With a project, only its artifacts, the sessions that are named, and what the graph links to either are searched;
    without one, every artifact, and every session unless some are named.
    """

    project_id: Name = ""
    module_id: Name = ""
    session_ids: Annotated[tuple[Name, ...], Field(max_length=100), at_most(100)] = ()


class GraphRetrieval(CamelModel):
    """Asks for nodes within ``depth`` edges; no edge types means every type."""

    depth: Annotated[Whole, Field(ge=1, le=4)] = 2
    edge_types: Annotated[tuple[Name, ...], Field(max_length=100), at_most(100)] = ()
    limit: Limit = 50


class SemanticRetrieval(CamelModel):
    """Asks for nodes at least as similar to the intent as ``threshold`` (0 to 1); no kinds means every kind.

    Of what was said, ``speaker``, a whole name, ``since`` and ``until``, which itself is later, let through only some.
    """

    top_k: Limit = 50
    threshold: Annotated[Number, Field(ge=0, le=1)] = 0.0
    kinds: Annotated[tuple[Name, ...], Field(max_length=100), at_most(100)] = ()
    speaker: Annotated[Name, Field(exclude_if=not_)] = ""  # a request is written as it was sent
    since: Annotated[Time | None, Field(exclude_if=not_)] = None
    until: Annotated[Time | None, Field(exclude_if=not_)] = None


class MetadataRetrieval(CamelModel):
    """Asks for artifacts with these fields; without fields, for those of the scope. All ``tags`` must match."""

    types: Annotated[tuple[Name, ...], Field(max_length=100), at_most(100)] = ()
    statuses: Annotated[tuple[Name, ...], Field(max_length=100), at_most(100)] = ()
    modules: Annotated[tuple[Name, ...], Field(max_length=100), at_most(100)] = ()
    tags: Annotated[tuple[Name, ...], Field(max_length=100), at_most(100)] = ()
    limit: Limit = 50


class Retrieval(CamelModel):
    """The query for each source; a source that is null is not asked, and one that is left out gets its defaults."""

    graph: GraphRetrieval | None = GraphRetrieval()
    semantic: SemanticRetrieval | None = SemanticRetrieval()
    metadata: MetadataRetrieval | None = MetadataRetrieval()


class ContextBuildRequest(CamelModel):
    """A request as it was sent. ``token_budget`` is the most tokens of the prompt that the package renders to;
    ``ttl_seconds`` how long the package is cached; ``pinned`` are refs that are always in it.
    """

    intent: Annotated[Text, Field(min_length=1, max_length=LONGEST_INTENT)]
    token_budget: Annotated[Whole, Field(ge=1, le=MAX_BUDGET)]
    ttl_seconds: Annotated[Whole, Field(ge=1, le=LONGEST_TTL)] = DEFAULT_TTL
    task_id: Name = ""
    agent: RequestedBy = RequestedBy()
    scope: Scope = Scope()
    retrieval: Retrieval = Retrieval()
    pinned: Annotated[tuple[Ref, ...], Field(max_length=100), at_most(100)] = ()
    model: Name = ""
