"""Recordings made without a session: a conversation is played by the clock, and written down as a session does."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from context_builder.analysis.analyst import DomainResult, DraftPoint, KeywordResult, PointKind, SummaryResult
from context_builder.clock import Instant
from context_builder.recording.recording import Encoder, digest
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.conversation.state import take_session_state
from context_builder.session.conversation.tasks import AnalysisResult, AnalysisTask, KeywordTask, SummaryTask
from context_builder.session.events import Received, TaskFinished, TaskStarted
from context_builder.session.messages.message import from_fields
from context_builder.session.store.recovery import StoredSession
from context_builder.tokens.counter import ENCODING, count_tokens
from tests.session.saying import quoting

START = 1_700_000_000.0
ECOLOGY, LEARNING = "Environmental Science / Ecology", "Data Science / Machine Learning"


class WrittenRecording:
    """Writes down a conversation; a message is said every ``pause`` seconds."""

    def __init__(
        self, path: Path, session_id: str, *, domains: tuple[str, ...] = (ECOLOGY, LEARNING), **rules: Any
    ) -> None:
        self.path = path
        self.states: list[tuple[float, bytes]] = []
        self._domains = domains
        self._now = Instant(START, 1_000.0, 0)
        config = SessionConfig(**rules)
        self._conversation = Conversation(session_id, config, self._now, count_tokens)
        self._encoder = Encoder()
        empty = StoredSession(0, {}, 0)
        self._lines = [self._encoder.begin(session_id, config, ENCODING, empty, self._now)]

    def say(self, texts: Iterable[str], *, speakers: tuple[str, ...] = ("Ines", "Kai"), pause: float = 4.0) -> None:
        """Say the texts in turn, and let all that is due be understood."""
        for text in texts:
            self._now = Instant(self._now.wall + pause, self._now.monotonic + pause, 0)
            number = self._conversation.received + 1
            speaker = speakers[number % len(speakers)]
            fields = {"message_number": number, "speaker": speaker, "text": text, "timestamp": self._now.iso()}
            message = from_fields(fields, self._now)
            self._conversation.receive([message], self._now)
            self._happened(Received((message,), self._conversation.last_id))
            self._publish()
            self._understand()

    def write(self) -> Path:
        """Write the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(b"".join(self._lines))
        return self.path

    def _understand(self) -> None:
        now = self._now
        tasks: tuple[tuple[str, AnalysisTask | None], ...] = (
            ("keywords", self._conversation.next_keyword_task(now)),
            ("domains", self._conversation.next_domain_task(now)),
            ("summary", self._conversation.next_summary_task() if self._conversation.summary_due(now) else None),
        )
        for kind, task in tasks:
            if task is not None:
                self._happened(TaskStarted(kind, task))
                result = self._answer(task)
                self._conversation.finish(task, result, now)
                self._happened(TaskFinished(task, result, None))
                self._publish()

    def _answer(self, task: AnalysisTask) -> AnalysisResult:
        if isinstance(task, KeywordTask):
            return KeywordResult(tuple(tuple(one.text.split()[:2]) for one in task.messages), "stub")
        if isinstance(task, SummaryTask):
            first = task.request.messages[0]
            return SummaryResult((DraftPoint(f"Said: {first.text}", quoting(first.id), PointKind.CLAIM),), "stub")
        lead = self._domains[(task.through // 10) % len(self._domains)]
        return DomainResult({lead: 0.9}, ("kelp",), "stub")

    def _publish(self) -> None:
        self._conversation.take_changes()
        state = bytes(take_session_state(self._conversation, len(self.states) + 1, self._now))
        self.states.append((self._now.wall, state))
        self._lines.append(self._encoder.published(len(self.states), digest(state), self._now))

    def _happened(self, what: Any) -> None:
        self._lines.append(self._encoder.happened(what, self._now))
