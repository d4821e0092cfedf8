"""Deliveries that cannot become messages, each with a token: it is to be found among the dead letters."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

POISONS: Final[tuple[Callable[[str], bytes], ...]] = (
    lambda token: f"{token} is no JSON".encode(),
    lambda token: json.dumps([token]).encode(),
    lambda token: json.dumps({"message_number": 1, "speaker": token}).encode(),
    lambda token: json.dumps({"text": "  ", "speaker": token}).encode(),
    lambda token: json.dumps({"text": "\u2003\u3000\x1f", "speaker": token}).encode(),
    lambda token: json.dumps({"text": {"nested": token}}).encode(),
    lambda token: json.dumps({"text": [token]}).encode(),
    lambda token: json.dumps({"text": token, "message_number": -1}).encode(),
    lambda token: json.dumps({"text": token, "message_number": 2**53}).encode(),
    lambda token: json.dumps({"text": token, "message_number": True}).encode(),
    lambda token: json.dumps({"text": token, "message_number": "٤٢"}).encode(),
    lambda token: json.dumps({"text": token, "message_number": float("nan")}).encode(),
    lambda token: json.dumps({"text": token, "message_number": 10**400}).encode(),
    lambda token: json.dumps({"text": f"{token} \ud800"}).encode(),
    lambda token: json.dumps({"text": f"{token} \udc00\ud800"}).encode(),
    lambda token: json.dumps({"text": token, "speaker": "\udfff"}).encode(),
    lambda token: b'{"text": "' + token.encode() + b' \xff"}',
    lambda token: b'{"text": "' + token.encode() + b' \xed\xa0\x80"}',  # a lone surrogate as UTF-8 would write it
    lambda token: b'{"text": "' + token.encode() + b' \xed\xa0\xbd\xed\xb8\x80"}',  # a pair of them, as CESU-8 does
    lambda token: b'{"text": "' + token.encode() + b' \xc0\x80"}',  # NUL, overlong
    lambda token: b"\xef\xbb\xbf" + json.dumps({"text": token}).encode(),
    lambda token: token.encode() + json.dumps({"text": token}).encode("utf-16"),
    lambda token: json.dumps({"text": token}).encode()[:-1],
    lambda token: json.dumps({"text": token}).encode() + b"{}",
    lambda token: b'{"text": "' + token.encode() + b'", "metadata": ' + b"[" * 200_000 + b"}",
    lambda token: json.dumps({"text": f"{token} " + "x" * 262_144}).encode(),
)
