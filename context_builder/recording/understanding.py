"""An understanding holds the results of analysis of recorded messages in a comparable form."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from context_builder.analysis.analyst import (
    Analyst,
    DomainResult,
    DraftPoint,
    KeywordResult,
    PointKind,
    SummaryRequest,
    SummaryResult,
)
from context_builder.errors import AnalystError
from context_builder.recording.lines import read_result
from context_builder.recording.recording import Line, RecordedTasks, Recording
from context_builder.session.conversation.tasks import AnalysisResult, DomainTask, KeywordTask

Asked = KeywordTask | DomainTask | SummaryRequest
"""Task that an analyst is asked for."""

AT_ONCE: Final = 8
"""Works asked about at the same time; the analyst bounds its calls further."""


@dataclass(frozen=True, slots=True)
class RecordedMessage:
    """Holds somebody's words, the same in every recording; ``again`` counts how often they had said them before."""

    speaker: str
    text: str
    again: int = 0


@dataclass(frozen=True, slots=True)
class RecordedPoint:
    """Holds a point as an analyst proposed it, and the messages it cites."""

    text: str
    kind: PointKind
    cites: frozenset[RecordedMessage]


@dataclass(slots=True)
class Understanding:
    """Holds keywords by message, domains by the newest message they were inferred from, and points.

    ``messages`` are those asked about by id, in their order. ``analysts`` counts who made the results,
    ``failed`` the tasks that nothing came of.
    """

    messages: dict[int, RecordedMessage]
    keywords: dict[RecordedMessage, tuple[str, ...]] = field(default_factory=dict)
    domains: dict[RecordedMessage, list[str]] = field(default_factory=dict)
    points: list[RecordedPoint] = field(default_factory=list)
    analysts: Counter[str] = field(default_factory=Counter)
    failed: int = 0


def understanding(answers: Sequence[tuple[Asked, AnalysisResult | None]]) -> Understanding:
    """Return what the results of analysis amount to."""
    made = Understanding(_identified(asked for asked, _ in answers))
    for asked, result in answers:
        messages = [made.messages[said.id] for said in asked.messages]
        if result is None:
            made.failed += 1
            continue
        made.analysts[result.analyst] += 1
        if isinstance(result, KeywordResult):
            made.keywords.update(zip(messages, result.keywords, strict=True))
        elif isinstance(result, DomainResult):
            made.domains[messages[-1]] = result.domains
        elif isinstance(result, SummaryResult):
            made.points += [_point(draft, made.messages) for draft in result.points]
    return made


def _identified(tasks: Iterable[Asked]) -> dict[int, RecordedMessage]:
    said = {said.id: said for asked in tasks for said in asked.messages}
    before: Counter[tuple[str, str]] = Counter()
    by_id: dict[int, RecordedMessage] = {}
    for message_id in sorted(said):
        words = (said[message_id].speaker, said[message_id].text)
        by_id[message_id] = RecordedMessage(*words, again=before[words])
        before[words] += 1
    return by_id


def _point(draft: DraftPoint, by_id: Mapping[int, RecordedMessage]) -> RecordedPoint:
    return RecordedPoint(draft.text, draft.kind, frozenset(by_id[cited] for cited in draft.cites if cited in by_id))


def answered(recording: Recording) -> Iterator[tuple[Asked, AnalysisResult]]:
    """Yield every recorded task that has a result, in the order of the results.

    Without results that stood again for lack of news, and without what a damaged line was about.
    """
    tasks: dict[str, RecordedTasks] = {}
    asked: dict[tuple[str, int], tuple[str, Asked | None]] = {}
    for line in recording.lines():
        if line.event == "begin":
            tasks[line.run] = RecordedTasks(line)
            continue
        if line.run not in tasks:
            continue
        tasks[line.run].learn_messages(line)
        if line.event == "task_started" and line.more["task"] is not None and line.more["kind"] != "compaction":
            with suppress(KeyError):
                asked[line.run, line.more["task"]] = (line.more["kind"], _asked(tasks[line.run], line))
        elif line.event == "task_finished" and line.more["result"] is not None:
            kind, request = asked.pop((line.run, line.more["task"]), ("", None))
            if request is not None and not line.more["result"].get("repeated"):
                yield request, read_result(kind, line.more["result"])


def _asked(tasks: RecordedTasks, line: Line) -> Asked:
    match line.more["kind"]:
        case "keywords":
            return tasks.keywords(line)
        case "domains":
            return tasks.domains(line)
        case _:
            return tasks.summary(line)


def recorded(recording: Recording) -> Understanding:
    """Return what the recording's own analysts understood."""
    return understanding([*answered(recording)])


async def understood_by(
    analyst: Analyst, recording: Recording, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> Understanding:
    """Return what ``analyst`` understands of the recorded tasks, asked once about each that has a result.

    ``on_progress`` is told how many are done, and of how many. Raises :class:`AnalystError` when nothing at all
    is answered.
    """
    asked = [task for task, _ in answered(recording)]
    results: list[AnalysisResult | None] = [None] * len(asked)
    failures: list[AnalystError] = []
    places = asyncio.Semaphore(AT_ONCE)
    done = 0

    async def read(index: int) -> None:
        nonlocal done
        async with places:
            try:
                results[index] = await _ask(analyst, asked[index])
            except AnalystError as error:
                failures.append(error)
        done += 1
        on_progress(done, len(asked))

    async with asyncio.TaskGroup() as tasks:
        for index in range(len(asked)):
            tasks.create_task(read(index), name=f"reading {index}")
    if asked and len(failures) == len(asked):
        raise failures[0]
    return understanding([*zip(asked, results, strict=True)])


async def _ask(analyst: Analyst, asked: Asked) -> AnalysisResult:
    if isinstance(asked, KeywordTask):
        return await analyst.extract_keywords(asked.messages)
    if isinstance(asked, DomainTask):
        return await analyst.infer_domains(asked.messages)
    return await analyst.summarize(asked)
