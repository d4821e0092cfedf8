"""What is shown of a URL, and that no part of a password ever is."""

from __future__ import annotations

import pytest

from context_builder.storage.redis import host_url
from context_builder.storage.urls import UNREADABLE, printable


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://user:pass@cache:6380/2?ssl_ca_certs=x", "cache:6380"),
        ("rediss+sentinel://:pass@h1:1,h2:2/mymaster/0?sentinel_password=p", "h1:1,h2:2"),
        (host_url("cache", 6379, "p@ss/w:rd%#?"), "cache:6379"),
        ("postgresql://writer:p@ss@db/archive", "db"),
        ("postgresql://writer:pass@[::1]:5432/archive", "[::1]:5432"),
        ("postgresql:///archive?host=/run/postgresql&password=pass", "localhost"),
        ("unix:///run/redis.sock", "localhost"),
    ],
)
def test_the_servers_are_shown_and_nothing_else(url: str, shown: str) -> None:
    assert printable(url) == shown


@pytest.mark.parametrize("scheme", ["redis", "postgresql"])
@pytest.mark.parametrize("password", ["12/34", "12#34", "12?34", "s3cr/et", "s3cr#et", "s3cr?et", "a@b/c", "a[b"])
def test_a_password_that_breaks_the_url_is_not_shown_in_part(scheme: str, password: str) -> None:
    assert printable(f"{scheme}://writer:{password}@cache:6379/0") == UNREADABLE
