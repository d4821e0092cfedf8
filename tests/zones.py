"""Time zones to run in, as POSIX writes them: no time zone database is needed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

NEW_YORK = "EST5EDT,M3.2.0,M11.1.0"
KOLKATA = "IST-5:30"
AUCKLAND = "NZST-12NZDT,M9.5.0,M4.1.0/3"

ZONES = {"New York": NEW_YORK, "Kolkata": KOLKATA, "Auckland": AUCKLAND}


@contextmanager
def local_time(zone: str) -> Iterator[None]:
    """Local time is that of ``zone``, for the whole process."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = zone
    time.tzset()
    try:
        yield
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        time.tzset()
