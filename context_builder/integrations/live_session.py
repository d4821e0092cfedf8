"""What every adapter does with a session: say what was heard and answered, and ask for what belongs in a prompt."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, TypeVar

import structlog
from redis.asyncio import Redis

from context_builder.assembly.builder import ContextBuilder
from context_builder.clock import SystemClock
from context_builder.errors import ContextBuilderError
from context_builder.json_values import objects_of
from context_builder.quoting import quoted_name
from context_builder.session.client import JsonObject, SessionClient, contributed, spoken
from context_builder.session.conversation.memory_batch import message_id
from context_builder.session.messages.message import CONSILIENCE, from_fields
from context_builder.session.messages.revision import MessageReference
from context_builder.settings.settings import Settings, load_settings
from context_builder.spoken_dates import undated
from context_builder.wiring.app import open_builder
from context_builder.wiring.builders import build_for_session
from context_builder.wiring.servers import open_redis, settings_of

log = structlog.get_logger(__name__)

UNKNOWN: Final = "Unknown"
"""Who speaks where the framework does not say."""

PATIENCE: Final = 1.0
"""Seconds that a reply waits for the record when Redis stands still; the memory has its own, shorter deadline."""

CUT_OFF: Final = " —"
"""Mark after the words of an agent that was interrupted within a sentence."""

_ENDS: Final = (CUT_OFF, *".!?…。！？؟।")

MOST_ANSWERS: Final = 100
"""Newest answers whose numbers are not given again."""

_TALK: Final = frozenset({"user", "assistant"})
_ROLES: Final = _TALK | {"system", "developer"}

T = TypeVar("T")


class PushedMessage(NamedTuple):
    """Names what was said in a session: by its number, and by the id under which the memory has it."""

    number: int
    memory_id: str


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

    async def hear(self, speaker: str | None, text: str, at: datetime | None = None) -> PushedMessage | None:
        """Push what somebody said; a blank text is nothing. Raises :class:`StoreError` as :meth:`SessionClient.push`.

        Nobody but the assistant speaks in its name.
        """
        words = _storable(text).strip()
        if not words:
            return None
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
        message = contributed(words, time, metadata, _storable(agent or "").strip() or CONSILIENCE)
        await self.client.push(message)
        return self._pushed(message)

    async def take_back(self, pushed: PushedMessage) -> None:
        """Strike what was pushed, so that nothing of it is left anywhere; not what others gave the same number."""
        origin = pushed.memory_id.removeprefix(message_id(self.session_id, ""))
        await self.client.strike(MessageReference(number=pushed.number), origin)

    def _pushed(self, message: JsonObject) -> PushedMessage:
        known = from_fields(message, SystemClock().now())
        return PushedMessage(message["message_number"], message_id(self.session_id, known.first_identity.hex()))

    async def record(self, query: str = "", known: Sequence[str] = ()) -> list[JsonObject]:
        """Return what belongs before ``query`` in a prompt, as chat messages: summary, memories, what was said lately.

        Everything is quoted as in every prompt of this package. What the prompt has already, as ``known`` texts, is
        left out. Without a query, the newest thing said stands in for it, and is the last message. Empty while nobody
        has run the session yet. Raises what :func:`build_for_session` raises.
        """
        if await self.client.remembered() is None:
            return []
        built = await build_for_session(
            self.client, self._builder, query, max_prompt_tokens=self._max_prompt_tokens, **self._turn
        )
        messages = built.messages[1:-1] if query.strip() else built.messages[1:]  # the first is the system prompt
        told = "\n".join(f" {' '.join(undated(text).split())} " for text in (*known, query))
        return [one for one in messages if one["role"] == "system" or not _is_told(str(one["content"]), told)]

    async def speaker_of(self, text: str) -> str | None:
        """Return who said so last in the session, by the buffer that it publishes; None where that is not known."""
        try:
            state = await self.client.remembered()
        except ContextBuilderError:
            return None
        wanted = " ".join(text.split())
        for one in reversed(objects_of((state or {}).get("raw_recent_buffer"))):
            if " ".join(str(one.get("text") or "").split()) == wanted and one.get("type") != "consilience":
                speaker = str(one.get("speaker") or "")
                return quoted_name(speaker) if speaker and speaker != UNKNOWN else None
        return None

    async def record_or_nothing(self, query: str = "", known: Sequence[str] = ()) -> list[JsonObject]:
        """Return :meth:`record`; where it cannot be had, nothing, and the log says why: a reply goes out without it."""
        try:
            async with asyncio.timeout(PATIENCE):
                return await self.record(query, known)
        except (ContextBuilderError, TimeoutError) as error:
            log.warning("integration.no_record", session_id=self.session_id, kind=type(error).__name__)
            return []


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
) -> list[T]:
    """Return a framework's messages with the conversation's record before the newest message of a user.

    What the record tells, with who said it and in its place in the talk, is left out of the framework's own history,
    and the newest message begins with its speaker's name, where that is known: by ``speaker``, else by the session.
    ``role_and_text`` reads one of the framework's messages, ``made`` makes one of a chat message, and ``said_as`` one
    of another with another text. The record is missing where it cannot be had, as in
    :meth:`LiveSession.record_or_nothing`.
    """
    said = [role_and_text(one) for one in messages]
    place = next(
        (place for place in range(len(said) - 1, -1, -1) if said[place][0] == "user" and said[place][1].strip()), -1
    )
    query = said[place][1] if place >= 0 else ""
    record = await live.record_or_nothing(query)
    told = "\n".join(f" {wording} " for one in record for wording in _wordings(str(one["content"])))
    own = [
        number
        for number, (role, text) in enumerate(said)
        if number == place
        or not (role in _TALK and _goes_alone(said, number) and f" {' '.join(text.split())} " in told)
    ]
    kept = "\n".join(f" {' '.join(said[number][1].split())} " for number in own if number != place)
    record = [one for one in record if one["role"] == "system" or not _is_told(str(one["content"]), kept)]
    speaker = speaker or (await live.speaker_of(query) if query and record else None)
    named = [
        said_as(messages[number], f"{speaker}: {query}") if number == place and speaker else messages[number]
        for number in own
    ]
    return before_the_question(named, [made(one) for one in record], lambda one: role_and_text(one)[0])


def _goes_alone(said: Sequence[tuple[str, str]], place: int) -> bool:
    """Return whether a message can be left out: one that follows a tool's answer or a model's thought belongs to it."""
    return bool(said[place][1].strip()) and (place == 0 or said[place - 1][0] in _ROLES)


def before_the_question(messages: Sequence[T], record: Sequence[T], role_of: Callable[[T], str]) -> list[T]:
    """Return a framework's messages with the record before the last of a user; without any, after the instructions."""
    roles = [role_of(one) for one in messages]
    if "user" in roles:
        place = len(roles) - 1 - roles[::-1].index("user")
    else:
        place = next((place for place, role in enumerate(roles) if role not in {"system", "developer"}), len(roles))
    return [*messages[:place], *record, *messages[place:]]


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


def _is_told(message: str, told: str) -> bool:
    """Return whether a line of ``told`` holds the message, with or without its speaker's name before it."""
    return any(f" {words} " in told for words in _wordings(undated(message)))


def _wordings(message: str) -> list[str]:
    """Return the message in one line, with its speaker's name before it and without, and as it was before it was cut
    off."""
    lines = [" ".join(one.split()) for one in (message, message.partition(": ")[2]) if one.strip()]
    return [*lines, *(line.removesuffix(CUT_OFF) for line in lines if line.endswith(CUT_OFF))]
