"""A look that fails, in whatever way, is told, and repeated."""

from __future__ import annotations

from itertools import count

from structlog.testing import capture_logs

from context_builder.server.page.shared_look import SharedLooks


async def test_whatever_a_look_raises_the_next_one_comes() -> None:
    numbers = count(1)

    async def look() -> int:
        if (number := next(numbers)) < 3:
            raise KeyError("what somebody said")
        return number

    seen = []
    with capture_logs() as logs:
        async with SharedLooks().watching("sessions", look, 0.01) as shared:
            while shared.seen is None:
                await shared.changed.wait()
                seen.append((shared.seen, shared.failing))
    assert (seen[0], seen[-1]) == ((None, True), (3, False))
    assert [one["event"] for one in logs] == ["page.unread"] * 2
