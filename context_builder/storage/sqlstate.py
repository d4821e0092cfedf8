"""What PostgreSQL's error codes mean for whoever sent the statement.

Codes and classes (their first two characters): https://www.postgresql.org/docs/current/errcodes-appendix.html
"""

from __future__ import annotations

from typing import Final

SQLSTATE_LENGTH: Final = 5
"""By which a code is told from an HTTP status."""

TRANSIENT: Final = (
    "08",  # connection
    "25006",  # read-only after a failover
    "40",  # rolled back: deadlock, serialization
    "53",  # out of memory, disk or connections
    "55P03",  # lock not available
    "57",  # operator intervention: shutdown, starting up, cancelled
    "58",  # system error
    "XX",  # internal error
)
"""The same statement may succeed later."""

INVALID_DATA: Final = (
    "22",  # data exception: out of range, unreadable, too long
    "23",  # a constraint of the table
    "44",  # the check option of a view
    "54",  # beyond a limit of the program, such as the size of an index entry
)
"""The statement fails for what is in it, however often it is sent; one with other data may succeed."""
