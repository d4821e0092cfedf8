"""From a reply that has its form to a reading that can be trusted: pure, and strict.

What does not hold is dropped or rejected here: keywords too long or twice, domains that do not
exist, points that cite nothing or what was not given, and points that share nothing with what they cite.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from context_builder.analysis.analyst import (
    MAX_CITATIONS,
    MAX_KEYWORDS,
    AnalystMessage,
    DraftPoint,
    KnownPoint,
    PointKind,
    StatedPreference,
    SummaryRequest,
)
from context_builder.analysis.grounding import Grounding, is_told_in
from context_builder.analysis.openai.schemas import (
    DOMAIN_NAMES,
    MAX_PREFERENCES,
    DomainReply,
    KeywordReply,
    LoneKeywordReply,
    PointEntry,
    PreferenceEntry,
    PreferenceReply,
    SummaryReply,
)
from context_builder.domains import DOMAINS
from context_builder.errors import ReplyInvalid
from context_builder.preference_kind import PreferenceKind

MAX_KEYWORD_LENGTH: Final = 80
"""Characters; what is longer is a sentence, not a keyword."""

MIN_CONFIDENCE: Final = 0.05
"""A domain less likely than this is not one of the conversation's."""

MAX_PREFERENCE_LENGTH: Final = 160
"""Characters of what is preferred; what is longer is a story."""

MAX_POINT_LENGTH: Final = 400
"""Characters of a point; the rest is clipped."""


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
    """Return the acceptable points in the messages' order, and how many points or replacements were rejected.

    A reply labels messages and known points by their place in the request, from 1; of points with the same text, the
    first counts. A point must be grounded in what it cites. One that may not replace the known point that it names,
    because that would lose what it identifies, stands beside it. No point at all is a reading only where the model
    says that there was nothing worth keeping; otherwise, as when every point is rejected, it raises
    :class:`ReplyInvalid`.
    """
    grounding = Grounding(request.messages)
    drafts = [_draft(entry, request, grounding) for entry in reply.points]
    accepted = [draft for draft in drafts if draft is not None]
    points = list({point.text: point for point in reversed(accepted)}.values())
    if not points and (reply.points or not reply.chatter):
        raise ReplyInvalid(f"the model gave no summary: {len(drafts)} points, none acceptable", rejected=len(drafts))
    place = {message.id: index for index, message in enumerate(request.messages)}
    points.sort(key=lambda point: place[point.cites[0]])
    return tuple(points), sum(map(_is_rejected, drafts, map(partial(_replaced, request), reply.points)))


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


def _draft(entry: PointEntry, request: SummaryRequest, grounding: Grounding) -> DraftPoint | None:
    text = _clipped(_plain(entry.text))
    places = sorted({label - 1 for label in entry.cites[:MAX_CITATIONS]})
    are_given = all(1 <= label <= len(request.messages) for label in entry.cites)
    known = _replaced(request, entry)
    if not text or not places or not are_given:
        return None
    if not grounding.is_grounded(text, places, known.text if known else ""):
        return None
    cited = [request.messages[place] for place in places]
    replaces = known.id if known and grounding.may_replace(text, known.text, places) else None
    return DraftPoint(text, tuple(message.id for message in cited), _kind(entry.kind, cited), replaces)


def _replaced(request: SummaryRequest, entry: PointEntry) -> KnownPoint | None:
    return request.known[entry.replaces - 1] if 1 <= entry.replaces <= len(request.known) else None


def _is_rejected(draft: DraftPoint | None, replaced: KnownPoint | None) -> bool:
    """Return whether nothing came of a point, or of the replacement that it was to be."""
    return draft is None or (replaced is not None and draft.replaces is None)


def _kind(word: str, cited: Sequence[AnalystMessage]) -> PointKind:
    """Return the kind the model named, but for the assistant's own contributions, which are known."""
    if all(message.consilience for message in cited):
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
    """Return one line without control characters, which could reach a terminal."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _clipped(text: str) -> str:
    return text if len(text) <= MAX_POINT_LENGTH else text[: MAX_POINT_LENGTH - 1].rstrip() + "…"
