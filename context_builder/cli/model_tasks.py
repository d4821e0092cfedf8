"""The doctor's questions to a model: each task once, about a tiny talk, so that it is known what its server takes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from context_builder.analysis.analyst import (
    Analyst,
    AnalystMessage,
    CompactionRequest,
    KnownPoint,
    PointKind,
    Quote,
    SummaryRequest,
)
from context_builder.analysis.openai import OpenAIAnalyst
from context_builder.analysis.openai.analyst import DoubtedSentence
from context_builder.analysis.openai.completion import NoCompletion
from context_builder.cli.view.status import counted
from context_builder.errors import AnalystError, ContentRefused, OverBudget, ReplyInvalid

if TYPE_CHECKING:
    from context_builder.settings.settings import Settings

TALK: Final = (
    AnalystMessage(1, "Ida", "How does DNA replication work in living cells?"),
    AnalystMessage(2, "Bo", "The helicase unwinds the double helix, then the polymerase copies each strand."),
)


@dataclass(frozen=True, slots=True)
class ModelTask:
    """How a task is tried with a model, and the settings that it depends on; ``ask`` returns the answer."""

    ask: Callable[[Analyst], Awaitable[str]]
    model: str
    limit: str


@dataclass(frozen=True, slots=True)
class TaskAnswer:
    """The result of one task; ``advice`` has a line for each thing to set or to know."""

    task: str
    ok: bool
    found: str
    advice: str


async def _keywords(analyst: Analyst) -> str:
    result = await analyst.extract_keywords(TALK[:1])
    return counted(len(result.keywords[0]), "keyword")


async def _domains(analyst: Analyst) -> str:
    result = await analyst.infer_domains(TALK)
    return ", ".join(result.domains) or "no domain"


async def _summary(analyst: Analyst) -> str:
    result = await analyst.summarize(SummaryRequest(TALK))
    rejected = f", {result.rejected} rejected" if result.rejected else ""
    return f"{counted(len(result.points), 'point')}{rejected}"


async def _verification(analyst: Analyst) -> str:
    if not isinstance(analyst, OpenAIAnalyst):
        return "not used: a small model does not check its own sentences"
    quotes = [(message.speaker, message.text) for message in TALK]
    verdicts, _ = await analyst.verify(
        [DoubtedSentence("The polymerase copies each strand of the helix.", PointKind.CLAIM, quotes)]
    )
    if verdicts is None:
        raise ReplyInvalid("no verdict came: points in doubt will be marked as unconfirmed")
    return "supported, as it should be" if verdicts[0] else "called unsupported what was said: true points may be lost"


async def _compaction(analyst: Analyst) -> str:
    if (compact := analyst.compact) is None:
        return "not used: a summary that is too long loses whole points"
    quotes = [Quote(message.id, message.text, message.speaker) for message in TALK]
    points = [KnownPoint(quote.message, quote.text, PointKind.CLAIM, (quote.speaker,), (quote,)) for quote in quotes]
    result = await compact(CompactionRequest(points, 30))
    return f"{counted(len(points), 'point')} as {len(result.points)}"


_CHECK_SERVER: Final = "check the server, OPENAI_API_KEY, OPENAI_BASE_URL and the names of the models"

EVERY_TASK: Final = "model"
"""Stands for all tasks of a model that fails at each for the same reason."""

VERIFICATION: Final = "verification"

TASKS: Final[Mapping[str, ModelTask]] = {
    "keywords": ModelTask(_keywords, "KEYWORD_MODEL", "KEYWORD_MAX_TOKENS"),
    "domains": ModelTask(_domains, "DOMAIN_MODEL", "DOMAIN_MAX_TOKENS"),
    "summary": ModelTask(_summary, "SUMMARY_MODEL", "SUMMARY_REPLY_TOKENS"),
    VERIFICATION: ModelTask(_verification, "KEYWORD_MODEL", "KEYWORD_MAX_TOKENS"),
    "compaction": ModelTask(_compaction, "COMPACTION_MODEL", "SUMMARY_REPLY_TOKENS"),
}


async def try_tasks(settings: Settings, patience: float) -> list[TaskAnswer]:
    """Ask each configured model for each task once; no answer takes ``patience`` seconds."""
    from context_builder.wiring.analysts import models

    configured = models(settings)
    try:
        tried = [await _all_tried(label, model, patience) for label, model in configured.items()]
        return [answer for answers in tried for answer in answers]
    finally:
        for model in configured.values():
            await model.close()


async def _all_tried(label: str, analyst: Analyst, patience: float) -> list[TaskAnswer]:
    """Ask for all tasks at the same time; a model that fails at all of them for one reason is told once."""
    answers = await asyncio.gather(*(_tried(label, name, analyst, patience) for name in TASKS))
    (found, advice), *others = {
        (one.found, one.advice) for one in answers if one.task != VERIFICATION
    }  # which hides why
    if others or any(one.ok for one in answers):
        return answers
    return [TaskAnswer(EVERY_TASK, ok=False, found=found, advice=advice)]


async def _tried(label: str, name: str, analyst: Analyst, patience: float) -> TaskAnswer:
    task, started = TASKS[name], time.perf_counter()
    try:
        found = await asyncio.wait_for(task.ask(analyst), patience)
    except TimeoutError:
        return TaskAnswer(name, ok=False, found=f"{label}: no answer within {patience:g} s", advice="check LLM_TIMEOUT")
    except AnalystError as error:
        return TaskAnswer(name, ok=False, found=str(error), advice=_advice(task, error))
    notes = analyst.notes(name) if isinstance(analyst, OpenAIAnalyst) else []
    return TaskAnswer(
        name, ok=True, found=f"{label}: {found} in {time.perf_counter() - started:.2f} s", advice="\n".join(notes)
    )


def _advice(task: ModelTask, error: AnalystError) -> str:
    if isinstance(error, OverBudget):
        return "raise LLM_BUDGET_PER_HOUR"
    if isinstance(error, ContentRefused):
        return f"the server filters or refuses harmless talk: set another model as {task.model}, or loosen its filter"
    if isinstance(error, NoCompletion):
        return _CHECK_SERVER
    if isinstance(error, ReplyInvalid):
        return f"set another model as {task.model}, or a higher {task.limit}"
    return _CHECK_SERVER
