"""Which Redis a URL leads to: with a password, over TLS, through Sentinel; and which ones are refused."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from redis import Redis as BlockingRedis
from redis.asyncio import Redis
from redis.exceptions import RedisError
from structlog.testing import capture_logs

from context_builder.engines.engine import LOOPBACK, free_port
from context_builder.errors import SettingError, StoreError, StoreUnavailable
from context_builder.session.store.deliveries import OldestDelivery
from context_builder.settings.settings import load_settings
from context_builder.storage.redis import check_server, client_for, host_url
from context_builder.storage.redis_availability import translated
from context_builder.wiring.servers import open_servers
from tests.services.daemon import Daemon
from tests.services.link import Link
from tests.services.poor_proxy import PoorProxy
from tests.services.redis_server import RedisServer, redis_binary
from tests.services.running import published, push, running
from tests.services.tls import Authority
from tests.services.waiting import wait_until
from tests.session.saying import spoken

PASSWORD = "p@ss/w:rd%#?"


def url_of(text: str) -> str:
    """The URL, if the settings take it."""
    secret = load_settings({"REDIS_URL": text}, env_file=None).redis.url
    assert secret is not None
    return secret.get_secret_value()


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("redis://h:70000", "REDIS_URL: is not a URL with a port up to 65535"),
        ("redis://:s3cr/et@h:6379/0", "REDIS_URL: is not a URL with a port up to 65535; in a password, write"),
        ("redis://:12/34@h:6379/0", "REDIS_URL: names no host"),
        ("redis://:s3cr@h/34@h:6379/0", "REDIS_URL: has an @ behind its host; in a password, write"),
        ("redis://s3cr?et@h:6379/0", "REDIS_URL: has an @ behind its host; in a password, write"),
        ("redis+sentinel://h1:26379,h2:x/mymaster", "REDIS_URL: is not a URL"),
        (
            "redis+sentinel://h1:26379/mymaster/first",
            "REDIS_URL: a sentinel URL is redis.sentinel://host:port,host:port",
        ),
        ("redis://h?colour=red", "REDIS_URL: an option is unknown: 'colour'"),
        ("redis://h?db=first", "REDIS_URL: Invalid value for 'db'"),
        ("rediss://h?ssl_ca_certs=/none.pem", "REDIS_URL: the certificates cannot be used: No such file"),
        ("rediss://h?ssl_cert_reqs=perhaps", "REDIS_URL: Invalid SSL Certificate Requirements Flag: perhaps"),
    ],
)
def test_a_url_that_leads_nowhere_is_refused_at_once_without_its_password(url: str, told: str) -> None:
    with pytest.raises(SettingError, match=told) as refused:
        client_for(url_of(url))
    assert not any(part in str(refused.value) for part in ("s3cr", "et@", "34@"))


def test_sentinels_may_have_a_password_of_their_own() -> None:
    client = client_for("redis+sentinel://user:one@h1:1,h2/them/3?sentinel_password=two&client_name=me")
    pool = client.connection_pool
    assert pool.service_name == "them"  # type: ignore[attr-defined]
    kwargs = pool.connection_kwargs
    assert (kwargs["username"], kwargs["password"], kwargs["db"], kwargs["client_name"]) == ("user", "one", 3, "me")
    asked = [s.connection_pool.connection_kwargs for s in pool.sentinel_manager.sentinels]  # type: ignore[attr-defined]
    assert [(s["host"], s["port"], s["password"]) for s in asked] == [("h1", 1, "two"), ("h2", 26379, "two")]


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis that wants a password, once it has started."""
    server = RedisServer(tmp_path)
    server.start()
    with BlockingRedis.from_url(server.url) as client:
        client.config_set("requirepass", PASSWORD)
    yield server
    server.kill()


@pytest.mark.engines
async def test_a_session_runs_on_a_redis_with_a_password(guarded: RedisServer) -> None:
    async with client_for(url_of(host_url(LOOPBACK, guarded.port, PASSWORD))) as client, running(client):
        await push(client, spoken())
        await wait_until(published(client, lambda s: s["received_messages"] == 1), "the message is heard")


@pytest.mark.engines
@pytest.mark.parametrize("password", [None, "wrong-" + PASSWORD])
async def test_without_the_password_it_is_an_error_to_be_told_not_waited_for(
    guarded: RedisServer, password: str | None
) -> None:
    async with client_for(host_url(LOOPBACK, guarded.port, password)) as client:
        with pytest.raises(StoreError) as refused:
            await check_server(client)
    assert not isinstance(refused.value, StoreUnavailable)
    assert PASSWORD not in f"{refused.value!r}"


@pytest.mark.engines
async def test_a_session_runs_over_tls_and_strangers_certificates_are_refused(
    guarded: RedisServer, tmp_path: Path
) -> None:
    mine, strangers = tmp_path / "mine", tmp_path / "strangers"
    mine.mkdir()
    strangers.mkdir()
    authority, stranger = Authority(mine), Authority(strangers)
    async with Link(guarded.port, tls=authority.context()).opened() as link:
        url = host_url(LOOPBACK, link.port, PASSWORD).replace("redis://", "rediss://")
        async with client_for(f"{url}?ssl_ca_certs={authority.ca}") as client, running(client):
            await push(client, spoken())
            await wait_until(published(client, lambda s: s["received_messages"] == 1), "the message is heard")
        for wrong in (url, f"{url}?ssl_ca_certs={stranger.ca}"):
            async with client_for(wrong) as client:
                with pytest.raises(StoreUnavailable, match="certificate verify failed"):
                    await check_server(client)


@pytest.mark.engines
@pytest.mark.parametrize(("policy", "warns"), [("allkeys-lru", True), ("volatile-ttl", True), ("noeviction", False)])
async def test_a_session_runs_on_a_redis_that_evicts_and_warns_of_it(
    tmp_path: Path, policy: str, *, warns: bool
) -> None:
    server = RedisServer(tmp_path, "--maxmemory-policy", policy)
    server.start()
    away = {"supabase_url": "http://127.0.0.1:1", "supabase_key": "sb_secret_x", "feed_memory": "false"}
    try:
        with Daemon(tmp_path, "run", "monday", redis_url=server.url, log_format="json", **away) as daemon:
            await wait_until(lambda: daemon.is_ready, "the session runs")
            assert daemon.output.count("redis.evicts") == warns
    finally:
        server.kill()


@pytest.mark.engines
def test_redis_cluster_is_refused_in_one_line(tmp_path: Path) -> None:
    server = RedisServer(tmp_path, "--cluster-enabled", "yes")
    server.start()
    try:
        environ = {**os.environ, "REDIS_URL": server.url, "CONTEXT_BUILDER_HOME": str(tmp_path)}
        command = [sys.executable, "-m", "context_builder", "run", "monday"]
        ended = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    finally:
        server.kill()
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert ended.stderr.startswith("context-builder: Redis Cluster cannot be used")


UNKNOWN = ("BLMOVE", "HELLO", "CLIENT", "CONFIG", "INFO", "SCRIPT", "SUBSCRIBE")


@pytest.mark.engines
@pytest.mark.parametrize("hangs_up", [False, True])
async def test_a_session_runs_behind_a_proxy_that_knows_few_commands_and_the_log_says_so_once(
    redis_server: RedisServer, redis: Redis, *, hangs_up: bool
) -> None:
    few = ("BLMOVE",) if hangs_up else UNKNOWN
    proxy = PoorProxy(redis_server.port, few, hangs_up=hangs_up)
    async with proxy.serving(), client_for(f"redis://{LOOPBACK}:{proxy.port}/0") as client:
        await check_server(client)
        with capture_logs() as logs:
            async with running(client):
                for number in (1, 2, 3):
                    await push(client, spoken(number))
                    found = published(client, lambda s, number=number: s["received_messages"] == number)
                    await wait_until(found, "the message is heard")
    assert [entry["log_level"] for entry in logs if entry["event"] == "input.polled"] == ["warning"]
    assert set(proxy.refused) <= {"BLMOVE", "HELLO", "INFO"}  # nothing else is even tried


@pytest.mark.engines
async def test_a_blocking_read_survives_a_connection_that_is_cut_off(redis_server: RedisServer, redis: Redis) -> None:
    async with (
        Link(redis_server.port).opened() as link,
        client_for(f"redis://{LOOPBACK}:{link.port}/0") as client,
    ):
        oldest = OldestDelivery(client, "context_builder:monday:input")
        with capture_logs() as logs:
            for _ in range(2):
                waiting = asyncio.create_task(oldest.wait(1))
                await wait_until(lambda: _is_blocked(redis), "it waits")
                link.cut()
                with pytest.raises(StoreUnavailable):
                    await waiting
            assert await oldest.wait(1) is None
    assert logs == []


@pytest.mark.engines
async def test_the_address_of_a_sentinel_is_told_from_that_of_a_redis(tmp_path: Path) -> None:
    replicated = Replicated(tmp_path)
    await asyncio.to_thread(replicated.start)
    try:
        async with client_for(f"redis://{LOOPBACK}:{replicated.port}/0") as client:
            await wait_until(lambda: _refused(client, "this is a Sentinel"), "it is refused as a sentinel")
    finally:
        replicated.stop()


@pytest.mark.engines
async def test_a_session_runs_over_tls_with_a_clients_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server = RedisServer(tmp_path)
    server.start()
    try:
        async with Link(server.port, tls=authority.context(wants_certificate=True)).opened() as link:
            url = f"rediss://{LOOPBACK}:{link.port}/0?ssl_ca_certs={authority.ca}"
            mine = f"{url}&ssl_certfile={authority.certificate}&ssl_keyfile={authority.certificate}"
            async with client_for(url_of(mine)) as client, running(client):
                await push(client, spoken())
                await wait_until(published(client, lambda s: s["received_messages"] == 1), "the message is heard")
            async with client_for(url) as client:
                with pytest.raises(StoreUnavailable):
                    await check_server(client)
    finally:
        server.kill()


class Replicated:
    """A primary with a replica, and a sentinel that looks after them."""

    def __init__(self, folder: Path) -> None:
        for name in ("primary", "replica", "sentinel"):
            (folder / name).mkdir()
        self.primary = RedisServer(folder / "primary")
        self.replica = RedisServer(folder / "replica", "--replicaof", LOOPBACK, str(self.primary.port))
        self.port = free_port()
        self._config = folder / "sentinel" / "sentinel.conf"
        self._sentinel: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.primary.start()
        self.replica.start()
        watch = f"port {self.port}\nbind {LOOPBACK}\nsentinel monitor them {LOOPBACK} {self.primary.port} 1\n"
        quick = "sentinel down-after-milliseconds them 500\nsentinel failover-timeout them 2000\n"
        self._config.write_text(watch + quick)
        command = [redis_binary(), str(self._config), "--sentinel"]
        self._sentinel = subprocess.Popen(command, cwd=self._config.parent, stdout=subprocess.DEVNULL)

    def stop(self) -> None:
        self.primary.kill()
        self.replica.kill()
        if self._sentinel is not None:
            self._sentinel.kill()
            self._sentinel.wait(10)

    def knows_replica(self) -> bool:
        with BlockingRedis(host=LOOPBACK, port=self.port, decode_responses=True) as sentinel:
            try:
                [them] = sentinel.sentinel_masters().values()
            except RedisError:
                return False
        return int(them["num-slaves"]) == 1


@pytest.fixture
async def replicated(tmp_path: Path) -> AsyncIterator[Replicated]:
    setting = Replicated(tmp_path)
    await asyncio.to_thread(setting.start)
    try:
        await wait_until(setting.knows_replica, "the sentinel knows both", timeout=30, poll=0.1)
        yield setting
    finally:
        setting.stop()


@pytest.mark.engines
@pytest.mark.slow
async def test_a_session_follows_a_failover_through_sentinel(replicated: Replicated) -> None:
    url = f"redis+sentinel://{LOOPBACK}:{free_port()},{LOOPBACK}:{replicated.port}/them/0"
    async with client_for(url_of(url)) as client, running(client):
        await push(client, spoken(1))
        await wait_until(published(client, lambda s: s["received_messages"] == 1), "a message is heard")
        async with translated():
            await client.wait(1, 2000)
        replicated.primary.kill()
        async with Redis.from_url(replicated.replica.url) as replica:
            await wait_until(lambda: _is_primary(replica), "the replica takes over", timeout=30, poll=0.1)
            await push(replica, spoken(2))
            heard = await wait_until(
                published(replica, lambda s: s["received_messages"] == 2), "the session has followed", timeout=20
            )
    assert [entry["message_number"] for entry in heard["raw_recent_buffer"]] == [1, 2]


async def _is_blocked(client: Redis) -> bool:
    return int((await client.info("clients"))["blocked_clients"]) > 0


async def _refused(client: Redis, why: str) -> bool:
    try:
        await check_server(client)
    except StoreUnavailable:
        return False
    except StoreError as error:
        return str(error).startswith(why)
    return False


async def _is_primary(client: Redis) -> bool:
    try:
        return bool((await client.info("replication"))["role"] == "master")
    except RedisError:  # it hangs up when its role changes
        return False


async def test_a_wrong_url_is_told_by_the_name_of_its_setting() -> None:
    settings = load_settings({"REDIS_URLS": "redis://one redis://two?colour=red"}, env_file=None)
    with pytest.raises(SettingError, match=r"^REDIS_URLS: an option is unknown: 'colour'$"):
        async with open_servers(settings):
            pass
