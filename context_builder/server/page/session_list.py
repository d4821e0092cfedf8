"""The session list shows a tenant's sessions from the registry, each with its published state."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from redis.asyncio import Redis

from context_builder.concurrency import beside_loop
from context_builder.json_values import number_of, object_of, objects_of, texts_of
from context_builder.knowledge.governance import Access
from context_builder.server.access.caller import Caller
from context_builder.server.page.session_status import failing_tasks
from context_builder.server.seen_session import access_to_sessions
from context_builder.server.services import Services
from context_builder.session.activity import SessionActivity, activity_of
from context_builder.session.keys import SLEEPERS, Keys
from context_builder.session.servers import SessionServers
from context_builder.session.store.commit import MARK_BYTES
from context_builder.session.store.lease import describe
from context_builder.session.store.registry import RegisteredSession, SessionRegistry, most_recent_first
from context_builder.session.stored import CONVERSATION, STATE
from context_builder.storage.redis_availability import translated

MOST_SHOWN: Final = 200
"""Sessions whose published state is read; others are found by searching."""

FRESH: Final = 0.9
"""Seconds for which what was read is shown to others: less than the time between two looks."""

RATE_SECONDS: Final = 60.0
MOST_SPEAKERS: Final = 6
MOST_CHARS: Final = 80


@dataclass(frozen=True, slots=True)
class SessionRow:
    """Describes a session for people. ``rate`` is messages a minute; ``waiting`` how many messages it is behind;
    ``last_spoke`` an epoch second; ``dead`` what could not be delivered; ``failing`` the tasks that fail; ``is_masked``
    says that who looks sees it masked.
    """

    session_id: str
    status: SessionActivity
    owner: str
    last_spoke: float | None
    silent: bool
    messages: int
    rate: int
    waiting: int
    to_deliver: int
    to_archive: int
    refused_by_archive: int
    dead: int
    speakers: tuple[str, ...]
    domains: tuple[str, ...]
    dollars: float
    tokens: int
    analyst: str
    failing: tuple[str, ...] = ()
    is_masked: bool = False

    def fits(self, words: str) -> bool:
        """Return whether each word of a search is in the name, a speaker, a domain or the status."""
        text = " ".join((self.session_id, self.status, self.owner, *self.speakers, *self.domains)).casefold()
        return all(word in text for word in words.casefold().split())


@dataclass(frozen=True, slots=True)
class SessionList:
    """The rows, the most recently active first, and how many sessions there are in all."""

    rows: tuple[SessionRow, ...]
    total: int

    def sorted(self, by: str) -> SessionList:
        """Return the list in the order of a column of :data:`SORTS`, with ``-`` before it the other way around."""
        key = SORTS.get(by.removeprefix("-"))
        if key is None:
            return self
        return SessionList(tuple(sorted(self.rows, key=key, reverse=by.startswith("-"))), self.total)

    def as_json(self) -> dict[str, Any]:
        return {"rows": [asdict(row) for row in self.rows], "total": self.total}


_STATUSES: Final = tuple(SessionActivity)
SORTS: Final[Mapping[str, Callable[[SessionRow], Any]]] = {
    "session": lambda row: row.session_id.casefold(),
    "status": lambda row: (not row.failing, _STATUSES.index(row.status)),
    "spoke": lambda row: -(row.last_spoke or float("inf")),
    "messages": lambda row: -row.messages,
    "behind": lambda row: (-row.waiting, -row.dead),
    "cost": lambda row: (-row.dollars, -row.tokens),
}
"""What the list is sorted by: names from A, what fails first, of numbers and times the highest first."""


class SessionLister:
    """Lists sessions; a published state is read again only when another one was published.

    However many look at the same time, and for whatever words, the registry and each session are read once in
    :data:`FRESH` seconds.
    """

    def __init__(self) -> None:
        self._states: dict[tuple[str, str], tuple[bytes, dict[str, Any]]] = {}
        self._registered: dict[str, tuple[float, list[RegisteredSession]]] = {}
        self._seen: dict[tuple[str, str], tuple[float, SessionRow]] = {}
        self._one_at_a_time = asyncio.Lock()

    async def find(self, servers: SessionServers, words: str = "") -> SessionList:
        """Return the tenant's sessions; with ``words`` those alone that fit them. Raises :class:`StoreUnavailable`."""
        parts = await asyncio.gather(*(self._rows(one.redis, one.name, words) for one in servers))
        total = sum(count for _, count in parts)
        found = {row.session_id: row for rows, _ in parts for row in rows}
        order = sorted(found.values(), key=SORTS["spoke"])
        return SessionList(tuple(order[:MOST_SHOWN]), total)

    async def _rows(self, redis: Redis, server: str, words: str) -> tuple[list[SessionRow], int]:
        async with self._one_at_a_time:
            return await self._fresh_rows(redis, server, words)

    async def _fresh_rows(self, redis: Redis, server: str, words: str) -> tuple[list[SessionRow], int]:
        read_at, registered = self._registered.get(server, (float("-inf"), []))
        if time.monotonic() - read_at > FRESH:
            registered = most_recent_first(await SessionRegistry(redis).sessions())
            self._registered[server] = time.monotonic(), registered
        shown = list(registered)
        if words and len(shown) > MOST_SHOWN:  # first those whose names fit
            sought = words.casefold().split()
            shown.sort(key=lambda one: not all(word in one.session_id.casefold() for word in sought))
        shown = shown[:MOST_SHOWN]
        rows = await self._rows_of(redis, server, shown)
        return [row for row in rows if not words or row.fits(words)], len(registered)

    async def _rows_of(self, redis: Redis, server: str, shown: Sequence[RegisteredSession]) -> list[SessionRow]:
        fresh = time.monotonic() - FRESH
        self._seen = {name: held for name, held in self._seen.items() if held[0] >= fresh}
        lacking = [one for one in shown if (server, one.session_id) not in self._seen]
        if lacking:
            now = time.monotonic()
            for row in await self._with_states(redis, server, lacking):
                self._seen[server, row.session_id] = now, row
        return [self._seen[server, one.session_id][1] for one in shown]

    async def _with_states(self, redis: Redis, server: str, shown: Sequence[RegisteredSession]) -> list[SessionRow]:
        async with translated(), redis.pipeline(transaction=False) as pipe:
            for one in shown:
                keys = Keys(one.session_id)
                pipe.getrange(keys.state, -MARK_BYTES, -1)
                pipe.get(keys.conversation)
                pipe.zscore(SLEEPERS, one.session_id)
            answers = _as_missing(await pipe.execute(raise_on_error=False))
        marks, conversations, asleep = answers[::3], answers[1::3], answers[2::3]
        await self._read_states(redis, server, [one.session_id for one in shown], marks)
        now = time.time()
        return [
            _row(
                one,
                self._states.get((server, one.session_id), (b"", {}))[1],
                CONVERSATION.read(said),
                is_asleep=is_asleep is not None,
                now=now,
            )
            for one, said, is_asleep in zip(shown, conversations, asleep, strict=True)
        ]

    async def _read_states(self, redis: Redis, server: str, names: Sequence[str], marks: Sequence[bytes]) -> None:
        held = {name: self._states.get((server, name), (b"", {}))[0] for name in names}
        changed = [(name, mark) for name, mark in zip(names, marks, strict=True) if mark and mark != held[name]]
        if not changed:
            return
        async with translated(), redis.pipeline(transaction=False) as pipe:
            for name, _ in changed:
                pipe.get(Keys(name).state)
            states = _as_missing(await pipe.execute(raise_on_error=False))
        read = await beside_loop(lambda: [_brief(STATE.read(raw)) for raw in states])
        for (name, mark), state in zip(changed, read, strict=True):
            self._states[server, name] = mark, state
        while len(self._states) > 4 * MOST_SHOWN:
            del self._states[next(iter(self._states))]


async def as_seen(services: Services, caller: Caller, found: SessionList) -> SessionList:
    """Return the list without the sessions that the caller may not see, and without counting them."""
    access = await access_to_sessions(services, caller, [row.session_id for row in found.rows])
    rows = tuple(
        replace(row, is_masked=access[row.session_id] is not Access.READ)
        for row in found.rows
        if access[row.session_id] is not Access.DENIED
    )
    return SessionList(rows, found.total - (len(found.rows) - len(rows)))


def _as_missing(answers: Sequence[Any]) -> list[Any]:
    """Return Redis' answers; None of a key that somebody made another type. Raises every other error."""
    if error := next((one for one in answers if isinstance(one, Exception) and "WRONGTYPE" not in str(one)), None):
        raise error
    return [None if isinstance(one, Exception) else one for one in answers]


def _brief(state: dict[str, Any]) -> dict[str, Any]:
    """Return what rows are made of: a state may be megabytes."""
    buffer = objects_of(state.get("raw_recent_buffer"))
    speakers = dict.fromkeys(str(one.get("speaker", ""))[:MOST_CHARS] for one in reversed(buffer))
    points = objects_of(object_of(state.get("rolling_summary")).get("points"))
    speakers |= dict.fromkeys(name for one in reversed(points) for name in texts_of(one.get("speakers"), MOST_CHARS))
    cost, analyst = object_of(state.get("cost")), object_of(state.get("analyst"))
    tasks = objects_of([*object_of(cost.get("tasks")).values()])
    return {
        "speakers": tuple(filter(None, speakers))[:MOST_SPEAKERS],
        "arrivals": [number_of(one.get("buffer_entry_time")) or 0.0 for one in buffer],
        "domains": tuple(texts_of(state.get("current_domains"), MOST_CHARS)),
        "last": number_of(state.get("last_message_time")),
        "failing": failing_tasks(state),
        "dollars": number_of(cost.get("dollars")) or 0.0,
        "tokens": int(
            sum(number_of(one.get(name)) or 0 for one in tasks for name in ("prompt_tokens", "completion_tokens"))
        ),
        "analyst": str(analyst.get("domains") or analyst.get("keywords") or analyst.get("summary") or "")[:MOST_CHARS],
    }


def _row(
    one: RegisteredSession,
    state: dict[str, Any],
    conversation: dict[str, Any],
    *,
    is_asleep: bool,
    now: float,
) -> SessionRow:
    last_spoke = number_of(conversation.get("last_message_time")) or state.get("last") or one.last_active
    return SessionRow(
        session_id=one.session_id,
        status=activity_of(
            is_owned=one.owner is not None,
            is_asleep=is_asleep,
            has_ended=one.ended_at is not None,
            last_spoke=last_spoke if one.messages else None,
            waiting=one.waiting,
            now=now,
        ),
        owner=describe(one.owner)[:MOST_CHARS] if one.owner else "",
        last_spoke=last_spoke,
        silent=bool(conversation.get("silence")),
        messages=one.messages,
        rate=sum(at > now - RATE_SECONDS for at in state.get("arrivals", ())),
        waiting=one.waiting,
        to_deliver=one.undelivered + one.unremembered,
        to_archive=one.undelivered,
        refused_by_archive=one.undeliverable["archive"],
        dead=one.dead_letters + sum(one.undeliverable.values()),
        speakers=state.get("speakers", ()),
        domains=state.get("domains", ()),
        dollars=state.get("dollars", 0.0),
        tokens=state.get("tokens", 0),
        analyst=state.get("analyst", ""),
        failing=state.get("failing", ()),
    )
