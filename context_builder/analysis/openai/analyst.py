"""The analyst that asks a model: messages into a prompt, a checked reply into a reading."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Final, NamedTuple, Protocol, TypeVar

from context_builder import metrics
from context_builder.analysis.analyst import (
    DOMAIN_TEXT,
    MIN_KEYWORD_TEXT,
    Analyst,
    AnalystMessage,
    Compact,
    CompactionRequest,
    CompactionResult,
    DocumentRequest,
    DocumentResult,
    DomainResult,
    DraftPoint,
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
from context_builder.analysis.chunking import chunks, excerpt, line_of, summarized, tokens_of, words_in
from context_builder.analysis.evidence import Doubt
from context_builder.analysis.openai.capabilities import Question
from context_builder.analysis.openai.client import ModelClient
from context_builder.analysis.openai.completion import Meter
from context_builder.analysis.openai.parsing import (
    compaction_of,
    domains_of,
    keywords_of,
    lone_keywords_of,
    points_of,
    preferences_of,
    statements_of,
    verdicts_of,
)
from context_builder.analysis.openai.schemas import (
    MAX_POINTS,
    CombinedReply,
    CompactionReply,
    DocumentReply,
    DomainReply,
    KeywordReply,
    LoneKeywordReply,
    PreferenceReply,
    SummaryReply,
    VerifyReply,
)
from context_builder.analysis.options import CallOptions, Endpoint, TaskConfig, TaskOptions
from context_builder.analysis.prompts import Prompts
from context_builder.costs import NO_USAGE, Budget, Prices, Usage
from context_builder.errors import AnalystError, ReplyInvalid
from context_builder.quoting import quoted_json
from context_builder.tokens.counter import TokenCounter

T = TypeVar("T")

KEYWORD_TEXT: Final = 4_000
PREFERENCE_TEXT: Final = 1_000
VERDICT_TOKENS: Final = 16
"""Tokens of one verdict of a verification, at most."""

VERIFIED_TEXT: Final = 500
"""Characters up to which a quoted message is shown whole where a sentence is verified: what is quoted may be "it"."""

OVER: Final = "over"
"""What stands in a verification for the kind of a known point that is said to be done, refused or overtaken."""

MINUTES: Final = "minutes"
"""Who "says" the sentence of another point where it is to show that one is over."""

CONTEXT_TEXT: Final = 300
"""Characters of one message that each is taken from: of a longer one, its first and last half."""


class Client(Protocol):
    """Asks a model questions, as :class:`ModelClient` does over HTTP."""

    async def ask(self, question: Question, read: Callable[..., T]) -> tuple[T, Usage]: ...

    def notes(self, model: str) -> list[str]: ...

    async def close(self) -> None: ...


class OpenAIAnalyst(Analyst):
    """Asks the model at ``endpoint``, or the given ``client``; shared by all sessions of a process.

    ``prices`` tell what usage costs, and a ``budget`` bounds it.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        prompts: Prompts,
        *,
        tasks: TaskConfig | None = None,
        calls: CallOptions | None = None,
        prices: Prices | None = None,
        budget: Budget | None = None,
        name: str = "openai",
        client: Client | None = None,
    ) -> None:
        self._name = name
        self._prompts = prompts
        self._tasks = tasks or TaskConfig()
        self._count = TokenCounter(self._tasks.summary.model).count
        meter = Meter(prices or Prices(), budget, self._count)
        self._client: Client = client or ModelClient(endpoint, calls or CallOptions(), prompts.json_mode, meter)

    @property
    def name(self) -> str:
        return self._name

    async def extract_keywords(self, messages: Sequence[AnalystMessage]) -> KeywordResult:
        """Ask for all keywords in one call; messages too short for keywords are not sent."""
        asked = list(filter(_is_worth_keywords, messages))
        if not asked:
            return KeywordResult(((),) * len(messages), self._name)
        if len(asked) == 1:
            found, usage = await self._client.ask(self._lone_keyword_question(asked[0]), lone_keywords_of)
        else:
            question = self._keyword_question(asked)
            found, usage = await self._client.ask(question, partial(keywords_of, count=len(asked)))
        return KeywordResult(_in_place(messages, found), self._name, usage)

    async def infer_domains(self, messages: Sequence[AnalystMessage]) -> DomainResult:
        """Ask for domains in one call, unless nothing was said."""
        texts = [excerpt(message.text, DOMAIN_TEXT) for message in messages if message.text.strip()]
        if not texts:
            return DomainResult({}, (), self._name)
        options, prompt = self._tasks.domains, self._prompts.domains
        question = Question(
            task="domains",
            stable=prompt.stable,
            varying=prompt.fill(messages="\n".join(map(quoted_json, texts))),
            reply=DomainReply,
            options=options,
            max_tokens=options.max_tokens,
        )
        (confidence, keywords), usage = await self._client.ask(question, domains_of)
        return DomainResult(confidence, keywords, self._name, usage)

    @property
    def read_both(self) -> ReadBoth | None:
        """Return a function that finds keywords and domains in one call, where one model does both."""
        return self._read_both if self._tasks.keywords.model == self._tasks.domains.model else None

    async def _read_both(
        self, keyword_messages: Sequence[AnalystMessage], domain_messages: Sequence[AnalystMessage]
    ) -> tuple[KeywordResult, DomainResult]:
        """Send a message that both are about once, and count the call's usage as the domains'."""
        asked = list(filter(_is_worth_keywords, keyword_messages))
        context = [message for message in domain_messages if message.text.strip()]
        if not asked or not context:
            return await self.extract_keywords(keyword_messages), await self.infer_domains(domain_messages)
        options, prompt = self._tasks.domains, self._prompts.combined
        question = Question(
            task="domains",
            stable=prompt.stable,
            varying=prompt.fill(messages=_marked(asked, context)),
            reply=CombinedReply,
            options=options,
            max_tokens=self._tasks.keywords.max_tokens * len(asked) + options.max_tokens,
        )

        def read(reply: CombinedReply) -> tuple[KeywordResult, DomainResult]:
            keywords = KeywordResult(_in_place(keyword_messages, keywords_of(reply, len(asked))), self._name)
            domain_reply = DomainReply(domains=reply.domains, keywords=reply.topic)
            return keywords, DomainResult(*domains_of(domain_reply), self._name)

        (keywords, domains), usage = await self._client.ask(question, read)
        return keywords, replace(domains, usage=usage)

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        """Ask for the points in one call, if all messages fit; otherwise in as many as it takes."""
        parts = await asyncio.to_thread(self._portions, request)
        return await summarized(request, parts, self._summarize, self._name)

    def _portions(self, request: SummaryRequest) -> list[list[AnalystMessage]]:
        size = partial(tokens_of, count=self._count)
        most = self._tasks.summary_input
        room = max(most - sum(size(point.text) for point in request.known), most // 2)
        return list(chunks(request.messages, room, size))

    async def _summarize(self, request: SummaryRequest) -> SummaryResult:
        """Ask for the points, then in one short call whether their quotes say what the check has doubts about."""
        options, prompt = self._tasks.summary, self._prompts.summary
        message = (line_of(message.speaker, message.text) for message in request.messages)
        question = Question(
            task="summary",
            stable=prompt.stable,
            varying=prompt.fill(known=_known(request.known), messages=_numbered(message)),
            reply=SummaryReply,
            options=options,
            max_tokens=options.max_tokens,
        )
        read, usage = await self._client.ask(question, partial(points_of, request=request))
        for reason, times in read.rejected.items():
            metrics.POINT_REJECTIONS.labels(reason).inc(times)
        sentences = [_in_doubt(draft, request) for draft, doubts in read.points if doubts]
        doubted = len(sentences)
        sentences += [_over(point, [(message.speaker, message.text)]) for point, message in read.over]
        verdicts, more = await self.verify(sentences)
        points = _confirmed(read.points, verdicts and verdicts[:doubted])
        rejected = read.rejected.total() + len(read.points) - len(points)
        over = zip(read.over, verdicts[doubted:] if verdicts else (), strict=False)
        gone = frozenset(point.id for (point, _), is_over in over if is_over)
        if read.points and not (points or gone):  # as when the check rejects every point
            error = ReplyInvalid(f"the model gave no summary: {rejected} points, none confirmed", rejected=rejected)
            error.usage = usage + more
            raise error
        return SummaryResult(points, self._name, rejected, usage + more, over=gone)

    @property
    def compact(self) -> Compact:
        """Return a function that rewrites points in one call."""
        return self._compact

    async def _compact(self, request: CompactionRequest) -> CompactionResult:
        """Ask for the sentences, then whether quotes say those that the check has doubts about; without an answer to
        that, as with a "no", the old points stay.
        """
        options, prompt = self._tasks.compaction, self._prompts.compact
        question = Question(
            task="compaction",
            stable=prompt.stable,
            varying=prompt.fill(
                words=self._words_allowed(request),
                points=_known(request.points),
                others=_known(request.beside, first=len(request.points) + 1),
            ),
            reply=CompactionReply,
            options=options,
            max_tokens=options.max_tokens,
        )
        read, usage = await self._client.ask(question, partial(compaction_of, request=request))
        at_hand = {point.id: point for point in request.points}
        sentences = [
            DoubtedSentence(one.text, one.kind, [quote for merged in one.merges for quote in _quotes(at_hand[merged])])
            for one, doubts in read.points
            if doubts
        ]
        sentences += [_over(old, [*_quotes(by), (MINUTES, by.text)]) for old, by in read.settled]
        verdicts, more = await self.verify(sentences)
        confirmed = iter(verdicts or [False] * len(sentences))
        accepted = [one for one, doubts in read.points if not doubts or next(confirmed)]
        settled = frozenset(old.id for old, _ in read.settled if next(confirmed))
        rejected = read.rejected + len(read.points) - len(accepted)
        return CompactionResult(tuple(accepted), self._name, read.dropped, rejected, usage + more, settled)

    def _words_allowed(self, request: CompactionRequest) -> str:
        """Return how many words the points may have, and how many they have now: models count words, not tokens."""
        texts = [point.text for point in request.points]
        words, tokens = sum(map(words_in, texts)), sum(map(self._count, texts))
        allowed = min(words, words * request.tokens // max(1, tokens))
        return f"{allowed} ({words} now, so save {words - allowed})"

    async def verify(self, sentences: Sequence[DoubtedSentence]) -> tuple[Sequence[bool] | None, Usage]:
        """Return whether its quotes say each sentence, by the model of the small tasks; None where that fails."""
        if not sentences:
            return (), NO_USAGE
        if len(sentences) > MAX_POINTS:  # as many as the reply's schema takes
            first, usage = await self.verify(sentences[:MAX_POINTS])
            rest, more = await self.verify(sentences[MAX_POINTS:])
            return (None if first is None or rest is None else [*first, *rest]), usage + more
        options, prompt = self._tasks.verification, self._prompts.verify
        question = Question(
            task="verification",
            stable=prompt.stable,
            varying=prompt.fill(points="\n".join(map(_doubted, sentences, count(1)))),
            reply=VerifyReply,
            options=options,
            max_tokens=max(options.max_tokens, VERDICT_TOKENS * len(sentences)),
        )
        try:
            return await self._client.ask(question, partial(verdicts_of, count=len(sentences)))
        except AnalystError as error:
            return None, error.usage or NO_USAGE

    @property
    def read_preferences(self) -> ReadPreferences:
        """Return a function that finds stated preferences in one call."""
        return self._read_preferences

    async def _read_preferences(self, messages: Sequence[AnalystMessage]) -> PreferenceResult:
        asked = [message for message in messages if message.text.strip()]
        if not asked:
            return PreferenceResult((), self._name)
        options, prompt = self._tasks.preferences, self._prompts.preferences
        question = Question(
            task="preferences",
            stable=prompt.stable,
            varying=prompt.fill(messages=_numbered(excerpt(message.text, PREFERENCE_TEXT) for message in asked)),
            reply=PreferenceReply,
            options=options,
            max_tokens=options.max_tokens,
        )
        (found, rejected), usage = await self._client.ask(question, partial(preferences_of, messages=asked))
        return PreferenceResult(found, self._name, rejected, usage)

    @property
    def project_document(self) -> ProjectDocument:
        """Return a function that finds a document's key statements in one call."""
        return self._project_document

    async def _project_document(self, request: DocumentRequest) -> DocumentResult:
        options, prompt = self._tasks.summary, self._prompts.artifact
        question = Question(
            task="artifact",
            stable=prompt.stable,
            varying=prompt.fill(title=quoted_json(request.title), passages=_numbered(request.passages)),
            reply=DocumentReply,
            options=options,
            max_tokens=options.max_tokens,
        )
        (found, rejected), usage = await self._client.ask(question, partial(statements_of, request=request))
        return DocumentResult(found, self._name, rejected, usage)

    def notes(self, task: str) -> list[str]:
        """Return in what the server of a task's model is met half-way, for people."""
        options: TaskOptions = getattr(self._tasks, task)
        return self._client.notes(options.model)

    async def close(self) -> None:
        await self._client.close()

    def _keyword_question(self, asked: Sequence[AnalystMessage]) -> Question:
        options, prompt = self._tasks.keywords, self._prompts.keywords
        varying = prompt.fill(messages="\n".join(_in_context(asked)))
        return Question("keywords", prompt.stable, varying, KeywordReply, options, options.max_tokens * len(asked))

    def _lone_keyword_question(self, asked: AnalystMessage) -> Question:
        options, prompt = self._tasks.keywords, self._prompts.lone_keywords
        *context, _ = _in_context([asked])
        varying = prompt.fill(message="\n".join([*context, quoted_json(excerpt(asked.text, KEYWORD_TEXT))]))
        return Question("keywords", prompt.stable, varying, LoneKeywordReply, options, options.max_tokens)


class DoubtedSentence(NamedTuple):
    """A sentence that the check doubts, and its quotes with who said them."""

    text: str
    kind: str
    quotes: Sequence[tuple[str, str]]


def _over(point: KnownPoint, shown_by: Sequence[tuple[str, str]]) -> DoubtedSentence:
    """Return a known point as one that may be over, with the words and their speakers that are to show it."""
    return DoubtedSentence(point.text, OVER, [(who, excerpt(words, VERIFIED_TEXT)) for who, words in shown_by])


def _in_doubt(draft: DraftPoint, request: SummaryRequest) -> DoubtedSentence:
    """Return a point's sentence with the messages that it quotes, the quotes of the points that it replaces, and the
    known points that it rests on with theirs.
    """
    shown = [quote for point in request.known if point.id in draft.replaces for quote in _quotes(point)]
    for point in request.known:
        if point.id in draft.rests_on:
            shown += [(MINUTES, point.text), *_quotes(point)]
    for cited in draft.cites:
        pieces = [message for message in request.messages if message.id == cited]
        whole = "".join(piece.text for piece in pieces)
        quoted = [quote.text for quote in draft.evidence if quote.message == cited]
        shown += [(pieces[0].speaker, text) for text in ([whole] if len(whole) <= VERIFIED_TEXT else quoted)]
    return DoubtedSentence(draft.text, draft.kind, shown)


def _quotes(point: KnownPoint) -> list[tuple[str, str]]:
    """Return a known point's quotes with who said them."""
    return [(quote.speaker, quote.text) for quote in point.evidence]


def _confirmed(
    points: Sequence[tuple[DraftPoint, Sequence[Doubt]]], verdicts: Sequence[bool] | None
) -> tuple[DraftPoint, ...]:
    """Return the points that are not in doubt or ``verdicts`` confirm; without them, the others as unconfirmed."""
    if verdicts is None:
        return tuple(_unconfirmed(draft) if doubts else draft for draft, doubts in points)
    verdict = iter(verdicts)
    return tuple(draft for draft, doubts in points if not doubts or next(verdict))


def _unconfirmed(draft: DraftPoint) -> DraftPoint:
    kind = PointKind.PROPOSAL if draft.kind is PointKind.DECISION else draft.kind
    return replace(draft, kind=kind, replaces=(), unconfirmed=True)  # what is sure stays beside what is not


def _known(points: Sequence[KnownPoint], first: int = 1) -> str:
    """Write a line a known point: its number from ``first`` on, kind, speakers and whole text."""
    lines = []
    for number, point in enumerate(points, start=first):
        by = f" by {', '.join(map(quoted_json, point.by))}" if point.by else ""
        lines.append(f"{number} {point.kind}{by}: {quoted_json(point.text)}")
    return "\n".join(lines)


def _doubted(sentence: DoubtedSentence, number: int) -> str:
    """Write a sentence with its number and kind, and its quotes below it."""
    quotes = (f"  - {quoted_json(line_of(speaker, words))}" for speaker, words in sentence.quotes)
    return "\n".join([f"{number} {sentence.kind}: {quoted_json(sentence.text)}", *quotes])


def _is_worth_keywords(message: AnalystMessage) -> bool:
    return len(message.text) >= MIN_KEYWORD_TEXT


def _in_place(messages: Sequence[AnalystMessage], found: Iterable[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Return the keywords ``found`` for the messages that were asked about, and none for the others."""
    each = iter(found)
    return tuple(next(each) if _is_worth_keywords(message) else () for message in messages)


def _in_context(asked: Sequence[AnalystMessage]) -> Iterator[str]:
    """Yield a line for each message: its number from 1, or "context" for what was said before those ``asked`` about."""
    shown = {message.id for message in asked}
    for number, message in enumerate(asked, start=1):
        for earlier in message.before:
            if earlier.id not in shown:
                shown.add(earlier.id)
                yield f"context {quoted_json(excerpt(earlier.text, CONTEXT_TEXT))}"
        yield f"{number} {quoted_json(excerpt(message.text, KEYWORD_TEXT))}"


def _marked(asked: Sequence[AnalystMessage], context: Sequence[AnalystMessage]) -> str:
    """Write a line a message: those ``asked`` about with their number from 1, those of ``context`` without."""
    number = {message.id: place for place, message in enumerate(asked, start=1)}
    before = [earlier for message in asked for earlier in message.before]
    shown = {message.id: message for message in [*before, *context, *asked]}
    return "\n".join(
        f"{number[message.id]} {quoted_json(excerpt(message.text, KEYWORD_TEXT))}"
        if message.id in number
        else quoted_json(excerpt(message.text, DOMAIN_TEXT))
        for message in sorted(shown.values(), key=lambda message: message.id)
    )


def _numbered(texts: Iterable[str]) -> str:
    """Write a line a text: its number from 1, and the text as JSON."""
    return "\n".join(f"{number} {quoted_json(text)}" for number, text in enumerate(texts, start=1))
