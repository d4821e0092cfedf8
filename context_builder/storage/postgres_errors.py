"""What PostgreSQL's errors mean for an archive: worth another try, or not, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from context_builder.errors import ArchiveDataRejected, ArchiveError, ArchiveRejected, ArchiveUnavailable
from context_builder.storage.sqlstate import INVALID_DATA, TRANSIENT

_MIGRATE: Final = "run `context-builder migrate`"
_ADVICE: Final = {
    "42P01": f"has no table context_summaries; {_MIGRATE}",
    "42703": f"lacks a column of context_summaries; {_MIGRATE}",
    "42P10": f"lacks the unique index of context_summaries; {_MIGRATE}",
    "42501": "does not allow this role to use context_summaries; grant it, or use the owner's",
    "28": "refuses this role or password; correct its URL",
    "3D000": "has no such database; create it or correct its URL",
}


def explained(archive: str, sqlstate: str, message: str) -> ArchiveError:
    """The error for an SQLSTATE.

    ``message`` is PostgreSQL's primary message; its detail is left out, because that quotes rows.
    """
    if sqlstate.startswith(TRANSIENT):
        return ArchiveUnavailable(f"{archive}: {message} ({sqlstate})")
    for prefix, advice in _ADVICE.items():
        if sqlstate.startswith(prefix):
            return ArchiveRejected(f"{archive} {advice}")
    refusal = ArchiveDataRejected if sqlstate.startswith(INVALID_DATA) else ArchiveRejected
    return refusal(f"{archive} refuses: {message} ({sqlstate})")


@contextmanager
def translated(archive: str) -> Iterator[None]:
    """Raise asyncpg's errors as the archive's."""
    import asyncpg

    try:
        yield
    except asyncpg.PostgresError as error:
        raise explained(archive, error.sqlstate or "XX000", error.args[0]) from None
    except asyncpg.exceptions.ClientConfigurationError:
        raise ArchiveRejected(f"{archive} cannot be used: its URL is not one of PostgreSQL") from None
    except TimeoutError:
        raise ArchiveUnavailable(f"{archive} does not answer in time") from None
    except (OSError, asyncpg.InterfaceError) as error:
        if isinstance(error, ValueError):  # the client cannot encode a value
            raise ArchiveDataRejected(f"{archive} cannot be sent this row: {type(error).__name__}") from None
        reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise ArchiveUnavailable(f"{archive} cannot be reached: {reason}") from None
