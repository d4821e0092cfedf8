"""Analysis beside the loop: work goes to an analyst, its reading comes back as an event."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from context_builder import metrics
from context_builder.analysis.analyst import Analyst
from context_builder.errors import AnalystError, ReplyInvalid
from context_builder.session.work import DomainWork, KeywordWork, Reading, SummaryWork, Work

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Done:
    """Work that is over; without a reading, nothing came of it."""

    work: Work
    reading: Reading | None


class Jobs:
    """The analysis of one session that is under way."""

    def __init__(self, analyst: Analyst, last_resort: Analyst, deliver: Callable[[Done], None]) -> None:
        self._analyst = analyst
        self._last_resort = last_resort
        self._deliver = deliver
        self._running: dict[asyncio.Task[None], Work] = {}

    @property
    def keywords_in_flight(self) -> int:
        return sum(isinstance(work, KeywordWork) for work in self._running.values())

    def start(self, work: Work, tasks: asyncio.TaskGroup) -> None:
        """Begin, and deliver what comes of it."""
        task = tasks.create_task(self._do(work), name=_task_name(work))
        self._running[task] = work
        task.add_done_callback(self._running.pop)

    def cancel(self) -> None:
        """Give up everything under way; it is asked for again by the next run."""
        for task in self._running:
            task.cancel()

    async def _do(self, work: Work) -> None:
        name = _task_name(work)
        started = time.perf_counter()
        reading: Reading | None = None
        try:
            reading = await self._read(work)
        except AnalystError as error:
            log.warning("analysis.failed", task=name, kind=type(error).__name__, error=str(error))
        metrics.ANALYSIS.labels(name, "failed" if reading is None else "done").inc()
        metrics.ANALYSIS_SECONDS.labels(name).observe(time.perf_counter() - started)
        self._deliver(Done(work, reading))

    async def _read(self, work: Work) -> Reading:
        if isinstance(work, SummaryWork):
            analyst = self._last_resort if work.last_resort else self._analyst
            return _counted("summary", await analyst.summarize(work.request))
        if isinstance(work, DomainWork):
            return _counted("domains", await self._analyst.infer_domains(work.messages))
        reading = await self._analyst.extract_keywords(work.messages)
        if len(reading.keywords) != len(work.messages):
            raise ReplyInvalid(f"keywords of {len(reading.keywords)} messages for {len(work.messages)}")
        return _counted("keywords", reading)


def _task_name(work: Work) -> str:
    if isinstance(work, KeywordWork):
        return "keywords"
    return "domains" if isinstance(work, DomainWork) else "summary"


def _counted(task: str, reading: Reading) -> Reading:
    usage = reading.usage
    for kind, tokens in (
        ("prompt", usage.prompt_tokens),
        ("cached", usage.cached_tokens),
        ("completion", usage.completion_tokens),
    ):
        if tokens:
            metrics.TOKENS.labels(task, usage.model, kind).inc(tokens)
    return reading
