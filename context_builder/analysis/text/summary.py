"""An extractive summary: whole sentences that were said, first of all those that settle something, in their order.

Decisions, promises and open questions are kept as they are. The rest is chosen greedily by the weight of the content
words that it adds to what is covered (budgeted coverage, Lin and Bilmes 2011), so a repeated point earns nothing. Words
weigh by how many messages carry them and how specific they are. The input is parted into stretches and a stretch that
has been heard yields to the others, so that no part of a long talk is forgotten.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

from context_builder.analysis.analyst import MAX_QUOTES, AnalystMessage, DraftPoint, KnownPoint, PointKind, Quote
from context_builder.analysis.text.exchanges import Exchanges, PointCandidate
from context_builder.analysis.text.known import KnownSubjects
from context_builder.analysis.text.markers import label_of
from context_builder.analysis.text.pronouns import NAMED
from context_builder.analysis.text.rescheduling import with_new_days
from context_builder.analysis.text.reversals import without_reversed
from context_builder.analysis.text.sentences import fluent, whole_sentences
from context_builder.analysis.text.statements import Statement, joined, statement_of, stems_of, verbatim
from context_builder.analysis.text.words import words
from context_builder.quoting import repeated

SUBSTANCE_OF_CLAIM: Final = 2.0
"""Sum of specificity below which a claim is not worth keeping, unlike "Let's go with Postgres."."""

SUBSTANCE_OF_HANGING: Final = 3.0
"""The same for a claim that begins with a pronoun: it must say much that is clear by itself."""

STRETCH: Final = 2
"""Points that are expected of one stretch of the talk."""

SHORTLIST: Final = 12
"""Candidates of each stretch that are considered to the end."""

LENGTH_COUNTS: Final = 0.7
"""Exponent of a sentence's length in its cost: in full, it would be 1, and only the shortest would be told."""

KNOWN: Final = 0.3
"""Weight of a word that an earlier point has already."""

TOPICAL: Final = 1.5
"""Weight of a word of the current topic."""

_HANGING: Final = 0.4
"""Worth of a sentence that begins with a pronoun for something that the reader cannot see."""

_TOGETHER: Final = 1.4
"""Worth of two sentences that explain each other, such as a question and its answer."""

_FRAGMENT: Final = 0.25
"""Worth of a claim of so few words that it is rather a part of a sentence ("Thirteen fifty-two.")."""

_APART: Final = 0.25
"""Worth of a sentence that shares no word with what else is said, as jokes do."""

_FIGURES: Final = 1.3
"""Worth of a sentence with a number in it."""

_DEFINES: Final = re.compile(
    r"\b(?:is called|are called|we call|stands for|means|is defined as|refers to|nennt man|nennen wir|bedeutet"
    r"|(?<!das )heißt|versteht man|bezeichnet man|s['’]appelle|on appelle|signifie|désigne|se llama|significa)\b"
    r"|^(?:(?:the|an?|der|die|das|eine?|le|la|les|une?|el) )?(?!(?:th(?:is|at|ere)|here|wh\w+|he|she|it|das|dies)\b)"
    r"[\w-]{3,}(?: [\w-]+){0,4} (?:is|are|ist|sind|est|sont|es|son)"
    r" (?:the|an?|where|what|how|der|die|das|eine?|le|la|l['’]|une?|el)\b",
    re.IGNORECASE,
)
"""How a sentence says what a thing is."""

_DEFINITION: Final = 1.6
"""Worth of a sentence that says what a thing is, by which others are understood."""

_CORRECTION: Final = 1.2
"""Worth of a sentence that takes something back."""

_WORTH: Final = {
    PointKind.CLAIM: 1.0,
    PointKind.QUESTION: 1.3,
    PointKind.PROPOSAL: 1.2,
    PointKind.DECISION: 3.0,
    PointKind.ACTION: 2.5,
    PointKind.DISAGREEMENT: 2.0,
    PointKind.CONSILIENCE: 1.5,
}

_HAS_HAPPENED: Final = re.compile(
    r"\b(?:already|no longer|not any ?more|cancel\w*|fell through|called off|schon|nicht mehr|abgesagt|geplatzt|déjà"
    r"|annulé\w*|n['’]est plus|ya|cancelad\w+)\b",
    re.IGNORECASE,
)
"""Words with which somebody tells that a thing is no longer as it was."""

_SETTLED: Final = frozenset({PointKind.DECISION, PointKind.ACTION})


@dataclass(frozen=True, slots=True)
class SummarySize:
    """How many points a stretch of messages gets."""

    messages_per_point: float = 5.0
    """Messages with substance for one point."""
    most: int = 25
    """Points of one summary."""

    def points_for(self, substantive: int) -> int:
        """Return the number of points for so many messages with substance."""
        return min(self.most, math.ceil(substantive / self.messages_per_point))


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
        self._known = KnownSubjects(known)
        self._known_texts = {point.text for point in known}
        self._topical = {stem for keyword in topic_keywords for stem in stems_of(words(keyword), keyword)}
        self._names = {word for point in known for name in point.by for word in _name_words(name)}
        self._statements: list[Statement] = []
        self._texts: dict[int, str] = {}
        self._carried: Counter[str] = Counter()
        self._specific: dict[str, float] = {}
        self._messages = 0
        self._substantive = 0

    def add(self, messages: Iterable[AnalystMessage]) -> None:
        """Take in messages, oldest first, after those taken in before."""
        messages = list(messages)
        if messages and not self._messages:
            self._statements = self._known.open_before(messages[0].id)
        self._names.update(word for said in messages for word in _name_words(said.speaker))
        for said in messages:
            found = list(self._stated(said))
            self._messages += 1
            self._texts[said.id] = said.text
            self._substantive += any(not statement.is_thin for statement in found)
            stems = {stem: weight for statement in found for stem, weight in statement.stems.items()}
            self._carried.update(stems.keys())
            for stem, weight in stems.items():
                self._specific.setdefault(stem, weight)
            self._join(found)
            self._statements += found

    def _stated(self, said: AnalystMessage) -> Iterator[Statement]:
        """Yield the statements of a message; a label by itself, such as "Decision.", tells the kind of what follows."""
        label: PointKind | None = None
        asked = False
        before: Statement | None = None
        for spoken in whole_sentences(fluent(said.text)):
            if not any(map(str.isalnum, spoken)):
                continue
            kind, rest = label_of(spoken)
            if kind is not None and not rest:
                label, asked = kind, "?" in spoken
                continue
            effective = PointKind.PROPOSAL if label is PointKind.DECISION and asked else label
            statement = statement_of(spoken, said, self._messages, names=self._names, label=effective)
            if label is not PointKind.DECISION or asked:
                label = None
            if before is not None:
                yield before
            before = statement
        if before is not None:
            if label is PointKind.DECISION and asked and before.kind is PointKind.CLAIM:
                before = replace(before, kind=PointKind.PROPOSAL)
            yield before

    def _join(self, found: list[Statement]) -> None:
        """Join the first of the statements ``found`` to what its speaker left unfinished."""
        if not found:
            return
        for place in range(len(self._statements) - 1, max(-1, len(self._statements) - 4), -1):
            before = self._statements[place]
            if before.speaker == found[0].speaker:
                whole = joined(before, found[0])
                if whole is not None:
                    self._statements[place] = whole
                    del found[0]
                return
            if not before.is_thin or before.is_question:
                return  # it is what somebody else said that the speaker goes on with

    def points(self) -> tuple[DraftPoint, ...]:
        """Return the points worth keeping, in chronological order."""
        candidates = without_reversed(list(Exchanges(self._statements).candidates()))
        candidates = with_new_days(candidates, self._statements, self._known)
        said = self._known_texts.union(one.text for one in self._statements)
        candidates = [self._as_claim(one) if one.is_aside else one for one in candidates]
        candidates = [
            self._known.settled(one) for one in candidates if _tells_enough(one) and not _reads_back(one, said)
        ]
        first = [_comes_first(one) or self._overtakes(one, candidates) for one in candidates]
        count = min(self._size.most, self._size.points_for(self._substantive) + sum(first))
        if not count:
            return ()
        stretches = math.ceil(count / STRETCH)
        choices = [
            _Choice(
                candidate,
                place,
                place * stretches // len(candidates),
                _worth(candidate) * (_APART if candidate.is_aside or not self._belongs(candidate.stems) else 1.0),
                first[place],
            )
            for place, candidate in enumerate(candidates)
        ]
        weight = {stem: self._weight(stem) for stem in self._specific}
        chosen = _selected(_shortlist(choices, stretches, weight), count, weight)
        return tuple(self._drafted(choice.candidate) for choice in sorted(chosen, key=lambda choice: choice.place))

    def _overtakes(self, claim: PointCandidate, candidates: Sequence[PointCandidate]) -> bool:
        """Return whether a claim tells what has happened since to what was decided."""
        if claim.kind is not PointKind.CLAIM or not _HAS_HAPPENED.search(claim.told[-1].text):
            return False
        told = {stem for stem, weight in claim.stems.items() if weight >= NAMED}
        decided = [one.stems for one in candidates if one.kind is PointKind.DECISION and one.order < claim.order]
        return any(len(told.intersection(stems)) > 1 for stems in (*decided, *self._known.decided()))

    def _as_claim(self, aside: PointCandidate) -> PointCandidate:
        """Return a promise that nobody asked for as what was said, unless something else that is said is about it."""
        is_about_it = self._belongs(aside.told[-1].stems)
        return replace(aside, is_aside=False) if is_about_it else replace(aside, kind=PointKind.CLAIM)

    def _belongs(self, stems: Mapping[str, float]) -> bool:
        """Return whether something else that is said shares a word that tells something."""
        return any(
            self._carried[stem] > 1 or stem in self._topical or stem in self._known.stems
            for stem, weight in stems.items()
            if weight >= NAMED
        )

    def _weight(self, stem: str) -> float:
        weight = self._specific[stem] * math.log1p(self._carried[stem])
        if stem in self._topical:
            weight *= TOPICAL
        return weight * KNOWN if stem in self._known.stems else weight

    def _drafted(self, candidate: PointCandidate) -> DraftPoint:
        quotes = [
            Quote(message, verbatim(spoken, self._texts[message]))
            for statement in (*candidate.told, *candidate.support)
            for message, spoken in statement.quotes
        ]
        return DraftPoint(
            candidate.text,
            tuple(quotes[:MAX_QUOTES]),
            candidate.kind,
            candidate.by or tuple(dict.fromkeys(statement.speaker for statement in candidate.told)),
            replaces=() if candidate.replaces is None else (candidate.replaces,),
            spoken=not candidate.names_speakers,
        )


def _name_words(name: str) -> list[str]:
    return [word.lower for word in words(name) if len(word.text) > 2]


def _reads_back(candidate: PointCandidate, said: Set[str]) -> bool:
    """Return whether the assistant says little but what was said before, in quotation marks."""
    quote = repeated(" ".join(one.text for one in candidate.told))
    return candidate.kind is PointKind.CONSILIENCE and quote in said


def _tells_enough(candidate: PointCandidate) -> bool:
    if candidate.kind is not PointKind.CLAIM or candidate.replaces is not None:
        return True
    alone = len(candidate.told) == 1
    least = SUBSTANCE_OF_HANGING if alone and candidate.told[0].hangs else SUBSTANCE_OF_CLAIM
    return sum(candidate.stems.values()) >= least and not (alone and candidate.told[0].is_garbled)


def _comes_first(candidate: PointCandidate) -> bool:
    """Return whether the candidate is kept whatever else there is to tell."""
    return candidate.kind in _SETTLED or candidate.is_open or candidate.replaces is not None


def _worth(candidate: PointCandidate) -> float:
    worth = _WORTH[candidate.kind]
    if candidate.told[0].hangs:
        worth *= _HANGING if len(candidate.told) == 1 else math.sqrt(_HANGING)
    if any(statement.has_number for statement in candidate.told):
        worth *= _FIGURES
    if candidate.kind is PointKind.CLAIM and any(_DEFINES.search(one.text) for one in candidate.told):
        worth *= _DEFINITION
    if candidate.reverses:
        worth *= _CORRECTION
    if len(candidate.told) > 1:
        worth *= _TOGETHER
    elif candidate.told[0].is_fragment:
        worth *= _FRAGMENT
    return worth / math.pow(len(candidate.text), LENGTH_COUNTS)


@dataclass(frozen=True, slots=True)
class _Choice:
    """A candidate that may be chosen; ``place`` is its place among all, ``worth`` what a unit of its weight counts."""

    candidate: PointCandidate
    place: int
    stretch: int
    worth: float
    comes_first: bool

    def gain(self, weight: Mapping[str, float]) -> float:
        """Return the weight of what the candidate adds against its length, which counts less than in full."""
        return self.worth * sum(weight.get(stem, 0.0) for stem in self.candidate.stems)


def _shortlist(choices: Sequence[_Choice], stretches: int, weight: Mapping[str, float]) -> list[_Choice]:
    """Return the best candidates of each stretch."""
    ranked: list[list[_Choice]] = [[] for _ in range(stretches)]
    for choice in choices:
        ranked[choice.stretch].append(choice)
    return [
        choice
        for found in ranked
        for choice in sorted(found, key=lambda choice: (choice.comes_first, choice.gain(weight)), reverse=True)[
            :SHORTLIST
        ]
    ]


def _selected(shortlist: Sequence[_Choice], count: int, weight: Mapping[str, float]) -> list[_Choice]:
    """Return the candidates that cover most together."""
    uncovered = dict(weight)
    settled: dict[PointKind, set[str]] = {kind: set() for kind in _SETTLED}
    taken: Counter[int] = Counter()
    left = list(shortlist)
    chosen: list[_Choice] = []
    while left and len(chosen) < count:
        best = max(left, key=lambda choice: (choice.comes_first, choice.gain(uncovered) / (1 + taken[choice.stretch])))
        left.remove(best)
        of_kind = settled.get(best.candidate.kind)
        is_said = best.gain(uncovered) <= 0 if of_kind is None else of_kind.issuperset(best.candidate.stems)
        if is_said and best.candidate.replaces is None and (of_kind is None or not best.candidate.is_exchange):
            continue
        taken[best.stretch] += not best.comes_first
        chosen.append(best)
        uncovered.update(dict.fromkeys(best.candidate.stems, 0.0))
        if of_kind is not None:
            of_kind.update(best.candidate.stems)
    return chosen
