"""What a server says when it does not answer, and what that means: in HTTP, or in place of an answer.

A server's own text may quote the request, so it is searched for what it is about and not passed on, but for what it
says of a key that it refuses: no error holds the key, or what anybody said.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import from_json

from context_builder.analysis.options import Endpoint
from context_builder.errors import AnalystError, AnalystUnavailable, ContentRefused, ReplyInvalid, RequestRefused
from context_builder.storage.refusal import words_of_refusal
from context_builder.storage.urls import explain_redirect, is_redirect

if TYPE_CHECKING:
    import openai


class Refused(AnalystUnavailable):
    """Raised when the server will refuse this request again: nothing is gained by another try."""


_ADVICE: Final[Mapping[int, str]] = {
    401: "refuses the key ({status}){words}; check OPENAI_API_KEY",
    402: "wants to be paid first (402); check the account's plan and billing",
    403: "does not let this key use {model} (403); check the key's permissions",
    404: "does not know {model} ({status}); check the model's name and {setting}",
}
_NO_MONEY: Final = "has no quota left for this key; check the account's plan and billing"
_KEY_CODES: Final = frozenset({"invalid_api_key", "api_key_invalid"})
LONGEST_WAIT: Final = 86_400.0
"""Seconds; a server that asks for more has its clock or its units wrong."""

_KEY_REFUSED: Final = 401
_FORBIDDEN: Final = 403
_RATE_LIMITED: Final = 429
_FAILED: Final = 500
_UNDECODABLE: Final = "DecodingError"
_UNREACHED: Final = frozenset({"ConnectError", "ConnectTimeout"})
_WORTH_ANOTHER_TRY: Final = frozenset({408, 409, 424, 425, 429, 499})
_UNEXPLAINED: Final = frozenset({400, 422, 501})
_ABOUT_CONTENT: Final = frozenset({400, 403, 422, 451})
"""Statuses with which servers refuse what a request holds; others need one of the codes that say nothing else."""

_FILTER_CODES: Final = re.compile(
    r"content_?filter|content_?policy|responsible_?ai_?policy|data_?inspection_?failed|prohibited_content"
)
_FILTER_WORDS: Final = re.compile(
    r"content (?:management |usage |safety )?(?:policy|policies|filter)|inappropriate content"
    r"|sensitive (?:content|words)|moderation|flagged|safety (?:system|settings|reasons|filter|check)|guardrail|harmful"
    r"|unsafe content"
)
_TOO_LONG: Final = re.compile(
    r"context_length_exceeded|exceed_context_size|context (?:length|window|size)|prompt is too long|input is too long"
    r"|input token count|too many (?:input )?tokens|n_ctx|reduce the length(?! of max)|string_above_max_length"
    r"|max_new_tokens`? must be <=|too large to process|allowed token size|must have less than \d+ tokens"
)
_NO_JSON: Final = re.compile(
    r"json_validate_failed|failed_generation|(?:validate|generate|produce)\w* (?:valid )?json|no valid json"
    r"|not valid json"
)
_OUT_OF_ROOM: Final = re.compile(
    r"max completion tokens reached before .{1,60}"
    r"|.{0,60}(?:max_tokens|output limit) (?:or .{1,30} )?was reached.{0,99}",
    re.IGNORECASE,
)
"""What servers have in place of a reply, or of one that they found invalid, if the limit was too small for it."""

_NO_SUCH_PATH: Final = re.compile(
    r"unexpected endpoint(?: or method)?|unknown (?:endpoint|path|url)|404 page not found|"
    r"\"(?:detail)?\": \"not found\"$|cannot post /|method not allowed|could not route|no route matched|invalid url"
)
"""Answers that there is nothing at an address, LM Studio's with status 200: mostly, ``/v1`` is missing."""

_NO_SUCH_MODEL: Final = re.compile(
    r"invalid model\b(?! output)|(?:unknown|no such) model|no models? (?:is |are )?(?:currently )?loaded"
    r"|\"param\": \"model\""
    r"|\bmodel\b.{0,99} (?:does not exist|not found|is not (?:available|loaded)|is not supported by any)"
    r"|with on-demand throughput|deployment for this resource does not exist"
)
_MODEL_CODES: Final = re.compile(
    r"model_?not_?(?:found|supported|available)|(?:invalid|unknown)_?model|deploymentnotfound"
)
_WRONG_KEY: Final = re.compile(
    r"\b(?:incorrect|invalid|expired|wrong) api.?key|api.?key (?:is )?(?:not valid|expired|invalid)"
)
_NO_MEMORY: Final = re.compile(r"(?:more|enough|insufficient|out of) (?:system |gpu |cuda |free )?memory|outofmemory")
_UNPAID: Final = re.compile(
    r"credit balance|insufficient (?:balance|credits?|funds|quota)|purchase (?:more )?credits|plans? (?:and|&) billing"
    r"|budget has been exceeded|余额不足|欠费"
)
_UNPAID_CODES: Final = re.compile(
    r"insufficient_(?:quota|balance|credits?|funds)|current_quota|budget_exceeded|billing"
)
"""Words and codes for an account without money: waiting, and another request, are of no use."""

_STATUS_OF_WORD: Final[Mapping[str, int]] = {
    "resource_exhausted": 429,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "unavailable": 503,
    "overloaded_error": 503,
    "deadline_exceeded": 504,
    "invalid_argument": 400,
    "invalid_request_error": 400,
    "failed_precondition": 400,
    "unauthenticated": 401,
    "invalid_api_key": 401,
    "authentication_error": 401,
    "insufficient_quota": 429,
    "permission_denied": 403,
    "not_found": 404,
    "model_not_found": 404,
}
_AGAIN_IN: Final = re.compile(r"""(?:again|retry) (?:in|after)\s+([\d.hms]+)|"retrydelay":\s*"([\d.]+s)""")
_LIMIT_FIGURE: Final = re.compile(r"\"([\w-]{0,40}ratelimit-[\w-]{1,40})\": \"([^\"]{1,40})\"")
_EPOCH: Final = 1e9
"""Seconds since 1970, in 2001: a larger figure is a time, not a wait, and a thousand times larger in milliseconds."""

_DURATION: Final = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)(s|ms)?)?")
_WORDS_OF_CODES: Final = frozenset(
    "access api argument bad body denied error exceeded failed field format found in input internal invalid json length"
    " limit max maximum message messages missing model not of param parameter permission precondition prompt rejected"
    " request required response role schema server syntax temperature template token tokens too type unexpected unknown"
    " unprocessable entity unsupported validation value".split()
)
_QUOTES: Final = frozenset({"input", "failed_generation"})
"""Keys under which servers quote the request, or the model."""

_DEEPEST: Final = 5
_MOST_SEARCHED: Final = 20_000
"""Characters of a server's own text, which may be a page, or quote the whole request."""


@dataclass(eq=False)
class ServerError(Exception):
    """A server's refusal: its status, the words that it uses as codes, and its whole text, in lower case."""

    status: int
    codes: frozenset[str]
    text: str
    headers: Mapping[str, str]
    url: str = ""
    body: bytes = b""
    """What came with status 401, which quotes no request."""

    @classmethod
    def of_response(cls, response: Any, url: str) -> ServerError:
        """Return what an HTTP error says, a response of the client's HTTP package, to what was asked at ``url``."""
        body: bytes = response.content
        try:
            said = from_json(body)
        except ValueError:
            said = body[:_MOST_SEARCHED].decode("utf-8", "replace")
        kept = body[:_MOST_SEARCHED] if response.status_code == _KEY_REFUSED else b""
        return cls(response.status_code, *_codes_and_text(said), response.headers, url, kept)

    @classmethod
    def of_body(cls, said: Any) -> ServerError:
        """Return what an error says that came in place of an answer; its status is the one that it names."""
        codes, text = _codes_and_text(said)
        path = (404,) if _NO_SUCH_PATH.search(text) else ()
        numbers = (int(code) for code in codes if code.isdecimal() and len(code) == 3)
        words = (_STATUS_OF_WORD[code] for code in sorted(codes) if code in _STATUS_OF_WORD)
        named = [status for status in (*sorted(numbers), *path, *words) if 400 <= status < 600]
        return cls(named[0] if named else 502, codes, text, {})

    @property
    def is_about_content(self) -> bool:
        """Return whether a filter, or the model's window, refuses what the request holds."""
        return self.is_filtered or self.is_too_long

    @property
    def is_filtered(self) -> bool:
        if any(map(_FILTER_CODES.search, self.codes)):
            return True
        found = _FILTER_CODES.search(self.text) or _FILTER_WORDS.search(self.text)
        return self.status in _ABOUT_CONTENT and found is not None

    @property
    def is_too_long(self) -> bool:
        too_long = self.status in {400, 422, 500} and _TOO_LONG.search(self.text) is not None
        return too_long or self.status == 413

    @property
    def is_invalid_json(self) -> bool:
        """Return whether the server checked what its model wrote, and found no JSON: chance, unlike a refusal."""
        return self.status < 500 and _NO_JSON.search(self.text) is not None

    @property
    def is_cut_off(self) -> bool:
        """Return whether the limit was reached before there was a reply that the server takes."""
        return self.status in {400, 422} and _OUT_OF_ROOM.search(self.text) is not None

    @property
    def is_unpaid(self) -> bool:
        """Return whether the account has no money or quota left; a quota that comes back in time is a rate limit."""
        if any(map(_UNPAID_CODES.search, self.codes)):
            return True
        says_so = self.status in {400, 402, 403, 429} and _UNPAID.search(self.text) is not None
        return says_so and self.retry_after is None

    @property
    def is_about_key(self) -> bool:
        if not self.codes.isdisjoint(_KEY_CODES):
            return True
        return self.status == _KEY_REFUSED or (self.status in {400, 403} and _WRONG_KEY.search(self.text) is not None)

    @property
    def is_about_model(self) -> bool:
        """Return whether the server does not have the model, or has not loaded it."""
        if any(map(_MODEL_CODES.search, self.codes)):
            return True
        return self.status in {400, 404, 422} and _NO_SUCH_MODEL.search(self.text) is not None

    @property
    def is_out_of_memory(self) -> bool:
        return self.status >= _FAILED and _NO_MEMORY.search(self.text) is not None

    @property
    def is_unexplained(self) -> bool:
        """Return whether it says nothing that is understood here."""
        known = self.is_about_content or self.is_invalid_json
        return self.status in _UNEXPLAINED and not known and _advice(self) is None

    @property
    def retry_after(self) -> float | None:
        """Return the seconds that the server asks to wait, a day at most, where it says so anywhere."""
        if (milliseconds := _seconds(self.headers.get("retry-after-ms", ""))) is not None:
            return _bounded(milliseconds / 1000)
        if (value := self.headers.get("retry-after")) is not None:
            return _bounded(_seconds(value))
        if (found := _AGAIN_IN.search(self.text)) is not None:
            return _bounded(_seconds((found[1] or found[2]).rstrip(".")))
        return _bounded(self._until_reset()) if self.status == _RATE_LIMITED else None

    def _until_reset(self) -> float | None:
        """Return the seconds until all limits that are used up are reset, of those in headers, or quoted in the text:
        ``x-ratelimit-remaining-requests`` and ``x-ratelimit-reset-requests``, for example.
        """
        told = dict(_LIMIT_FIGURE.findall(self.text))
        told |= {name.casefold(): value for name, value in self.headers.items() if "ratelimit-" in name.casefold()}
        waits = [
            _until(value)
            for name, value in told.items()
            if "reset" in name and told.get(name.replace("reset", "remaining")) == "0"
        ]
        return max((wait for wait in waits if wait is not None), default=None)


def translated(error: Exception, endpoint: Endpoint) -> AnalystError:
    """Return this package's error for one of the client's that is not an answer of the server."""
    import openai

    server = endpoint.label
    if isinstance(error, openai.APITimeoutError):
        return AnalystUnavailable(f"{server} did not answer in time")
    if type(error.__cause__).__name__ == _UNDECODABLE:
        return AnalystUnavailable(
            f"{server} answers with what cannot be unpacked as its content-encoding says;"
            f" check {endpoint.setting} and what stands before the server"
        )
    if isinstance(error, openai.APIConnectionError):
        return AnalystUnavailable(f"{server} cannot be reached; check {endpoint.setting} and the network")
    if isinstance(error, openai.APIError):
        return ReplyInvalid(f"{server} answered with something that is no completion")
    return Refused(f"{server} cannot be asked: {type(error).__name__}; check OPENAI_API_KEY and {endpoint.setting}")


def explained(error: ServerError, endpoint: Endpoint, model: str, sent: str) -> AnalystError:
    """Return this package's error for a server's, which says nothing of what was ``sent``."""
    server, status = endpoint.label, error.status
    if is_redirect(status, error.headers):
        told = explain_redirect(error.url, error.headers, endpoint.setting)
        hidden = re.sub(re.escape(endpoint.api_key), "…", told, flags=re.IGNORECASE) if endpoint.api_key else told
        return Refused(f"{server} {hidden}")
    if error.is_filtered:
        return ContentRefused(f"{server} filters what the request for {model} holds ({status})")
    if error.is_too_long:
        return ContentRefused(f"{server} finds the messages too long for the window of {model} ({status})")
    if error.is_invalid_json:
        return ReplyInvalid(f"{server} finds that the reply of {model} is no JSON ({status})")
    if found := _NO_SUCH_PATH.search(error.text) if status in {404, 405} else None:
        words = found[0].replace('"', "").removeprefix("404 ").strip(" :")
        where = f"{endpoint.setting}{_without_v1(endpoint)}"
        return Refused(f"{server} has nothing at this address ({status}: {words}); check {where}")
    if advice := _advice(error):
        words = words_of_refusal(error.body, endpoint.api_key, sent)
        told = advice.format(model=model, setting=endpoint.setting, status=status, words=f": {words}" if words else "")
        # a firewall before the server may forbid what people said, and says no more of it than of a key
        forbids = status == _FORBIDDEN and not error.codes
        return RequestRefused(f"{server} {told}") if forbids else Refused(f"{server} {told}")
    if error.is_out_of_memory:
        return AnalystUnavailable(f"{server} has too little memory for {model} ({status}); set a smaller one")
    if status in _WORTH_ANOTHER_TRY or status >= 500:
        what = "is over its rate limit" if status == 429 else "failed"
        return AnalystUnavailable(f"{server} {what} ({status})", retry_after=error.retry_after)
    return RequestRefused(f"{server} rejects the request for {model} ({status}{_named(error.codes)})")


def _advice(error: ServerError) -> str | None:
    if error.is_unpaid:
        return _NO_MONEY
    if error.is_about_model:
        return _ADVICE[404]
    return _ADVICE[_KEY_REFUSED] if error.is_about_key else _ADVICE.get(error.status)


def _without_v1(endpoint: Endpoint) -> str:
    has_version = endpoint.base_url is None or re.search(r"/v\d", endpoint.base_url)
    return "" if has_version else ": most servers want /v1 at its end"


def was_free(error: openai.OpenAIError) -> bool:
    """Return whether the request certainly cost nothing: it was refused, or reached no server.

    What the connection failed with is told by its name, as the client's versions use different HTTP packages.
    """
    import openai

    return isinstance(error, openai.APIStatusError) or type(error.__cause__).__name__ in _UNREACHED


def _codes_and_text(said: Any) -> tuple[frozenset[str], str]:
    texts = list(_strings(said, "", 0))
    codes = frozenset(
        text.casefold() for key, text in texts if key in {"code", "type", "status", "status_code", "reason"}
    )
    # a key and its value as in JSON, for what is only told by both
    text = " ".join(f'"{key}": "{text}"' for key, text in texts)[:_MOST_SEARCHED]
    return codes, text.casefold()


def _strings(node: Any, key: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield every text and whole number in an error, with the key that it stands under."""
    if depth > _DEEPEST:
        return
    if isinstance(node, dict):
        for name, value in node.items():
            is_quote = name in _QUOTES and not (isinstance(value, str) and _OUT_OF_ROOM.fullmatch(value))
            yield from _strings("" if is_quote else value, str(name).casefold()[:64], depth + 1)
    elif isinstance(node, list):
        for value in node[:20]:
            yield from _strings(value, key, depth + 1)
    elif isinstance(node, str):
        yield key, node[:_MOST_SEARCHED]
    elif isinstance(node, int) and not isinstance(node, bool) and abs(node) < LONGEST_WAIT:
        yield key, str(node)


def _named(codes: frozenset[str]) -> str:
    """Return the server's code, if it is made of words that codes are made of: others may be of the request."""
    names = sorted(code for code in codes if _WORDS_OF_CODES.issuperset(re.split(r"[_.-]", code)))
    return f", {names[0]}" if names else ""


def _seconds(value: str) -> float | None:
    """Return the seconds until a date as HTTP writes it, or in a number or a duration such as ``1m2.5s``."""
    try:
        return float(value)
    except ValueError:
        pass
    if value and (found := _DURATION.fullmatch(value.strip())):
        hours, minutes, rest, unit = found.groups()
        return int(hours or 0) * 3600 + int(minutes or 0) * 60 + float(rest or 0) / (1000 if unit == "ms" else 1)
    try:
        return parsedate_to_datetime(value).timestamp() + 1 - time.time()  # any moment of that second is meant
    except (ValueError, TypeError, OverflowError, OSError):
        return None


def _until(value: str) -> float | None:
    """Return the seconds until a reset, told as a time since 1970 or as :func:`_seconds` reads it."""
    seconds = _seconds(value)
    if seconds is None or seconds < _EPOCH:
        return seconds
    return seconds / (1000 if seconds > 1000 * _EPOCH else 1) - time.time()


def _bounded(seconds: float | None) -> float | None:
    return None if seconds is None or math.isnan(seconds) else min(max(seconds, 0.0), LONGEST_WAIT)
