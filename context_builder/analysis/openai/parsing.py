"""From a reply that has its form to a reading that can be trusted: pure, and strict.

What does not hold is dropped or rejected here: keywords too long or twice, domains that do not
exist, points that cite nothing or what was not given, and points that their quotes do not bear out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from context_builder.analysis.analyst import (
    MAX_KEYWORDS,
    AnalystMessage,
    CompactedPoint,
    CompactionRequest,
    DocumentRequest,
    DraftPoint,
    KnownPoint,
    PointKind,
    PreferenceKind,
    Quote,
    StatedPreference,
    SummaryRequest,
)
from context_builder.analysis.chunking import words_in
from context_builder.analysis.evidence import Doubt, EvidenceCheck, check_rewritten, is_told_in
from context_builder.analysis.evidence.names import People, speaker_of
from context_builder.analysis.evidence.overlap import Terms, caseless_words
from context_builder.analysis.evidence.rewriting import loses_a_task
from context_builder.analysis.evidence.words import CheckedText
from context_builder.analysis.openai.schemas import (
    MAX_PREFERENCES,
    MAX_REPLACED,
    MAX_SETTLED,
    MAX_STATEMENTS,
    CompactionReply,
    DocumentReply,
    DomainReply,
    KeywordReply,
    LoneKeywordReply,
    PointEntry,
    PreferenceEntry,
    PreferenceReply,
    StatementEntry,
    SummaryReply,
    VerifyReply,
)
from context_builder.analysis.text.sentences import sentences
from context_builder.analysis.text.statements import kind_of
from context_builder.domains import domain_named
from context_builder.errors import ReplyInvalid
from context_builder.quoting import quoted_name

MAX_KEYWORD_LENGTH: Final = 80
"""Characters; what is longer is a sentence, not a keyword."""

MIN_CONFIDENCE: Final = 0.05
"""A domain less likely than this is not one of the conversation's."""

MAX_PREFERENCE_LENGTH: Final = 160
"""Characters of what is preferred; what is longer is a story."""

MAX_POINT_LENGTH: Final = 600
"""Characters of a point; what is longer is not a sentence, and none is ever shortened."""

MIN_POINT_LETTERS: Final = 4
"""Letters and digits of a point; what is shorter is not a sentence in any script: "N/A", "-"."""

MOST_WORDS_REWRITTEN: Final = 48
"""Words of a sentence that says several points; a fifth more than are asked for. What is longer nobody takes in."""

MAX_QUOTE_LENGTH: Final = 200
"""Characters of a message that stand for it where a reply quotes nothing."""

SAME_SUBJECT: Final = 0.1
"""Part of the words, by what they tell, that a point shares with the one that it replaces: a term of its subject."""

MAX_HOLDERS: Final = 8
"""Most speakers of one point; who are more hold no view of their own."""

STILL_SAID: Final = 0.25
"""Part of a decision, action or open question, by what its words tell, that a sentence in its place says."""

NO_REPLACEMENT: Final = "no_replacement"
"""Why a point stands beside the known one that it names: it is about something else, and would lose what that says."""

MOST_SENTENCES: Final = 200
"""Sentences in which a decision is looked for where a reply has no point."""

NO_POINT: Final = "no_point"
"""Why an entry is rejected that has no sentence, or cites what was not given."""

MOST_QUOTES_READ: Final = 20
"""Quotes of one point that are read, though fewer are asked for: as many as the ledger keeps."""

MAX_STATEMENT_LENGTH: Final = 400
"""Characters of a statement; what is longer is a paragraph."""

_WORD: Final = re.compile(r"[^\W_]+(?:[.,][^\W_]+)*")

_BINDING: Final = (PointKind.DECISION, PointKind.ACTION, PointKind.QUESTION)
"""Kinds of points that no reply leaves out."""


def keywords_of(reply: KeywordReply, count: int) -> tuple[tuple[str, ...], ...]:
    """Return the keywords of ``count`` messages, in their order.

    A list begins with its message's number. Small models leave the numbers out: then as many lists
    as messages are taken in order, and all lists are a lone message's. Raises
    :class:`ReplyInvalid` when messages are missing.
    """
    rows = [list(map(str.strip, row)) for row in reply.keywords if row]
    labels = [str(number) for number in range(1, count + 1)]
    numbered = {row[0]: row[1:] for row in rows if row[0] in labels}
    if count == 1:
        return (_keywords(word for row in rows for word in row if word != "1"),)
    if len(numbered) == count:
        return tuple(_keywords(numbered[label]) for label in labels)
    if len(reply.keywords) != count or numbered:
        raise ReplyInvalid(f"the model gave keywords for {len(numbered or rows)} of {count} messages")
    return tuple(_keywords(row) for row in reply.keywords)


def lone_keywords_of(reply: LoneKeywordReply) -> tuple[tuple[str, ...], ...]:
    """Return the keywords of the only message of a request."""
    return (_keywords(reply.keywords),)


def domains_of(reply: DomainReply) -> tuple[dict[str, float], tuple[str, ...]]:
    """Return the confidence (up to 1) of each known domain, highest first, and the topic's keywords.

    A domain may be called by part of its name, such as "Biology".
    """
    confidence: dict[str, float] = {}
    for entry in reply.domains:
        domain = domain_named(entry.domain)
        value = min(max(entry.confidence, 0.0), 1.0)
        if domain and value >= max(MIN_CONFIDENCE, confidence.get(domain, 0.0)):
            confidence[domain] = value
    ranked = sorted(confidence.items(), key=lambda item: -item[1])
    return dict(ranked), _keywords(reply.keywords)


def statements_of(reply: DocumentReply, request: DocumentRequest) -> tuple[tuple[str, ...], int]:
    """Return the statements that the document does make, in its order, and how many were rejected.

    A reply labels passages by their place, from 1. A statement is told mostly in words of its passage, and has no
    number and no identifier that stands neither there nor in the title.
    """
    entries = reply.statements[:MAX_STATEMENTS]
    made = [(entry.passage, text) for entry in entries if (text := _statement(entry, request)) is not None]
    unique = dict.fromkeys(text for _, text in sorted(made, key=lambda one: one[0]))
    return tuple(unique), len(reply.statements) - len(made)


def _statement(entry: StatementEntry, request: DocumentRequest) -> str | None:
    text = _plain(entry.text)
    if not 0 < len(text) <= MAX_STATEMENT_LENGTH or not 1 <= entry.passage <= len(request.passages):
        return None
    source = f"{request.title}\n{request.passages[entry.passage - 1]}"
    return text if is_told_in(text, source) and _identifiers(text) <= _identifiers(source) else None


def _identifiers(text: str) -> set[str]:
    """Return the numbers and the words that are spelled like a name of something: "413", "--large", "HbA1c"."""
    return {word for word in _WORD.findall(text) if any(c.isdigit() for c in word) or word[1:] != word[1:].lower()}


@dataclass(frozen=True, slots=True)
class ReadPoints:
    """The points of a reply that the check accepts, with its doubts about each, and why others were rejected.

    ``over`` are known points that the reply says to be over, each with the message that is to show it.
    """

    points: Sequence[tuple[DraftPoint, Sequence[Doubt]]]
    rejected: Counter[str]
    over: Sequence[tuple[KnownPoint, AnalystMessage]] = ()


def points_of(reply: SummaryReply, request: SummaryRequest) -> ReadPoints:
    """Return the acceptable points in the messages' order, those of one message in the reply's.

    A reply labels messages and known points by their place in the request, from 1; of points with the same text, the
    first counts. No point at all is a reading only where the model says that there was nothing worth keeping, and
    nobody announced a decision; otherwise, as when every point is rejected, it raises :class:`ReplyInvalid`.
    """
    check = EvidenceCheck(request.messages, request.known)
    rejected: Counter[str] = Counter()
    accepted: dict[str, tuple[DraftPoint, Sequence[Doubt]]] = {}
    for entry in reply.points:
        draft, named = _draft(entry, request), _replaced(request, entry)
        if draft is None:
            rejected[NO_POINT] += 1
            continue
        known = [point for point in named if _share_words(point, draft)]
        rejected[NO_REPLACEMENT] += len(named) - len(known)
        draft = replace(draft, replaces=tuple(point.id for point in known))
        fuller = check.completed(draft, known)
        findings = check.check(fuller, known)
        if findings.rejected is not None:
            rejected[findings.rejected] += 1
            continue
        doubts = findings.doubts if fuller is draft else tuple(dict.fromkeys((*findings.doubts, Doubt.SUPPORT)))
        accepted.setdefault(draft.text, (fuller, doubts))
    over = _over(reply, request, check, {id_ for draft, _ in accepted.values() for id_ in draft.replaces})
    is_empty = not accepted and (reply.points or not over)
    if is_empty and (reply.points or not reply.chatter or _announce_a_decision(request.messages)):
        count = len(reply.points)
        raise ReplyInvalid(f"the model gave no summary: {count} points, none acceptable", rejected=count)
    place = {message.id: index for index, message in enumerate(request.messages)}
    points = sorted(accepted.values(), key=lambda one: min(place[cited] for cited in one[0].cites))
    return ReadPoints(points, rejected, over)


def _over(
    reply: SummaryReply, request: SummaryRequest, check: EvidenceCheck, replaced: Collection[int]
) -> list[tuple[KnownPoint, AnalystMessage]]:
    """Return the known points that the reply says to be over, and are not ``replaced``, by words that were said."""
    over: dict[int, tuple[KnownPoint, AnalystMessage]] = {}
    for entry in reply.over[:MAX_SETTLED]:
        if not (1 <= entry.known <= len(request.known) and 1 <= entry.message <= len(request.messages)):
            continue
        point, message = request.known[entry.known - 1], request.messages[entry.message - 1]
        is_quoted = bool(entry.quote.strip()) and check.was_said(message.id, _quote(entry.quote, message).text)
        if point.id not in replaced and is_quoted:
            over.setdefault(point.id, (point, message))
    return [*over.values()]


@dataclass(frozen=True, slots=True)
class ReadCompaction:
    """The sentences of a reply that the check accepts, with its doubts about each, and how many it ``rejected``.

    ``dropped`` are the ids of points that are left out, ``settled`` the decisions, actions and questions that are said
    not to stand any more, each with the point that is to tell what became of it.
    """

    points: Sequence[tuple[CompactedPoint, Sequence[Doubt]]]
    dropped: frozenset[int]
    settled: Sequence[tuple[KnownPoint, KnownPoint]]
    rejected: int


def compaction_of(reply: CompactionReply, request: CompactionRequest) -> ReadCompaction:
    """Return what of a reply the check accepts; nothing where the reply leaves every point as it is.

    Raises :class:`ReplyInvalid` where nothing of what it says is acceptable.

    A decision, an action or an open question is not left out without a point that settles it, nor is a point that a
    sentence is said to tell.
    """
    accepted: list[tuple[CompactedPoint, Sequence[Doubt]]] = []
    told = {label for entry in reply.points for label in entry.sources}
    dropped = {
        point.id
        for label, point in enumerate(request.points, start=1)
        if label in reply.leave_out and label not in told and point.kind not in _BINDING
    }
    rejected, minutes = 0, [point.text for point in (*request.points, *request.beside)]
    for entry in reply.points:
        labels = sorted({label for label in entry.sources if 1 <= label <= len(request.points)})
        old = [request.points[label - 1] for label in labels]
        text = _plain(entry.text)
        is_given = bool(text) and len(labels) == len(set(entry.sources))
        is_read = len(old) < 2 or words_in(text) <= MOST_WORDS_REWRITTEN
        is_sound = (
            is_given and is_read and _are_of_one_subject(old) and not _mixes(entry.kind, old) and not _loses(text, old)
        )
        doubts = _doubts_of_rewritten(text, old, minutes) if is_sound else None
        if doubts is None:
            rejected += 1
        else:
            merges = tuple(point.id for point in old)
            accepted.append((CompactedPoint(text, _rewritten_kind(entry.kind, old), merges), doubts))
    settled = _settled(reply, request, told)
    if not (accepted or dropped or settled) and (reply.points or reply.leave_out or reply.settled):
        raise ReplyInvalid(f"the model shortened nothing: {rejected} sentences, none acceptable", rejected=rejected)
    return ReadCompaction(accepted, frozenset(dropped), settled, rejected)


def _settled(
    reply: CompactionReply, request: CompactionRequest, told: Collection[int]
) -> list[tuple[KnownPoint, KnownPoint]]:
    """Return the binding points that the reply says to be settled, each with the point that tells how.

    That point stays, in its own words or in a sentence; something that was said after all that the settled one rests
    on must be among its quotes; and both are about the same.
    """
    points = dict(enumerate((*request.points, *request.beside), start=1))
    gone = {*reply.leave_out, *(entry.number for entry in reply.settled)} - {*told}
    pairs = {}
    for entry in reply.settled[:MAX_SETTLED]:
        if entry.number in told or not 1 <= entry.number <= len(request.points) or entry.by in {*gone, entry.number}:
            continue
        old, by = points[entry.number], points.get(entry.by)
        if old.kind in _BINDING and by is not None and _last_said(by) > _last_said(old) and _share_words(old, by):
            pairs[entry.number] = (old, by)
    return [*pairs.values()]


def _last_said(point: KnownPoint) -> int:
    return max((quote.message for quote in point.evidence), default=0)


def verdicts_of(reply: VerifyReply, count: int) -> list[bool]:
    """Return whether its quotes say each of ``count`` sentences. Raises :class:`ReplyInvalid` if one is missing."""
    verdicts = reply.of(count)
    given = [verdict for verdict in verdicts if verdict is not None]
    if len(given) < count:
        raise ReplyInvalid(f"the model gave no verdict on {count - len(given)} of {count} sentences")
    return given


def preferences_of(
    reply: PreferenceReply, messages: Sequence[AnalystMessage]
) -> tuple[tuple[StatedPreference, ...], int]:
    """Return the preferences that messages do state, in their order, and how many were rejected.

    A reply labels messages by their place, from 1. What is preferred is told in words of the message that states it.
    """
    entries = reply.preferences[:MAX_PREFERENCES]
    stated = [_preference(entry, messages) for entry in entries]
    accepted = [one for one in stated if one is not None]
    place = {message.id: index for index, message in enumerate(messages)}
    return tuple(sorted(accepted, key=lambda one: place[one.message_id])), len(reply.preferences) - len(accepted)


def _preference(entry: PreferenceEntry, messages: Sequence[AnalystMessage]) -> StatedPreference | None:
    what = _plain(entry.what).strip(" .,;:")
    if not 1 <= entry.message <= len(messages) or entry.kind not in set(PreferenceKind):
        return None
    message = messages[entry.message - 1]
    if not 0 < len(what) <= MAX_PREFERENCE_LENGTH or not is_told_in(what, message.text):
        return None
    return StatedPreference(message.id, PreferenceKind(entry.kind), what, entry.withdrawn)


def _draft(entry: PointEntry, request: SummaryRequest) -> DraftPoint | None:
    """Return the point in terms of the request; None for one that has no form."""
    text, labels = _plain(entry.text), [quote.message for quote in entry.evidence[:MOST_QUOTES_READ]]
    if len(text) > MAX_POINT_LENGTH or sum(map(str.isalnum, text)) < MIN_POINT_LETTERS or not labels:
        return None
    if not all(1 <= label <= len(request.messages) for label in labels):
        return None
    cited = [request.messages[label - 1] for label in labels]
    evidence = tuple(_quote(quote.quote, message) for quote, message in zip(entry.evidence, cited, strict=False))
    speakers = dict.fromkeys(message.speaker for message in cited)
    return DraftPoint(
        text,
        evidence,
        _kind(entry.kind, cited),
        by=_speakers(entry.by, list(speakers)),
    )


def _announce_a_decision(messages: Sequence[AnalystMessage]) -> bool:
    """Return whether somebody says that something was decided, which a small model may take for chatter."""
    said = (one for message in messages if not message.consilience for one in sentences(message.text))
    return any(kind_of(one) is PointKind.DECISION for one in islice(said, MOST_SENTENCES))


def _speakers(names: Sequence[str], quoted: Sequence[str]) -> tuple[str, ...]:
    """Return the names as the messages have them; all who are ``quoted`` where the reply has none."""
    exact = {quoted_name(name).casefold(): name for name in quoted}
    given = [exact.get(name.casefold()) or speaker_of(name, quoted) or name for name in map(_plain, names) if name]
    return tuple(dict.fromkeys(given))[:MAX_HOLDERS] or tuple(quoted)


def _share_words(known: KnownPoint, later: DraftPoint | KnownPoint) -> bool:
    """Return whether a point shares words with the one that it is to replace, besides the speakers' names."""
    names = caseless_words(known.by)
    before = [CheckedText(known.text), *(CheckedText(quote.text) for quote in known.evidence)]
    after = [CheckedText(later.text), *(CheckedText(quote.text) for quote in later.evidence)]
    shares = (Terms(before).share_of(later.text, without=names), Terms(after).share_of(known.text, without=names))
    return any(share is not None and share >= SAME_SUBJECT for share in shares)


def _quote(words: str, message: AnalystMessage) -> Quote:
    """Return the quote, without its speaker's name before it; without words, the beginning of the message."""
    name = quoted_name(message.speaker)
    quoted = _plain(words).removeprefix(f"({name}): ").removeprefix(f"{name}: ")
    return Quote(message.id, quoted or _plain(message.text)[:MAX_QUOTE_LENGTH])


def _replaced(request: SummaryRequest, entry: PointEntry) -> list[KnownPoint]:
    labels = dict.fromkeys(entry.replaces[:MAX_REPLACED])
    return [request.known[label - 1] for label in labels if 1 <= label <= len(request.known)]


def _kind(word: str, cited: Sequence[AnalystMessage]) -> PointKind:
    """Return the kind the model named, but for the assistant's own contributions, which are known."""
    if all(message.consilience for message in cited):
        return PointKind.CONSILIENCE
    kind = PointKind(word) if word in set(PointKind) else PointKind.CLAIM
    return PointKind.CLAIM if kind is PointKind.CONSILIENCE and not any(s.consilience for s in cited) else kind


def _doubts_of_rewritten(text: str, old: Sequence[KnownPoint], minutes: Sequence[str]) -> Sequence[Doubt] | None:
    """Return the check's doubts about a sentence that says the ``old`` points; None where it rejects it."""
    if not old or len(text) > MAX_POINT_LENGTH:
        return None
    if len(old) == 1 and text == old[0].text:
        return ()  # it was checked when it was written
    quotes = [quote.text for point in old for quote in point.evidence]
    speakers = [name for point in old for name in point.by]
    is_decided = any(point.kind is PointKind.DECISION for point in old)
    findings = check_rewritten(text, quotes, [point.text for point in old], speakers, minutes, is_decided=is_decided)
    return None if findings.rejected is not None else findings.doubts


def _are_of_one_subject(old: Sequence[KnownPoint]) -> bool:
    """Return whether each of several points shares words with another, besides the speakers' names."""
    return len(old) < 2 or all(any(_share_words(one, other) for other in old if other is not one) for one in old)


def _mixes(word: str, old: Sequence[KnownPoint]) -> bool:
    """Return whether points of kinds that stand under headings of their own were brought together.

    A decision with what is open or disputed about it may stay one, but not if the sentence is ``word`` for the latter.
    """
    kinds = {point.kind for point in old}
    if len(kinds) > 1 and PointKind.DECISION in kinds and word in {PointKind.DISAGREEMENT, PointKind.QUESTION}:
        return True
    return PointKind.ACTION in kinds and bool(kinds & {PointKind.DECISION, PointKind.DISAGREEMENT, PointKind.QUESTION})


def _loses(text: str, old: Sequence[KnownPoint]) -> bool:
    """Return whether a sentence does not say one of the ``old`` points that must not get lost.

    A task is lost without the one who has to do it, or the day by which.
    """
    people = People(name for point in old for name in point.by)
    if loses_a_task(text, [point.text for point in old if point.kind is PointKind.ACTION], people):
        return True
    if len(old) == 1:
        return False
    said = Terms([CheckedText(text)])
    shares = (said.share_of(point.text, without=caseless_words(point.by)) for point in old if point.kind in _BINDING)
    return any(share is not None and share < STILL_SAID for share in shares)


def _rewritten_kind(word: str, old: Sequence[KnownPoint]) -> PointKind:
    """Return the kind of a sentence that says ``old`` points: a decision stays one, and nothing becomes one.

    A task may have been done, and a question, proposal or disagreement settled, where the last of the points says so.
    """
    kinds = {point.kind for point in old}
    if len(old) == 1:
        return old[0].kind
    named = PointKind(word) if word in set(PointKind) else PointKind.CLAIM
    if PointKind.DECISION in kinds:
        return PointKind.DECISION
    if PointKind.ACTION in kinds:
        return PointKind.CLAIM if named is old[-1].kind is PointKind.CLAIM else PointKind.ACTION
    may_become = (PointKind.CLAIM, PointKind.DISAGREEMENT)  # two claims may be the two sides of a dispute
    return named if named in kinds or named in may_become else old[-1].kind


def _keywords(words: Iterable[str]) -> tuple[str, ...]:
    unique: dict[str, str] = {}
    for word in map(_plain, words):
        if 0 < len(word) <= MAX_KEYWORD_LENGTH:
            unique.setdefault(word.casefold(), word)
    return tuple(unique.values())[:MAX_KEYWORDS]


def _plain(text: str) -> str:
    """Return one line without control characters, which could reach a terminal."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
