"""A server that does not answer as it should is told as an error of ours, without credentials."""

from __future__ import annotations

import httpx
import pytest

from context_builder.errors import DatabaseError, DatabaseRejected, DatabaseUnavailable
from context_builder.integrations.package_client import PackageClient
from context_builder.storage.bounded_http import trusted_authorities


def refused(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("refused", request=request)


@pytest.mark.parametrize(
    ("answer", "error", "told"),
    [
        (
            httpx.Response(200, text="<html>"),
            DatabaseUnavailable,
            "context.test: answers, but with no context package",
        ),
        (httpx.Response(200, json=[]), DatabaseUnavailable, "context.test: answers, but with no context package"),
        (httpx.Response(503, text="busy"), DatabaseUnavailable, "context.test: answered 503"),
        (httpx.Response(404, text="what?"), DatabaseRejected, "answered 404"),
        (httpx.Response(401, json={"detail": "no credential"}), DatabaseRejected, "no credential"),
        (httpx.Response(302, headers={"Location": "http://evil.test"}), DatabaseRejected, "context.test redirects to"),
        (refused, DatabaseUnavailable, "context.test: ConnectError"),
    ],
)
async def test_what_is_no_package_is_told(answer: httpx.Response, error: type[DatabaseError], told: str) -> None:
    handler = answer if callable(answer) else lambda _: answer
    client = PackageClient("http://ida:hunter2@context.test", "cbk_secret", transport=httpx.MockTransport(handler))
    with pytest.raises(error) as caught:
        await client.prompt("How deep is the mooring?")
    assert str(caught.value).startswith(told)
    assert "hunter2" not in str(caught.value)
    assert "secret" not in str(caught.value)
    await client.close()


async def test_its_connections_are_closed_at_the_end_of_a_with_block() -> None:
    class Connections(httpx.AsyncBaseTransport):
        are_closed = False

        async def aclose(self) -> None:
            self.are_closed = True

    connections = Connections()
    async with PackageClient("http://context.test", "cbk_secret", transport=connections):
        assert not connections.are_closed
    assert connections.are_closed


def test_the_authorities_that_it_trusts_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    trusted_authorities()
    monkeypatch.setattr("ssl.SSLContext.load_verify_locations", None)
    PackageClient("https://127.0.0.1:1", "key")
