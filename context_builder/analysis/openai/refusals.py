"""Errors of the API are translated here, without the key and without what anybody said.

A server's own error text may quote the request, so none of it is passed on.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

from context_builder.analysis.options import Endpoint
from context_builder.errors import AnalystError, AnalystUnavailable, ReplyInvalid
from context_builder.storage.urls import explain_redirect, is_redirect

if TYPE_CHECKING:
    import openai


class Refused(AnalystUnavailable):
    """Raised when the server will refuse this request again: nothing is gained by another try."""


_ADVICE: Final[Mapping[int, str]] = {
    401: "refuses the key (401); check OPENAI_API_KEY",
    402: "wants to be paid first (402); check the account's plan and billing",
    403: "does not let this key use {model} (403); check the key's permissions",
    404: "does not know {model} (404); check the model's name and {setting}",
    413: "finds the request too large for {model} (413)",
}
_CODE_ADVICE: Final[Mapping[str, str]] = {
    "insufficient_quota": "has no quota left for this key; check the account's plan and billing",
    "context_length_exceeded": "finds the messages too long for the window of {model}",
    "model_not_found": _ADVICE[404],
    "invalid_api_key": _ADVICE[401],
}
LONGEST_WAIT: Final = 86_400.0
"""Seconds; a server that asks for more has its clock or its units wrong."""

_UNREACHED: Final = frozenset({"ConnectError", "ConnectTimeout"})
_WORTH_ANOTHER_TRY: Final = frozenset({408, 409, 425, 429})


def translated(error: Exception, endpoint: Endpoint, model: str) -> AnalystError:
    """Return this package's error for one that the client raised."""
    import openai

    server = endpoint.label
    if isinstance(error, openai.APITimeoutError):
        return AnalystUnavailable(f"{server} did not answer in time")
    if isinstance(error, openai.APIConnectionError):
        return AnalystUnavailable(f"{server} cannot be reached; check {endpoint.setting} and the network")
    if isinstance(error, openai.APIStatusError):
        return _of_status(error, endpoint, model)
    if isinstance(error, openai.APIError):
        return ReplyInvalid(f"{server} answered with something that is no completion")
    return Refused(f"{server} cannot be asked: {type(error).__name__}; check OPENAI_API_KEY and {endpoint.setting}")


def was_free(error: openai.OpenAIError) -> bool:
    """Return whether the request certainly cost nothing: it was refused, or reached no server.

    What the connection failed with is told by its name, as the client's versions use different HTTP packages.
    """
    import openai

    return isinstance(error, openai.APIStatusError) or type(error.__cause__).__name__ in _UNREACHED


def _of_status(error: openai.APIStatusError, endpoint: Endpoint, model: str) -> AnalystUnavailable:
    server, status = endpoint.label, error.status_code
    if is_redirect(status, error.response.headers):
        return Refused(f"{server} {explain_redirect(str(error.request.url), error.response.headers, endpoint.setting)}")
    code = error.code if isinstance(error.code, str) else ""
    if advice := _CODE_ADVICE.get(code) or _ADVICE.get(status):
        return Refused(f"{server} {advice.format(model=model, setting=endpoint.setting)}")
    if status in _WORTH_ANOTHER_TRY or status >= 500:
        what = "is over its rate limit" if status == 429 else "failed"
        return AnalystUnavailable(f"{server} {what} ({status})", retry_after=_retry_after(error.response.headers))
    return Refused(f"{server} rejects the request for {model} ({status}{_named(code)})")


def _named(code: str) -> str:
    return f", {code}" if re.fullmatch(r"[a-z0-9_.-]{1,64}", code) else ""


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the server asks to wait, a day at most: a number, or a date as HTTP also allows."""
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError, OSError):
            return None
    return None if math.isnan(seconds) else min(max(seconds, 0.0), LONGEST_WAIT)
