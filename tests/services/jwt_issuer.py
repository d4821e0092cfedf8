"""An issuer of JWTs with keys of its own, and the JSON Web Key Set that tells the public ones."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

AUDIENCE, ISSUER = "context-builder", "https://issuer.test"


class JwtIssuer:
    """Signs claims with one of three keys: ``ec``, ``rsa``, ``okp``. ``oct`` is in its set, too, as a mistake."""

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {
            "ec": ec.generate_private_key(ec.SECP256R1()),
            "rsa": rsa.generate_private_key(public_exponent=65537, key_size=2048),
            "okp": ed25519.Ed25519PrivateKey.generate(),
        }
        self.algorithms = {"ec": "ES256", "rsa": "RS256", "okp": "EdDSA"}
        self.secret = b"a secret of thirty-two bytes....."

    def key_set(self) -> dict[str, Any]:
        """The set as JSON has it."""
        writers = {"ec": ECAlgorithm, "rsa": RSAAlgorithm, "okp": OKPAlgorithm}
        keys = [
            json.loads(writers[name].to_jwk(key.public_key())) | {"kid": name, "use": "sig"}
            for name, key in self.keys.items()
        ]
        octets = {"kty": "oct", "kid": "oct", "k": jwt.utils.base64url_encode(self.secret).decode()}
        return {"keys": [*keys, octets]}

    def write(self, file: Path) -> Path:
        file.write_text(json.dumps(self.key_set()))
        return file

    def public_pem(self, name: str) -> bytes:
        pem, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        written: bytes = self.keys[name].public_key().public_bytes(pem, form)
        return written

    def claims(self, **other: Any) -> dict[str, Any]:
        """Claims of a reader of tenant ``lab``; those that are None are left out."""
        now = int(time.time())
        usual = {
            "tenant": "lab",
            "roles": ["reader"],
            "sub": "agent-7",
            "aud": AUDIENCE,
            "iss": ISSUER,
            "exp": now + 300,
        }
        return {name: value for name, value in {**usual, **other}.items() if value is not None}

    def signed(self, by: str = "ec", /, *, headers: dict[str, Any] | None = None, **claims: Any) -> str:
        named = {"kid": by, **(headers or {})}
        return jwt.encode(self.claims(**claims), self.keys[by], self.algorithms[by], headers=named)
