"""One session on a real Redis: what readers see, and when."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

import orjson
import pytest

from context_builder.analysis.analyst import AnalystMessage, KeywordResult
from context_builder.errors import AnalystUnavailable, DatabaseUnavailable
from context_builder.session.keys import Keys
from context_builder.testing import StubAnalyst
from context_builder.tokens import counter
from tests.services.waiting import wait_until
from tests.session.live import Live
from tests.session.saying import TEXT, advised, spoken

pytestmark = pytest.mark.engines


async def test_a_session_is_published_before_anybody_speaks(live: Live) -> None:
    await live.start()
    assert (await live.state())["raw_recent_buffer"] == []
    assert (await live.conversation_state())["silence"] is False


async def test_messages_that_waited_are_read_oldest_first(live: Live) -> None:
    await live.say(1, 2, 3)
    await live.start()
    await live.shows(1, 2, 3)
    assert await live.redis.llen(Keys("monday").input) == 0


async def test_a_message_is_published_before_any_model_call_for_it(live: Live) -> None:
    published: list[Any] = []

    class Looking(StubAnalyst):
        async def extract_keywords(self, messages: Sequence[AnalystMessage]) -> KeywordResult:
            published.append((await live.state())["raw_recent_buffer"])
            return await super().extract_keywords(messages)

    live.analyst = Looking()
    await live.start()
    await live.say(1)
    await wait_until(lambda: published, "the model is asked")
    assert [(entry["message_number"], entry["keywords"]) for entry in published[0]] == [(1, [])]


async def test_a_state_that_was_gone_is_published_before_any_model_call_too(live: Live) -> None:
    published: list[Any] = []

    class Looking(StubAnalyst):
        async def extract_keywords(self, messages: Sequence[AnalystMessage]) -> KeywordResult:
            published.append((await live.state()).get("received_messages"))
            return await super().extract_keywords(messages)

    live.analyst = Looking()
    await live.start(tick=60)
    await live.say(*range(1, 21))
    await live.until("all have been asked about", analyst={"keywords": "stub", "domains": "stub", "summary": None})
    await live.redis.delete(Keys("monday").state)
    published.clear()
    await live.say(21)
    await wait_until(lambda: published, "the model is asked")
    assert published == [21]


async def test_keywords_are_filled_in_afterwards_in_place(live: Live) -> None:
    await live.start()
    live.analyst.gate.clear()
    await live.say(1)
    (entry,) = (await live.shows(1))["raw_recent_buffer"]
    assert (entry["keywords"], entry["analyst"]) == ([], None)
    live.analyst.gate.set()
    state = await live.until("keywords came", analyst={"keywords": "stub", "domains": None, "summary": None})
    assert state["raw_recent_buffer"][0]["keywords"] == ["Helicase", "unwinds", "double", "helix"]


async def test_domains_come_with_the_fifth_message(live: Live) -> None:
    await live.start()
    await live.say(1, 2, 3, 4)
    await live.shows(1, 2, 3, 4)
    assert live.analyst.domain_calls == []
    await live.say(5)
    state = await live.until("domains are known", current_domains=["Biology / Life Sciences"])
    assert all(entry["domains"] == ["Biology / Life Sciences"] for entry in state["raw_recent_buffer"])
    assert (await live.conversation_state())["current_keywords"] == ["topic", "Biology / Life Sciences"]


async def test_domains_come_after_thirty_seconds_though_nobody_speaks_any_more(live: Live) -> None:
    await live.start()
    await live.say(1)
    await live.shows(1)
    live.clock.advance(30)
    await live.until("domains are known", messages_since_domain_inference=0)


async def test_the_assistants_responses_are_in_the_buffer_and_in_their_list(live: Live) -> None:
    await live.start()
    await live.push(spoken(1), advised(number=77))
    state = await live.shows(1, 77)
    (response,) = state["consilience_responses"]
    assert (response["metadata"], response["message_number"]) == ({"priority": "P0"}, 77)
    state = await live.until("keywords came", analyst={"keywords": "stub", "domains": None, "summary": None})
    assert state["raw_recent_buffer"][1]["keywords"] == ["Biology", "perspective"]
    assert state["messages_since_domain_inference"] == 2


async def test_silence_begins_within_a_tick_of_its_threshold(live: Live) -> None:
    await live.start()
    await live.say(1)
    await live.shows(1)
    live.clock.advance(3.99)
    await wait_until(lambda: _has_ticked(live), "the state is published after the jump")
    assert (await live.conversation_state())["silence"] is False
    live.clock.advance(0.02)
    await wait_until(lambda: _silent(live), "silence is published")
    await live.say(2)
    await live.shows(1, 2)
    assert (await live.conversation_state())["silence"] is False


async def _has_ticked(live: Live) -> Any:
    return (await live.conversation_state())["time_since_last_message"] >= 3.99


async def _silent(live: Live) -> Any:
    return (await live.conversation_state())["silence"]


async def test_an_idle_conversation_is_summarized_and_archived(live: Live) -> None:
    await live.start()
    await live.say(1, 2)
    await live.shows(1, 2)
    live.clock.advance(120)
    state = await live.until("the summary is there", message_count=2, covers_messages=[1, 2])
    assert state["raw_recent_buffer"] == []
    assert state["rolling_summary"]["text"] == f"Said:\n- Alice: {TEXT}\n- Alice: {TEXT}"
    await wait_until(lambda: live.archive.rows, "the summary is archived")
    assert live.archive.rows["monday", 1].summary_text == state["rolling_summary"]["text"]


async def test_messages_that_come_while_the_model_summarizes_stay(live: Live) -> None:
    await live.start()
    await live.say(1)
    await live.shows(1)
    live.analyst.gate.clear()
    live.clock.advance(120)
    await wait_until(lambda: live.analyst.summary_calls, "the model is asked")
    await live.say(2)
    await live.shows(1, 2)
    live.analyst.gate.set()
    await live.shows(2)


async def test_a_backlog_is_taken_in_at_once_and_summarized_in_parts(live: Live) -> None:
    live.analyst.gate.clear()
    await live.push(*(spoken(number) for number in range(1, 2001)))
    await live.start(buffer_max=50, summary_input=2500)
    state = await live.until("all are taken in", received_messages=2000, pending_messages=1950)
    assert [entry["message_number"] for entry in state["raw_recent_buffer"]] == list(range(1951, 2001))
    live.analyst.gate.set()
    await live.until("all that was pending is summarized", message_count=1950, pending_messages=0)
    live.clock.advance(120)
    await live.until("all are summarized", message_count=2000, covers_messages=[1, 2000])
    asked = [said.number for call in live.analyst.summary_calls for said in call.messages]
    assert asked == list(range(1, 2001))


async def test_a_listener_that_sends_its_whole_session_again_changes_nothing(live: Live) -> None:
    await live.start()
    await live.say(1, 2, 3)
    await live.shows(1, 2, 3)
    await live.say(1, 2, 3, 4)
    state = await live.shows(1, 2, 3, 4)
    assert state["received_messages"] == 4
    assert await live.redis.llen(Keys("monday").input) == 0


async def test_what_is_no_message_is_kept_aside_and_stops_nothing(live: Live) -> None:
    await live.start()
    await live.redis.lpush(Keys("monday").input, b"\xff\xfe", b'{"text": 42}', orjson.dumps(spoken(1)))
    state = await live.shows(1)
    assert state["dead_letters"] == 2
    letters = [orjson.loads(letter) for letter in await live.redis.lrange(Keys("monday").dead, 0, -1)]
    assert [letter["reason"] for letter in letters] == ["text is not a string", "not UTF-8"]
    assert letters[1]["raw"] == "//4="


async def test_a_failing_model_loses_nothing_and_is_asked_again(live: Live) -> None:
    await live.start()
    live.analyst.failure = AnalystUnavailable("the model is away")
    await live.say(1, 2, 3, 4, 5)
    await live.fails("keywords", "domains")
    live.clock.advance(120)
    await live.fails("summary")
    await live.shows(1, 2, 3, 4, 5)
    live.analyst.failure = None
    live.clock.advance(15)
    await live.until("it is all made up for", message_count=5, current_domains=["Biology / Life Sciences"])


async def test_a_model_that_fails_for_too_long_is_stood_in_for(live: Live) -> None:
    live.analyst.failure = AnalystUnavailable("the model is away")
    await live.start(pending_max=3)
    await live.say(1, 2, 3, 4)
    await live.shows(1, 2, 3, 4)
    live.clock.advance(120)
    await live.fails("summary")
    live.clock.advance(15)
    state = await live.until("the last resort answered", message_count=4, degraded_messages=4)
    assert state["analyst"]["summary"] == "last resort"


async def test_an_archive_that_is_away_gets_every_summary_in_order_later(live: Live) -> None:
    live.archive.failure = DatabaseUnavailable("the archive is away")
    session = await live.start()
    for number in (1, 2, 3):
        await live.say(number)
        await live.shows(number)
        live.clock.advance(120)
        await live.until("a summary is made", summary_seq=number)
    assert await live.redis.llen(Keys("monday").outbox) == 3
    assert live.archive.rows == {}
    await live.stop(session)  # which may be about to try others than the first, to find out whose fault it is
    live.archive.failure = None
    await live.start()
    await wait_until(lambda: len(live.archive.rows) == 3, "all are archived")
    assert [seq for _, seq in live.archive.rows] == [1, 2, 3]
    await wait_until(lambda: live.lacks(Keys("monday").outbox), "nothing waits any more")


async def test_a_session_refreshes_what_expires_though_nothing_happens(live: Live) -> None:
    await live.start(state_ttl=1000, conversation_state_ttl=500)
    revision = (await live.state())["revision"]
    keys = Keys("monday")
    for key, seconds in ((keys.state, 1000), (keys.conversation, 500)):
        await live.redis.expire(key, 100)
        await wait_until(partial(_lives_for, live, key, seconds), "it lives as long as at first")
    assert (await live.state())["revision"] == revision


async def _lives_for(live: Live, key: str, seconds: int) -> bool:
    return seconds - 100 < await live.redis.ttl(key) <= seconds


async def test_a_state_that_somebody_deleted_is_published_again(live: Live) -> None:
    await live.start()
    await live.say(1)
    await live.shows(1)
    await live.redis.delete(Keys("monday").state)
    await live.shows(1)


async def test_the_vocabulary_is_loaded_beside_the_loop_before_there_is_a_summary(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading: list[threading.Thread] = []

    def noted(text: str) -> int:
        loading.append(threading.current_thread())
        return counter.count_tokens(text)

    monkeypatch.setattr("tests.session.live.words", noted)
    await live.start()
    await wait_until(lambda: loading, "the vocabulary is loaded")
    assert loading[0] is not threading.main_thread()
