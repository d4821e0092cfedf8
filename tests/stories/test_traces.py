"""What an operator sees of a message and of a package in a collector: real processes send their spans there."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from context_builder.errors import SettingError
from context_builder.server.access.caller import Role
from context_builder.settings.settings import load_settings
from context_builder.tracing import TraceContext, recorded_span, span
from context_builder.wiring.tracing import sending_spans
from tests.server.test_contract import BUILD, put
from tests.services.api_server import ApiServer
from tests.services.collector import PROGRAM, collecting_spans
from tests.services.daemon import Daemon
from tests.services.redis_server import RedisServer
from tests.services.span_receiver import SpanReceiver, receiving_spans
from tests.services.waiting import wait_until

SAID = "Helicase unwinds the double helix"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture(params=["receiver", "Rotel"])
def collector(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SpanReceiver]:
    """What the spans were that arrived: straight from our processes, and through a real collector."""
    with receiving_spans() as receiver:
        if request.param == "receiver":
            yield receiver
            return
        if PROGRAM is None:
            pytest.skip("pip install --no-deps rotel==0.0.1a15")
        printed = tmp_path / "collector.log"
        with collecting_spans(receiver.url, printed) as receiver.url:
            yield receiver
        told = printed.read_text()
        assert all(f"Name           : {span.name}\n" in told for span in receiver.spans), told
        assert SAID not in told


@pytest.mark.engines
@pytest.mark.slow
@pytest.mark.usefixtures("redis")  # in which nobody has spoken
async def test_a_message_is_one_trace_from_its_push_to_its_publication(
    redis_server: RedisServer, tmp_path: Path, collector: SpanReceiver
) -> None:
    settings = {
        "redis_url": redis_server.url,
        "otel_exporter_otlp_endpoint": collector.url,
        "supabase_url": "http://127.0.0.1:1",
        "supabase_key": "sb_secret_x",
        "feed_memory": "false",
    }
    with Daemon(tmp_path, "run", "monday", **settings) as daemon:
        await wait_until(lambda: daemon.is_ready, "the session is ready")
        with Daemon(tmp_path, "send", "monday", SAID, "--speaker", "Alice", **settings) as sender:
            assert await asyncio.to_thread(sender.wait, 60) == 0, sender.output
        await wait_until(lambda: collector.named("session.publish"), "it is published")
        assert await asyncio.to_thread(daemon.stop) == 0
    (pushed,) = collector.named("session.push")
    (published,) = collector.named("session.publish")
    assert (pushed.service, published.service) == ("context-builder send", "context-builder run")
    assert (published.trace_id, published.parent_id) == (pushed.trace_id, pushed.span_id)
    assert pushed.begin <= published.begin <= published.end
    assert published.attributes["session.id"] == "monday"
    assert b"Helicase" not in collector.raw
    assert b"sb_secret" not in collector.raw


@pytest.mark.engines
@pytest.mark.slow
async def test_a_package_is_one_trace_from_its_request_to_its_record(
    redis_server: RedisServer, migrated_url: str, tmp_path: Path, collector: SpanReceiver
) -> None:
    settings = {"otel_exporter_otlp_endpoint": collector.url}
    server = await asyncio.to_thread(ApiServer, tmp_path, redis_server.url, migrated_url, **settings)
    try:
        async with server.client(server.key(Role.ADMIN)) as client:
            await put(client)
            asked = {"intent": "hydrophone clips", "tokenBudget": 1000}
            answer = await client.post(BUILD, json=asked, headers={"traceparent": PARENT})
            await client.get("/ui/login", params={"code": "a-login-code"})
            await client.get("/memories/search", params={"query": "hydrophone clips"})
        assert answer.status_code == 200
        assert await asyncio.to_thread(server.daemon.stop) == 0
    finally:
        server.close()
    await wait_until(lambda: collector.named("GET /memories/search"), "the last request arrived")
    (root,) = collector.named(f"POST {BUILD}")
    spans = {one.name: one for one in collector.spans if one.trace_id == root.trace_id}
    assert (root.trace_id, root.parent_id) == tuple(PARENT.split("-")[1:3])
    assert collector.named("GET /ui/login")
    assert answer.headers["x-trace-id"] == root.trace_id
    assert answer.json()["traceId"] == root.trace_id
    assert root.attributes["http.response.status_code"] == "200"
    assert {"package.begin", "package.finish", "context.total"} <= {*spans}
    assert {spans[name].parent_id for name in ("package.begin", "package.finish", "context.total")} == {root.span_id}
    assert spans["source.semantic"].parent_id == spans["context.retrieval"].span_id
    assert not [word for word in (b"hydrophone", b"login-code") if word in collector.raw]
    assert server.key(Role.ADMIN).encode() not in collector.raw


@pytest.mark.engines
@pytest.mark.slow
def test_a_collector_that_never_answers_holds_up_nothing_and_is_told_once(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # whose backlog takes connections
        settings = {
            "redis_url": redis_server.url,
            "otel_exporter_otlp_endpoint": f"http://127.0.0.1:{silent.getsockname()[1]}",
        }
        with Daemon(tmp_path, "send", "monday", SAID, **settings) as sender:
            assert sender.wait() == 0, sender.output
            assert sender.output.count("tracing.failed") == 1
            assert "Failed to export" not in sender.output


async def test_a_wrong_setting_of_opentelemetry_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "many")
    settings = load_settings({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, env_file=None)
    with pytest.raises(SettingError, match="OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT must be"):
        async with sending_spans(settings, "test"):
            pass


@pytest.mark.parametrize(
    "hostile",
    [
        None,
        7,
        "",
        {"a": 1},
        "00-" + "0" * 32 + "-b7ad6b7169203331-01",
        PARENT + "\n",
        PARENT + "-more",
        PARENT.replace("00-", "ff-", 1),
        PARENT.replace("00-", "01-", 1) + "-" + "x" * 9999,
    ],
)
def test_what_names_no_trace_is_left_alone(hostile: object) -> None:
    assert TraceContext.parse(hostile) is None


@pytest.mark.parametrize(
    "version", [PARENT, PARENT.replace("00-", "01-", 1), PARENT.replace("00-", "cc-", 1) + "-more"]
)
def test_a_trace_of_a_later_version_goes_on_in_ours(version: str) -> None:
    named = TraceContext.parse(version)
    assert named is not None
    assert named.traceparent == PARENT


def test_without_a_tracer_nothing_is_handed_on() -> None:
    with span("nothing", parent=TraceContext.parse(PARENT)):
        assert recorded_span() is None
