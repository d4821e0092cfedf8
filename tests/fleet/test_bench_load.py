"""The bench's measuring client sees every message once, also those that are committed together."""

from __future__ import annotations

import pytest
from redis import Redis

from context_builder.session.keys import Keys
from scripts.benches.harness.workers import BENCH_EVENTS, Speakers
from tests.services.redis_server import RedisServer

pytestmark = pytest.mark.engines


def tell_of_states(server: RedisServer) -> None:
    with Redis.from_url(server.url) as client:
        client.config_set("notify-keyspace-events", BENCH_EVENTS)


def test_messages_that_are_committed_together_are_all_seen(redis_server: RedisServer) -> None:
    tell_of_states(redis_server)
    names = ["monday", "tuesday"]
    with Redis.from_url(redis_server.url) as client, Speakers(redis_server.url, names) as speakers:
        first = speakers.speak_without_waiting(rate=1000, seconds=0.006)
        assert speakers.unseen == 6
        client.set(Keys("monday").state, b'{"highest_message_number":3}')
        client.set(Keys("tuesday").state, b'{"highest_message_number":2}')
        assert not speakers.wait(0.2)
        client.set(Keys("tuesday").state, b'{"highest_message_number":3}')
        assert speakers.wait()
        seen = [one.session for one in speakers.seen_since(first)]
    assert sorted(seen) == ["monday"] * 3 + ["tuesday"] * 3


def test_only_some_are_watched_where_many_are_spoken_in(redis_server: RedisServer) -> None:
    tell_of_states(redis_server)
    names = [f"session-{number}" for number in range(10)]
    with Speakers(redis_server.url, names, 2) as speakers:
        speakers.speak_without_waiting(rate=1000, seconds=0.01)
        assert speakers.unseen == 2
