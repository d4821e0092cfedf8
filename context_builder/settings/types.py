"""Settings alone have these types: URLs that hold passwords, the price table; each error is one sentence."""

from __future__ import annotations

import base64
import binascii
import json
import re
from ipaddress import ip_network
from typing import Annotated
from urllib.parse import unquote_plus, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from context_builder.config import check_url

Port = Annotated[int, Field(ge=1, le=65535)]


def _secret_url_of(*schemes: str) -> AfterValidator:
    def check(value: SecretStr) -> SecretStr:
        check_url(value.get_secret_value(), *schemes)
        return value

    return AfterValidator(check)


def _check_grpc_url(value: str) -> str:
    where = urlsplit(check_url(value, "grpc", "grpcs"))
    if where.port is None or where.username is not None or where.path.strip("/"):
        raise ValueError("must be grpc://host:port, or grpcs://host:port for TLS")
    return value


GrpcUrl = Annotated[str, AfterValidator(_check_grpc_url)]
RedisUrl = Annotated[SecretStr, _secret_url_of("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel")]


def _check_networks(value: str) -> str:
    for one in filter(None, (one.strip() for one in value.split(","))):
        try:
            ip_network(one, strict=False)
        except ValueError:
            raise ValueError("must be addresses or networks, such as 10.0.0.0/8, separated by commas") from None
    return value


Networks = Annotated[str, AfterValidator(_check_networks)]


def _listed(value: object) -> object:
    """Return the URLs of a text, in which blanks or commas are between them."""
    return tuple(re.split(r"[\s,]+(?=[a-z+]+://)", value.strip())) if isinstance(value, str) else value


RedisUrls = Annotated[tuple[RedisUrl, ...], BeforeValidator(_listed)]


def split_tenant(url: str) -> tuple[str, str | None]:
    """Return a Redis URL without its ``tenant=``, and what that names."""
    address, _, query = url.partition("?")
    options = query.split("&") if query else []
    tenants = [unquote_plus(one.removeprefix("tenant=")) for one in options if one.startswith("tenant=")]
    if len(tenants) > 1:
        raise ValueError("REDIS_URLS: gives a server to two tenants")
    kept = "&".join(one for one in options if not one.startswith("tenant="))
    return f"{address}?{kept}" if kept else address, tenants[0] if tenants else None


PostgresUrl = Annotated[SecretStr, _secret_url_of("postgres", "postgresql")]


def _price_table(value: object) -> object:
    """Return the table in JSON; what is wrong with it is told in one sentence."""
    try:
        table = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
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
    """Return the role that a Supabase key gives: the JWT's claim, or what the prefix of a new key says."""
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
