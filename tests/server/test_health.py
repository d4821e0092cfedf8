"""The pages beside a session."""

from __future__ import annotations

import asyncio
import re
import socket

import httpx
import pytest

from context_builder import metrics
from context_builder.engines.engine import LOOPBACK, free_port
from context_builder.errors import SettingError
from context_builder.server.health import serve_http, web_app


@pytest.fixture
def served() -> asyncio.Event:
    return asyncio.Event()


@pytest.fixture
def web(served: asyncio.Event) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(web_app(served.is_set)), base_url="http://beside")


async def test_it_is_alive_also_while_it_does_not_serve_the_session(
    web: httpx.AsyncClient, served: asyncio.Event
) -> None:
    for is_served, status in ((False, 503), (True, 200), (False, 503)):
        (served.set if is_served else served.clear)()
        assert (await web.get("/livez")).status_code == 200
        assert (await web.get("/readyz")).status_code == status


async def test_metrics_are_prometheus_text(web: httpx.AsyncClient) -> None:
    metrics.MESSAGES.labels("new").inc()
    page = await web.get("/metrics")
    assert page.headers["content-type"].startswith("text/plain")
    assert re.search(r'^context_builder_messages_total\{outcome="new"\} [1-9]', page.text, re.MULTILINE)


async def test_there_is_nothing_else(web: httpx.AsyncClient) -> None:
    assert (await web.get("/")).status_code == 404


async def test_it_is_served_meanwhile_and_no_longer() -> None:
    port = free_port()
    async with serve_http(LOOPBACK, port, lambda: True), httpx.AsyncClient() as web:
        assert (await web.get(f"http://{LOOPBACK}:{port}/livez")).text == "ok\n"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((LOOPBACK, port), 1)


async def test_a_port_that_is_taken_names_the_setting() -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingError, match=f"^HTTP_PORT: port {port} of {LOOPBACK} is taken"):
            async with serve_http(LOOPBACK, port, lambda: True):
                pass
