"""The archive in a Supabase project, through the supabase client.

A project whose table has only the original columns works too. What it lacks is found out from
PostgREST's refusals, left out from then on, and said once. Without ``summary_seq`` the database
cannot tell a repeated delivery, so an equal row is looked for first.
"""

from __future__ import annotations

import asyncio
import importlib
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast
from urllib.parse import urlsplit

import structlog

from context_builder.archive.archive import COLUMNS, KEY, MIGRATIONS, SAME_BY, TABLE, SummaryRow, as_record
from context_builder.errors import ArchiveDataRejected, ArchiveError, ArchiveRejected, ArchiveUnavailable
from context_builder.storage.postgres_errors import explained
from context_builder.storage.redirects import refuse_redirects
from context_builder.storage.sqlstate import SQLSTATE_LENGTH

if TYPE_CHECKING:
    import httpx
    import postgrest
    import supabase

T = TypeVar("T")

TIMEOUT: Final = 5.0
"""Seconds for one request before the archive counts as unavailable."""

INDISPENSABLE: Final = frozenset({"session_id", "summary_text"})
"""Without these columns a row says nothing."""

_UNIQUE: Final = f"unique ({', '.join(KEY)})"

_UNKNOWN_COLUMN: Final = ("PGRST204", "42703")
_NO_UNIQUE_INDEX: Final = "42P10"  # for the ON CONFLICT of a delivery
_NOT_TO_BE_SEEN: Final = ("PGRST205", "42501")
_COLUMN_IN_MESSAGE: Final = re.compile(r"""'(\w+)' column|column "?(?:\w+\.)?(\w+)"?""")

_MIGRATE: Final = "run the SQL that `context-builder migrate` prints in Supabase's SQL editor"
_KEY_REFUSED: Final = "refuses SUPABASE_KEY; use the project's service key"
_ADVICE: Final = {
    "PGRST205": f"has no table {TABLE}; {_MIGRATE}",
    "PGRST301": _KEY_REFUSED,
    "PGRST302": _KEY_REFUSED,
    "PGRST303": _KEY_REFUSED,
    "401": _KEY_REFUSED,
    "403": _KEY_REFUSED,
    "42501": f"does not let SUPABASE_KEY use {TABLE}; use the project's service key",
}
# The API cannot reach its database, asks to slow down, or something before it failed.
_TRANSIENT: Final = re.compile(r"PGRST00\d|408|429|5\d\d")
# The API, or something before it, takes no such body: malformed, too large.
_INVALID_DATA: Final = ("PGRST102", "400", "413", "422")

log = structlog.get_logger(__name__)


class SupabaseArchive:
    """Keeps summaries in the project at ``url``. See :class:`~context_builder.archive.archive.Archive`."""

    def __init__(self, url: str, key: str, *, timeout: float = TIMEOUT) -> None:
        self._url = url
        self._key = key
        self._timeout = timeout
        self._http: httpx.AsyncClient | None = None
        self._client: supabase.AsyncClient | None = None
        self._opening = asyncio.Lock()
        self._lacking: set[str] = set()
        self._warned = False

    @property
    def name(self) -> str:
        return f"Supabase at {urlsplit(self._url).netloc.rpartition('@')[2]}"

    async def deliver(self, row: SummaryRow) -> int:
        record = as_record(row)
        return await self._adapting(lambda table: self._insert(table, record))

    async def forget(self, session_id: str) -> int:
        client = await self._connected()
        from postgrest.types import CountMethod, ReturnMethod

        deletion = client.table(TABLE).delete(count=CountMethod.exact, returning=ReturnMethod.minimal)
        with self._translated():
            return (await self._bounded(deletion.eq("session_id", session_id).execute())).count or 0

    async def check(self) -> None:
        await self._adapting(lambda table: table.select(*self._columns()).limit(0).execute())

    async def applied(self) -> frozenset[str]:
        client = await self._connected()
        from postgrest import APIError

        with self._translated():
            try:
                rows = await self._bounded(_rows(client.table(MIGRATIONS).select("name")))
            except APIError as error:
                if error.code in _NOT_TO_BE_SEEN:
                    return frozenset()
                raise
        return frozenset(row["name"] for row in rows)

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()
        self._http = self._client = None

    async def _insert(self, table: postgrest.AsyncRequestBuilder, record: dict[str, Any]) -> int:
        from postgrest.types import ReturnMethod

        known = {name: record[name] for name in self._columns()}
        if not self._lacking.isdisjoint((*KEY, _UNIQUE)):
            if not await _same(table, known, (*KEY, *SAME_BY)):
                await table.insert(known, returning=ReturnMethod.minimal).execute()
            return int(record["summary_seq"])
        while not await _rows(table.upsert(known, on_conflict=",".join(KEY), ignore_duplicates=True)):
            # In this order, so that what somebody else delivers in between either is seen or takes the number.
            following = await _next(table, known["session_id"])
            for same in await _same(table, known, SAME_BY):
                return int(same["summary_seq"])
            known["summary_seq"] = following
        return int(known["summary_seq"])

    async def _adapting(self, request: Callable[[postgrest.AsyncRequestBuilder], Awaitable[T]]) -> T:
        """Do the request, again with less for as long as the project turns out to lack something."""
        client = await self._connected()
        from postgrest import APIError

        with self._translated():
            while True:
                try:
                    answer = await self._bounded(request(client.table(TABLE)))
                    break
                except APIError as error:
                    lacking = _what_is_lacking(error)
                    if lacking not in (*self._columns(), _UNIQUE) or lacking in self._lacking | INDISPENSABLE:
                        raise
                    self._lacking.add(lacking)
        if self._lacking and not self._warned:
            self._warned = True
            log.warning("archive.columns_lacking", archive=self.name, lacking=sorted(self._lacking), advice=_MIGRATE)
        return answer

    def _columns(self) -> list[str]:
        return [name for name in COLUMNS if name not in self._lacking]

    async def _bounded(self, request: Awaitable[T]) -> T:
        """The client repeats some requests by itself; this bounds all of them together."""
        async with asyncio.timeout(self._timeout):
            return await request

    async def _connected(self) -> supabase.AsyncClient:
        async with self._opening:
            if self._client is None:
                vendor = await asyncio.to_thread(importlib.import_module, "supabase")  # takes about a second
                if self._http is None:
                    self._http = await asyncio.to_thread(self._http_client)
                options = vendor.AsyncClientOptions(
                    auto_refresh_token=False, persist_session=False, httpx_client=self._http
                )
                with self._translated():
                    self._client = await vendor.acreate_client(self._url, self._key, options)
            return self._client

    def _http_client(self) -> httpx.AsyncClient:
        """Made in a thread, because it reads the certificate authorities."""
        import httpx

        hooks = refuse_redirects(self.name, "SUPABASE_URL", ArchiveUnavailable)
        return httpx.AsyncClient(timeout=self._timeout, event_hooks=hooks)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raise the client's errors as the archive's.

        Of errors below HTTP only the type is told: the text of one about a header quotes the key.
        """
        import httpx
        from postgrest import APIError
        from supabase import AsyncSupabaseException

        try:
            yield
        except APIError as error:
            raise self._explained(error) from None
        except (AsyncSupabaseException, httpx.LocalProtocolError, httpx.InvalidURL, UnicodeError):
            raise ArchiveRejected(f"{self.name} cannot be asked: SUPABASE_URL or SUPABASE_KEY is malformed") from None
        except (httpx.HTTPError, TimeoutError) as error:
            raise ArchiveUnavailable(f"{self.name} cannot be reached: {type(error).__name__}") from None

    def _explained(self, error: postgrest.APIError) -> ArchiveError:
        code, message = str(error.code or ""), error.message or "no reason given"
        if _TRANSIENT.fullmatch(code):
            return ArchiveUnavailable(f"{self.name}: {message} ({code})")
        if code in _ADVICE:
            return ArchiveRejected(f"{self.name} {_ADVICE[code]}")
        if code in _INVALID_DATA:
            return ArchiveDataRejected(f"{self.name} refuses: {message} ({code})")
        if len(code) == SQLSTATE_LENGTH:
            return explained(self.name, code, message)
        return ArchiveRejected(f"{self.name} refuses: {message} ({code})")


async def _same(
    table: postgrest.AsyncRequestBuilder, record: dict[str, Any], by: Iterable[str]
) -> list[dict[str, Any]]:
    """The rows that are equal to ``record`` in the columns ``by``. Texts are compared here: one may be too long
    for an address."""
    text = "summary_text"
    query = table.select(*{text, *KEY} & record.keys())
    for name in {*by} & record.keys() - {text}:
        query = query.eq(name, record[name])
    return [row for row in await _rows(query) if row[text] == record[text]]


async def _next(table: postgrest.AsyncRequestBuilder, session_id: str) -> int:
    """The number after all that the session's rows have."""
    seqs = table.select("summary_seq").eq("session_id", session_id)
    highest = await _rows(seqs.order("summary_seq", desc=True, nullsfirst=False).limit(1))
    return int(highest[0]["summary_seq"] or 0) + 1 if highest else 1


async def _rows(query: postgrest.AsyncSelectRequestBuilder) -> list[dict[str, Any]]:
    """What the request answers; the client says only that it is JSON."""
    return cast("list[dict[str, Any]]", (await query.execute()).data)


def _what_is_lacking(error: postgrest.APIError) -> str:
    """The column or index that the project turned out to lack; empty when that is not what is wrong."""
    if error.code == _NO_UNIQUE_INDEX:
        return _UNIQUE
    found = _COLUMN_IN_MESSAGE.search(error.message or "") if error.code in _UNKNOWN_COLUMN else None
    return next(filter(None, found.groups()), "") if found else ""
