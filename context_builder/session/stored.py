"""What Redis holds of a session, by field: what is published of it, and its checkpoint.

Readers beside the session take what is as described and leave out the rest (:meth:`Shape.known`), because other
programs may write these keys; who continues a session takes all or nothing (:meth:`Shape.whole`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Final, NotRequired, TypeVar

from pydantic import Field
from typing_extensions import TypedDict

from context_builder.errors import StoreError
from context_builder.json_shape import Count, Misshapen, Number, Shape, Time
from context_builder.session.keys import Keys

T = TypeVar("T")


class TaskCost(TypedDict):
    """Calls of one task; tokens, and US dollars by list price."""

    calls: Count
    prompt_tokens: Count
    cached_tokens: Count
    completion_tokens: Count
    dollars: Number


class Cost(TypedDict):
    """What all calls have cost; who shows its ``history`` checks that."""

    dollars: Number
    unpriced: list[str]
    tasks: dict[str, TaskCost]
    history: Any


class FailingCalls(TypedDict):
    """Calls of one task that fail, since an epoch second."""

    since: Time
    tries: Count
    reason: str
    tokens: Count


class Counters(TypedDict):
    """Counters that the state and the head of a checkpoint share."""

    last_message_time: Time
    last_summary_time: Time
    last_domain_inference_time: Time
    messages_since_summary: Count
    messages_since_domain_inference: Count
    highest_message_number: Count
    received_messages: Count
    dead_letters: Count
    undeliverable: dict[str, Count]
    topic_changed_at: Time | None
    domain_calls_skipped: Count
    analyst: dict[str, str | None]
    failing: dict[str, FailingCalls]
    ended_at: Time | None
    cost: Cost


class StoredMessage(TypedDict):
    """A message in the buffer or the pending list."""

    id: Count
    message_number: Count | None
    speaker: str
    text: str
    timestamp: str
    time: Number
    buffer_entry_time: Time
    confidence: Number
    type: str
    keywords: list[str]
    domains: list[str]
    domain_confidence: dict[str, Number]
    analyst: str | None
    timestamp_raw: NotRequired[Any]
    user_id: NotRequired[str]
    origin: NotRequired[str]


class StoredResponse(TypedDict):
    """A contribution of the assistant."""

    id: Count
    message_number: Count | None
    speaker: str
    text: str
    timestamp: str
    type: str
    metadata: dict[str, Any]


class StoredQuote(TypedDict):
    """Words that a point rests on."""

    message: Count | None
    id: Count
    quote: str
    speaker: str


MergedPoint = Annotated[list[Count | Number], Field(min_length=2, max_length=2)]
"""The number of a point that was rewritten, and its epoch second."""


class StoredPoint(TypedDict):
    """A point of the summary."""

    id: Count
    text: str
    kind: str
    by: list[str]
    evidence: list[StoredQuote]
    time: Number
    first_number: Count | None
    spoken: bool
    unconfirmed: bool
    merges: list[MergedPoint]
    rewrites: Count
    said_on: str | None
    undated_text: NotRequired[str]


class PublishedPoint(StoredPoint):
    """A point as readers are shown it."""

    cites: list[Count]
    messages: list[Count]
    ids: list[Count]
    speakers: list[str]


class PublishedSummary(TypedDict):
    """The rolling summary as readers are shown it."""

    text: str
    covers_messages: list[Count]
    message_count: Count
    summary_seq: Count
    degraded_messages: Count
    rejected_points: Count
    time_range_start: str | None
    time_range_end: str | None
    last_updated: str | None
    points: list[PublishedPoint]


class SessionState(Counters):
    """The published state."""

    session_id: str
    rolling_summary: PublishedSummary
    raw_recent_buffer: list[StoredMessage]
    consilience_responses: list[StoredResponse]
    current_domains: list[str]
    domain_confidence: dict[str, Number]
    current_keywords: list[str]
    pending_messages: Count
    schema_version: Count
    revision: Count
    updated_at: Time


class ConversationState(TypedDict):
    """The published silence clock."""

    session_id: str
    silence: bool
    time_since_last_message: Number
    active_domains: list[str]
    domain_confidence: dict[str, Number]
    current_keywords: list[str]
    last_message_time: Time


class LeaseHolder(TypedDict):
    """Who runs the session, since an epoch second."""

    token: Count
    host: str
    pid: Count
    since: Time
    nonce: str
    forgotten: bool


class StoredTopic(TypedDict):
    """What is talked about, smoothed."""

    confidence: dict[str, Number]
    active: list[str]
    found_at: dict[str, Number]
    subject: dict[str, Number]
    terms: list[str]
    changed_at: Number | None
    rising_at: Number | None


class StoredDomains(TypedDict):
    """The latest inference of domains and keywords, and the topic."""

    confidence: dict[str, Number]
    keywords: list[str]
    analyst: str
    topic: StoredTopic


class Head(TypedDict):
    """The part of a checkpoint that every commit writes."""

    schema_version: Count
    counters: Counters
    last_id: Count
    pending_tokens: Count
    published: Count
    domains: StoredDomains
    names: NotRequired[dict[str, str]]
    struck: NotRequired[list[Count]]


class StoredSummary(TypedDict):
    """The rolling summary as a checkpoint has it."""

    covers: tuple[Count, Count] | None
    start: tuple[Number, str] | None
    end: tuple[Number, str] | None
    talk: tuple[Number, Number] | None
    times: list[Number]
    last_updated: str | None
    seq: Count
    message_count: Count
    degraded_messages: Count
    rejected_points: Count
    points: list[StoredPoint]
    replaced: list[tuple[Count, Number]]
    next_point: Count
    parts: list[tuple[Count, int]]


Bounds = Annotated[list[Number], Field(min_length=2, max_length=2)]
"""The lowest and the highest."""


class DroppedMessages(TypedDict):
    """Which messages are no longer in the message index."""

    below: NotRequired[Number]
    n: NotRequired[Bounds]
    c: NotRequired[Bounds]
    time: NotRequired[Bounds]


class StoredMemory(TypedDict):
    """A memory that waits to be kept."""

    id: str
    text: str
    kind: str
    speaker: str | None
    time: str | None
    position: Count | None
    tags: list[str]
    metadata: dict[str, Any]


class StoredAmendment(TypedDict):
    """What a message says now."""

    id: str
    text: str | None
    speaker: str


class StoredStrike(TypedDict):
    """A message of which nothing is to be left."""

    id: str
    entry_id: Count
    points: list[str]


class StoredBatch(TypedDict):
    """What waits for the memory; of ``memories`` the values alone."""

    session_id: str
    memories: list[list[Any]]
    superseded: list[str]
    amended: NotRequired[list[StoredAmendment]]
    struck: NotRequired[list[StoredStrike]]
    renamed: NotRequired[list[Annotated[list[str], Field(min_length=2, max_length=2)]]]


class StoredLetter(TypedDict):
    """A dead letter, its bytes as base64."""

    reason: str
    time: Time
    raw: str
    size: Count


class StoredCitation(TypedDict):
    """A message that the summary cites."""

    id: Count
    number: Count | None
    speaker: str
    timestamp: str
    text: str
    consilience: bool
    clipped: bool


STATE: Final = Shape(SessionState)
COST: Final = Shape(Cost)
CONVERSATION: Final = Shape(ConversationState)
OWNER: Final = Shape(LeaseHolder)
HEAD: Final = Shape(Head)
SUMMARY: Final = Shape(StoredSummary)
MESSAGE: Final = Shape(StoredMessage)
RESPONSE: Final = Shape(StoredResponse)
CITATION: Final = Shape(StoredCitation)
MEMORY: Final = Shape(StoredMemory)
BATCH: Final = Shape(StoredBatch)
LETTER: Final = Shape(StoredLetter)
DROPPED_MESSAGES: Final = Shape(DroppedMessages)

_MOST: Final = 2**53


def count_of(raw: bytes | str) -> int:
    """Return the whole number that Redis holds. Raises :class:`ValueError` for one that is no :data:`Count`."""
    if not raw.isdigit() or (number := int(raw)) >= _MOST:
        raise ValueError
    return number


@contextmanager
def reading(session_id: str, key: str, field: str = "") -> Iterator[None]:
    """Raise :class:`StoreError`, which says where and what to do, in place of errors of what no session wrote."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise damaged(session_id, key, field, error) from None


def damaged(session_id: str, key: str, field: str, error: Exception) -> StoreError:
    """Return what says where something is stored that no session wrote, and what to do."""
    place = f"{key}{f', field {field}' if field else ''}"
    why = str(error) if isinstance(error, Misshapen) else type(error).__name__  # others quote what is stored
    return StoreError(
        f"session {session_id} cannot be read: {place} is damaged ({why}); it is left as it is. Correct it, "
        f"restore a backup, or delete the session with `context-builder forget {session_id}`"
    )


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Reads the fields of a session's checkpoint; raises as :func:`reading` does, by the name of the field."""

    session_id: str
    fields: Mapping[str, bytes]

    def reading(self, field: str) -> AbstractContextManager[None]:
        return reading(self.session_id, Keys(self.session_id).checkpoint, field)

    def read(self, field: str, decode: Callable[[bytes], T], default: bytes = b"") -> T:
        """Return what a field holds, as ``decode`` reads it."""
        with self.reading(field):
            return decode(self.fields.get(field, default))

    def by_id(self, prefix: str, decode: Callable[[bytes], T]) -> dict[int, T]:
        """Return what the fields with this prefix hold, by the ids that come after it, in their order."""
        found: dict[int, T] = {}
        for field in filter(lambda name: name.startswith(prefix), self.fields):
            with self.reading(field):
                found[count_of(field.removeprefix(prefix))] = decode(self.fields[field])
        return dict(sorted(found.items()))
