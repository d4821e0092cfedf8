"""A message that a model refuses holds up no other: what is refused is halved until that message is found."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

import structlog

from context_builder.analysis.analyst import (
    Analyst,
    AnalystMessage,
    Compact,
    CompactionRequest,
    CompactionResult,
    DomainResult,
    KeywordResult,
    KnownPoint,
    PointKind,
    PreferenceResult,
    ProjectDocument,
    ReadBoth,
    ReadPreferences,
    SummaryRequest,
    SummaryResult,
)
from context_builder.costs import NO_USAGE, Usage
from context_builder.errors import AnalystError, AnalystUnavailable, ContentRefused, RequestRefused

_log = structlog.get_logger(__name__)

MOST_REMEMBERED: Final = 10_000
"""Refused texts, the newest."""

PROBE: Final = AnalystMessage(1, "Ida", "The meeting about the new freezer is on Tuesday at nine.")
"""Probe message: if the model refuses this too, the server is at fault, not what people said."""

POINT_PROBE: Final = KnownPoint(1, PROBE.text, PointKind.CLAIM, (PROBE.speaker,))


class _WithText(Protocol):
    @property
    def text(self) -> str: ...


class _WithUsage(Protocol):
    @property
    def usage(self) -> Usage: ...


Item = TypeVar("Item", bound=_WithText)
Result = TypeVar("Result", bound=_WithUsage)


@dataclass(frozen=True, slots=True)
class _Part(Generic[Item, Result]):
    """Neighbouring items, from the place ``start`` on, and their result unless they are refused."""

    start: int
    items: Sequence[Item]
    result: Result | None = None


class HalvingAnalyst(Analyst):
    """Asks ``model``; the first of ``stand_ins`` that can answers for a message that the model refuses.

    Halving finds one such message among n in about 2 log₂ n calls. Where there are several, at most twice as many are
    made, and what is unclear then is left to a stand-in, too. A text found to be refused is not sent for that task
    again. A refusal that does not say why counts as one of the text only if the model answers about another.
    """

    def __init__(self, model: Analyst, stand_ins: Sequence[Analyst]) -> None:
        self._model = model
        self._stand_ins = stand_ins
        self._refused: dict[tuple[str, str], None] = {}

    @property
    def name(self) -> str:
        return self._model.name

    async def extract_keywords(self, messages: Sequence[AnalystMessage]) -> KeywordResult:
        """Return the model's keywords, and a stand-in's for refused messages."""
        parts, usage = await self._parts("keywords", messages, self._model.extract_keywords)
        found: list[tuple[str, ...]] = []
        names = [self.name] if any(part.result for part in parts) or not parts else []
        for part in parts:
            result = part.result
            if result is None:
                result = await self._stand_in(lambda analyst, asked: analyst.extract_keywords(asked), part.items)
                usage += result.usage
                names.append(result.analyst)
            found += result.keywords
        return KeywordResult(tuple(found), names[0], usage)

    async def infer_domains(self, messages: Sequence[AnalystMessage]) -> DomainResult:
        """Return the domains of what is not refused; a stand-in's, if all is."""
        parts, usage = await self._parts("domains", messages, self._model.infer_domains)
        answered = [(len(part.items), part.result) for part in parts if part.result is not None]
        if len(answered) > 1:
            allowed = [message for part in parts if part.result is not None for message in part.items]
            parts, more = await self._parts("domains", allowed, self._model.infer_domains)
            usage += more
            answered += [(len(part.items), part.result) for part in parts if part.result is not None]
        if answered:
            _, result = max(answered, key=lambda one: one[0])
        else:
            result = await self._stand_in(lambda analyst, asked: analyst.infer_domains(asked), messages)
            usage += result.usage
        return replace(result, usage=usage)

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        """Return the model's points, and a stand-in's for refused messages; refused known points are not shown."""
        known, spent = self._allowed(request.known), NO_USAGE
        shown: Sequence[KnownPoint] = known
        if known and len(self._allowed(request.messages)) == len(request.messages):
            try:
                return await self._model.summarize(replace(request, known=known))
            except (ContentRefused, RequestRefused) as error:
                shown, spent = (), error.usage or NO_USAGE
        ask = partial(_summary_by, self._model, replace(request, known=shown))
        parts, usage = await self._parts("summary", request.messages, ask)
        if known and not shown and len(parts) == 1 and parts[0].result is not None:
            parts, more = await self._with_allowed_points(request, known, parts[0])
            usage += more
        whole = SummaryResult((), self.name, usage=spent + usage)
        return await self._joined(request, parts, whole)

    @property
    def read_both(self) -> ReadBoth | None:
        """Return a function that finds keywords and domains in one call, where the model has one."""
        read_both = self._model.read_both
        return read_both and partial(self._read_both, read_both)

    @property
    def read_preferences(self) -> ReadPreferences | None:
        """Return a function that finds stated preferences, where the model can; none in refused messages."""
        read = self._model.read_preferences
        return read and partial(self._read_preferences, read)

    @property
    def compact(self) -> Compact | None:
        """Return a function that rewrites points, where the model can; those that it refuses stay as they are."""
        compact = self._model.compact
        return compact and partial(self._compact, compact)

    @property
    def project_document(self) -> ProjectDocument | None:
        """Return a function that finds a document's key statements, where the model can."""
        return self._model.project_document

    async def close(self) -> None:
        await self._model.close()

    async def _read_both(
        self, read_both: ReadBoth, keyword_messages: Sequence[AnalystMessage], domain_messages: Sequence[AnalystMessage]
    ) -> tuple[KeywordResult, DomainResult]:
        """Ask about both apart where something in them is refused."""
        spent = NO_USAGE
        refused = [("keywords", message.text) in self._refused for message in keyword_messages]
        refused += [("domains", message.text) in self._refused for message in domain_messages]
        if not any(refused):
            try:
                return await read_both(keyword_messages, domain_messages)
            except (ContentRefused, RequestRefused) as error:
                spent = error.usage or NO_USAGE
        keywords = await self.extract_keywords(keyword_messages)
        domains = await self.infer_domains(domain_messages)
        return keywords, replace(domains, usage=spent + domains.usage)

    async def _compact(self, compact: Compact, request: CompactionRequest) -> CompactionResult:
        beside, spent = self._allowed(request.beside), NO_USAGE
        if len(self._allowed(request.points)) == len(request.points):
            try:
                return await compact(replace(request, beside=beside))
            except (ContentRefused, RequestRefused) as error:
                beside, spent = (), error.usage or NO_USAGE
        characters = sum(len(point.text) for point in request.points)

        async def ask(points: Sequence[KnownPoint]) -> CompactionResult:
            share = sum(len(point.text) for point in points) / characters
            return await compact(CompactionRequest(points, max(1, int(share * request.tokens)), beside))

        parts, usage = await self._parts("summary", request.points, ask, probe=POINT_PROBE)
        results = [part.result for part in parts if part.result is not None]
        return CompactionResult(
            tuple(point for result in results for point in result.points),
            self.name,
            frozenset().union(*(result.dropped for result in results)),
            sum(result.rejected for result in results),
            spent + usage,
            frozenset().union(*(result.settled for result in results)),
        )

    async def _read_preferences(self, read: ReadPreferences, messages: Sequence[AnalystMessage]) -> PreferenceResult:
        parts, usage = await self._parts("preferences", messages, read)
        results = [part.result for part in parts if part.result is not None]
        found = tuple(one for result in results for one in result.preferences)
        return PreferenceResult(found, self.name, sum(result.rejected for result in results), usage)

    async def _with_allowed_points(
        self, request: SummaryRequest, known: Sequence[KnownPoint], without: _Part[AnalystMessage, SummaryResult]
    ) -> tuple[list[_Part[AnalystMessage, SummaryResult]], Usage]:
        """Find the known points that are refused, and summarize with the others; ``without`` any if that fails."""

        async def ask(points: Sequence[KnownPoint]) -> SummaryResult:
            return await self._model.summarize(replace(request, known=points))

        parts, usage = await self._parts("summary", known, ask, whole_is_refused=True)
        allowed = [point for part in parts if part.result is not None for point in part.items]
        try:
            result = await ask(allowed) if allowed else without.result
        except (ContentRefused, RequestRefused) as error:
            return [without], usage + (error.usage or NO_USAGE)
        return [replace(without, result=result)], usage + (result.usage if result and allowed else NO_USAGE)

    async def _joined(
        self, request: SummaryRequest, parts: Iterable[_Part[AnalystMessage, SummaryResult]], whole: SummaryResult
    ) -> SummaryResult:
        names: list[str] = []
        for part in parts:
            result = part.result
            if result is None:
                result = await self._stand_in(lambda analyst, asked: _summary_by(analyst, request, asked), part.items)
                self._remember("summary", (point.text for point in result.points))
                whole = replace(whole, refused=whole.refused + len(part.items), usage=whole.usage + result.usage)
            names.append(result.analyst)
            whole = replace(
                whole,
                points=whole.points + result.points,
                rejected=whole.rejected + result.rejected,
                over=whole.over | result.over,
            )
        return replace(whole, analyst=self.name if self.name in names or not names else names[0])

    async def _parts(
        self,
        task: str,
        items: Sequence[Item],
        ask: Callable[[Sequence[Item]], Awaitable[Result]],
        *,
        whole_is_refused: bool = False,
        probe: AnalystMessage | KnownPoint = PROBE,
    ) -> tuple[list[_Part[Item, Result]], Usage]:
        """Return the parts of ``items`` in order, each with what ``ask`` said of it or refused, and what that cost."""
        waiting = deque(self._runs(task, items))
        done: list[_Part[Item, Result]] = [
            _Part(place, [item]) for place, item in enumerate(items) if (task, item.text) in self._refused
        ]
        if whole_is_refused:
            waiting = deque(half for part in waiting for half in _halves(part))
        left = 4 * math.ceil(math.log2(max(len(items), 1))) + 1
        usage, is_clear = NO_USAGE, whole_is_refused
        while waiting:
            part = waiting.popleft()
            if left == 0:
                done.append(part)
                continue
            left -= 1
            try:
                result = await ask(part.items)
                usage += result.usage
                done.append(replace(part, result=result))
            except (ContentRefused, RequestRefused) as error:
                usage += error.usage or NO_USAGE
                error.usage = usage if usage.calls else None
                if isinstance(error, RequestRefused) and not is_clear and not any(one.result for one in done):
                    usage += await self._check_others_are_answered(error, ask, probe)
                is_clear = True
                if len(part.items) > 1:
                    waiting += _halves(part)
                    continue
                self._remember(task, [part.items[0].text])
                done.append(part)
                _log.warning("analyst.text_refused", task=task, analyst=self.name, error=str(error))
            except AnalystError as error:
                spent = usage + (error.usage or NO_USAGE)
                error.usage = spent if spent.calls else None
                raise
        return sorted(done, key=lambda part: part.start), usage

    def _runs(self, task: str, items: Sequence[Item]) -> list[_Part[Item, Any]]:
        """Return the items between those that are known to be refused."""
        runs: list[_Part[Item, Any]] = []
        start: int | None = None
        for place in range(len(items) + 1):
            is_allowed = place < len(items) and (task, items[place].text) not in self._refused
            if is_allowed and start is None:
                start = place
            elif not is_allowed and start is not None:
                runs.append(_Part(start, items[start:place]))
                start = None
        return runs

    async def _check_others_are_answered(
        self, error: RequestRefused, ask: Callable[[Sequence[Any]], Awaitable[_WithUsage]], probe: _WithText
    ) -> Usage:
        """Return what the probe cost. Raises ``error`` if the server refuses that as well."""
        try:
            return (await ask([probe])).usage
        except (ContentRefused, AnalystUnavailable):
            raise error from None
        except AnalystError as answered:
            return answered.usage or NO_USAGE

    async def _stand_in(
        self, ask: Callable[[Analyst, Sequence[AnalystMessage]], Awaitable[Result]], messages: Sequence[AnalystMessage]
    ) -> Result:
        *others, last = self._stand_ins
        for analyst in others:
            try:
                return await ask(analyst, messages)
            except AnalystError:
                continue
        return await ask(last, messages)

    def _allowed(self, items: Sequence[Item]) -> Sequence[Item]:
        return [item for item in items if ("summary", item.text) not in self._refused]

    def _remember(self, task: str, texts: Iterable[str]) -> None:
        self._refused |= dict.fromkeys((task, text) for text in texts)
        while len(self._refused) > MOST_REMEMBERED:
            del self._refused[next(iter(self._refused))]


def _halves(part: _Part[Item, Result]) -> list[_Part[Item, Result]]:
    middle = len(part.items) // 2
    halves: tuple[_Part[Item, Result], ...] = (
        _Part(part.start, part.items[:middle]),
        _Part(part.start + middle, part.items[middle:]),
    )
    return [half for half in halves if half.items]


async def _summary_by(analyst: Analyst, request: SummaryRequest, messages: Sequence[AnalystMessage]) -> SummaryResult:
    return await analyst.summarize(replace(request, messages=messages))
