"""An extractive summary: the sentences that together say most, in the order they were said.

Sentences are chosen greedily by the weight of the content words they add to what is covered
(budgeted coverage, Lin and Bilmes 2011), so a repeated point earns nothing. Words weigh by how
many messages carry them and how specific they are. The input is parted into stretches and a
stretch that has been heard yields to the others, so that no part of a long talk is forgotten.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from context_builder.analysis.analyst import AnalystMessage, DraftPoint, KnownPoint, PointKind
from context_builder.analysis.text.sentences import sentences
from context_builder.analysis.text.words import words

_QUESTION: Final = re.compile(
    r"\?[\"”')\]]*$"
    r"|^(?:what|how|why|who|where|when|which)\b(?!.*[.!]$)\s+(?:is|are|was|were|do|does|did|can|could|should|would|will|about|if|many|much)\b"
    r"|^(?:do|does|did|can|could|should|would|is|are|has|have|will)\s+(?:you|we|they|it|he|she|there|this|that|anyone|anybody)\b(?!.*[.!]$)",
    re.IGNORECASE,
)
_DECISION: Final = re.compile(
    r"\b(?:(?:we|i|they)(?:'ve| have)?\s+(?:all\s+|both\s+)?(?:decided|agreed|settled|chose|voted)\b"
    r"|(?:the|our|my)\s+(?:final\s+)?decision\b|(?:it is|it's|that's|is|are)\s+(?:decided|settled|agreed)\b"
    r"|let's\s+(?:go\s+(?:with|for|ahead)|use|stick|keep|drop|choose|pick|say|make|move|start|do|postpone|leave|settle|agree)\b"
    r"|we(?:'ll|\s+will|'re\s+going\s+to|\s+are\s+going\s+to)\s+(?:go\s+(?:with|for)|use|stick|keep|drop|adopt|switch)\b"
    r"|(?:motion|proposal|plan)\s+(?:is\s+)?(?:carried|approved|accepted|adopted)\b|\bi've\s+decided\b)",
    re.IGNORECASE,
)
_ACTION: Final = re.compile(
    r"\b(?:action\s+item|to-?do\b|next\s+steps?\b|follow\s+up\s+(?:on|with)|deadline|assigned\s+to|take\s+care\s+of)"
    r"|\b(?:i'll|i\s+will|i'm\s+going\s+to|i\s+can|he'll|she'll|you'll|they'll|we'll)\s+(?!be\b|have\b|see\b|never\b|always\b|not\b|just\s+say\b)"
    r"(?:send|write|check|look|prepare|make|set|get|run|try|ask|talk|call|email|share|fix|add|update|review|test|draft|finish|do|bring|contact"
    r"|schedule|book|find|put|read|follow|start|report|collect|give|organize|work)\b"
    r"|\b(?:we|you|i|someone|somebody)\s+(?:really\s+|still\s+|also\s+|just\s+)?(?:need|needs|have|has|ought|must)\s+to\b"
    r"|\b(?:can|could|would|will)\s+you\s+(?:please\s+)?(?:send|write|check|look|prepare|make|set|get|run|try|ask|share|fix|add|update|review|draft)\b"
    r"|^please\b|\bby\s+(?:monday|tuesday|wednesday|thursday|friday|tomorrow|next\s+week|the\s+end\s+of)\b",
    re.IGNORECASE,
)
_DISAGREEMENT: Final = re.compile(
    r"\b(?:i\s+(?:strongly\s+|really\s+|completely\s+)?disagree|disagree\s+with|i\s+(?:do\s+not|don't)\s+(?:agree|think\s+(?:so|that's|it's|we|you|this|that|the))"
    r"|i'm\s+not\s+(?:so\s+)?(?:sure|convinced)|i\s+am\s+not\s+(?:so\s+)?(?:sure|convinced)|not\s+(?:necessarily|true|the\s+case|convinced)"
    r"|i\s+doubt|on\s+the\s+contrary|that's\s+(?:wrong|not\s+(?:right|true|correct|what))|you're\s+wrong|i\s+(?:would\s+)?object\b|i\s+beg\s+to\s+differ)",
    re.IGNORECASE,
)
_ASKED: Final = re.compile(r"\?[\"”')\]]*$")


def kind_of(sentence: str) -> PointKind:
    """Return the kind of one sentence; a claim when nothing marks it as anything else."""
    sentence = sentence.replace("’", "'")
    if _ACTION.search(sentence) and not _ASKED.search(sentence):
        return PointKind.DECISION if _DECISION.search(sentence) else PointKind.ACTION
    for kind, pattern in (
        (PointKind.QUESTION, _QUESTION),
        (PointKind.DECISION, _DECISION),
        (PointKind.DISAGREEMENT, _DISAGREEMENT),
    ):
        if pattern.search(sentence):
            return kind
    return PointKind.CLAIM


SUBSTANCE: Final = 1.2
"""Sum of specificity below which a sentence says nothing ("Yeah, sounds good.")."""

SUBSTANCE_OF_CLAIM: Final = 2.0
"""The same for a claim, which unlike "Let's go with Postgres." is only worth what it tells."""

STRETCH: Final = 2
"""Points that are expected of one stretch of the talk."""

SHORTLIST: Final = 12
"""Sentences of each stretch that are considered to the end."""

KNOWN: Final = 0.3
"""Weight of a word that an earlier point has already."""

TOPICAL: Final = 1.5
"""Weight of a word of the current topic."""

LONGEST_EXCHANGE: Final = 320
"""Characters of a question together with its answer."""

_WORTH: Final = {
    PointKind.CLAIM: 1.0,
    PointKind.QUESTION: 0.9,
    PointKind.DECISION: 1.5,
    PointKind.ACTION: 1.2,
    PointKind.DISAGREEMENT: 1.2,
    PointKind.CONSILIENCE: 1.5,
}

_EXCHANGED: Final = (PointKind.QUESTION, PointKind.CLAIM)
"""Kinds that are told together with the question before or the answer after."""


@dataclass(frozen=True, slots=True)
class SummarySize:
    """Tells how many points a stretch of messages gets."""

    messages_per_point: float = 2.0
    """Messages with substance for one point."""
    most: int = 25
    """Points of one summary."""

    def points_for(self, substantive: int) -> int:
        """Return the number of points for so many messages with substance."""
        return min(self.most, math.ceil(substantive / self.messages_per_point))


@dataclass(frozen=True, slots=True)
class Sentence:
    """Holds a candidate: the sentence, its message (by order), and its words' stems."""

    text: str
    message: int
    id: int
    speaker: str
    kind: PointKind
    stems: tuple[str, ...]


class Digest:
    """Takes messages in, in any number of steps, and returns the points of all of them."""

    def __init__(
        self,
        *,
        known: Sequence[KnownPoint] = (),
        topic_keywords: Sequence[str] = (),
        size: SummarySize | None = None,
    ) -> None:
        self._size = size or SummarySize()
        self._known = {s for point in known for s in _stems(point.text)}
        self._topical = {s for keyword in topic_keywords for s in _stems(keyword)}
        self._sentences: list[Sentence] = []
        self._carried: Counter[str] = Counter()
        self._specific: dict[str, float] = {}
        self._messages = 0
        self._substantive = 0

    def add(self, messages: Iterable[AnalystMessage]) -> None:
        """Take in messages, oldest first, after those taken in before."""
        for said in messages:
            found = list(self._candidates(said))
            self._messages += 1
            self._substantive += bool(found)
            self._sentences += found
            self._carried.update({s for sentence in found for s in sentence.stems})

    def _candidates(self, said: AnalystMessage) -> Iterator[Sentence]:
        for text in sentences(said.text):
            weights = _stems(text)
            kind = PointKind.CONSILIENCE if said.consilience else kind_of(text)
            least = SUBSTANCE_OF_CLAIM if kind is PointKind.CLAIM else SUBSTANCE
            if len(weights) < 2 or sum(weights.values()) < least:
                continue
            for found, weight in weights.items():
                self._specific.setdefault(found, weight)
            yield Sentence(text, self._messages, said.id, said.speaker, kind, tuple(weights))

    def points(self) -> tuple[DraftPoint, ...]:
        """Return the points worth keeping, in chronological order."""
        count = self._size.points_for(self._substantive)
        if not count:
            return ()
        weight = {found: self._weight(found) for found in self._carried}
        chosen = _selected(self._shortlist(math.ceil(count / STRETCH), weight), count, weight)
        return tuple(self._drafted(sorted(chosen)))

    def _weight(self, found: str) -> float:
        weight = self._specific[found] * math.log1p(self._carried[found])
        if found in self._topical:
            weight *= TOPICAL
        return weight * KNOWN if found in self._known else weight

    def _shortlist(self, stretches: int, weight: dict[str, float]) -> list[tuple[int, int, Sentence]]:
        """Return the best sentences of each stretch, with the stretch and their place."""
        ranked: list[list[tuple[float, int]]] = [[] for _ in range(stretches)]
        for place, sentence in enumerate(self._sentences):
            stretch = place * stretches // len(self._sentences)
            ranked[stretch].append((_gain(sentence, weight), place))
        return [
            (stretch, place, self._sentences[place])
            for stretch, found in enumerate(ranked)
            for _, place in sorted(found, reverse=True)[:SHORTLIST]
        ]

    def _drafted(self, chosen: Sequence[int]) -> Iterator[DraftPoint]:
        taken = set(chosen)
        for place in chosen:
            sentence = self._sentences[place]
            question = place if sentence.kind is PointKind.QUESTION else place - 1
            pair = {question, question + 1}
            if sentence.kind in _EXCHANGED and self._is_exchange(question) and taken & pair == {place}:
                asked, replied = self._sentences[question], self._sentences[question + 1]
                yield DraftPoint(f"{asked.text} – {replied.text}", (asked.id, replied.id), PointKind.QUESTION)
                taken |= pair
            else:
                yield DraftPoint(sentence.text, (sentence.id,), sentence.kind)

    def _is_exchange(self, question: int) -> bool:
        """Return whether the sentence at ``question`` is a question and the next one another speaker's direct reply."""
        if not 0 <= question < len(self._sentences) - 1:
            return False
        asked, replied = self._sentences[question : question + 2]
        return (
            asked.kind is PointKind.QUESTION
            and replied.kind is PointKind.CLAIM
            and replied.speaker != asked.speaker
            and replied.message - asked.message in (1, 2)
            and len(asked.text) + len(replied.text) <= LONGEST_EXCHANGE
        )


def _stems(text: str) -> dict[str, float]:
    return {word.stem: word.specificity for word in words(text) if word.is_content}


def _gain(sentence: Sentence, weight: dict[str, float]) -> float:
    """Return the weight of what a sentence adds against its length, which counts less than in full: a whole sentence is
    worth more to a reader than the same words in shreds.
    """
    added = sum(weight[found] for found in sentence.stems)
    return _WORTH[sentence.kind] * added / math.cbrt(len(sentence.text))


def _selected(shortlist: Sequence[tuple[int, int, Sentence]], count: int, weight: dict[str, float]) -> list[int]:
    """Return the places of the sentences that cover most together."""
    open_weight = dict(weight)
    taken: Counter[int] = Counter()
    left = list(shortlist)
    chosen: list[int] = []
    while left and len(chosen) < count:
        best = max(left, key=lambda item: _gain(item[2], open_weight) / (1 + taken[item[0]]))
        stretch, place, sentence = best
        if _gain(sentence, open_weight) <= 0:
            break
        left.remove(best)
        taken[stretch] += 1
        chosen.append(place)
        for found in sentence.stems:
            open_weight[found] = 0.0
    return chosen
