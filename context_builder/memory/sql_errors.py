"""What PostgreSQL's errors mean for a memory store: worth another try, or not, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from context_builder.errors import MemoryDataRejected, MemoryRejected, MemoryStoreError, MemoryUnavailable
from context_builder.storage.sqlstate import INVALID_DATA, TRANSIENT

_MIGRATE: Final = "run `context-builder migrate`"
_ADVICE: Final = {
    "42P01": f"has no table of memories; {_MIGRATE}",
    "42883": f"lacks the functions of the memory; {_MIGRATE}",
    "42501": "does not let this role at these memories",
    "28": "refuses this role or password; correct its URL",
    "3D000": "has no such database; create it or correct its URL",
}


def explained(memory: str, sqlstate: str, message: str) -> MemoryStoreError:
    """The error for an SQLSTATE; PostgreSQL's detail is left out, because it quotes rows."""
    if sqlstate.startswith(TRANSIENT):
        return MemoryUnavailable(f"{memory}: {message} ({sqlstate})")
    for prefix, advice in _ADVICE.items():
        if sqlstate.startswith(prefix):
            return MemoryRejected(f"{memory} {advice}")
    refusal = MemoryDataRejected if sqlstate.startswith(INVALID_DATA) else MemoryRejected
    return refusal(f"{memory} refuses: {message} ({sqlstate})")


@contextmanager
def translated(memory: str) -> Iterator[None]:
    """Raise asyncpg's errors as the memory store's."""
    import asyncpg

    try:
        yield
    except asyncpg.PostgresError as error:
        raise explained(memory, error.sqlstate or "XX000", error.args[0]) from None
    except asyncpg.exceptions.ClientConfigurationError as error:
        raise MemoryRejected(f"{memory} cannot be used so: {type(error).__name__}") from None
    except TimeoutError:
        raise MemoryUnavailable(f"{memory} does not answer in time") from None
    except (OSError, asyncpg.InterfaceError) as error:
        if isinstance(error, ValueError):  # the client cannot encode a value
            raise MemoryDataRejected(f"{memory} cannot be sent this: {type(error).__name__}") from None
        reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise MemoryUnavailable(f"{memory} cannot be reached: {reason}") from None
