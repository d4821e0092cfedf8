"""The read side's metrics; names, labels and buckets are fixed, because dashboards rely on them.

Nothing here tells what people said or who they are.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Final, Protocol

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

_PHASE: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0)
_RETRIEVAL: Final = (*_PHASE, 2.0)
_TOTAL: Final = (*_RETRIEVAL, 5.0)


class _Collectors:
    """The collectors of a registry, made once: a metric cannot be registered twice."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def histogram(name: str, what: str, buckets: tuple[float, ...], labels: tuple[str, ...] = ()) -> Histogram:
            return Histogram(name, what, labels, buckets=buckets, registry=registry)

        self.total = histogram("thinking_total_seconds", "Building a context.", _TOTAL)
        self.retrieval = histogram("thinking_retrieval_seconds", "Asking the memory.", _RETRIEVAL, ("state",))
        self.salience = histogram("thinking_salience_seconds", "Scoring memories.", _PHASE)
        self.ranking = histogram("thinking_ranking_seconds", "Ranking and clipping memories.", _PHASE)
        self.redaction = histogram("thinking_redaction_seconds", "Redacting memories.", _PHASE)
        self.tokenisation = histogram("thinking_tokenisation_seconds", "Counting and budgeting.", _PHASE)
        self.prompt = histogram("thinking_prompt_seconds", "Putting the messages together.", _PHASE)
        self.before_budget = Gauge("context_tokens_before_budget", "Tokens offered, as given.", registry=registry)
        self.after_budget = Gauge("context_tokens_after_budget", "Tokens after the budget.", registry=registry)
        self.after_redaction = Gauge("context_tokens_after_redaction", "Tokens offered, redacted.", registry=registry)
        self.prompt_tokens = Gauge("context_prompt_tokens", "Tokens of the prompt.", registry=registry)
        self.prompts = Counter("context_builder_prompt_total", "Prompts built.", registry=registry)
        self.snippets = Counter("context_builder_snippets_total", "Snippets by stage.", ["stage"], registry=registry)
        self.retrieval_duration = histogram(
            "context_builder_retrieval_seconds", "Asking the memory.", (0.01, 0.05, 0.1, 0.2, 0.5, 1.0)
        )
        self.snippet_count = histogram(
            "context_builder_snippet_count", "Snippets retrieved.", (0, 1, 3, 5, 8, 10, 15, 20)
        )
        self.utilization = histogram(
            "context_builder_token_utilization", "Share of the budget used.", (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
        )
        self.degradations = Counter(
            "context_builder_degradation_total", "Failures of the memory.", ["reason"], registry=registry
        )


_collectors = cache(_Collectors)


class ContextBuilderMetrics:
    """Records each prompt that a :class:`ContextBuilder` builds, but for those from the cache; instances share the
    collectors of a registry.
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self._of = _collectors(registry)

    def time_total(self) -> AbstractContextManager[object]:
        """Time a whole build."""
        return self._of.total.time()

    def time_retrieval(self, state: str) -> AbstractContextManager[object]:
        """Time the question to the memory, whose health is ``state``."""
        return self._of.retrieval.labels(state).time()

    def time_salience(self) -> AbstractContextManager[object]:
        return self._of.salience.time()

    def time_ranking(self) -> AbstractContextManager[object]:
        return self._of.ranking.time()

    def time_redaction(self) -> AbstractContextManager[object]:
        return self._of.redaction.time()

    def time_tokenisation(self) -> AbstractContextManager[object]:
        return self._of.tokenisation.time()

    def time_prompt(self) -> AbstractContextManager[object]:
        return self._of.prompt.time()

    def record_tokens(self, before_budget: int, after_budget: int, after_redaction: int, prompt_tokens: int) -> None:
        """Record the latest prompt's tokens: all that was offered, raw and redacted, and what the prompt holds."""
        self._of.before_budget.set(before_budget)
        self._of.after_budget.set(after_budget)
        self._of.after_redaction.set(after_redaction)
        self._of.prompt_tokens.set(prompt_tokens)

    def inc_prompt(self) -> None:
        """Count one more prompt."""
        self._of.prompts.inc()

    def inc_snippets(self, stage: str, count: int = 1) -> None:
        """Count snippets that came to ``stage``: ``final`` or ``summary``."""
        self._of.snippets.labels(stage).inc(count)

    def observe_retrieval(self, seconds: float, snippets: int) -> None:
        """Record how long the memory was asked and how many memories it gave."""
        self._of.retrieval_duration.observe(seconds)
        self._of.snippet_count.observe(snippets)

    def observe_utilization(self, share: float) -> None:
        """Record the share of the token budget that a prompt used, 0..1."""
        self._of.utilization.observe(share)

    def inc_degradation(self, reason: str) -> None:
        """Count a failure of the memory: ``timeout``, ``rejected`` or ``error``."""
        self._of.degradations.labels(reason).inc()


Timer = AbstractContextManager[object]


class Metrics(Protocol):
    """Defines the metrics a builder reports to; :class:`ContextBuilderMetrics` reports to Prometheus.

    Metrics that have them are also told ``observe_retrieval(seconds, snippets)``, ``observe_utilization(share)`` and
    ``inc_degradation(reason)``.
    """

    def time_total(self) -> Timer: ...
    def time_retrieval(self, state: str) -> Timer: ...
    def time_salience(self) -> Timer: ...
    def time_ranking(self) -> Timer: ...
    def time_redaction(self) -> Timer: ...
    def time_tokenisation(self) -> Timer: ...
    def time_prompt(self) -> Timer: ...
    def record_tokens(
        self, before_budget: int, after_budget: int, after_redaction: int, prompt_tokens: int
    ) -> None: ...
    def inc_prompt(self) -> None: ...
    def inc_snippets(self, stage: str, count: int = 1) -> None: ...


def report(metrics: Metrics, method: str, *figures: object) -> None:
    """Call the optional ``method`` of ``metrics``, if they have it."""
    if (reported := getattr(metrics, method, None)) is not None:
        reported(*figures)


def record_prompt(metrics: Metrics, memories: int, tokens: int, limit: int) -> None:
    """Tell the metrics of a prompt with so many memories, of ``tokens`` within ``limit`` tokens."""
    metrics.inc_prompt()
    metrics.inc_snippets("final", memories)
    report(metrics, "observe_utilization", tokens / limit)
