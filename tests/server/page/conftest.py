"""Visitors of the page: people with a real browser, and programs that pretend to be one."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser
from redis.asyncio import Redis

from context_builder.engines.engine import LOOPBACK
from context_builder.server.access.caller import Role
from tests.server.page.accessibility import WIDE
from tests.services.api_server import ApiServer
from tests.services.chromium import Visitor, browsing, visiting
from tests.services.emptied_redis import emptied
from tests.services.redis_server import RedisServer

HERE: Final = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have the page's tests share one event loop, as Playwright's driver is one loop's, and takes a while to start."""
    for item in items:
        if item.path.parent == HERE and item.get_closest_marker("asyncio"):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)  # before that of the auto mode


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    """A real Chromium, one for the whole run; each visitor has a fresh profile in it."""
    async with browsing() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def redis(redis_server: RedisServer) -> AsyncIterator[Redis]:
    """A client of the real Redis as everywhere, in the loop that the page's tests share."""
    async with emptied(redis_server) as client:
        yield client


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def own_redis(redis: Redis) -> None:
    """Each test begins with an empty Redis: without logins, and without wrong ones."""


async def logged_in(api: ApiServer, client: httpx.AsyncClient, credential: str) -> None:
    """Log a client in by the form."""
    answer = await client.post("/ui/login", data={"credential": credential}, headers={"Origin": api.url})
    assert answer.status_code == 303, answer.text


def token_in(page: str) -> str:
    """The token that a page's forms carry."""
    found = re.search(r'name="csrf" value="([^"]+)"', page)
    assert found, page
    return found[1]


@pytest_asyncio.fixture(loop_scope="session")
async def reader(api: ApiServer, own_redis: None) -> AsyncIterator[httpx.AsyncClient]:
    """A client that is logged in, as a browser would be."""
    async with api.client() as client:
        await logged_in(api, client, api.key())
        yield client


@asynccontextmanager
async def visiting_as(chromium: Browser, api: ApiServer, credential: str, **options: Any) -> AsyncIterator[Visitor]:
    """A visitor who has logged in; not by the form, which is a page more to be drawn."""
    async with visiting(chromium, api.url, **{"viewport": WIDE, **options}) as someone:
        async with api.client() as client:
            await logged_in(api, client, credential)
            cookies = [(one.name, one.value or "", one.path) for one in client.cookies.jar]
        for name, value, path in cookies:
            await someone.context.add_cookies([{"name": name, "value": value, "domain": LOOPBACK, "path": path}])
        yield someone


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(api: ApiServer, chromium: Browser, own_redis: None) -> AsyncIterator[Visitor]:
    """Somebody who looks at the sessions, and has logged in."""
    async with visiting_as(chromium, api, api.key()) as someone:
        await someone.page.goto("/ui/sessions")
        yield someone


@pytest.fixture
def tenant() -> str:
    """A tenant of the test's own, which has nothing yet."""
    return f"cove-{uuid4().hex[:8]}"


@pytest_asyncio.fixture(loop_scope="session")
async def administrator(api: ApiServer, chromium: Browser, own_redis: None, tenant: str) -> AsyncIterator[Visitor]:
    """Somebody who may do everything in :func:`tenant`, and has logged in."""
    async with visiting_as(chromium, api, api.key(Role.ADMIN, tenant)) as someone:
        yield someone


async def log_in(visitor: Visitor, credential: str) -> None:
    """Log in by the form."""
    await visitor.page.goto("/ui/login")
    await visitor.page.get_by_label("API key, JWT or local token").fill(credential)
    await visitor.page.get_by_role("button", name="Log in").click()
    await visitor.page.get_by_role("heading", name="Sessions", exact=True).wait_for()
