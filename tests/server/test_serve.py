"""``serve`` starts only where it may, tells how to ask, and stops when told to."""

from __future__ import annotations

import signal
from pathlib import Path

import httpx
import pytest

from context_builder.engines.engine import LOOPBACK, free_port
from tests.services.command import command
from tests.services.daemon import Daemon
from tests.services.jwt_issuer import JwtIssuer
from tests.services.redis_server import RedisServer
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines


def serving(folder: Path, redis_server: RedisServer, database_url: str, *options: str, **settings: object) -> Daemon:
    where = {"redis_url": redis_server.url, "database_url": database_url}
    return Daemon(folder, "serve", *options, **where, **settings)


def refused(folder: Path, redis_server: RedisServer, url: str, *options: str, **settings: object) -> tuple[int, str]:
    """The status of ``serve`` that does not start, and what it says."""
    done = command(folder, "serve", *options, redis_url=redis_server.url, database_url=url, **settings)
    return done.exit_code, done.output


async def answered(port: int, host: str = LOOPBACK) -> bool:
    try:
        async with httpx.AsyncClient() as client:
            return (await client.get(f"http://{host}:{port}/readyz")).status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_where_others_could_ask_it_does_not_start_before_they_can_show_who_they_are(
    tmp_path: Path, redis_server: RedisServer, migrated_url: str, host: str
) -> None:
    status, said = refused(tmp_path, redis_server, migrated_url, "--host", host)
    (line,) = said.splitlines()
    assert status == 2
    assert line.startswith(f"context-builder: SERVE_HOST: {host} ")
    assert "keys create" in line


def test_on_a_database_without_our_tables_it_does_not_start(
    tmp_path: Path, redis_server: RedisServer, database_url: str
) -> None:
    status, said = refused(tmp_path, redis_server, database_url, "--port", str(free_port()))
    (line,) = said.splitlines()
    assert status == 1
    assert line.endswith("; run `context-builder migrate`")


async def test_with_a_jwks_it_does_and_the_local_token_lets_nobody_in(
    tmp_path: Path, redis_server: RedisServer, migrated_url: str
) -> None:
    issuer, port = JwtIssuer(), free_port()
    (tmp_path / "home").mkdir()
    (tmp_path / "home/serve.token").write_text(f"cbl_{'x' * 43}\n")
    settings = {"auth_audience": "context-builder", "auth_issuer": "https://issuer.test", "tenant_id": "lab"}
    settings |= {"auth_jwks_file": str(issuer.write(tmp_path / "jwks.json")), "serve_names": "api.test"}
    options = ("--host", "0.0.0.0", "--port", str(port))
    with serving(tmp_path, redis_server, migrated_url, *options, **settings) as daemon:
        await wait_until(lambda: answered(port), "it serves")
        url = f"http://{LOOPBACK}:{port}/sessions"
        async with httpx.AsyncClient() as client:
            for host, credential, status in (
                ("api.test", issuer.signed(), 200),
                (LOOPBACK, issuer.signed(), 200),
                ("evil.test", issuer.signed(), 403),
                ("api.test", f"cbl_{'x' * 43}", 401),
            ):
                answer = await client.get(url, headers={"Host": host, "Authorization": f"Bearer {credential}"})
                assert answer.status_code == status
        assert "local token" not in daemon.output


def test_jwts_need_an_audience_and_an_issuer(tmp_path: Path, redis_server: RedisServer) -> None:
    nowhere = "postgresql://127.0.0.1:1/none"
    status, said = refused(tmp_path, redis_server, nowhere, auth_jwks_file="jwks.json")
    assert status == 2
    assert said.startswith("context-builder: AUTH_AUDIENCE: ")


def test_a_key_set_without_a_key_for_signatures_is_no_key_set(
    tmp_path: Path, redis_server: RedisServer, migrated_url: str
) -> None:
    (tmp_path / "jwks.json").write_text('{"keys": [{"kty": "oct", "kid": "a", "k": "c2VjcmV0"}]}')
    settings = {"auth_jwks_file": tmp_path / "jwks.json", "auth_audience": "a", "auth_issuer": "b"}
    status, said = refused(tmp_path, redis_server, migrated_url, **settings)
    (line,) = said.splitlines()
    assert status == 2
    assert line.startswith("context-builder: AUTH_JWKS_FILE: holds no public key")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_it_tells_how_to_ask_and_stops_when_told_to(
    tmp_path: Path, redis_server: RedisServer, migrated_url: str, number: signal.Signals
) -> None:
    port = free_port()
    with serving(tmp_path, redis_server, migrated_url, "--port", str(port)) as daemon:
        await wait_until(lambda: answered(port), "it serves")
        async with httpx.AsyncClient() as client:  # whose connection stays open
            assert (await client.get(f"http://{LOOPBACK}:{port}/livez")).text == "ok\n"
            assert daemon.stop(number) == 0
        assert f"http://{LOOPBACK}:{port}/docs" in daemon.output
        assert "serve.token" in daemon.output
        assert "Traceback" not in daemon.output


@pytest.mark.parametrize("setting", ["SERVE_PORT", "SERVE_GRPC_PORT"])
def test_a_port_that_is_taken_is_named(
    tmp_path: Path, redis_server: RedisServer, migrated_url: str, setting: str
) -> None:
    ports = {"SERVE_PORT": free_port(), "SERVE_GRPC_PORT": free_port(), setting: redis_server.port}
    options = ("--port", str(ports["SERVE_PORT"]), "--grpc", str(ports["SERVE_GRPC_PORT"]))
    status, said = refused(tmp_path, redis_server, migrated_url, *options)
    assert status == 2
    assert f"{setting}: port {redis_server.port} of {LOOPBACK} is taken by another program" in said


def test_keys_are_made_listed_and_revoked(tmp_path: Path, redis_server: RedisServer, migrated_url: str) -> None:
    def keys(*arguments: str, status: int = 0) -> str:
        done = command(tmp_path, "keys", *arguments, redis_url=redis_server.url, database_url=migrated_url)
        assert done.exit_code == status, done.output
        return done.output

    made = keys("create", "--tenant", "lab", "--role", "writer", "--name", "listener")
    secret = made.splitlines()[0]
    key_id = secret.split("_")[1]
    assert secret.startswith("cbk_")
    listed = keys("list")
    assert {key_id, "lab", "writer", "listener"} <= set(listed.split())
    assert secret.split("_", 2)[2] not in listed
    assert "revoked" in keys("revoke", key_id)
    keys("revoke", key_id, status=1)
