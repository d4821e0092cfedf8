"""Who watches a session is sent its state, and then what changes of it."""

from __future__ import annotations

import asyncio
import itertools
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import jsonpatch
import pytest
from redis.asyncio import Redis

from context_builder.server.problem import Problem
from context_builder.server.routes.events import session_events
from context_builder.server.shared_look import SharedLooks
from context_builder.session.store.registry import SessionRegistry
from context_builder.storage.redis import client_for
from tests.server.test_sessions import Events, said
from tests.services.api_server import ApiServer
from tests.services.redis_server import RedisServer
from tests.services.running import published, push, running, state
from tests.services.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.engines

PAGE = "/sessions/monday/events"
REQUEST: Any = SimpleNamespace(scope={"state": {"still_holds": None}})


def texts(published: dict[str, Any]) -> list[str]:
    return [entry["text"] for entry in published["raw_recent_buffer"]]


async def followed(events: Events, held: dict[str, Any], until: str) -> tuple[dict[str, Any], int, int]:
    """The state once ``until`` was said in it, its revision, and how many patches that took."""
    count = 0
    while until not in texts(held):
        name, data, revision = await events.next()
        if name == "patch":
            held, count = jsonpatch.apply_patch(held, data), count + 1
            assert revision == held["revision"]
    return held, held["revision"], count


async def heard(redis: Redis, text: str) -> None:
    """Returns when the session has published a message."""
    await wait_until(published(redis, lambda state: text in texts(state)), f"{text} is heard")


async def test_patches_lead_from_the_first_state_to_the_present_one(api: ApiServer, redis: Redis) -> None:
    await push(redis, said(1, "Whales sing."))
    async with running(redis), api.client(api.key()) as client, client.stream("GET", PAGE) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        events = Events(response)
        name, held, revision = await events.next()
        assert (name, revision) == ("state", held["revision"])
        for number in range(2, 12):
            await push(redis, said(number, f"Call {number}."))
        held, revision, _ = await followed(events, held, "Call 11.")
        now = await state(redis)
        assert texts(held) == texts(now)


async def test_the_last_event_id_continues(api: ApiServer, redis: Redis) -> None:
    await push(redis, said(1, "Whales sing."))
    async with running(redis), api.client(api.key()) as client:
        async with client.stream("GET", PAGE) as response:
            events = Events(response)
            _, held, _ = await events.next()
            await push(redis, said(2, "Where?"))
            held, revision, _ = await followed(events, held, "Where?")
        await push(redis, said(3, "In the bay."))
        await heard(redis, "In the bay.")  # or what came before it would be told before it
        async with client.stream("GET", PAGE, headers={"Last-Event-ID": str(revision)}) as response:
            held, _, count = await followed(Events(response), held, "In the bay.")
            assert count == 1
        for unknown in ("999999", "-1", "whale"):
            async with client.stream("GET", PAGE, headers={"Last-Event-ID": unknown}) as response:
                assert (await Events(response).next())[0] == "state"


async def test_the_first_state_s_id_continues_after_everybody_has_left(api: ApiServer, redis: Redis) -> None:
    await push(redis, said(1, "Whales sing."))
    async with running(redis), api.client(api.key()) as client:
        async with client.stream("GET", PAGE) as response:
            _, held, revision = await Events(response).next()
        await push(redis, said(2, "Where?"))
        await heard(redis, "Where?")
        async with client.stream("GET", PAGE, headers={"Last-Event-ID": str(revision)}) as response:
            held, _, count = await followed(Events(response), held, "Where?")
            assert (count, texts(held)) == (1, ["Whales sing.", "Where?"])


async def test_silence_is_told_when_it_begins_and_ends(api: ApiServer, redis: Redis) -> None:
    await push(redis, said(1, "Whales sing."))
    async with running(redis, silence=0.5), api.client(api.key()) as client, client.stream("GET", PAGE) as response:
        events = Events(response)

        async def silence() -> dict[str, Any]:
            while True:
                name, data, _ = await events.next()
                if name == "silence":
                    told: dict[str, Any] = data
                    return told

        async def talk() -> None:
            for number in itertools.count(2):  # on and on: one message may be seen after its moment
                await push(redis, said(number, "Where?"))
                await asyncio.sleep(0.1)

        assert (await silence())["silence"] is True
        talking = asyncio.create_task(talk())
        assert (await silence())["silence"] is False
        talking.cancel()


async def test_there_are_ten_patches_a_second_at_most(api: ApiServer, redis: Redis) -> None:
    await push(redis, said(1, "Whales sing."))
    async with running(redis), api.client(api.key()) as client, client.stream("GET", PAGE) as response:
        events = Events(response)
        _, held, _ = await events.next()
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number in range(2, 102):
            await push(redis, said(number, f"Call {number}."))
            await asyncio.sleep(0.01)
        _, _, count = await followed(events, held, "Call 101.")
        assert count <= 10 * (loop.time() - began) + 1


async def test_a_stream_ends_with_its_key(api: ApiServer, redis: Redis) -> None:
    await push(redis, said(1, "Whales sing."))
    made = api.new_key()
    async with running(redis), api.client(made.secret) as client, client.stream("GET", PAGE) as response:
        events = response.aiter_lines()
        assert await anext(events)
        await asyncio.to_thread(api.with_keys, lambda keys: keys.revoke(made.id))
        async with asyncio.timeout(PATIENCE):
            async for _ in events:
                pass


async def test_a_stream_ends_when_the_session_is_forgotten(api: ApiServer, redis: Redis) -> None:
    async with api.client(api.key()) as client:
        async with running(redis):
            await push(redis, said(1, "Whales sing."))
            await wait_until(lambda: redis.exists("context_builder:monday:state"), "there is a state")
        async with client.stream("GET", PAGE) as response:
            lines = response.aiter_lines()
            assert await anext(lines)
            await SessionRegistry(redis).forget("monday")
            async with asyncio.timeout(PATIENCE):
                async for _ in lines:
                    pass
        assert (await client.get(PAGE)).status_code == 404


async def test_many_watchers_share_one_look(api: ApiServer, redis: Redis) -> None:
    await push(redis, said(1, "Whales sing."))
    async with running(redis), api.client(api.key(), limits=httpx.Limits(max_connections=40)) as client:
        streams = [client.stream("GET", PAGE) for _ in range(20)]
        watching = [Events(await stream.__aenter__()) for stream in streams]
        for events in watching:
            assert (await events.next())[0] == "state"

        async def looks() -> int:
            return int((await redis.info("commandstats"))["cmdstat_getrange"]["calls"])

        async def looked_ten_times() -> bool:
            return await looks() >= before + 10

        began, before = time.monotonic(), await looks()
        await wait_until(looked_ten_times, "ten looks at the state")
        assert time.monotonic() - began > 0.8  # ten a second, not ten for each of twenty watchers
        for stream in streams:
            await stream.__aexit__(None, None, None)


async def test_another_redis_has_another_session_of_the_same_name(redis: Redis, tmp_path: Path) -> None:
    elsewhere = RedisServer(tmp_path)
    elsewhere.start()
    looks = SharedLooks()
    services: Any = SimpleNamespace(looks=looks, stopping=asyncio.Event())
    seen: Any = SimpleNamespace(is_redacted=False)
    try:
        await push(redis, said(1, "What the lab alone may know."))
        async with client_for(elsewhere.url) as other, running(redis):
            await wait_until(lambda: redis.exists("context_builder:monday:state"), "there is a state")
            await session_events("monday", REQUEST, services, redis, seen, None)
            with pytest.raises(Problem):
                await session_events("monday", REQUEST, services, other, seen, None)
    finally:
        elsewhere.kill()


async def test_a_silence_clock_that_is_no_object_is_none(api: ApiServer, redis: Redis) -> None:
    await push(redis, said(1, "Whales sing."))
    async with running(redis):
        await wait_until(published(redis, lambda state: bool(state["raw_recent_buffer"])), "it was heard")
    await redis.set("conversation_state:monday", "[1]")
    async with api.client(api.key()) as client, client.stream("GET", PAGE) as response:
        name, held, _ = await Events(response).next()
        assert (name, texts(held)) == ("state", ["Whales sing."])


async def test_who_leaves_before_the_first_event_leaves_no_watcher(redis: Redis) -> None:
    services: Any = SimpleNamespace(looks=SharedLooks(), stopping=asyncio.Event())
    async with running(redis):
        await push(redis, said(1, "Whales sing."))
        await wait_until(lambda: redis.exists("context_builder:monday:state"), "there is a state")
        seen: Any = SimpleNamespace(is_redacted=False)
        await session_events("monday", REQUEST, services, redis, seen, None)
        assert not [one for one in asyncio.all_tasks() if one.get_name().startswith("watch ") and not one.cancelling()]
