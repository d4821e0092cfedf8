"""What every analyst does: messages in, understanding out.

An analyst reads what people said and never decides what to do about it. Three things are
asked of it: keywords of single messages, the academic domains of a stretch of talk, and the
points worth keeping of a stretch of talk. OpenAI, a local model and plain text analysis all
stand behind this one protocol, so the session does not know which of them answered; the
reading says so in ``analyst``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

MIN_KEYWORD_TEXT: Final = 10
"""Texts shorter than this many characters get no keywords."""

MAX_KEYWORDS: Final = 10
"""Most keywords of one message."""

MAX_CITATIONS: Final = 5
"""Most messages one point may cite."""


class PointKind(StrEnum):
    """What sort of thing a summary point records."""

    CLAIM = "claim"
    QUESTION = "question"
    DECISION = "decision"
    ACTION = "action"
    DISAGREEMENT = "disagreement"
    CONSILIENCE = "consilience"


@dataclass(frozen=True, slots=True)
class Said:
    """One message as an analyst sees it.

    ``id`` is unique within the session (message numbers are not) and is what a point cites.
    """

    id: int
    speaker: str
    text: str
    timestamp: str = ""
    number: int | None = None
    consilience: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that a reading cost; zero for plain text analysis."""

    model: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0


@dataclass(frozen=True, slots=True)
class KeywordReading:
    """Keywords per message, in the order the messages were given."""

    keywords: tuple[tuple[str, ...], ...]
    analyst: str
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class DomainReading:
    """Active domains with confidences in 0..1, most confident first, and the topic's keywords.

    Every key of ``confidence`` is one of :data:`context_builder.domains.DOMAINS`.
    """

    confidence: Mapping[str, float]
    keywords: tuple[str, ...]
    analyst: str
    usage: Usage = Usage()

    @property
    def domains(self) -> list[str]:
        return list(self.confidence)


@dataclass(frozen=True, slots=True)
class DraftPoint:
    """A point as an analyst proposes it, citing one to five of the messages it was given."""

    text: str
    cites: tuple[int, ...]
    kind: PointKind = PointKind.CLAIM
    replaces: int | None = None
    """Id of the ledger point that this one restates, if any."""


@dataclass(frozen=True, slots=True)
class KnownPoint:
    """A ledger point as an analyst is shown it."""

    id: int
    text: str
    kind: PointKind
    speakers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """The messages to summarize, oldest first, and the tail of what is known already."""

    messages: Sequence[Said]
    known: Sequence[KnownPoint] = ()
    topic_keywords: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class SummaryReading:
    """New or changed points in chronological order.

    ``rejected`` counts proposals that cited nothing, or something that was not given.
    """

    points: tuple[DraftPoint, ...]
    analyst: str
    rejected: int = 0
    usage: Usage = field(default_factory=Usage)


class Analyst(Protocol):
    """Reads what people said. Raises :class:`~context_builder.errors.AnalystError` on failure."""

    @property
    def name(self) -> str:
        """The label under which its readings are published, such as ``text``."""
        ...

    async def extract_keywords(self, messages: Sequence[Said]) -> KeywordReading:
        """Up to ten keywords for each message; none where the text has fewer than 10 characters."""
        ...

    async def infer_domains(self, messages: Sequence[Said]) -> DomainReading:
        """The domains and topic keywords of the messages, oldest first."""
        ...

    async def summarize(self, request: SummaryRequest) -> SummaryReading:
        """The points worth keeping of the requested messages."""
        ...

    async def close(self) -> None:
        """Let go of connections and workers."""
        ...
