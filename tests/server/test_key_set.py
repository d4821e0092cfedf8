"""The keys that JWTs are verified with, from a file or a URL."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from context_builder.clock import Instant
from context_builder.errors import SettingError
from context_builder.server.access.jwt_verifier import COOLDOWN, HOLDS_FOR, FileKeySet, UrlKeySet, fetch_from, read_keys
from tests.services.jwt_issuer import JwtIssuer
from tests.services.redirecting import redirecting


class Time:
    """A clock that is moved."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def now(self) -> Instant:
        return Instant(self.seconds, self.seconds)


class Issuer:
    """Answers with its keys, or fails."""

    def __init__(self) -> None:
        self.keys = JwtIssuer().key_set()["keys"]
        self.asked = 0
        self.fails = False

    async def fetch(self) -> bytes:
        self.asked += 1
        if self.fails:
            raise ValueError("AUTH_JWKS_URL cannot be reached")
        return json.dumps({"keys": self.keys}).encode()


def described(**other: Any) -> dict[str, Any]:
    key: dict[str, Any] = JwtIssuer().key_set()["keys"][0]
    return key | other


def test_only_public_keys_for_signatures_count() -> None:
    keys = read_keys(json.dumps(JwtIssuer().key_set()))
    assert {name: key.algorithms[0] for name, key in keys.items()} == {"ec": "ES256", "rsa": "RS256", "okp": "EdDSA"}
    weak = json.loads(RSAAlgorithm.to_jwk(rsa.generate_private_key(public_exponent=65537, key_size=1024).public_key()))
    for one in (described(use="enc"), described(alg="HS256"), described(alg="none"), described(x="?"), weak):
        with pytest.raises(ValueError, match="holds no public key"):
            read_keys(json.dumps({"keys": [one]}))


def test_of_a_private_key_only_its_public_half_is_taken() -> None:
    private = json.loads(RSAAlgorithm.to_jwk(JwtIssuer().keys["rsa"]))
    (key,) = read_keys(json.dumps({"keys": [private]})).values()
    assert hasattr(key.key, "verify")
    assert not hasattr(key.key, "sign")


@pytest.mark.parametrize("text", ["", "[]", '{"keys": 1}', '{"keys": [1]}', '{"keys": []}', "{}"])
def test_what_is_no_set_is_refused_at_the_start(tmp_path: Path, text: str) -> None:
    (tmp_path / "jwks.json").write_text(text)
    with pytest.raises(SettingError, match=r"^AUTH_JWKS_FILE: "):
        FileKeySet(tmp_path / "jwks.json")


async def test_a_file_is_read_again_when_it_changed_and_kept_while_it_is_half_written(tmp_path: Path) -> None:
    file = tmp_path / "jwks.json"
    keys = FileKeySet(JwtIssuer().write(file))
    assert await keys.find("ec")
    file.write_text('{"keys": [')
    assert await keys.find("ec")
    file.write_text(json.dumps({"keys": [described(kid="new")]}))
    os.utime(file, ns=(1, 1))
    assert await keys.find("new")
    assert await keys.find("ec") is None
    assert await keys.find(None)  # the only one there is


async def test_a_url_is_asked_when_its_keys_are_old_or_one_is_missing_and_not_more_often() -> None:
    issuer, time = Issuer(), Time()
    keys = UrlKeySet(issuer.fetch, time)
    for _ in range(3):
        assert await keys.find("ec")
        assert await keys.find("unknown") is None
    assert issuer.asked == 1
    time.seconds += COOLDOWN + 1
    issuer.keys.append(described(kid="rotated"))
    assert await keys.find("rotated")
    assert issuer.asked == 2
    time.seconds += HOLDS_FOR + 1
    issuer.keys = issuer.keys[-1:]
    assert await keys.find("ec") is None
    assert issuer.asked == 3


async def test_while_a_url_fails_the_last_keys_hold() -> None:
    issuer, time = Issuer(), Time()
    keys = UrlKeySet(issuer.fetch, time)
    issuer.fails = True
    assert await keys.find("ec") is None
    issuer.fails = False
    assert await keys.find("ec") is None  # asked a moment ago
    time.seconds += COOLDOWN + 1
    assert await keys.find("ec")
    issuer.fails = True
    time.seconds += HOLDS_FOR + 1
    assert await keys.find("ec")


async def test_a_url_that_redirects_is_not_followed() -> None:
    with redirecting() as here:
        with pytest.raises(ValueError, match="answers 307"):
            await fetch_from(here.url)()
        assert here.seen == []
