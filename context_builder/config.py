"""Fields of a config are declared with a setting's name in the environment, its bounds and its meaning.

A config is a frozen dataclass of one part of the package. A field made by :func:`setting` is a setting: its name,
default, bounds and description are written there and nowhere else. ``settings`` reads them from the environment.
"""

from __future__ import annotations

from typing import Annotated, Any, Final
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, ConfigDict, Field

CONFIG: Final = ConfigDict(extra="forbid", hide_input_in_errors=True)
"""Validation of configs: unknown names are refused, and errors do not quote values, which may be secrets."""


def setting(default: Any, name: str, description: str) -> Any:
    """Return a field that the environment sets under ``name``, its title; the description ends with the unit."""
    return Field(default, title=name, description=description)


Seconds = Annotated[float, Field(gt=0, le=10 * 365 * 86400, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Temperature = Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)]
ModelName = Annotated[str, Field(min_length=1)]


_ENCODING_RULE: Final = "in a password, write / ? # [ ] @ as %2F %3F %23 %5B %5D %40"
_WITH_ANY_PATH: Final = ("http", "https", "unix")


def check_url(value: str, *schemes: str) -> str:
    """Return the URL itself. Raises :class:`ValueError`, which does not quote it: it may hold a password."""
    try:
        parts = urlsplit(value)
        hosts = [urlsplit(f"//{host}") for host in parts.netloc.rpartition("@")[2].split(",")]
        ports = [host.port for host in hosts]
    except ValueError:  # whose text may quote a password
        raise ValueError(f"is not a URL with a port up to 65535; {_ENCODING_RULE}") from None
    if parts.scheme not in schemes:
        raise ValueError(f"must begin with {' or '.join(f'{s}://' for s in schemes)}")
    if not (parts.netloc or parts.path.strip("/")) or (any(ports) and not all(host.hostname for host in hosts)):
        raise ValueError("names no host")
    if parts.scheme not in _WITH_ANY_PATH and _has_password_behind_host(parts):
        raise ValueError(f"has an @ behind its host; {_ENCODING_RULE}")
    return value


def _has_password_behind_host(parts: SplitResult) -> bool:
    """Return whether the URL reads as if its password began a path: one with / or ? that are not percent-encoded."""
    return "@" in f"{parts.path}{parts.fragment}" or ("@" in parts.query and "@" not in parts.netloc)


HttpUrl = Annotated[str, AfterValidator(lambda value: check_url(value, "http", "https"))]
