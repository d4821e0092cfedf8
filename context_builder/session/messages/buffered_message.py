"""A buffered message is encoded for the checkpoint and for the published state here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Final

import orjson

from context_builder.analysis.analyst import DOMAIN_TEXT, MIN_KEYWORD_TEXT, AnalystMessage, DomainResult
from context_builder.analysis.chunking import excerpt
from context_builder.clock import Instant
from context_builder.quoting import LONGEST_NAME
from context_builder.session.messages.message import Message, identity_of, stamp_of
from context_builder.session.stored import MESSAGE

MESSAGE_FIELD: Final = "m:"
"""Begins the checkpoint's fields of buffered messages, before the id."""

BYTES_PER_TOKEN: Final = 3
"""Bytes of talk in a token, at least: in ``o200k_base`` four of English, and three or more of every language tried."""


class BufferedMessage:
    """A message with what is understood of it so far.

    ``id`` counts arrivals in the session. ``entered`` is the monotonic moment of arrival, from
    which ages are measured. The published JSON is kept until something changes. ``origin`` is set once the message was
    corrected: the identity, in hexadecimal, that it had at first.
    """

    __slots__ = (
        "_encoded",
        "analyst",
        "buffer_entry_time",
        "confidence",
        "consilience",
        "domain_confidence",
        "domains",
        "entered",
        "id",
        "keywords",
        "needs_keywords",
        "number",
        "origin",
        "speaker",
        "text",
        "time",
        "timestamp",
        "timestamp_raw",
        "user_id",
    )

    def __init__(self, entry_id: int, message: Message, now: Instant) -> None:
        self.id = entry_id
        self.number = message.number
        self.speaker = message.speaker
        self.text = message.text
        self.timestamp = message.timestamp
        self.timestamp_raw = message.timestamp_raw
        self.time = message.time
        self.confidence = message.confidence
        self.consilience = message.consilience
        self.user_id = message.user_id
        self.origin: str | None = None
        self.buffer_entry_time = now.wall
        self.entered = now.monotonic
        self.keywords: list[str] = []
        self.analyst: str | None = None
        self.needs_keywords = len(message.text) >= MIN_KEYWORD_TEXT
        self.domains: list[str] = []
        self.domain_confidence: dict[str, float] = {}
        self._encoded: bytes | None = None

    @property
    def field(self) -> str:
        """Return the name of the checkpoint field that holds this entry."""
        return f"{MESSAGE_FIELD}{self.id}"

    @property
    def estimated_tokens(self) -> int:
        """Estimate the text's tokens without counting; hardly ever too few."""
        return 1 + len(self.text.encode()) // BYTES_PER_TOKEN

    @property
    def identity(self) -> str:
        """Return the identity that the message had at first, in hexadecimal, by which the memory knows it."""
        if self.origin is not None:
            return self.origin
        came = self.timestamp if self.timestamp_raw is None else self.timestamp_raw
        return identity_of(self.consilience, self.number, self.speaker, self.text, came).hex()

    @property
    def is_blank(self) -> bool:
        """Return whether this only keeps the place of a message that was struck."""
        return not self.text

    def revise(self, text: str | None = None, speaker: str | None = None) -> bool:
        """Let the message say something else, or somebody else say it; return whether that changes anything."""
        text, speaker = self.text if text is None else text, self.speaker if speaker is None else speaker
        if (text, speaker) == (self.text, self.speaker):
            return False
        self.origin = self.identity
        if text != self.text:
            self.keywords, self.analyst = [], None
            self.needs_keywords = len(text) >= MIN_KEYWORD_TEXT
        self.text, self.speaker = text, speaker
        self._encoded = None
        return True

    def set_keywords(self, keywords: Sequence[str], analyst: str) -> None:
        self.keywords = list(keywords)
        self.analyst = analyst
        self.needs_keywords = False
        self._encoded = None

    def tag(self, result: DomainResult) -> None:
        self.domains = result.domains
        self.domain_confidence = dict(result.confidence)
        self._encoded = None

    def shortened(self) -> BufferedMessage:
        """Return a copy with as much of the message as an inference of domains is shown, whatever its size."""
        short = copy(self)
        short.speaker, short.text = self.speaker[:LONGEST_NAME], excerpt(self.text, DOMAIN_TEXT)
        short.timestamp_raw = short.user_id = short._encoded = None
        return short

    def for_analyst(
        self, recurring: Mapping[str, int] | None = None, before: Sequence[BufferedMessage] = ()
    ) -> AnalystMessage:
        return AnalystMessage(
            self.id,
            self.speaker,
            self.text,
            self.timestamp,
            self.number,
            self.consilience,
            recurring or {},
            tuple(entry.for_analyst() for entry in before),
        )

    def as_message(self) -> Message:
        """Return the message as it says now."""
        came = self.timestamp if self.timestamp_raw is None else self.timestamp_raw
        return Message(
            text=self.text,
            speaker=self.speaker,
            number=self.number,
            timestamp=self.timestamp,
            time=self.time,
            identity=b"",
            confidence=self.confidence,
            consilience=self.consilience,
            timestamp_raw=self.timestamp_raw,
            stamp=stamp_of(came),
        )

    def wire(self) -> dict[str, Any]:
        """Return the entry as the contract publishes it, with ``id`` and ``analyst`` besides."""
        fields: dict[str, Any] = {
            "id": self.id,
            "message_number": self.number,
            "speaker": self.speaker,
            "text": self.text,
            "timestamp": self.timestamp,
            "time": self.time,
            "buffer_entry_time": self.buffer_entry_time,
            "confidence": self.confidence,
            "type": "consilience" if self.consilience else "user",
            "keywords": self.keywords,
            "domains": self.domains,
            "domain_confidence": self.domain_confidence,
            "analyst": self.analyst,
        }
        if self.timestamp_raw is not None:
            fields["timestamp_raw"] = self.timestamp_raw
        if self.user_id is not None:
            fields["user_id"] = self.user_id
        if self.origin is not None:
            fields["origin"] = self.origin
        return fields

    def encode(self) -> bytes:
        """Return :meth:`wire` as JSON."""
        if self._encoded is None:
            self._encoded = orjson.dumps(self.wire())
        return self._encoded

    @classmethod
    def decode(cls, encoded: bytes, now: Instant) -> BufferedMessage:
        """Return the entry that :meth:`encode` wrote, its age carried over by the wall clock."""
        fields = MESSAGE.whole(encoded)
        message = Message(
            text=fields["text"],
            speaker=fields["speaker"],
            number=fields["message_number"],
            timestamp=fields["timestamp"],
            time=fields["time"],
            identity=b"",
            confidence=fields["confidence"],
            consilience=fields["type"] == "consilience",
            timestamp_raw=fields.get("timestamp_raw"),
            metadata={"user_id": fields.get("user_id")},
        )
        entry = cls(fields["id"], message, now)
        entry.buffer_entry_time = fields["buffer_entry_time"]
        entry.entered = now.monotonic - max(0.0, now.wall - entry.buffer_entry_time)
        entry.keywords = fields["keywords"]
        entry.analyst = fields["analyst"]
        entry.needs_keywords = entry.needs_keywords and entry.analyst is None
        entry.domains = fields["domains"]
        entry.domain_confidence = fields["domain_confidence"]
        entry.origin = fields.get("origin")
        return entry


def blank(entry_id: int, now: Instant) -> tuple[bytes, bytes]:
    """Return how the JSON of a message begins that waits in the pending list, and what keeps its place there."""
    message = Message(text="", speaker="", number=None, timestamp=now.iso(), time=now.wall, identity=b"")
    return b'{"id":%d,' % entry_id, BufferedMessage(entry_id, message, now).encode()
