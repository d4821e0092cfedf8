"""Each point of a summary is explained by exactly the messages behind it."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from redis.asyncio import Redis
from rich.console import Console

from context_builder.analysis.analyst import (
    Compact,
    CompactedPoint,
    CompactionRequest,
    CompactionResult,
    DraftPoint,
    PointKind,
    SummaryRequest,
    SummaryResult,
)
from context_builder.cli.explain import show
from context_builder.session.client import SessionClient
from context_builder.session.keys import Keys
from context_builder.session.summary.citation import ExplainedPoint
from context_builder.storage.redis import client_for
from context_builder.testing import StubAnalyst
from tests.services.redis_server import RedisServer
from tests.session.live import Live
from tests.session.saying import advised, quoting, spoken

pytestmark = pytest.mark.engines

KEYS = Keys("monday")
HOSTILE = "\x1b]0;owned\x07\x1b[2JKelp \x9b31mred\u202e [bold]not markup[/bold]"


class Pairs(StubAnalyst):
    """Makes one point of every two messages."""

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        said = request.messages
        pairs = [said[start : start + 2] for start in range(0, len(said), 2)]
        drafts = (DraftPoint(" and ".join(s.text for s in pair), quoting(*(s.id for s in pair))) for pair in pairs)
        return SummaryResult(tuple(drafts), self.name)

    @property
    def compact(self) -> Compact:
        return self._as_one

    async def _as_one(self, request: CompactionRequest) -> CompactionResult:
        """Make one sentence of all."""
        merges = tuple(point.id for point in request.points)
        return CompactionResult((CompactedPoint("Samples were weighed.", PointKind.CLAIM, merges),), self.name)


@pytest.fixture
async def live(redis: Redis, redis_server: RedisServer) -> AsyncIterator[Live]:
    async with client_for(redis_server.url) as client:
        running = Live(client, redis)
        running.analyst = Pairs()
        yield running
        for session in list(running.tasks):
            await running.stop(session)


def shown(points: Sequence[ExplainedPoint]) -> str:
    console = Console(file=io.StringIO(), width=100)
    show(points, console)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def text_of(number: int) -> str:
    return f"Sample {number} weighs {number * 7} grams"


async def converse(live: Live, *numbers: int, **rules: Any) -> None:
    """A run of the session in which this is said and summarized."""
    session = await live.start(**rules)
    summarized = (await live.state())["rolling_summary"]["message_count"] + len(numbers)
    await live.push(*(spoken(number, text_of(number)) for number in numbers))
    await live.shows(*numbers)
    live.clock.advance(121)
    await live.until("it is summarized", message_count=summarized)
    await live.stop(session)


async def sources_in_redis(redis: Redis) -> set[int]:
    return {int(field[2:]) for field in await redis.hkeys(KEYS.checkpoint) if field.startswith(b"s:")}


async def test_points_are_explained_after_they_were_rewritten_and_a_restart(live: Live, redis: Redis) -> None:
    for start in (1, 11, 21):
        await converse(live, *range(start, start + 10), summary_budget=150)
    points = await SessionClient(redis, "monday").points()
    assert any(len(point.point.ids) > 2 for point in points), "some were rewritten"
    for point in points:
        assert [source.id for source in point.sources] == list(point.point.ids)
        assert [source.text for source in point.sources] == [text_of(i) for i in point.point.ids]
    cited = {entry_id for point in points for entry_id in point.point.ids}
    assert await sources_in_redis(redis) == cited
    assert len(cited) == 30, "a sentence keeps the quotes of what it was made of"


async def test_a_point_is_shown_with_who_said_what_and_when(live: Live, redis: Redis) -> None:
    await converse(live, 1, 2, 3)
    output = shown(await SessionClient(redis, "monday").points())
    first, said, *_ = (line.rstrip() for line in output.splitlines())
    assert first.startswith("• Sample 1 weighs 7 grams and Sample 2 weighs 14 grams")
    assert said.startswith("    #1  Alice  2023-11-14T")
    assert said.endswith("Sample 1 weighs 7 grams")


async def test_what_people_say_draws_nothing_but_itself(live: Live, redis: Redis) -> None:
    session = await live.start()
    await live.push(spoken(1, HOSTILE, "Ma\x1b[2Jllory"), advised("x" * 600, None))
    await live.until("they came", received_messages=2)
    live.clock.advance(121)
    await live.until("it is summarized", message_count=2)
    await live.stop(session)
    points = await SessionClient(redis, "monday").points()
    output = shown(points)
    assert "Mallory" in output
    assert "Kelp red [bold]not markup[/bold]" in " ".join(output.split())
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(output)
    assert [(len(source.text), source.clipped) for source in points[0].sources][1] == (500, True)
    assert [source["speaker"] for source in points[0].wire()["sources"]] == ["Ma\x1b[2Jllory", "Consilience"]


async def test_words_behind_points_are_not_published_and_forgotten_with_the_session(live: Live, redis: Redis) -> None:
    await converse(live, 1, 2)
    assert "sources" not in (await live.state())["rolling_summary"]
    await redis.delete(KEYS.checkpoint)
    assert "nothing summarized yet" in shown(await SessionClient(redis, "monday").points())
