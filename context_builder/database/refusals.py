"""What the codes of PostgreSQL and of Supabase's API mean: whether to try again, and what to do.

SQLSTATEs and their classes (first two characters): https://www.postgresql.org/docs/current/errcodes-appendix.html
Codes of the API: https://docs.postgrest.org/en/stable/references/errors.html
"""

from __future__ import annotations

import re
from typing import Final

from context_builder.errors import DatabaseError, DatabaseRejected, DatabaseUnavailable, DataRejected

_SQLSTATE_LENGTH: Final = 5
"""Length of an SQLSTATE, which distinguishes it from an HTTP status."""

_TRANSIENT: Final = (
    "08",  # connection
    "25006",  # read-only after a failover
    "40",  # rolled back: deadlock, serialization
    "53",  # out of memory, disk or connections
    "55P03",  # lock not available
    "57",  # operator intervention: shutdown, starting up, cancelled
    "58",  # system error
    "XX",  # internal error
)
"""Beginnings of SQLSTATEs after which the same statement may succeed later."""

_INVALID_DATA: Final = (
    "22",  # data exception: out of range, unreadable, too long
    "23",  # a constraint of the table
    "44",  # the check option of a view
    "54",  # beyond a limit of the program, such as the size of an index entry
)
"""Beginnings of SQLSTATEs after which only a statement with other data may succeed."""

_MIGRATE: Final = "run `context-builder migrate`"
_ADVICE: Final = {
    "42P01": f"has no {{asked}}; {_MIGRATE}",
    "42883": f"has no {{asked}}; {_MIGRATE}",
    "42703": f"lacks a column of {{asked}}; {_MIGRATE}",
    "42P10": f"lacks the unique index of {{asked}}; {_MIGRATE}",
    "42501": "does not allow this role to use {asked}; grant it, or use the owner's",
    "28": "refuses this role or password; correct its URL",
    "3D000": "has no such database; create it or correct its URL",
}
"""Faults of a database and what to do about them, by SQLSTATE or its beginning."""

_MIGRATE_PROJECT: Final = "run the SQL that `context-builder migrate` prints in Supabase's SQL editor"
_KEY_REFUSED: Final = "refuses SUPABASE_KEY; use the project's service key"
_API_ADVICE: Final = {
    "PGRST202": f"has no {{asked}}; {_MIGRATE_PROJECT}",
    "PGRST205": f"has no {{asked}}; {_MIGRATE_PROJECT}",
    "42501": "does not let SUPABASE_KEY use {asked}; use the project's service key",
    **dict.fromkeys(("PGRST301", "PGRST302", "PGRST303", "401", "403"), _KEY_REFUSED),
}
"""Faults and advice for codes that only the API answers with, or that mean something else there."""

# The API cannot reach its database, asks to slow down, or something before it failed.
_API_TRANSIENT: Final = re.compile(r"PGRST00\d|408|429|5\d\d")
# The API, or something before it, takes no such body: malformed, too large.
_API_INVALID_DATA: Final = ("PGRST102", "400", "413", "422")


def explained(database: str, asked: str, sqlstate: str) -> DatabaseError:
    """Return the error for an SQLSTATE of ``database``, which was asked for ``asked``.

    PostgreSQL's message is left out: it may quote the row, as a trigger's does.
    """
    if sqlstate.startswith(_TRANSIENT):
        return DatabaseUnavailable(f"{database} cannot answer now (SQLSTATE {sqlstate})")
    for prefix, advice in _ADVICE.items():
        if sqlstate.startswith(prefix):
            return DatabaseRejected(f"{database} {advice.format(asked=asked)}")
    refusal = DataRejected if sqlstate.startswith(_INVALID_DATA) else DatabaseRejected
    return refusal(f"{database} refuses it (SQLSTATE {sqlstate}); its own log says why")


def explained_by_api(project: str, asked: str, code: str) -> DatabaseError:
    """Return the error for what Supabase's API answers: a code of its own, an SQLSTATE, or an HTTP status."""
    code = code if re.fullmatch(r"[A-Za-z0-9_]{1,32}", code) else "no code"
    if _API_TRANSIENT.fullmatch(code):
        return DatabaseUnavailable(f"{project} cannot answer now ({code})")
    if code in _API_ADVICE:
        return DatabaseRejected(f"{project} {_API_ADVICE[code].format(asked=asked)}")
    if code in _API_INVALID_DATA:
        return DataRejected(f"{project} refuses it ({code}); its own log says why")
    if len(code) == _SQLSTATE_LENGTH:
        return explained(project, asked, code)
    return DatabaseRejected(f"{project} refuses it ({code}); its own log says why")
