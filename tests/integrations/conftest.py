"""A conversation that runs, and what the adapters for frameworks need of it."""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncIterator, Callable
from types import ModuleType
from typing import Any

import orjson
import pytest
from redis.asyncio import Redis

from context_builder import ContextBuilder
from context_builder.assembly.config import AssemblyConfig
from context_builder.integrations.live_session import LiveSession
from context_builder.memory.memory import Memory
from context_builder.testing import InMemoryStore
from tests.services.daemon import ROOT
from tests.services.redis_server import RedisServer
from tests.services.running import push, running, state
from tests.services.waiting import PATIENCE, wait_until


@pytest.fixture
def store() -> InMemoryStore:
    return InMemoryStore()


@pytest.fixture
async def live(redis: Redis, store: InMemoryStore) -> LiveSession:
    """The session ``monday``, whose tenant remembers how deep the mooring is."""
    await store.remember("default", [Memory("depth", "The mooring is at forty metres", speaker="Ben")])
    builder = ContextBuilder(store=store, config=AssemblyConfig(deadline=PATIENCE))
    return LiveSession(redis, "monday", builder, turn={"tenant_id": "default"})


@pytest.fixture
async def meeting(redis: Redis) -> AsyncIterator[Redis]:
    """The session runs, and Alice has spoken in it."""
    await push(redis, {"text": "We label the clips by hand.", "speaker": "Alice", "message_number": 1})
    async with running(redis):
        await wait_until(lambda: heard(redis, "We label the clips by hand."), "Alice is heard")
        yield redis


async def heard(redis: Redis, text: str) -> bool:
    """Whether the session has published a message of this text."""
    published = await state(redis)
    return any(one["text"] == text for one in published.get("raw_recent_buffer", ()))


async def queued(redis: Redis) -> list[dict[str, Any]]:
    """What waits in the session's queue, oldest first."""
    return [orjson.loads(raw) for raw in reversed(await redis.lrange("context_builder:monday:input", 0, -1))]


@pytest.fixture
def example(redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ModuleType]:
    """Loads an example of the documentation, for the Redis of the tests and with further settings."""

    def load(name: str, **settings: str) -> ModuleType:
        path = ROOT / "docs/examples" / f"{name}.py"
        assert len(path.read_text("utf-8").splitlines()) < 40
        monkeypatch.setenv("CONTEXT_BUILDER_REDIS_URL", redis_server.url)
        for setting, value in settings.items():
            monkeypatch.setenv(f"CONTEXT_BUILDER_{setting.upper()}", value)
        spec = importlib.util.spec_from_file_location(f"example_{name}", path)
        assert spec is not None and spec.loader is not None  # noqa: PT018 (for mypy)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load
