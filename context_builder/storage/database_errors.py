"""Errors of the database tell whether to try again, and what to do: unavailable, refused, or refused for its data.

Archive, memory and knowledge are kept in one database; each raises errors of its own kind for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from context_builder.errors import (
    ArchiveDataRejected,
    ArchiveRejected,
    ArchiveUnavailable,
    ContextBuilderError,
    KnowledgeDataRejected,
    KnowledgeRejected,
    KnowledgeUnavailable,
    MemoryDataRejected,
    MemoryRejected,
    MemoryUnavailable,
)


@dataclass(frozen=True, slots=True)
class DatabaseErrors:
    """Names the errors of what is kept in the database.

    ``advice`` says for an SQLSTATE or its beginning what is wrong with a database and what to do about it,
    ``api_advice`` the same for codes that only Supabase's API answers with, or that mean something else there.
    """

    unavailable: type[ContextBuilderError]
    rejected: type[ContextBuilderError]
    data_rejected: type[ContextBuilderError]
    advice: Mapping[str, str]
    api_advice: Mapping[str, str]


_MIGRATE: Final = "run `context-builder migrate`"
_MIGRATE_PROJECT: Final = "run the SQL that `context-builder migrate` prints in Supabase's SQL editor"
_KEY_REFUSED: Final = "refuses SUPABASE_KEY; use the project's service key"
_DATABASE: Final = {
    "28": "refuses this role or password; correct its URL",
    "3D000": "has no such database; create it or correct its URL",
}
_API: Final = dict.fromkeys(("PGRST301", "PGRST302", "PGRST303", "401", "403"), _KEY_REFUSED)
ARCHIVE_ERRORS: Final = DatabaseErrors(
    ArchiveUnavailable,
    ArchiveRejected,
    ArchiveDataRejected,
    advice={
        "42P01": f"has no table context_summaries; {_MIGRATE}",
        "42703": f"lacks a column of context_summaries; {_MIGRATE}",
        "42P10": f"lacks the unique index of context_summaries; {_MIGRATE}",
        "42501": "does not allow this role to use context_summaries; grant it, or use the owner's",
        **_DATABASE,
    },
    api_advice={
        "PGRST205": f"has no table context_summaries; {_MIGRATE_PROJECT}",
        "42501": "does not let SUPABASE_KEY use context_summaries; use the project's service key",
        **_API,
    },
)


def _behind_functions(
    kept: str,
    tables: str,
    unavailable: type[ContextBuilderError],
    rejected: type[ContextBuilderError],
    data_rejected: type[ContextBuilderError],
) -> DatabaseErrors:
    """Return the errors of what is reached through SQL functions alone."""
    return DatabaseErrors(
        unavailable,
        rejected,
        data_rejected,
        advice={
            "42P01": f"has no {tables}; {_MIGRATE}",
            "42883": f"lacks the functions of {kept}; {_MIGRATE}",
            "42501": f"does not let this role use {kept}",
            **_DATABASE,
        },
        api_advice={"PGRST202": f"lacks the functions of {kept}; {_MIGRATE_PROJECT}", "42501": _KEY_REFUSED, **_API},
    )


MEMORY_ERRORS: Final = _behind_functions(
    "the memory", "table of memories", MemoryUnavailable, MemoryRejected, MemoryDataRejected
)
KNOWLEDGE_ERRORS: Final = _behind_functions(
    "knowledge", "tables of knowledge", KnowledgeUnavailable, KnowledgeRejected, KnowledgeDataRejected
)
