"""Logging in to the page: with whatever lets programs in, for as long as that holds, and from this page alone."""

from __future__ import annotations

import time

import httpx
import pytest
from redis.asyncio import Redis

from context_builder.server.access.caller import Role
from context_builder.server.asgi.callers import MOST_ANONYMOUS_BYTES
from tests.server.page.conftest import logged_in, token_in
from tests.services.api_server import ApiServer
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


async def test_the_address_alone_leads_to_the_login(api: ApiServer) -> None:
    async with api.client(follow_redirects=True) as client:
        for path in ("/", "/ui", "/ui/", "/ui/sessions", "/ui/sessions/monday"):
            answer = await client.get(path)
            assert (answer.status_code, answer.url.path) == (200, "/ui/login")
        assert (await client.get("/ui/sessions?q=a")).url.params["next"] == "/ui/sessions?q=a"
        for path in ("/ui/live/sessions", "/ui/data/nothing"):
            assert (await client.get(path)).status_code == 401


async def test_each_kind_of_credential_logs_in(api: ApiServer) -> None:
    for credential in (api.key(Role.READER), api.local_token, api.issuer.signed("ec", tenant="lab", roles=["reader"])):
        async with api.client() as client:
            await logged_in(api, client, credential)
            assert (await client.get("/ui/sessions")).status_code == 200


async def test_the_cookie_is_the_pages_alone(api: ApiServer, reader: httpx.AsyncClient) -> None:
    (cookie,) = reader.cookies.jar
    assert (cookie.path, cookie.has_nonstandard_attr("HttpOnly")) == ("/ui", True)
    assert cookie.get_nonstandard_attr("SameSite") == "strict"
    answer = await reader.get("/sessions", headers={"Cookie": f"{cookie.name}={cookie.value}"})
    assert answer.status_code == 401


async def test_other_cookies_of_the_host_do_no_harm(api: ApiServer, reader: httpx.AsyncClient) -> None:
    (cookie,) = reader.cookies.jar
    reader.cookies.clear()
    for other in ('settings={"a": [1, 2], "b": "c;d"}', "=", "é=1; ;;", f"{cookie.name}x=1"):
        sent = f"{other}; {cookie.name}={cookie.value}".encode()
        answer = await reader.get("/ui/sessions", headers={"Cookie": sent})  # type: ignore[dict-item]
        assert answer.status_code == 200


async def test_a_code_that_is_unknown_lets_nobody_in(api: ApiServer) -> None:
    async with api.client() as client:
        again = await client.get(f"/ui/login?code={'x' * 32}")
        assert (again.status_code, "set-cookie" in again.headers) == (401, False)


async def test_by_https_the_cookie_is_kept_to_this_host(api: ApiServer) -> None:
    async with api.client() as client:
        headers = {"Origin": "https://localhost", "Host": "localhost:443"}
        answer = await client.post("/ui/login", data={"credential": api.key()}, headers=headers)
    assert answer.headers["set-cookie"].startswith("__Host-context_builder=")
    assert "secure" in answer.headers["set-cookie"].lower()


async def test_redis_holds_no_credential_and_no_cookie(api: ApiServer, redis: Redis, reader: httpx.AsyncClient) -> None:
    (cookie,) = reader.cookies.jar
    found = [key async for key in redis.scan_iter("context_builder:page_*")]
    held = b"".join([*found, *filter(None, await redis.mget(found))])
    assert api.key().encode() not in held
    assert str(cookie.value).encode() not in held
    assert all([await redis.ttl(key) > 0 for key in found])


async def test_a_wrong_credential_is_told_so(api: ApiServer, redis: Redis) -> None:
    async with api.client() as client:
        answer = await client.post("/ui/login", data={"credential": "cbk_wrong"}, headers={"Origin": api.url})
        assert answer.status_code == 401
        assert "unknown, expired or revoked" in answer.text
        assert "cbk_wrong" not in answer.text
        assert not client.cookies


async def test_wrong_logins_are_limited(api: ApiServer, redis: Redis) -> None:
    async with api.client() as client:
        client.headers["Origin"] = api.url
        key = api.key()
        for _ in range(20):
            assert (await client.post("/ui/login", data={"credential": f"{key[:-8]}AAAAAAAA"})).status_code == 401
        answer = await client.post("/ui/login", data={"credential": key})
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "60")


@pytest.mark.parametrize("headers", [{}, {"Origin": "https://evil.example"}, {"Origin": "null"}])
async def test_a_form_of_another_origin_is_refused(api: ApiServer, headers: dict[str, str]) -> None:
    async with api.client() as client:
        answer = await client.post("/ui/login", data={"credential": api.key()}, headers=headers)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


async def test_a_form_without_the_logins_token_is_refused(api: ApiServer, reader: httpx.AsyncClient) -> None:
    async with api.client() as other:
        await logged_in(api, other, api.key())
        foreign = token_in((await other.get("/ui/sessions")).text)
    for token in ("", "x", foreign, "é"):
        answer = await reader.post("/ui/logout", data={"csrf": token}, headers={"Origin": api.url})
        assert answer.status_code == 403
    assert (await reader.get("/ui/sessions")).status_code == 200


async def test_logging_out_holds_for_the_cookie_itself(api: ApiServer, reader: httpx.AsyncClient) -> None:
    (cookie,) = reader.cookies.jar
    token = token_in((await reader.get("/ui/sessions")).text)
    answer = await reader.post("/ui/logout", data={"csrf": token}, headers={"Origin": api.url})
    assert (answer.status_code, answer.headers["location"]) == (303, "/ui/login")
    again = await reader.get("/ui/sessions", headers={"Cookie": f"{cookie.name}={cookie.value}"})
    assert again.status_code == 303


async def test_a_revoked_key_ends_its_logins(api: ApiServer, redis: Redis) -> None:
    made = api.new_key()
    async with api.client() as client:
        await logged_in(api, client, made.secret)
        assert (await client.get("/ui/sessions")).status_code == 200
        api.with_keys(lambda keys: keys.revoke(made.id))

        async def is_out() -> bool:
            return (await client.get("/ui/sessions")).status_code == 303

        await wait_until(is_out, "the login ends")


async def test_a_jwt_ends_its_logins_when_it_expires(api: ApiServer, redis: Redis) -> None:
    async with api.client() as client:
        await logged_in(api, client, api.issuer.signed("ec", exp=int(time.time()) + 3))

        async def is_out() -> bool:
            return (await client.get("/ui/sessions")).status_code == 303

        await wait_until(is_out, "the login ends")


async def test_a_login_leads_nowhere_but_into_the_page(api: ApiServer) -> None:
    for wanted, leads in {
        "/ui/sessions?q=a": "/ui/sessions?q=a",
        "https://evil.example/": "/ui/sessions",
        "//evil.example/ui/": "/ui/sessions",
        "/ui//evil.example": "/ui/sessions",
        "/ui/\\evil": "/ui/sessions",
        "javascript:alert(1)": "/ui/sessions",
        "/ui/x\r\nSet-Cookie: a=b": "/ui/sessions",
    }.items():
        async with api.client() as client:
            sent = {"credential": api.key(), "next": wanted}
            answer = await client.post("/ui/login", data=sent, headers={"Origin": api.url})
            assert answer.headers["location"] == leads


async def test_everything_is_hardened(api: ApiServer, reader: httpx.AsyncClient) -> None:
    for path in ("/ui/login", "/ui/sessions", "/ui/static/page.css", "/ui/nothing", "/ui/live/nothing"):
        headers = (await reader.get(path)).headers
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"


async def test_files_are_served_by_their_names_alone(api: ApiServer) -> None:
    async with api.client() as client:
        answer = await client.get("/ui/static/page.js")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
        tag = {"If-None-Match": answer.headers["etag"]}
        assert (await client.get("/ui/static/page.js", headers=tag)).status_code == 304
        for name in ("..%2f__init__.py", "%2e%2e/app.py", "nothing.js", "page.py"):
            assert (await client.get(f"/ui/static/{name}")).status_code == 404


async def test_who_is_not_known_yet_sends_little_and_forms_have_few_fields(
    api: ApiServer, reader: httpx.AsyncClient
) -> None:
    async with api.client() as client:
        sent = {"credential": "x" * MOST_ANONYMOUS_BYTES}
        answer = await client.post("/ui/login", data=sent, headers={"Origin": api.url})
        assert answer.status_code == 413
    token = token_in((await reader.get("/ui/sessions")).text)
    headers = {"Origin": api.url, "X-CSRF-Token": token}
    assert (await reader.post("/ui/prompt/helped", content=b"helped=&" * 2_000, headers=headers)).status_code == 422
