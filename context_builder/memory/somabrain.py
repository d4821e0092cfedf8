"""SomaBrain as a client and as a memory store, within its three documented calls.

The client sends HTTP requests, tries again, and leaves a failing server alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import stamina

from context_builder.breaker import CircuitBreaker, guard_calls_to
from context_builder.clock import moment
from context_builder.errors import (
    CannotForget,
    DatabaseError,
    DatabaseRejected,
    DatabaseUnavailable,
    DataRejected,
    SettingError,
)
from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery, OnEmbedded, Rating, SearchResult
from context_builder.memory.options import SomaBrainOptions
from context_builder.memory.rows import storable
from context_builder.storage.bounded_http import BoundedClient
from context_builder.storage.urls import refuse_redirects

_TEXT_KEYS: Final = ("text", "content", "value")


@dataclass(frozen=True, slots=True)
class SomaBrainEntry:
    """An entry of an answer; it always has a text.

    ``place`` counts the answer's entries from 0, ``score`` is None where the entry has no finite number for it, and
    ``metadata`` is the caller's own copy.
    """

    place: int
    text: str
    id: str | None
    kind: str | None
    score: float | None
    time: datetime | None
    metadata: dict[str, Any]


def read_entries(answer: object) -> Iterator[SomaBrainEntry]:
    """Yield the entries of ``candidates[]`` and ``results[]``; those without a text are passed over."""
    for place, entry in enumerate(_mappings(answer)):
        text = next((entry[key] for key in _TEXT_KEYS if isinstance(entry.get(key), str) and entry[key].strip()), None)
        if text is None:
            continue
        held = entry.get("metadata")
        metadata = dict(held) if isinstance(held, Mapping) else {}
        yield SomaBrainEntry(
            place,
            text,
            id=None if entry.get("id") is None else str(entry["id"]),
            kind=str(entry["type"]) if entry.get("type") else None,
            score=_finite(entry.get("score")),
            time=moment(metadata.get("timestamp") or metadata.get("created_at")),
            metadata=metadata,
        )


def _mappings(answer: object) -> Iterator[Mapping[str, Any]]:
    if not isinstance(answer, Mapping):
        return
    for key in ("candidates", "results"):
        found = answer.get(key)
        if isinstance(found, list | tuple):
            yield from (entry for entry in found if isinstance(entry, Mapping))


def _finite(value: object) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


Payload = dict[str, Any]

DEFAULT_TOP_K: Final = 8
"""Memories that are asked for where nobody says how many."""

_UNKNOWN: Final = frozenset({404, 405, 501})
_TRANSIENT: Final = frozenset({408, 425, 429})
_INVALID_DATA: Final = frozenset({400, 413, 422})


class UnknownCall(DatabaseRejected):
    """Raised where the server does not have the call: of the two ways to ask, some have but one."""


MOST_BYTES: Final = 64 * 1024 * 1024
"""Bytes of an answer, unpacked: of a longer one the rest is left out, so that it is no JSON."""


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
            self._http = BoundedClient(
                most_bytes=MOST_BYTES,
                seconds=self._options.timeout,
                base_url=self._base_url,
                headers={name: value for name, value in headers.items() if value},
                event_hooks=refuse_redirects(self.name, "SA01_SOMA_BASE_URL", DatabaseUnavailable),
            )
        return self._http


BATCH: Final = 200
"""Most memories in one call."""

_OURS: Final = ("id", "kind", "session_id", "user_id", "speaker", "position", "tags")
_OF_A_TURN: Final = ("tenant_id", "session_id", "query", "top_k")
_OLDEST: Final = datetime.min.replace(tzinfo=UTC)


class SomaBrainStore:
    """Keeps memories in SomaBrain. See :class:`~context_builder.memory.memory.MemoryStore`.

    What its documented bodies have no field for (id, speaker, time, position) goes into a memory's metadata and is
    read there again. Of several memories with one id the best is found, because SomaBrain may keep twice what is
    remembered twice. A filter applies to what SomaBrain gives, which is then asked for ``OVERSAMPLE`` times as much.
    It documents no way to delete, so :meth:`forget` raises :class:`~context_builder.errors.CannotForget`, and none to
    rate, so :meth:`rate` raises :class:`~context_builder.errors.DatabaseRejected`.
    """

    OVERSAMPLE: Final = 4
    supports_message_feed = False
    """SomaBrain documents no way to replace or delete a memory."""

    def __init__(self, client: SomaBrainClient) -> None:
        self._client = client

    @property
    def name(self) -> str:
        return self._client.name

    @property
    def somabrain(self) -> SomaBrainClient:
        """Return what turns ask: ``/context/evaluate``, as is documented for them."""
        return self._client

    async def remember(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        for start in range(0, len(memories), BATCH):
            batch = [_payload(memory) for memory in memories[start : start + BATCH]]
            await self._client.remember_batch({"tenant_id": tenant_id, "memories": batch})

    async def search(self, tenant_id: str, query: MemoryQuery) -> list[SearchResult]:
        where = replace(query.filter, sensitivities=())  # which nearly all that is found passes
        is_narrow = where != MemoryFilter(session_id=where.session_id, persona_id=where.persona_id)
        asked: Payload = {
            "tenant_id": tenant_id,
            "session_id": where.session_id,
            "persona_id": where.persona_id,
            "query": query.text,
            "top_k": query.limit * (self.OVERSAMPLE if is_narrow else 1),
            "threshold": query.threshold,
        }
        best: dict[str, SearchResult] = {}
        for found in map(_result, read_entries(await self._asked(asked))):
            known = best.get(found.memory.id)
            fits = found.score >= query.threshold and _passes(query.filter, found.memory)
            if fits and (known is None or found.score > known.score):
                best[found.memory.id] = found
        if query.text.strip():
            ordered = sorted(best.values(), key=lambda found: -found.score)
        else:
            ordered = sorted(best.values(), key=lambda found: found.memory.time or _OLDEST, reverse=True)
        return ordered[: query.limit]

    async def _asked(self, payload: Payload) -> Payload:
        """Return what ``/recall`` answers; where a server lacks it, what fits a turn."""
        try:
            return await self._client.recall(payload)
        except UnknownCall:
            return await self._client.context_evaluate({name: payload[name] for name in _OF_A_TURN})

    async def rate(self, tenant_id: str, ratings: Sequence[Rating]) -> None:
        if ratings:
            raise DatabaseRejected(f"{self.name} documents no way to rate memories")

    async def forget(self, tenant_id: str, *, ids: Sequence[str] = (), filter: MemoryFilter | None = None) -> int:  # noqa: A002
        if not ids and filter is None:
            return 0
        raise CannotForget(f"{self.name} documents no way to delete memories; delete them there")

    async def embed_missing(self, tenant_id: str, on_embedded: OnEmbedded | None = None) -> int:
        """Return 0: SomaBrain embeds by itself."""
        return 0

    async def close(self) -> None:
        await self._client.close()


def _payload(memory: Memory) -> Payload:
    ours = {name: getattr(memory, name) for name in _OURS}
    ours["timestamp"] = memory.time.isoformat() if memory.time is not None else None
    known = {name: value for name, value in ours.items() if value is not None}
    payload: Payload = storable(
        {
            "type": memory.kind,
            "text": memory.text,
            "session_id": memory.session_id,
            "persona_id": memory.metadata.get("persona_id"),
            "tags": memory.tags,
            "metadata": {**memory.metadata, **known},
        }
    )
    return payload


def _result(entry: SomaBrainEntry) -> SearchResult:
    metadata = entry.metadata
    ours = {name: metadata.pop(name, None) for name in _OURS}
    position, tags = ours["position"], ours["tags"]
    memory = Memory(
        id=str(ours["id"] or entry.id or f"somabrain {entry.text[:80]}"),
        text=entry.text,
        kind=str(ours["kind"] or entry.kind or "memory"),
        session_id=_name(ours["session_id"]),
        user_id=_name(ours["user_id"]),
        speaker=_name(ours["speaker"]),
        time=entry.time,
        position=position if isinstance(position, int) else None,
        tags=tuple(map(str, tags)) if isinstance(tags, list) else (),
        metadata=metadata,
    )
    return SearchResult(memory, min(max(entry.score or 0.0, 0.0), 1.0), ("somabrain",))


def _passes(where: MemoryFilter, memory: Memory) -> bool:
    """Return whether the memory meets the filter; one that tells no session is left to SomaBrain's own filter."""
    return (where if memory.session_id is not None else replace(where, session_id=None)).passes(memory)


def _name(value: object) -> str | None:
    return None if value is None else str(value)
