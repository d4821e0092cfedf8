"""A look that fails, in whatever way, is told, and repeated."""

from __future__ import annotations

from itertools import count

from structlog.testing import capture_logs

from context_builder.server.shared_look import Changes, SharedLooks


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
    assert [one["event"] for one in logs] == ["watch.unread"] * 2


async def test_one_that_is_kept_is_known_to_who_comes_back() -> None:
    numbers = count(1)

    async def look() -> int:
        return next(numbers)

    looks = SharedLooks()
    for kept, first in ((True, 1), (True, 2), (False, 3)):
        async with looks.watching("state", look, 60.0, kept=kept) as shared:
            assert await shared.now() == first
            assert shared.number == first
    async with looks.watching("state", look, 60.0) as shared:
        assert (shared.seen, shared.number) == (None, 0)


def test_changes_are_told_since_any_that_is_remembered() -> None:
    changes: Changes[str] = Changes(most=3, most_bytes=10)
    for change in "abcd":
        changes.add(change, size=3)
    assert changes.since(4) == []
    assert changes.since(1) == ["b", "c", "d"]
    assert changes.since(0) is None  # what is over the most is forgotten
    changes.add("large", size=9)
    assert (changes.since(4), changes.since(3)) == (["large"], None)
    changes.begin_anew()
    assert (changes.number, changes.since(6), changes.since(5)) == (6, [], None)
