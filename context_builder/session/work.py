"""What a conversation asks to have understood: handed out by it, done beside the loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from context_builder.analysis.analyst import (
    DomainReading,
    KeywordReading,
    Said,
    SummaryReading,
    SummaryRequest,
)
from context_builder.session.entry import Entry


@dataclass(frozen=True, slots=True)
class KeywordWork:
    """Messages whose keywords are wanted."""

    messages: Sequence[Said]


@dataclass(frozen=True, slots=True)
class DomainWork:
    """The newest messages, and how far they go: ``through`` is the newest id, ``new`` how many since last time.

    ``standing`` is the last reading, if there was one, which may be taken again if nothing has changed; ``in_doubt``
    says that its leading domain does not lead the smoothed ones yet, or for the first time.
    """

    messages: Sequence[Said]
    through: int
    new: int
    standing: DomainReading | None = None
    in_doubt: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """What one summary call takes: messages in order, and whether they lie in the pending list.

    ``last_resort`` says that they must not wait for a better analyst any longer, ``again`` that the last resort
    has summarized them before.
    """

    entries: Sequence[Entry]
    from_pending: bool = False
    last_resort: bool = False
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryWork(Part):
    """A part, and what the analyst is asked about it."""

    request: SummaryRequest


Work = KeywordWork | DomainWork | SummaryWork
Reading = KeywordReading | DomainReading | SummaryReading
