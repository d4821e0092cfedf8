"""What prompts are built with, and what is recorded of each."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.config import AssemblyConfig
from context_builder.assembly.fit import Fitted
from context_builder.assembly.govern import (
    AccessPolicy,
    AccessQuestion,
    Governed,
    RedactionPolicy,
    decided,
    each_once,
    govern,
    redacting_beside,
)
from context_builder.assembly.metrics import Metrics, record_prompt
from context_builder.assembly.retrieve import Retriever
from context_builder.assembly.section import MessageTokenCounter
from context_builder.assembly.select import RankingSignal
from context_builder.clock import Clock
from context_builder.concurrency import Background, beside_loop

T = TypeVar("T")


class ContextCache:
    """Keeps at most ``size`` prompts for ``seconds`` on a clock that never goes back; none with 0 seconds."""

    def __init__(self, seconds: float, size: int) -> None:
        self.is_on = seconds > 0
        self._seconds = seconds
        self._size = size
        self._kept: dict[Hashable, tuple[float, Any]] = {}

    def get(self, key: Hashable, now: float) -> Any:
        """Return a copy of the prompt kept under ``key``; None when there is none, or it has expired."""
        until, prompt = self._kept.get(key, (now, None))
        return None if prompt is None or now >= until else prompt.copied(cached=True)

    def put(self, key: Hashable, prompt: Any, now: float) -> None:
        """Keep ``prompt`` as it is now, and drop the oldest where there are too many."""
        if self.is_on and key is not None:
            self._kept.pop(key, None)
            self._kept[key] = (now + self._seconds, prompt.copied())
            while len(self._kept) > self._size:
                del self._kept[next(iter(self._kept))]

    def clear(self) -> None:
        """Forget all prompts, because the memories that they were made of have changed."""
        self._kept.clear()


@dataclass(frozen=True, slots=True)
class PromptServices:
    """What turns and contexts are built with.

    ``access`` decides, if there is one, of all that is found; what it lets be seen redacted only goes through
    ``redaction_of_governed``. Without ``signals``, those that the config weighs rank the memories.
    """

    config: AssemblyConfig
    retriever: Retriever
    counter: MessageTokenCounter
    redaction: RedactionPolicy
    redaction_of_governed: RedactionPolicy
    metrics: Metrics
    background: Background
    cache: ContextCache
    clock: Clock
    access: AccessPolicy | None = None
    signals: Sequence[RankingSignal] = ()

    def now(self) -> datetime:
        """Return the time in UTC."""
        return datetime.fromtimestamp(self.clock.now().wall, UTC)

    def monotonic(self) -> float:
        """Return the seconds on a clock that never goes back."""
        return self.clock.now().monotonic

    async def governed(self, lists: Sequence[Sequence[Candidate]], question: AccessQuestion) -> Governed:
        """Return the candidates as the access policy lets them be seen: all of them, where there is none."""
        if self.access is None:
            return Governed(lists)
        return govern(lists, await decided(self.access.decide(each_once(lists), question), {}))

    async def assembled(self, make: Callable[[], T]) -> T:
        """Return what ``make`` makes, without I/O; in a thread where an access policy decides: that is for others."""
        return make() if self.access is None else await redacting_beside(make, self.monotonic)

    def record(self, fitted: Fitted, tokens: int, limit: int) -> None:
        """Tell the metrics of a prompt of ``tokens`` tokens, of at most ``limit``."""
        if fitted.history.unseen:
            self.background.start("count tokens", self._count_history(fitted, tokens))
        else:
            before, redacted = fitted.offered_tokens(self.counter, tokens)
            self.metrics.record_tokens(before, tokens, redacted, tokens)
        record_prompt(self.metrics, fitted.memories, tokens, limit)

    async def _count_history(self, fitted: Fitted, tokens: int) -> None:
        """Count what is long past, too; nothing but a metric needs that, so no turn waits for it."""
        before, redacted = await beside_loop(fitted.offered_tokens, self.counter, tokens)
        self.metrics.record_tokens(before, tokens, redacted, tokens)
