"""What goes on beside a session: it is watched, and ends with it."""

from __future__ import annotations

import asyncio
from unittest.mock import Mock

import pytest

from context_builder.cli.run import beside, within_grace
from context_builder.errors import SessionOwned


class Work:
    """Goes on until it is cancelled."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.cancelled = False

    async def go_on(self) -> None:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise


async def failing() -> None:
    raise ZeroDivisionError


async def done() -> None:
    return None


async def test_what_goes_on_beside_is_cancelled_in_the_end() -> None:
    work = Work()
    async with beside(work.go_on(), done()):
        await work.begun.wait()
    assert work.cancelled


async def test_work_that_is_done_ends_nothing() -> None:
    async with beside(done()):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        at_the_end = True
    assert at_the_end


@pytest.mark.timeout(10)
async def test_work_that_fails_ends_the_session_in_order_and_is_told() -> None:
    session, other = Work(), Work()
    with pytest.raises(ZeroDivisionError):
        async with beside(failing(), other.go_on()):
            await within_grace(session.go_on(), Mock(told_to_stop=asyncio.Event()))
    assert (session.cancelled, other.cancelled) == (True, True)


async def test_what_the_session_raises_comes_through_as_it_is() -> None:
    with pytest.raises(SessionOwned, match="run by"):
        async with beside(Work().go_on()):
            raise SessionOwned("run by process 1")
