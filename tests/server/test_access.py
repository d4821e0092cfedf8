"""Who is let in: by an API key, a JWT, or the local token."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from typing import Any

import httpx
import jwt
import pytest

from context_builder.server.access.caller import Role
from tests.services.api_server import ApiServer
from tests.services.jwt_issuer import JwtIssuer
from tests.services.problems import problem
from tests.services.waiting import seconds_until

pytestmark = pytest.mark.engines

HOLDS_WITHIN = 1.0


async def status(api: ApiServer, credential: str | None, path: str = "/sessions") -> int:
    async with api.client(credential) as client:
        return (await client.get(path)).status_code


async def test_each_kind_of_credential_lets_in(api: ApiServer) -> None:
    signed = [api.issuer.signed(by) for by in ("ec", "rsa", "okp")]
    for credential in (api.key(Role.READER), api.local_token, *signed):
        assert await status(api, credential) == 200


async def test_nobody_else_is_let_in_and_all_are_told_the_same(api: ApiServer) -> None:
    revoked = api.new_key()
    api.with_keys(lambda keys: keys.revoke(revoked.id))
    known = api.key()
    unknown = known[:-4] + ("aaaa" if known[-4:] != "aaaa" else "bbbb")
    answers = []
    for credential in (
        None,
        revoked.secret,
        unknown,
        f"cbk_{'0' * 26}_{'a' * 43}",
        "cbl_x",
        api.local_token[:-1],
        "é",
    ):
        async with api.client() as client:
            headers = {} if credential is None else {"Authorization": f"Bearer {credential}".encode()}
            answers.append(await client.get("/sessions", headers=headers))  # type: ignore[arg-type]
    assert {answer.status_code for answer in answers} == {401}
    assert {answer.headers["www-authenticate"] for answer in answers} == {"Bearer"}
    assert len({json.dumps(problem(answer) | {"traceId": ""}) for answer in answers}) == 1


@pytest.mark.parametrize("header", ["Basic {}", "{}", "Bearer{}", "Token {}"])
async def test_a_key_is_shown_as_a_bearer(api: ApiServer, header: str) -> None:
    async with api.client() as client:
        assert (await client.get("/sessions", headers={"Authorization": header.format(api.key())})).status_code == 401


async def test_a_new_key_holds_within_a_second_and_a_revoked_one_no_longer_than_that(api: ApiServer) -> None:
    for _ in range(10):
        made, revoked = await _held_after(api)
        if max(made, revoked) < HOLDS_WITHIN:
            return
    pytest.fail(f"it took {made:.1f} s until the key let in, and {revoked:.1f} s until it did not")


async def _held_after(api: ApiServer) -> tuple[float, float]:
    """Seconds after which a new key lets in, and after which, revoked, it does not."""
    key = api.new_key()
    made = await seconds_until(lambda: _lets_in(api, key.secret), "the new key lets in")
    assert api.with_keys(lambda keys: keys.revoke(key.id))
    return made, await seconds_until(lambda: _is_refused(api, key.secret), "the revoked key lets nobody in")


async def _lets_in(api: ApiServer, credential: str) -> bool:
    return await status(api, credential) == 200


async def _is_refused(api: ApiServer, credential: str) -> bool:
    return await status(api, credential) == 401


def _unsigned(issuer: JwtIssuer) -> str:
    return jwt.encode(issuer.claims(), None, "none", headers={"kid": "ec"})


def _by_the_public_key(issuer: JwtIssuer) -> str:
    """HMAC with what everybody knows as its secret."""
    head, body = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=")
        for part in ({"alg": "HS256", "kid": "rsa", "typ": "JWT"}, issuer.claims())
    )
    algorithm = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    signature = base64.urlsafe_b64encode(algorithm.sign(head + b"." + body, issuer.public_pem("rsa"))).rstrip(b"=")
    return b".".join((head, body, signature)).decode()


BAD: dict[str, Callable[[JwtIssuer], str]] = {
    "alg none": _unsigned,
    "HS256 with the public key": _by_the_public_key,
    "an oct key of the set": lambda issuer: jwt.encode(issuer.claims(), issuer.secret, "HS256", headers={"kid": "oct"}),
    "an unknown kid": lambda issuer: issuer.signed(headers={"kid": "other"}),
    "another key's kid": lambda issuer: issuer.signed(headers={"kid": "rsa"}),
    "no kid among several": lambda issuer: jwt.encode(issuer.claims(), issuer.keys["ec"], "ES256"),
    "another issuer's key": lambda _: JwtIssuer().signed(),
    "expired": lambda issuer: issuer.signed(exp=int(time.time()) - 5),
    "expired just now": lambda issuer: issuer.signed(exp=int(time.time())),
    "not yet": lambda issuer: issuer.signed(nbf=int(time.time()) + 60),
    "no expiry": lambda issuer: issuer.signed(exp=None),
    "an endless expiry": lambda issuer: issuer.signed(exp=float("inf")),
    "another audience": lambda issuer: issuer.signed(aud="other"),
    "no audience": lambda issuer: issuer.signed(aud=None),
    "another issuer": lambda issuer: issuer.signed(iss="https://other.test"),
    "no issuer": lambda issuer: issuer.signed(iss=None),
    "no sub": lambda issuer: issuer.signed(sub=None),
    "no tenant": lambda issuer: issuer.signed(tenant=None),
    "an empty tenant": lambda issuer: issuer.signed(tenant=""),
    "a tenant that is none": lambda issuer: issuer.signed(tenant=["lab"]),
    "a tenant's documents": lambda issuer: issuer.signed(tenant="lab\x1fdocuments"),
    "roles that are none": lambda issuer: issuer.signed(roles="admin"),
    "roles of numbers": lambda issuer: issuer.signed(roles=[1]),
    "a critical extension": lambda issuer: issuer.signed(headers={"crit": ["b64"], "b64": True}),
    "an altered body": lambda issuer: _altered(issuer.signed()),
    "too long": lambda issuer: issuer.signed(padding="x" * 20_000),
    "no JWT": lambda _: "a.b.c",
}


def _altered(token: str) -> str:
    head, body, signature = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    forged = base64.urlsafe_b64encode(json.dumps(claims | {"roles": ["admin"]}).encode()).rstrip(b"=").decode()
    return f"{head}.{forged}.{signature}"


@pytest.mark.parametrize("name", BAD)
async def test_a_jwt_that_does_not_hold_lets_nobody_in(api: ApiServer, name: str) -> None:
    assert await status(api, BAD[name](api.issuer)) == 401


async def test_a_jwt_of_a_clock_that_is_ahead_lets_in(api: ApiServer) -> None:
    now = int(time.time())
    assert await status(api, api.issuer.signed(nbf=now + 1, iat=now + 1)) == 200


async def test_roles_and_tenant_are_those_of_the_token(api: ApiServer) -> None:
    edges: list[Any] = []

    async def put(token: str) -> httpx.Response:
        async with api.client(token) as client:
            return await client.put("/knowledge/edges", json=edges)

    assert (await put(api.issuer.signed(roles=["writer", "of poems"]))).status_code == 200
    assert (await put(api.issuer.signed(roles=["of poems"]))).status_code == 403
    assert (await put(api.issuer.signed(roles=None))).status_code == 403
    assert (await put(api.local_token)).status_code == 200


def test_the_local_token_is_for_this_user_alone(api: ApiServer) -> None:
    assert (api.folder / "home/serve.token").stat().st_mode & 0o777 == 0o600
    assert api.local_token not in api.daemon.output
