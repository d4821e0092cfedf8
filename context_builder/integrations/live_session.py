"""What every adapter does with a session: say what was heard and answered, and ask for what belongs in a prompt.

What frameworks report in events that nobody may wait in is said in order, in the background.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import structlog
from redis.asyncio import Redis

from context_builder.assembly.builder import ContextBuilder
from context_builder.assembly.session_state import corrected_messages, named_answers
from context_builder.clock import SystemClock
from context_builder.errors import ContextBuilderError, StoreError
from context_builder.integrations.alignment import (
    CUT_OFF,
    MOST_ALIGNED,
    TALK,
    FirstWording,
    HistoryMessage,
    aligned,
    merged,
    question_in,
)
from context_builder.quoting import RECORD, quoted_name
from context_builder.session.client import JsonObject, SessionClient, contributed, spoken
from context_builder.session.conversation.memory_batch import message_id
from context_builder.session.messages.message import CONSILIENCE, from_fields, is_assistants, said_at_first
from context_builder.session.messages.revision import MessageReference
from context_builder.settings.settings import Settings, load_settings
from context_builder.storage.redis_availability import until_available
from context_builder.wiring.builders import build_for_state, open_builder
from context_builder.wiring.servers import open_redis, settings_of

log = structlog.get_logger(__name__)


UNKNOWN: Final = "Unknown"
"""Who speaks where the framework does not say."""

PATIENCE: Final = 1.0
"""Seconds that a reply waits for the record when Redis stands still; the memory has its own, shorter deadline."""

_ENDS: Final = (CUT_OFF, *".!?…。！？؟।")

MOST_ANSWERS: Final = 100
"""Newest answers whose numbers are not given again."""

MOST_OVERHEARD: Final = 200
"""Newest messages whose speakers are known here: at once, and after they have left the session's buffer."""

T = TypeVar("T")


class PushedMessage(NamedTuple):
    """Names what was said in a session: by its number, and by the id under which the memory has it."""

    number: int
    memory_id: str


class SpokenMessage(NamedTuple):
    """Tells who said a text: somebody as ``user``, or an agent that has a name as ``assistant``."""

    role: str
    speaker: str
    text: str


class LiveSession:
    """One session that a daemon or a fleet runs, as an adapter uses it.

    ``max_prompt_tokens`` bounds what :meth:`record` returns, by default as the builder's config has it; ``turn`` are
    further keys of a turn, such as ``tenant_id`` and ``user_id``. Raises :class:`SessionIdError` for an id that no
    session can have.
    """

    def __init__(
        self,
        redis: Redis,
        session_id: str,
        builder: ContextBuilder,
        *,
        max_prompt_tokens: int | None = None,
        turn: Mapping[str, Any] | None = None,
    ) -> None:
        self.client = SessionClient(redis, session_id)
        self.session_id = session_id
        self.redis = redis
        self._builder = builder
        self._max_prompt_tokens = max_prompt_tokens
        self._turn = dict(turn or {})
        self._one_at_a_time = asyncio.Lock()
        self._number: int | None = None
        self._answered_at = deque[int](maxlen=MOST_ANSWERS)
        self._overheard = deque[SpokenMessage](maxlen=MOST_OVERHEARD)
        self._corrected: Mapping[str, Sequence[JsonObject]] = {}
        self._named_answers: set[str] = set()

    async def hear(self, speaker: str | None, text: str, at: datetime | None = None) -> PushedMessage | None:
        """Push what somebody said; a blank text is nothing. Raises :class:`StoreError` as :meth:`SessionClient.push`.

        Nobody but the assistant speaks in its name.
        """
        words = _storable(text).strip()
        if not words:
            return None
        self.overhear(speaker, text)
        async with self._one_at_a_time:  # numbers are given, and arrive, in this order
            number = await self.client.next_number() if self._number is None else self._number
            message = spoken(self.session_id, number, named(speaker), words, at or datetime.now().astimezone())
            await self.client.push(message)
            self._number = number + 1
        return self._pushed(message)

    async def answer(
        self, text: str, at: datetime | None = None, *, agent: str | None = None, interrupted: bool = False
    ) -> PushedMessage | None:
        """Push what the assistant said; a blank text is nothing.

        Where several agents take part, ``agent`` is the name of the one that spoke. One that was ``interrupted`` said
        no more than ``text``, after which there is a dash.
        """
        words = _storable(text).strip()
        if not words:
            return None
        time = at or datetime.now().astimezone()
        while _milliseconds(time) in self._answered_at:  # answers are numbered by it
            time += timedelta(milliseconds=1)
        self._answered_at.append(_milliseconds(time))
        metadata = {"interrupted": True} if interrupted else {}
        words = f"{words}{CUT_OFF}" if interrupted and not words.endswith(_ENDS) else words
        name = _storable(agent or "").strip() or CONSILIENCE
        if name != CONSILIENCE:
            self._overheard.append(SpokenMessage("assistant", name, words))
        message = contributed(words, time, metadata, name)
        await self.client.push(message)
        return self._pushed(message)

    async def take_back(self, pushed: PushedMessage) -> None:
        """Strike what was pushed, so that nothing of it is left anywhere; not what others gave the same number."""
        origin = pushed.memory_id.removeprefix(message_id(self.session_id, ""))
        await self.client.strike(MessageReference(number=pushed.number), origin)

    def _pushed(self, message: JsonObject) -> PushedMessage:
        known = from_fields(message, SystemClock().now())
        return PushedMessage(message["message_number"], message_id(self.session_id, known.first_identity.hex()))

    def overhear(self, speaker: str | None, text: str) -> None:
        """Know who said so from now on, although it may be pushed later."""
        self._overheard.append(SpokenMessage("user", named(speaker), _storable(text)))

    async def record(
        self, query: str = "", known: Sequence[HistoryMessage] = (), *, whole: bool = False
    ) -> list[JsonObject]:
        """Return what belongs before ``query`` in a prompt, as chat messages: summary, memories, what was said lately.

        Everything is quoted as in every prompt of this package. What the prompt has already is left out: ``known``, by
        role and text in the order of the talk, and the query itself, unless the ``whole`` record is wanted. Without a
        query, memories fit the newest thing that people said, and the talk stands last. Empty while nobody has run the
        session yet. Raises what :meth:`ContextBuilder.build_for_turn` raises, and :class:`StoreError`.
        """
        state = await self.client.remembered()
        if state is None:
            return []
        self._corrected = corrected_messages(state)
        self._named_answers = named_answers(state)
        built = await build_for_state(
            state, self._builder, query, max_prompt_tokens=self._max_prompt_tokens, whole=True, **self._turn
        )
        messages = built.messages[1:-1]  # between the system prompt and the query
        if not query.strip() and not whole:  # the talk goes on behind it
            messages.sort(key=lambda one: one["role"] != "system")
        own = [*known, *([("user", query)] if query.strip() and not whole else ())]
        there = {number for run in aligned(own, [*map(_role_and_content, messages)]).values() for number in run}
        return [one for number, one in enumerate(messages) if number not in there]

    def corrected_in(self, record: Sequence[JsonObject]) -> dict[int, FirstWording]:
        """Return a check of its first wording for each message of a :meth:`record` that was corrected, by number."""
        published = [self._corrected.get(str(one["content"]), ()) for one in record]
        return {number: partial(self._is_first_wording, one) for number, one in enumerate(published) if one}

    def _is_first_wording(self, published: Sequence[JsonObject], text: str) -> bool:
        """Return whether one of these corrected messages said ``text`` at first.

        The state has a digest of speaker and text, and both may have been corrected.
        """
        words = _storable(text).strip()
        heard_from = {one.speaker for one in self._overheard if one.text.strip() == words}
        return any(
            said_at_first(one, speaker, wording)
            for one in published
            for speaker in {str(one.get("speaker")), UNKNOWN, *heard_from}
            for wording in {words, words + CUT_OFF if is_assistants(one) else words.removeprefix(f"{speaker}: ")}
        )

    def with_speakers(self, said: Sequence[HistoryMessage], heard: Sequence[SpokenMessage] = ()) -> dict[int, str]:
        """Return those of the texts, by their numbers, of which it is known who said them, after the speaker's name.

        What was heard here is known, and before that ``heard``. A text that several people said is a line for each.
        """
        newest = heard[-MOST_ALIGNED:]  # older messages are not aligned
        lines = [(one.role, f"{quoted_name(one.speaker)}: {one.text}") for one in (*newest, *self._overheard)]
        return {number: lines_of([lines[place][1] for place in run]) for number, run in aligned(said, lines).items()}

    async def record_or_nothing(
        self, query: str = "", known: Sequence[HistoryMessage] = (), *, whole: bool = False
    ) -> list[JsonObject]:
        """Return :meth:`record`; where it cannot be had, nothing, and the log says why: a reply goes out without it."""
        try:
            async with asyncio.timeout(PATIENCE):
                return await self.record(query, known, whole=whole)
        except (ContextBuilderError, TimeoutError) as error:
            log.warning("integration.no_record", session_id=self.session_id, kind=type(error).__name__)
            return []

    async def instructions(self, known: Sequence[HistoryMessage] = ()) -> str:
        """Return :meth:`record_or_nothing` as text that cannot be taken for instructions: who said what, under a
        heading."""
        record = await self.record_or_nothing(known=known)
        beside = [str(one["content"]) for one in record if one["role"] == "system"]
        said = [self._line(one) for one in record if one["role"] != "system"]
        return "\n\n".join([*beside, *(["\n".join([f"Said lately: {RECORD}", *said])] if said else [])])

    def _line(self, message: JsonObject) -> str:
        content = str(message["content"])
        has_name = message["role"] == "user" or content in self._named_answers
        return content if has_name else f"{CONSILIENCE}: {content}"


@asynccontextmanager
async def open_live_session(
    session_id: str,
    settings: Settings | None = None,
    *,
    max_prompt_tokens: int | None = None,
    turn: Mapping[str, Any] | None = None,
) -> AsyncIterator[LiveSession]:
    """Open a session as the settings have it, by default those of the environment, with the memory that they name."""
    settings = await settings_of(settings or load_settings(), session_id)
    turn = {"tenant_id": settings.memory.tenant_id, **(turn or {})}
    async with open_redis(settings) as redis, open_builder(settings) as (builder, _):
        yield LiveSession(redis, session_id, builder, max_prompt_tokens=max_prompt_tokens, turn=turn)


async def with_record(
    live: LiveSession,
    messages: Sequence[T],
    role_and_text: Callable[[T], tuple[str, str]],
    made: Callable[[JsonObject], T],
    said_as: Callable[[T, str], T],
    speaker: str | None = None,
    heard: Sequence[SpokenMessage] = (),
) -> list[T]:
    """Return a framework's messages and the conversation's record as one history, in the order of the talk.

    What both have is there once, with who said it; what the record knows beside the talk follows the instructions. What
    the record has no more, or not yet, begins with the name of who said so, by what was said through ``live`` and by
    ``heard``; the newest message of a user else with ``speaker``. ``role_and_text`` reads one of the framework's
    messages, ``made`` makes one of a chat message, and ``said_as`` one of another with another text. The record is
    missing where it cannot be had, as in :meth:`LiveSession.record_or_nothing`.
    """
    said = [role_and_text(one) for one in messages]
    question = question_in(said)
    query = said[question][1] if question is not None else ""
    record = await live.record_or_nothing(query, whole=True)
    places = merged(said, [*map(_role_and_content, record)], live.corrected_in(record))
    in_both = {place.own for place in places if place.told}
    spoken_as = live.with_speakers([("", "") if own in in_both else one for own, one in enumerate(said)], heard)
    together: list[T] = []
    for own, told in places:
        if own is None:
            together.extend(made(record[number]) for number in told)
            continue
        contents = [str(record[number]["content"]) for number in told]
        text = lines_of(contents) if said[own][0] == "user" else " ".join(contents)
        if not told:
            prefix = f"{speaker}: " if own == question and speaker and not query.startswith(f"{speaker}: ") else ""
            text = spoken_as.get(own, f"{prefix}{said[own][1]}")
        is_new = bool(text) and text.split() != said[own][1].split()
        together.append(said_as(messages[own], text) if is_new else messages[own])
    return together


def known_beside(
    together: Sequence[T], messages: Sequence[T], role_and_text: Callable[[T], tuple[str, str]]
) -> tuple[str, list[T]]:
    """Return what the record knows beside the talk, as a text, and all others of the messages ``together`` with it.

    ``messages`` are the framework's own: instructions among them are not part of the record.
    """
    own = {id(one) for one in messages}
    is_beside = [id(one) not in own and role_and_text(one)[0] not in TALK for one in together]
    known = [role_and_text(one)[1] for one, beside in zip(together, is_beside, strict=True) if beside]
    return "\n\n".join(known), [one for one, beside in zip(together, is_beside, strict=True) if not beside]


def lines_of(messages: Sequence[str]) -> str:
    """Return what people said after the names of those who said it: a line each, and one for what somebody went on to
    say. Nobody is named who is not known."""
    lines: list[tuple[str, list[str]]] = []
    for message in messages:
        name, colon, text = message.partition(": ")
        if lines and colon and lines[-1][0] == name:
            lines[-1][1].append(text)
        else:
            lines.append((name, [message]))
    return "\n".join(" ".join(parts).removeprefix(f"{UNKNOWN}: ") for _, parts in lines)


def _role_and_content(message: JsonObject) -> tuple[str, str]:
    return str(message["role"]), str(message["content"])


def named(speaker: object) -> str:
    """Return the name under which somebody speaks, which is not the assistant's; it may be a number."""
    name = "" if speaker is None else _storable(str(speaker)).strip()
    name = name or UNKNOWN
    return f"{name} (speaker)" if name == CONSILIENCE else name


def _milliseconds(time: datetime) -> int:
    return int(time.timestamp() * 1000)


def _storable(text: str) -> str:
    """Return the text with a mark in place of each half of a surrogate pair, which JSON does not hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


MOST_WAITING: Final = 10_000
"""Messages that wait while Redis is away; what comes then is lost, and the log says so."""

GRACE: Final = 3.0
"""Seconds for which the end waits for Redis."""

Push = Callable[[], Awaitable[object]]


class Outgoing:
    """Pushes messages to a session, one after the other, each until Redis accepts it."""

    def __init__(self, live: LiveSession) -> None:
        self._live = live
        self._queue: asyncio.Queue[Push] = asyncio.Queue(MOST_WAITING)
        self._task: asyncio.Task[None] | None = None
        self._waiting = 0

    def hear(self, speaker: str | None, text: str, at: datetime | None = None) -> None:
        """Say in a moment what somebody said."""
        if text.strip():
            self._live.overhear(speaker, text)
        self._put(partial(self._live.hear, speaker, text, at or datetime.now().astimezone()))

    def answer(self, text: str, *, agent: str | None = None, interrupted: bool = False) -> None:
        """Say in a moment what the assistant said, as :meth:`LiveSession.answer`."""
        now = datetime.now().astimezone()
        self._put(partial(self._live.answer, text, now, agent=agent, interrupted=interrupted))

    async def close(self, patience: float = GRACE) -> None:
        """Say the rest, for ``patience`` seconds at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._queue.join()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
            self._task = None
        if self._waiting:
            log.error("integration.not_said", session_id=self._live.session_id, messages=self._waiting)

    def _put(self, push: Push) -> None:
        try:
            self._queue.put_nowait(push)
            self._waiting += 1
        except asyncio.QueueFull:
            log.error("integration.not_said", session_id=self._live.session_id, messages=1)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._say_all(), name=f"says in {self._live.session_id}")

    async def _say_all(self) -> None:
        while True:
            push = await self._queue.get()
            try:
                async for attempt in until_available():
                    with attempt:
                        await push()
            except StoreError as error:  # for good: no password, no right
                log.exception("integration.not_said", kind=type(error).__name__, messages=1, exc_info=False)
            self._waiting -= 1
            self._queue.task_done()
