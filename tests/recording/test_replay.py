"""A recording gives back every state that readers saw, without Redis and without a model."""

from __future__ import annotations

import orjson
import pytest

from context_builder.errors import AnalystUnavailable, RecordingError
from context_builder.recording.recording import Recording
from context_builder.recording.replay import rebuild, rebuild_each
from tests.recording.witness import Recorded
from tests.services.waiting import wait_until
from tests.session.saying import START, advised, spoken
from tests.zones import AUCKLAND, NEW_YORK, local_time

pytestmark = pytest.mark.engines


def rebuilt(live: Recorded) -> list[tuple[int, bytes]]:
    return [(state.revision, state.state) for _, state in rebuild_each(Recording(live.path))]


async def talk(live: Recorded) -> None:
    """Everything that changes a state: late and odd messages, a backlog, failures, merging, the assistant."""
    await live.push(spoken(1), spoken(2), spoken(4), spoken(3), advised(), spoken(None, "Hm", timestamp=7))
    await live.until("domains came", received_messages=6, current_keywords=["topic"])
    await live.redis.lpush("context_builder:monday:input", b"no message at all")
    await live.until("it is a dead letter", dead_letters=1)
    refused = (await live.state())["undeliverable"]["archive"] + 1
    await live.redis.rpush("context_builder:monday:outbox", b"no summary at all")
    await live.until("it is refused", undeliverable={"archive": refused, "memory": 0})
    live.analyst.failure = AnalystUnavailable("away")
    await live.say(*range(5, 30))
    await live.until("the rest waits outside", received_messages=31)
    await wait_until(lambda: live.analyst.summary_calls, "a summary was tried")
    live.clock.advance(3)


async def recover(live: Recorded) -> None:
    live.analyst.failure = None
    live.clock.advance(130)
    await live.push(advised("From Law", 1_759_394_000_999), spoken(31, confidence=0.5, metadata={"a": [1, None]}))
    await live.until("both came", highest_message_number=31)

    async def nothing_waits() -> bool:
        live.clock.advance(5)  # what failed a moment ago is tried again after a while
        return bool((await live.state())["pending_messages"] == 0)

    await wait_until(nothing_waits, "nothing waits", poll=0.1)
    live.clock.advance(130)
    await live.until("all is summarized", raw_recent_buffer=[])


async def test_every_published_state_is_rebuilt_byte_for_byte(live: Recorded) -> None:
    session = await live.start()
    await talk(live)
    await recover(live)
    await live.stop(session)
    await live.writer.close()
    assert len(live.states) > 10
    assert rebuilt(live) == live.states
    assert all(state.exact for _, state in rebuild_each(Recording(live.path)))


async def test_what_readers_saw_of_a_full_buffer_is_rebuilt_without_the_white_space_in_it(live: Recorded) -> None:
    session = await live.start()
    live.analyst.failure = AnalystUnavailable("away")
    seen: list[bytes] = []
    for number in range(1, 20):
        await live.say(number)
        await live.until("it came", highest_message_number=number)
        seen.append(await live.redis.get("context_builder:monday:state") or b"")
    await live.stop(session)
    await live.writer.close()
    states = dict(rebuilt(live))
    assert [states[orjson.loads(state)["revision"]] for state in seen] == [
        orjson.dumps(orjson.loads(state)) for state in seen
    ]
    assert any(b"[  " in state for state in seen)


async def test_a_restart_goes_on_in_the_same_file(live: Recorded) -> None:
    first = await live.start()
    await talk(live)
    await live.stop(first)
    live.clock.advance(1)
    second = await live.start()
    await recover(live)
    second.end()
    await live.gone(second)
    await live.writer.close()
    assert rebuilt(live) == live.states
    assert [line.event for line in Recording(live.path).lines()].count("begin") == 2
    assert orjson.loads(rebuild(Recording(live.path)).state)["ended_at"] is not None


async def test_a_recording_is_replayed_in_another_time_zone_as_it_was(live: Recorded) -> None:
    with local_time(NEW_YORK):
        first = await live.start()
        await talk(live)
        await live.stop(first)
        second = await live.start()
        await recover(live)
        await live.stop(second)
        await live.writer.close()
    with local_time(AUCKLAND):
        assert rebuilt(live) == live.states


async def test_a_recording_may_begin_in_the_middle_of_a_session(live: Recorded) -> None:
    unrecorded = await live.start()
    await talk(live)
    await live.stop(unrecorded)
    await live.writer.close()
    live.path.unlink()
    live.witnesses.clear()
    session = await live.start()
    await recover(live)
    await live.stop(session)
    await live.writer.close()
    assert rebuilt(live) == live.states


async def test_what_a_killed_process_left_half_written_does_not_matter(live: Recorded) -> None:
    first = await live.start()
    await talk(live)
    live.die(first)
    await live.writer.close()
    with live.path.open("ab") as file:
        file.write(b'{"event":"received","run":"')
    second = await live.start(takeover=True)
    await recover(live)
    await live.stop(second)
    await live.writer.close()
    assert rebuilt(live)[-1] == live.states[-1]
    assert all(state.exact for _, state in rebuild_each(Recording(live.path)))


async def test_an_instant_gives_what_was_published_last_by_then(live: Recorded) -> None:
    session = await live.start()
    await live.say(1)
    await live.until("it came", highest_message_number=1)
    live.clock.advance(60)
    await live.say(2)
    await live.until("it came", highest_message_number=2)
    await live.stop(session)
    await live.writer.close()
    recording = Recording(live.path)
    for at, highest in ((START, 1), (START + 59, 1), (START + 60, 2), (float("inf"), 2)):
        assert orjson.loads(rebuild(recording, at).state)["highest_message_number"] == highest
    with pytest.raises(RecordingError, match="nothing was published yet; it begins at 2023-"):
        rebuild(recording, START - 1)
