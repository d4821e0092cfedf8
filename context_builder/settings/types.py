"""What a setting may be: numbers with bounds, URLs, tables; each says in one sentence what is wrong with a value."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

Seconds = Annotated[float, Field(gt=0, le=10 * 365 * 86400, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Temperature = Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)]
ModelName = Annotated[str, Field(min_length=1)]


def _url_of(*schemes: str) -> AfterValidator:
    def check(value: str) -> str:
        try:
            parts = urlsplit(value)
            hosts = [urlsplit(f"//{host}") for host in parts.netloc.rpartition("@")[2].split(",")]
            ports = [host.port for host in hosts]
        except ValueError:  # whose text may quote a password
            raise ValueError(
                "is not a URL with a port up to 65535; in a password, write / ? # [ ] @ as %2F %3F %23 %5B %5D %40"
            ) from None
        if parts.scheme not in schemes:
            raise ValueError(f"must begin with {' or '.join(f'{s}://' for s in schemes)}")
        if not (parts.netloc or parts.path.strip("/")) or (any(ports) and not all(host.hostname for host in hosts)):
            raise ValueError("names no host")
        return value

    return AfterValidator(check)


def _secret_url_of(*schemes: str) -> AfterValidator:
    check = _url_of(*schemes)

    def check_secret(value: SecretStr) -> SecretStr:
        check.func(value.get_secret_value())  # type: ignore[call-arg]
        return value

    return AfterValidator(check_secret)


HttpUrl = Annotated[str, _url_of("http", "https")]
RedisUrl = Annotated[SecretStr, _secret_url_of("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel")]
PostgresUrl = Annotated[SecretStr, _secret_url_of("postgres", "postgresql")]


def _price_table(value: object) -> object:
    """The table in JSON; what is wrong with it is told in one sentence."""
    try:
        table = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError("is not JSON") from None
    if not isinstance(table, dict):
        raise ValueError('must be an object: {"MODEL": [prompt, cached, reply]}')
    for model, prices in table.items():
        if not isinstance(prices, list | tuple) or len(prices) != 3:
            raise ValueError(f"{model} must have three prices: [prompt, cached, reply]")
    return table


DollarsPerMillion = Annotated[float, Field(ge=0, allow_inf_nan=False)]
PriceTable = Annotated[
    dict[str, tuple[DollarsPerMillion, DollarsPerMillion, DollarsPerMillion]], BeforeValidator(_price_table)
]


def supabase_role(key: str) -> str | None:
    """Role that a Supabase key gives: the JWT's claim, or what the prefix of a new key says."""
    if key.startswith("sb_publishable_"):
        return "anon"
    if key.startswith("sb_secret_"):
        return "service_role"
    try:
        payload = key.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return str(claims.get("role"))
    except (IndexError, ValueError, binascii.Error, AttributeError):
        return None
