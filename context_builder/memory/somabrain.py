"""The SomaBrain client sends HTTP requests, tries again, and leaves a failing server alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import stamina

from context_builder.breaker import CircuitBreaker, guard_calls_to
from context_builder.errors import DatabaseError, DatabaseRejected, DatabaseUnavailable, DataRejected, SettingError
from context_builder.memory.options import SomaBrainOptions
from context_builder.storage.bounded_http import trusted_authorities
from context_builder.storage.urls import refuse_redirects

Payload = dict[str, Any]

DEFAULT_TOP_K: Final = 8
"""Memories that are asked for where nobody says how many."""

_UNKNOWN: Final = frozenset({404, 405, 501})
_TRANSIENT: Final = frozenset({408, 425, 429})
_INVALID_DATA: Final = frozenset({400, 413, 422})


class UnknownCall(DatabaseRejected):
    """Raised where the server does not have the call: of the two ways to ask, some have but one."""


class SomaBrainClient:
    """Asks SomaBrain. Raises :class:`DatabaseUnavailable` when it cannot be reached, fails or is left alone for
    having failed three times in a row, and :class:`DatabaseRejected` when it refuses. Raises
    :class:`SettingError` without a base URL.

    ``monotonic`` tells seconds on a clock that never goes back.
    """

    def __init__(self, options: SomaBrainOptions, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        if options.base_url is None:
            raise SettingError("SA01_SOMA_BASE_URL: is missing")
        self._base_url = options.base_url
        self._options = options
        breaker = CircuitBreaker(failures=options.failures_until_open, pause=options.open_for)
        self._calls = guard_calls_to(self.name, breaker, monotonic=monotonic)
        self._http: httpx.AsyncClient | None = None

    @property
    def name(self) -> str:
        return f"SomaBrain at {urlsplit(self._base_url).netloc.rpartition('@')[2]}"

    async def context_evaluate(self, payload: Mapping[str, Any]) -> Payload:
        """Call ``POST /context/evaluate``, which answers what fits a turn's message as ``candidates``."""
        return await self._post("/context/evaluate", payload)

    async def recall(self, query: str | Mapping[str, Any], top_k: int = DEFAULT_TOP_K) -> Payload:
        """Call ``POST /recall`` with a query's text, or with a payload, which may hold ``persona_id`` and
        ``threshold`` besides.
        """
        payload = {"query": query, "top_k": top_k} if isinstance(query, str) else query
        return await self._post("/recall", payload)

    async def remember_batch(self, payload: Mapping[str, Any]) -> Payload:
        """Call ``POST /memory/remember/batch``, which keeps ``memories``."""
        return await self._post("/memory/remember/batch", payload)

    async def close(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    async def _post(self, path: str, payload: Mapping[str, Any]) -> Payload:
        """Send one call, a few times if need be; the tries count once for the breaker. A call that is cut off by its
        caller's deadline counts as a failure too: an answer too late is none.
        """
        with self._calls.guard():
            return await self._tried(path, payload)

    async def _tried(self, path: str, payload: Mapping[str, Any]) -> Payload:
        async for attempt in stamina.retry_context(
            on=DatabaseUnavailable,
            attempts=self._options.retries + 1,
            timeout=None,
            wait_initial=self._options.retry_base_ms / 1000,
            wait_jitter=self._options.retry_base_ms / 1000,
        ):
            with attempt:
                return await self._asked(path, payload)
        raise AssertionError("the last try returns or raises")

    async def _asked(self, path: str, payload: Mapping[str, Any]) -> Payload:
        try:
            response = await self._connected().post(path, json=payload)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError, ValueError, TypeError) as error:
            raise DatabaseRejected(f"{self.name} cannot be asked so: {type(error).__name__}") from None
        except httpx.HTTPError as error:
            raise DatabaseUnavailable(f"{self.name} cannot be reached: {type(error).__name__}") from None
        if not response.is_success:
            raise self._refusal(response.status_code)
        try:
            answer = response.json() if response.content else {}
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise DatabaseUnavailable(f"{self.name} answers with something that is no JSON object")
        return answer

    def _refusal(self, status: int) -> DatabaseError:
        if status in _UNKNOWN:
            return UnknownCall(f"{self.name} does not have this call ({status})")
        kind = DatabaseUnavailable if status in _TRANSIENT or status >= 500 else DatabaseRejected
        return (DataRejected if status in _INVALID_DATA else kind)(f"{self.name} answers with status {status}")

    def _connected(self) -> httpx.AsyncClient:
        if self._http is None:
            headers = {"X-Namespace": self._options.namespace, "X-Memory-Namespace": self._options.memory_namespace}
            self._http = httpx.AsyncClient(
                base_url=self._base_url,
                timeout=self._options.timeout,
                verify=trusted_authorities(),
                headers={name: value for name, value in headers.items() if value},
                event_hooks=refuse_redirects(self.name, "SA01_SOMA_BASE_URL", DatabaseUnavailable),
            )
        return self._http
