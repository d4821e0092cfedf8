"""From a reply that has its form to a reading that can be trusted: pure, and strict.

What does not hold is dropped or rejected here: keywords too long or twice, domains that do not
exist, points that cite nothing or what was not given, and texts that are no points at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from context_builder.analysis.analyst import (
    MAX_CITATIONS,
    MAX_KEYWORDS,
    DraftPoint,
    PointKind,
    Said,
    SummaryRequest,
)
from context_builder.analysis.openai.replies import (
    DOMAIN_NAMES,
    DomainReply,
    KeywordReply,
    LoneKeywordReply,
    PointEntry,
    SummaryReply,
)
from context_builder.domains import DOMAINS
from context_builder.errors import ReplyInvalid

MAX_KEYWORD_LENGTH: Final = 80
"""Characters; what is longer is a sentence, not a keyword."""

MIN_CONFIDENCE: Final = 0.05
"""A domain less likely than this is not one of the conversation's."""

MAX_POINT_LENGTH: Final = 400
"""Characters of a point; the rest is clipped."""

_NO_POINT: Final = re.compile(
    r"""(none|null|n/?a|nothing|no\ (new\ )?(points?|summary|messages?))\W*$
      | (i['’]?m|i\ am|we\ are|we['’]re)\ (very\ |so\ |really\ )?(sorry|unable|not\ able)\b
      | (sorry|apologies)\b | (i|we)\ apologi[sz]e\b | i\ (can['’]?t|cannot|can\ not|won['’]t)\b
      | as\ an\ ai\b | unable\ to\ (help|assist|comply|provide|process|summari[sz]e)\b
      | (internal\ server\ )?error\s*[:.!\d]|(an\ )?(internal\ server\ )?error\ occurred
      | internal\ server\ error | request\ (failed|timed\ out)""",
    re.IGNORECASE | re.VERBOSE,
)
"""How refusals, apologies, a bare NONE and error texts begin; points are told in the third person."""


def keywords_of(reply: KeywordReply, count: int) -> tuple[tuple[str, ...], ...]:
    """The keywords of ``count`` messages, in their order.

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
    """The keywords of the only message asked about."""
    return (_keywords(reply.keywords),)


def domains_of(reply: DomainReply) -> tuple[dict[str, float], tuple[str, ...]]:
    """Confidence (up to 1) of each domain that exists, highest first, and the topic's keywords.

    A domain may be called by its name in the schema or by its full one.
    """
    confidence: dict[str, float] = {}
    for entry in reply.domains:
        domain = DOMAIN_NAMES.get(entry.domain, entry.domain)
        value = min(max(entry.confidence, 0.0), 1.0)
        if domain in DOMAINS and value >= max(MIN_CONFIDENCE, confidence.get(domain, 0.0)):
            confidence[domain] = value
    ranked = sorted(confidence.items(), key=lambda item: -item[1])
    return dict(ranked), _keywords(reply.keywords)


def points_of(reply: SummaryReply, request: SummaryRequest) -> tuple[tuple[DraftPoint, ...], int]:
    """The acceptable points in the messages' order, and how many were rejected.

    A reply labels messages and known points by their place in the request, from 1; of points with
    the same text, the first counts. No point at all is a reading only where the model says that
    there was nothing worth keeping; otherwise, as when every point is rejected, it raises
    :class:`ReplyInvalid`.
    """
    accepted = [point for entry in reply.points if (point := _point(entry, request))]
    points = list({point.text: point for point in reversed(accepted)}.values())
    if not points and (reply.points or not reply.chatter):
        rejected = len(reply.points)
        raise ReplyInvalid(f"the model gave no summary: {rejected} points, none acceptable", rejected=rejected)
    place = {said.id: index for index, said in enumerate(request.messages)}
    points.sort(key=lambda point: place[point.cites[0]])
    return tuple(points), len(reply.points) - len(accepted)


def _point(entry: PointEntry, request: SummaryRequest) -> DraftPoint | None:
    text = _plain(entry.text)
    labels = sorted(set(entry.cites[:MAX_CITATIONS]))
    known_labels = all(1 <= label <= len(request.messages) for label in entry.cites)
    if not text or not labels or not known_labels or _NO_POINT.match(text):
        return None
    cited = [request.messages[label - 1] for label in labels]
    replaced = request.known[entry.replaces - 1].id if 1 <= entry.replaces <= len(request.known) else None
    return DraftPoint(_clipped(text), tuple(said.id for said in cited), _kind(entry.kind, cited), replaced)


def _kind(word: str, cited: Sequence[Said]) -> PointKind:
    """The kind the model named, but for the assistant's own contributions, which are known."""
    if all(said.consilience for said in cited):
        return PointKind.CONSILIENCE
    kind = PointKind(word) if word in set(PointKind) else PointKind.CLAIM
    return PointKind.CLAIM if kind is PointKind.CONSILIENCE and not any(s.consilience for s in cited) else kind


def _keywords(words: Iterable[str]) -> tuple[str, ...]:
    unique: dict[str, str] = {}
    for word in map(_plain, words):
        if 0 < len(word) <= MAX_KEYWORD_LENGTH:
            unique.setdefault(word.casefold(), word)
    return tuple(unique.values())[:MAX_KEYWORDS]


def _plain(text: str) -> str:
    """One line without control characters, which could reach a terminal."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _clipped(text: str) -> str:
    return text if len(text) <= MAX_POINT_LENGTH else text[: MAX_POINT_LENGTH - 1].rstrip() + "…"
