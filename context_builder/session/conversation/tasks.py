"""Analysis tasks are a conversation's requests to an analyst, which run beside the loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from context_builder.analysis.analyst import (
    AnalystMessage,
    CompactionRequest,
    CompactionResult,
    DomainResult,
    KeywordResult,
    SummaryRequest,
    SummaryResult,
)
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.values import value


@value
class KeywordTask:
    """Asks for the keywords of messages."""

    messages: Sequence[AnalystMessage]


@value
class DomainTask:
    """Asks for the domains of the newest messages, up to the id ``through``; ``new`` of them came since last time.

    ``standing`` is the last result, if there was one, which may be taken again if nothing has changed.
    """

    messages: Sequence[AnalystMessage]
    through: int
    new: int
    standing: DomainResult | None = None


@dataclass(frozen=True, slots=True)
class SummaryPart:
    """Tells which messages one summary call takes, in order, and whether they lie in the pending list.

    ``last_resort`` says that they must not wait for a better analyst any longer, ``again`` that they have been
    summarized before: by the last resort, or as they were before they were ``corrected``.
    """

    entries: Sequence[BufferedMessage]
    from_pending: bool = False
    last_resort: bool = False
    again: bool = False
    corrected: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryTask(SummaryPart):
    """Asks for a summary of one part."""

    request: SummaryRequest


@dataclass(frozen=True, slots=True)
class CompactionTask:
    """Asks to rewrite the oldest points of the summary as fewer sentences."""

    request: CompactionRequest


AnalysisTask = KeywordTask | DomainTask | SummaryTask | CompactionTask
AnalysisResult = KeywordResult | DomainResult | SummaryResult | CompactionResult
