"""The conversation reader gives the page a session's conversation: first all, then only changes, by message."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from secrets import token_hex
from typing import Final, NamedTuple

from redis.asyncio import Redis

from context_builder.clock import epoch
from context_builder.concurrency import beside_loop
from context_builder.json_values import number_of, object_of, objects_of, texts_of
from context_builder.server.page.domain_history import DomainChart, DomainHistory
from context_builder.server.page.session_status import troubles_of, undelivered
from context_builder.server.page.summary_view import in_order, shown_point
from context_builder.server.seen_session import SeenSession
from context_builder.server.shared_look import Changes
from context_builder.session.activity import activity_of
from context_builder.session.client import JsonObject
from context_builder.session.keys import SLEEPERS, Keys
from context_builder.session.messages.message import is_assistants
from context_builder.session.store.commit import MARK_BYTES
from context_builder.session.store.lease import describe, is_forgotten
from context_builder.session.stored import CONVERSATION, HEAD, OWNER
from context_builder.storage.redis_availability import read_together, translated

FIRST: Final = 300
"""Messages that somebody who begins to look is shown."""

CHARTED: Final = 2_000
"""Messages before those that count in the chart."""

MOST_CHANGES: Final = 100
"""Changes that are remembered for those who come back."""

CHART_SECONDS: Final = 2.0
MOST_TEXT: Final = 8_000
"""Characters of a message that are shown."""

_MOST_NAME: Final = 120
_PAGE: Final = 1_000
_OF_TROUBLE: Final = ("failing", "analyst", "rolling_summary", "messages_since_summary")
"""Fields of a state that tell what its model calls fail at."""


class ConversationLook(NamedTuple):
    """A reader as it was after so many changes."""

    reader: ConversationReader
    number: int


class ConversationReader:
    """Reads one session. ``number`` counts changes; ``gone`` says that there is no such session any more.

    ``has_model`` says that a language model is set up, which is told of when it does not answer.
    """

    def __init__(self, redis: Redis, session_id: str, session: SeenSession, *, has_model: bool = False) -> None:
        self._redis = redis
        self._session = session
        self._keys = Keys(session_id)
        self._messages = session
        self._session_id = session_id
        self._has_model = has_model
        self._state: JsonObject = {}
        self._run = token_hex(4)
        self._mark: bytes | None = None
        self._shown: dict[int, JsonObject] = {}
        self._head: JsonObject = {}
        self._points: list[JsonObject] = []
        self._before: dict[int, int] = {}
        self._corrects: dict[int, int] = {}
        self._history = DomainHistory()
        self._charted_at = 0.0
        self._chart_is_old = False
        self._chart: JsonObject | None = None
        self._last_id = 0
        self._struck: set[int] = set()
        self._changes: Changes[JsonObject] = Changes(MOST_CHANGES)
        self.gone = False

    @property
    def number(self) -> int:
        return self._changes.number

    async def look(self) -> ConversationLook:
        """Read what is new. Raises what Redis and the database raise."""
        letters = (self._keys.dead, self._keys.archive_dead, self._keys.memory_dead)
        async with translated():
            mark, conversation, owner, waiting, asleep, *dead = await read_together(
                self._redis,
                ("getrange", self._keys.state, -MARK_BYTES, -1),
                ("get", self._keys.conversation),
                ("get", self._keys.owner),
                ("llen", self._keys.input),
                ("zscore", SLEEPERS, self._session_id),
                *(("llen", key) for key in letters),
            )
        change: JsonObject = {}
        if mark != self._mark or not self.number:
            state = await self._session.state()
            if state is None and not waiting:
                if not self.gone:
                    self._changes.begin_anew()
                self.gone = True
                return ConversationLook(self, self.number)
            self.gone = False
            struck = await self._struck_messages()
            if not self.number:
                self._struck = struck
                await self._begin()
            change |= await beside_loop(self._take_state, state or {})
            if gone := struck - self._struck:
                self._struck |= gone
                change["struck"] = sorted(gone)
            self._mark = mark
        head = {**self._head, **_clock(conversation), "owner": _owner(owner), "waiting": waiting, "dead": sum(dead)}
        head |= self._status(head, is_asleep=asleep is not None)
        if head != self._head:
            change["head"] = self._head = head
        if self._chart_is_old and time.monotonic() - self._charted_at > CHART_SECONDS:
            change |= await self._charted()
        if change or not self.number:
            self._changes.add(change)
        return ConversationLook(self, self.number)

    async def _checkpoint(self) -> JsonObject:
        async with translated():
            return HEAD.read(await self._redis.hget(self._keys.checkpoint, "head"))

    async def _struck_messages(self) -> set[int]:
        """Return the newest messages that were struck; those that left the buffer before are told of nowhere else."""
        struck = (await self._checkpoint()).get("struck")
        return {one for one in struck if isinstance(one, int)} if isinstance(struck, list) else set()

    async def _begin(self) -> None:
        """Read what was said before: for the chart, which needs no more than the domains of it."""
        self._last_id = int((await self._checkpoint()).get("last_id") or 0)
        after = max(-1, self._last_id - CHARTED)
        while found := await self._messages.after(self._session_id, after, _PAGE):
            await beside_loop(self._note_all, found)
            after = found[-1]["id"]
            if len(found) < _PAGE:
                break

    def _take_state(self, state: JsonObject) -> JsonObject:
        buffer = [one for one in objects_of(state.get("raw_recent_buffer")) if isinstance(one.get("id"), int)]
        self._before, self._corrects = _late(buffer), _corrections(buffer)
        changed = [one for one in buffer if self._shown.get(one["id"]) != one]
        self._note_all(changed)
        self._shown = {one["id"]: one for one in buffer}
        self._last_id = max([self._last_id, *self._shown])
        change: JsonObject = {}
        if changed:
            change["messages"] = [self._as_shown(one, self._corrects) for one in changed]
        points = in_order(map(shown_point, objects_of(object_of(state.get("rolling_summary")).get("points"))))
        if points != self._points:
            change["points"] = self._points = points
        self._state = {name: state.get(name) for name in _OF_TROUBLE}
        self._head = {**self._head, **_topic(state)}
        if change or not self.number:
            change["head"] = self._head
        return change

    def _status(self, head: JsonObject, *, is_asleep: bool) -> JsonObject:
        status = activity_of(
            is_owned=bool(head["owner"]),
            is_asleep=is_asleep,
            has_ended=bool(head.get("ended_at")),
            last_spoke=head.get("last"),
            waiting=head["waiting"],
            now=time.time(),
        )
        waiting, dead, is_masked = head["waiting"], head["dead"], self._session.is_redacted
        troubles = undelivered(self._session_id, status, waiting, dead, is_masked=is_masked)
        troubles += troubles_of(self._state, is_run=status.is_run, has_model=self._has_model)
        return {"status": status, "is_run": status.is_run, "troubles": [one.as_json() for one in troubles]}

    def _note_all(self, messages: Iterable[JsonObject]) -> None:
        for one in messages:
            at = _said_at(one)
            confidence = object_of(one.get("domain_confidence"))
            if at is not None and self._history.note(one["id"], at, texts_of(one.get("domains")), confidence):
                self._chart_is_old = True

    async def _charted(self) -> JsonObject:
        self._charted_at, self._chart_is_old = time.monotonic(), False
        chart = await beside_loop(self._history.chart)
        self._chart = chart.as_json() if chart else None
        return {"chart": self._chart}

    async def whole(self) -> JsonObject:
        """Return everything at present: the newest messages, the points, the head and the chart."""
        found = await self._messages.after(self._session_id, max(-1, self._last_id - FIRST), FIRST) or []
        if self._chart is None and self._chart_is_old:
            await self._charted()
        corrects = _corrections(found)
        kept = [one for one in found if one["id"] not in self._struck]  # the memory forgets a moment later
        messages = [self._as_shown(self._shown.get(one["id"], one), corrects) for one in kept]
        return {"messages": messages, "points": self._points, "head": self._head, "chart": self._chart}

    def _as_shown(self, one: JsonObject, corrects: Mapping[int, int]) -> JsonObject:
        return _shown_message(one, self._before.get(one["id"]), corrects.get(one["id"]))

    def chart(self, since: float = -math.inf, until: float = math.inf) -> DomainChart | None:
        """Return what was talked about over time, from ``since`` to ``until`` in epoch seconds."""
        return self._history.chart(since, until)

    def token(self, number: int) -> str:
        """Return what a browser that was told of a change says when it comes back."""
        return f"{self._run}-{number}"

    def since(self, number: int) -> JsonObject | None:
        """Return what changed after that change; None where that is not all known."""
        if (missed := self._changes.since(number)) is None:
            return None
        merged: JsonObject = {}
        messages: dict[int, JsonObject] = {}
        struck: list[int] = []
        for change in missed:
            merged |= change
            messages |= {one["id"]: one for one in change.get("messages", ())}
            struck += change.get("struck", ())
        said = [one for one in messages.values() if one["id"] not in struck]
        return merged | ({"messages": said} if messages else {}) | ({"struck": struck} if struck else {})

    def number_of(self, token: str) -> int | None:
        """Return the change that a browser had last; None where another process, or another time, told it."""
        run, _, number = token.partition("-")
        known = run == self._run and number.isascii() and number.isdigit() and len(number) < 10
        return int(number) if known and int(number) <= self.number else None


def _late(buffer: Sequence[JsonObject]) -> dict[int, int]:
    """Return of each message that came late the one that it was put before: the next one that was there already."""
    found: dict[int, int] = {}
    following: list[int] = []  # ids of those behind, the nearest last, without those that came after a nearer one
    for one in reversed(buffer):
        while following and following[-1] > one["id"]:
            following.pop()
        if following:
            found[one["id"]] = following[-1]
        following.append(one["id"])
    return found


def in_their_place(shown: Iterable[JsonObject]) -> list[JsonObject]:
    """Return messages as they are shown in the order of the conversation: each that came late before its next one."""
    placed: list[JsonObject] = []
    for one in sorted(shown, key=lambda each: each["id"]):
        at = next((at for at, each in enumerate(placed) if each["id"] == one.get("before")), len(placed))
        placed.insert(at, one)
    return placed


def with_topics(shown: Sequence[JsonObject]) -> list[JsonObject]:
    """Return messages, in their order, each with its leading domain where it is another one than before: ``topic``."""
    before = ""
    told = []
    for one in shown:
        leading = next(iter(one["domains"]), "")
        told.append({**one, "topic": leading if leading != before else ""})
        before = leading or before
    return told


def _corrections(messages: Iterable[JsonObject]) -> dict[int, int]:
    """Return of each message that was corrected what it says anew: nothing that is still there, so 0."""
    return {one["id"]: 0 for one in messages if one.get("origin")}


def shown_messages(messages: Sequence[JsonObject]) -> list[JsonObject]:
    """Return messages that were said long ago as they are shown."""
    corrects = _corrections(messages)
    return [_shown_message(one, None, corrects.get(one["id"])) for one in messages]


def _shown_message(one: JsonObject, before: int | None, corrects: int | None) -> JsonObject:
    """Return a message as it is shown.

    ``before`` is the message that one which came late belongs before; ``corrects`` is there where it was corrected.
    """
    text = str(one.get("text") or "")
    shown = {
        "id": one["id"],
        "number": one.get("message_number"),
        "speaker": str(one.get("speaker") or "Unknown")[:_MOST_NAME],
        "text": text[:MOST_TEXT] + ("…" if len(text) > MOST_TEXT else ""),
        "time": _said_at(one),
        "assistant": is_assistants(one),
        "keywords": texts_of(one.get("keywords"), _MOST_NAME)[:8],
        "domains": texts_of(one.get("domains"), _MOST_NAME)[:4],
    }
    places = {"before": before, "corrects": corrects}
    return shown | {name: place for name, place in places.items() if place is not None}


def _topic(state: JsonObject) -> JsonObject:
    """Return what the head of the page says of a state."""
    cost = object_of(state.get("cost"))
    summary = object_of(state.get("rolling_summary"))
    return {
        "domains": [
            [name[:_MOST_NAME], number_of(object_of(state.get("domain_confidence")).get(name))]
            for name in texts_of(state.get("current_domains"))
        ],
        "keywords": texts_of(state.get("current_keywords"), _MOST_NAME)[:12],
        "messages": int(number_of(state.get("received_messages")) or 0),
        "summarized": int(number_of(summary.get("message_count")) or 0),
        "unsummarized": int(number_of(state.get("messages_since_summary")) or 0),
        "ended_at": number_of(state.get("ended_at")),
        "dollars": number_of(cost.get("dollars")) or 0.0,
        "last": number_of(state.get("last_message_time")),
    }


def _clock(raw: bytes | None) -> JsonObject:
    """Return the silence clock; ``kept`` says whether a process keeps it."""
    conversation = CONVERSATION.read(raw)
    clock: JsonObject = {"kept": bool(conversation), "silent": bool(conversation.get("silence"))}
    last = number_of(conversation.get("last_message_time"))
    return clock if last is None else clock | {"last": last}


def _owner(raw: bytes | None) -> str:
    holder = OWNER.read(raw)
    return describe(holder)[:_MOST_NAME] if holder and not is_forgotten(holder) else ""


def _said_at(one: JsonObject) -> float | None:
    if (at := number_of(one.get("time"))) is not None:
        return at
    arrived = number_of(one.get("buffer_entry_time"))
    said = epoch(one.get("timestamp"), near=arrived)
    return arrived if said is None else said
