"""The events that change a session's conversation, and the recorder that receives them in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from context_builder.clock import Instant
from context_builder.costs import Usage
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.state import PublishedState
from context_builder.session.conversation.tasks import AnalysisResult, AnalysisTask
from context_builder.session.keys import Receiver
from context_builder.session.messages.message import Message
from context_builder.session.messages.revision import Revision
from context_builder.session.store.recovery import StoredSession
from context_builder.values import value


@value
class Received:
    """Messages that were not seen before; ``last_id`` is the id that the last of them was given."""

    messages: Sequence[Message]
    last_id: int


@value
class Revised:
    """Corrections, strikes and renamings that were applied."""

    revisions: Sequence[Revision]


@dataclass(frozen=True, slots=True)
class DeliveriesRejected:
    """Tells that ``count`` deliveries became dead letters."""

    count: int


@dataclass(frozen=True, slots=True)
class DeadLettered:
    """Tells that ``count`` entries for ``receiver`` have become dead letters since the session began."""

    receiver: Receiver
    count: int


@dataclass(frozen=True, slots=True)
class Charged:
    """Tells that a call beside the session's tasks, such as for embeddings, used ``usage``."""

    task: str
    usage: Usage


@value
class TaskStarted:
    """Tells that the conversation was asked for a task of ``kind``, and gave ``task``."""

    kind: Literal["keywords", "domains", "summary", "compaction"]
    task: AnalysisTask | None


@value
class TaskFinished:
    """Tells that a started task ended with ``result``; or with none, and then why, unless nobody was asked, and at what
    cost (``usage``).
    """

    task: AnalysisTask
    result: AnalysisResult | None
    usage: Usage | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PhaseChanged:
    """Tells that the session as a whole entered another phase."""

    phase: Literal["closing", "ended", "pending_lost"]


SessionEvent = (
    Received | Revised | DeliveriesRejected | DeadLettered | Charged | TaskStarted | TaskFinished | PhaseChanged
)


class Recorder(Protocol):
    """Records what happens in one session. No method waits or raises, whatever becomes of the recording.

    ``place`` is the machine and the file that it is in.
    """

    @property
    def place(self) -> str: ...

    def begin(self, session_id: str, rules: SessionConfig, snapshot: StoredSession, now: Instant) -> None:
        """Record that the session continues from ``snapshot``."""
        ...

    def happened(self, what: SessionEvent, now: Instant) -> None:
        """Record an event that changed the conversation at ``now``."""
        ...

    def published(self, revision: int, state: PublishedState, now: Instant) -> None:
        """Record that ``state``, made at ``now``, is what readers see, white space aside. Its text can be had
        during the call.
        """
        ...

    def end(self) -> None:
        """Record that the session leaves; no other event follows."""
        ...

    def forget(self) -> None:
        """Delete the recording, because the session was forgotten; no other event follows."""
        ...
