"""The events that change a session's conversation, and the protocol of whoever records them in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from context_builder.clock import Instant
from context_builder.costs import Usage
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.published_state import PublishedState
from context_builder.session.conversation.tasks import AnalysisResult, AnalysisTask
from context_builder.session.keys import Receiver
from context_builder.session.messages.message import Message
from context_builder.session.store.commit import StoredSession


@dataclass(frozen=True, slots=True)
class Received:
    """Messages that were never seen before; ``last_id`` is the id that the last of them was given."""

    messages: Sequence[Message]
    last_id: int


@dataclass(frozen=True, slots=True)
class DeliveriesRejected:
    """``count`` deliveries became dead letters."""

    count: int


@dataclass(frozen=True, slots=True)
class DeadLettered:
    """``count`` entries for ``receiver`` have become dead letters since the session began."""

    receiver: Receiver
    count: int


@dataclass(frozen=True, slots=True)
class Charged:
    """A call beside the session's tasks, such as for the embeddings of what it remembers, used ``usage``."""

    task: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class TaskStarted:
    """The conversation was asked for a task of ``kind``; ``task`` is what it gave."""

    kind: Literal["keywords", "domains", "summary"]
    task: AnalysisTask | None


@dataclass(frozen=True, slots=True)
class TaskFinished:
    """A task that was started ended with ``result``, or with none; ``usage`` is what it cost without a result."""

    task: AnalysisTask
    result: AnalysisResult | None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class PhaseChanged:
    """The session as a whole entered another phase."""

    phase: Literal["closing", "ended", "pending_lost"]


SessionEvent = Received | DeliveriesRejected | DeadLettered | Charged | TaskStarted | TaskFinished | PhaseChanged


class Recorder(Protocol):
    """Records what happens in one session. No method waits or raises, whatever becomes of the recording."""

    def begin(self, session_id: str, rules: SessionConfig, snapshot: StoredSession, now: Instant) -> None:
        """The session continues from ``snapshot``."""
        ...

    def happened(self, what: SessionEvent, now: Instant) -> None:
        """The conversation changed at ``now``."""
        ...

    def published(self, revision: int, state: PublishedState, now: Instant) -> None:
        """``state``, made at ``now``, is what readers see, white space aside."""
        ...

    def end(self) -> None:
        """The session leaves; nothing more is told."""
        ...


class NoRecorder:
    """Records nothing: what a session has unless somebody asked for a recording."""

    def begin(self, session_id: str, rules: SessionConfig, snapshot: StoredSession, now: Instant) -> None:
        return None

    def happened(self, what: SessionEvent, now: Instant) -> None:
        return None

    def published(self, revision: int, state: PublishedState, now: Instant) -> None:
        return None

    def end(self) -> None:
        return None
