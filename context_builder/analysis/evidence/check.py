"""Checks what a model wrote against what was said: see :mod:`context_builder.analysis.evidence`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import accumulate, islice, pairwise
from typing import Final

import regex

from context_builder.analysis.analyst import AnalystMessage, DraftPoint, KnownPoint, PointKind, Quote
from context_builder.analysis.evidence.conditions import loses_a_condition
from context_builder.analysis.evidence.figures import ONE, Figure, FiguresSaid, figures_of, is_read_in_part, value_of
from context_builder.analysis.evidence.names import MOST_NAMES, Name, NamesSaid, People, is_one_of, names_in
from context_builder.analysis.evidence.negation import (
    SENTENCE_END,
    makes_certain,
    makes_guess_certain,
    negates,
    negates_otherwise,
    sentences_around,
)
from context_builder.analysis.evidence.overlap import Terms
from context_builder.analysis.evidence.quotes import MessageWords
from context_builder.analysis.evidence.refusal_words import SUSPICIOUS, reads_like_a_refusal
from context_builder.analysis.evidence.rewriting import (
    adds_a_conclusion,
    drops_a_unit,
    settles,
    swaps_numbers,
    swaps_people,
)
from context_builder.analysis.evidence.words import (
    ACCEPTING,
    SETTLING,
    CheckedText,
    plain,
    words_of,
)


class Rejection(StrEnum):
    """Why a point is not published."""

    NO_QUOTE = "no_quote"
    QUOTE_NOT_SAID = "quote_not_said"
    SPEAKER_NOT_QUOTED = "speaker_not_quoted"
    NUMBER_NOT_SAID = "number_not_said"
    NAME_NOT_SAID = "name_not_said"
    REFUSAL = "refusal"
    UNRELATED = "unrelated"


_CERTAIN: Final = frozenset({PointKind.CLAIM, PointKind.ACTION})
"""Kinds of points that a reader takes for certain; who decides may say "probably" before, and a proposal is none."""


class Doubt(StrEnum):
    """What code suspects of a point, for a model to look at."""

    NEGATION = "negation"
    ACCEPTANCE = "acceptance"
    SPEAKER = "speaker"
    SUPPORT = "support"
    REPLACEMENT = "replacement"
    HEDGE = "hedge"
    NUMBER = "number"


@dataclass(frozen=True, slots=True)
class Findings:
    """What the check found in one point."""

    rejected: Rejection | None = None
    doubts: tuple[Doubt, ...] = ()


SUPPORTED: Final = 0.4
"""Part of a sentence, by what its words tell, that must be said in its messages; else it is taken for a guess."""

UNLIKE_ITS_MESSAGES: Final = 0.2
"""The part below which one word of a refusal makes one."""

BY_CHANCE: Final = 0.1
"""The part that a sentence shares with any talk: a few function words."""

MORE_BY_OTHERS: Final = 0.3
"""How much more of a clause others must have said than the one whom it names, for it to be in doubt whose it is."""

MORE_BY_ANOTHER: Final = 0.2
"""How much more of a sentence one that was said with another number must say, for the number to be in doubt."""

LONGEST_ACCEPTANCE: Final = 6
"""Words of a quote that does no more than to accept."""

SMALL_COUNTS: Final = frozenset({"1", "2", "3", "4"})
"""Numbers that in words may count what the quotes name one by one."""


MOST_COMPLETED: Final = 3
"""Numbers and names of a sentence that are looked for in messages which it does not quote."""

LONGEST_COMPLETION: Final = 200
"""Characters of a quote that is added for such a number or name."""

LEAST_READ_OUT: Final = 2
"""Digits of an identifier whose letters may have been left out when it was read from a display."""

_CALLED: Final = regex.compile(r"\b(?=(\p{L}{4,} ([\p{L}\p{Nd}-]+))(?![\p{L}\p{Nd}-]))")
"""A word, which tells something, and the one after it: the name of one of several things, if that is a number."""

_COMPOUND: Final = regex.compile(r"(?<![\w-])[\p{L}\p{Nd}]+(?:-[\p{L}\p{Nd}]+)+")
"""Words with hyphens between them, which may call a thing by a number, such as "five-percent threshold"."""


_MOST_PARTS: Final = 6
"""First parts of a compound that are looked at."""


@dataclass(frozen=True, slots=True)
class _Said:
    """A quote as its speaker said it, in plain form."""

    speaker: str
    text: str


class EvidenceCheck:
    """Checks the points of one reply against the messages of its request, each of which it reads once.

    The ``known`` points tell who else speaks, and what "it" or "she" may be called.
    """

    def __init__(self, messages: Sequence[AnalystMessage], known: Sequence[KnownPoint] = ()) -> None:
        texts: defaultdict[int, list[str]] = defaultdict(list)
        for message in messages:  # a long one comes in pieces under one id
            texts[message.id].append(message.text)
        self._readings = {message: _Source("".join(pieces)) for message, pieces in texts.items()}
        self._speakers = {message.id: message.speaker for message in messages}
        self._known = People([*self._speakers.values(), *(name for point in known for name in point.by)])
        self._minutes = [_Source(point.text) for point in known]
        self._known_points = {point.id: point for point in known}
        self._sources_of_known: dict[int, list[_Source]] = {}

    def check(self, draft: DraftPoint, replaced: Sequence[KnownPoint] = ()) -> Findings:
        """Return what is wrong with a point that may replace known ones, whose words then count as evidence, too, as
        do those of known points that it rests on.
        """
        said = self._said(draft)
        if said is None or not draft.text.strip():
            return Findings(Rejection.QUOTE_NOT_SAID if draft.evidence else Rejection.NO_QUOTE)
        quoted = [each.speaker for each in said]
        before = [name for point in replaced for name in point.by]
        if not all(is_one_of(name, [*quoted, *before]) for name in draft.by):
            return Findings(Rejection.SPEAKER_NOT_QUOTED)
        known = _sources_of(replaced)
        leaned_on = [source for one in draft.rests_on if one in self._known_points for source in self._sources(one)]
        sentence = _Sentence(draft.text, self._known)
        sources = [*(self._readings[message] for message in draft.cites), *known, *leaned_on]
        if reason := sentence.rejection(sources, [*self._readings.values(), *self._minutes], self._minutes):
            return Findings(reason)
        doubts = {
            Doubt.NEGATION: negates_otherwise(
                sentence.plain, [each.text for each in said], [source.plain for source in known]
            ),
            Doubt.ACCEPTANCE: (draft.kind is PointKind.DECISION or sentence.announces()) and not _is_accepted(said),
            Doubt.SPEAKER: sentence.speaks_for_others([*quoted, *before]) or sentence.swaps(self._spoken(draft)),
            Doubt.SUPPORT: sentence.guesses([*(_Source(each.text) for each in said), *known], sources),
            Doubt.REPLACEMENT: any(_takes_over(draft, point, quoted) for point in replaced),
            Doubt.NUMBER: sentence.misplaces_a_number([self._readings[message] for message in draft.cites]),
            Doubt.HEDGE: draft.kind in _CERTAIN
            and makes_certain(
                sentence.plain,
                self._around(draft),
                is_told_as_a_view=draft.kind is PointKind.ACTION
                or len(set(quoted)) > 1
                or sentence.names_one_of(draft.by),
            ),
        }
        return Findings(doubts=tuple(doubt for doubt, suspected in doubts.items() if suspected))

    def completed(self, draft: DraftPoint, replaced: Sequence[KnownPoint] = ()) -> DraftPoint:
        """Return the point with a quote more of each message that says a number or a name which is in none of its own,
        or resting on a known point that says it, and without holders who are not quoted beside those who are.

        Of several such messages the one that was said nearest to those that it quotes is taken, of known points the
        newest; where none has what is missing, the point stays as it is.
        """
        cited = [message for message in draft.cites if message in self._readings]
        draft = self._held_by_quoted(draft, cited, replaced)
        missing = _Sentence(draft.text, self._known).missing(
            [*(self._readings[one] for one in cited), *_sources_of(replaced)]
        )
        if not cited or not missing:
            return draft
        order = {message: place for place, message in enumerate(self._readings)}
        others = sorted(
            (message for message in self._readings if message not in cited),
            key=lambda message: min(abs(order[message] - order[one]) for one in cited),
        )
        quotes: dict[str, Quote] = {}
        rests_on: dict[int, None] = {}
        for one in missing[:MOST_COMPLETED]:
            found = (Quote(other, words) for other in others if (words := self._readings[other].words_with(one)))
            if (quote := next(found, None)) is not None:
                quotes.setdefault(quote.text, quote)
            elif (known := self._known_with(one)) is not None:
                rests_on.setdefault(known)
        if not quotes and not rests_on:
            return draft
        return replace(draft, evidence=(*draft.evidence, *quotes.values()), rests_on=tuple(rests_on))

    def _held_by_quoted(self, draft: DraftPoint, cited: Sequence[int], replaced: Sequence[KnownPoint]) -> DraftPoint:
        """Return the point without those of its holders who said none of the quotes, where another of them did."""
        quoted = [*(self._speakers[message] for message in cited), *(name for point in replaced for name in point.by)]
        by = tuple(name for name in draft.by if is_one_of(name, quoted))
        return replace(draft, by=by) if by and by != draft.by else draft

    def _known_with(self, wanted: Figure | Name) -> int | None:
        """Return the newest known point that says a number or a name."""
        newest_first = reversed(self._known_points)
        return next((one for one in newest_first if any(source.has(wanted) for source in self._sources(one))), None)

    def _sources(self, known: int) -> list[_Source]:
        """Return the texts of a known point, each read once for all points."""
        if known not in self._sources_of_known:
            self._sources_of_known[known] = _sources_of([self._known_points[known]])
        return self._sources_of_known[known]

    def was_said(self, message: int, quote: str) -> bool:
        """Return whether the words are a quote of the message."""
        source = self._readings.get(message)
        return source is not None and source.quotable.said(quote) is not None

    def _spoken(self, draft: DraftPoint) -> dict[str, list[_Source]]:
        """Return the quoted messages of each speaker."""
        spoken: defaultdict[str, list[_Source]] = defaultdict(list)
        for message in draft.cites:
            spoken[self._speakers[message]].append(self._readings[message])
        return spoken

    def _around(self, draft: DraftPoint) -> list[str]:
        """Return the sentences that the quotes are from, in plain form."""
        return [
            sentence
            for quote in draft.evidence
            for sentence in sentences_around(plain(quote.text), self._readings[quote.message].plain)
        ]

    def _said(self, draft: DraftPoint) -> list[_Said] | None:
        """Return the quotes as they were said; None if one was not."""
        said = []
        for quote in draft.evidence:
            source = self._readings.get(quote.message)
            text = source.quotable.said(quote.text) if source else None
            if text is None:
                return None
            said.append(_Said(self._speakers[quote.message], text))
        return said or None


class _Source(CheckedText):
    """A text that a point may rest on; its words and numbers are read once, when they are first needed."""

    @cached_property
    def quotable(self) -> MessageWords:
        return MessageWords(self.plain)

    @cached_property
    def _figures(self) -> tuple[Figure, ...]:
        return tuple(figures_of(self.plain))

    @cached_property
    def figures(self) -> FiguresSaid:
        return FiguresSaid.of(self.plain, self._figures)

    @cached_property
    def is_read_in_part(self) -> bool:
        return is_read_in_part(self.plain, self._figures)

    def words_with(self, wanted: Figure | Name) -> str | None:
        """Return the sentence that says a number or a name, or as much of it as is quoted; None if there is none."""
        if not self.has(wanted):
            return None
        sentences = (self.text[start:end].strip() for start, end in pairwise(self._sentence_places))
        windows = (
            sentence[start : start + LONGEST_COMPLETION]
            for sentence in sentences
            for start in range(0, max(1, len(sentence) - LONGEST_COMPLETION // 2), LONGEST_COMPLETION // 2)
        )
        pieces = (piece for window in windows for piece in (window, " ".join(window.split()[1:-1])))
        return next((one for one in pieces if _Source(one).has(wanted) and self.quotable.said(one) is not None), None)

    def has(self, wanted: Figure | Name) -> bool:
        """Return whether the text says a number, with its unit or without any, or a name."""
        if isinstance(wanted, Figure):
            return self.figures.has(wanted) or self.figures.lacks_unit(wanted)
        return NamesSaid([self]).has(wanted.word)

    @property
    def _sentence_places(self) -> list[int]:
        return [0, *(end.end() for end in SENTENCE_END.finditer(self.text)), len(self.text)]


def _sources_of(points: Iterable[KnownPoint]) -> list[_Source]:
    """Return the texts and the quotes of known points."""
    return [_Source(text) for point in points for text in (point.text, *(quote.text for quote in point.evidence))]


def check_rewritten(
    text: str,
    quotes: Sequence[str],
    old_texts: Sequence[str],
    speakers: Iterable[str] = (),
    minutes: Iterable[str] = (),
    *,
    is_decided: bool = False,
) -> Findings:
    """Return what is wrong with a sentence that is to stand for old points, by their quotes and their texts.

    What it calls by another name must be called so in the other ``minutes``, and is in doubt. That something was
    decided is in doubt, too, unless an old text says it, or an old point ``is_decided``.
    """
    if not text.strip():
        return Findings(Rejection.UNRELATED)
    people = People(speakers)
    sentence, known = _Sentence(text, people), [_Source(each) for each in (*quotes, *old_texts)]
    others, before = [*map(_Source, minutes)], [plain(each) for each in old_texts]
    if reason := sentence.rejection(known, others, others):
        return Findings(reason)
    doubts = {
        Doubt.NEGATION: negates_otherwise(sentence.plain, [source.plain for source in known]),
        Doubt.ACCEPTANCE: settles(sentence.plain, before) and not is_decided,
        Doubt.SPEAKER: swaps_people(text, old_texts, people),
        Doubt.SUPPORT: sentence.guesses(known, known)
        or adds_a_conclusion(sentence.plain, [source.plain for source in known])
        or loses_a_condition(sentence.plain, before),
        Doubt.HEDGE: makes_guess_certain(sentence.plain, before),
        Doubt.NUMBER: swaps_numbers(text, old_texts, people) or drops_a_unit(text, old_texts, people),
    }
    return Findings(doubts=tuple(doubt for doubt, suspected in doubts.items() if suspected))


class _Sentence:
    """Looks at one sentence in the light of what was said."""

    def __init__(self, text: str, known: People) -> None:
        self._text, self.plain, self._known = text, plain(text), known
        names = islice(names_in(text), MOST_NAMES)
        self._names = [name for name in names if plain(name.word) not in known.words]
        figures = figures_of(known.without_names(self.plain))
        self._figures = [figure for figure in figures if figure.value != ONE or figure.unit]

    def rejection(
        self, sources: Sequence[_Source], elsewhere: Collection[_Source], minutes: Collection[_Source] = ()
    ) -> Rejection | None:
        """Return what the sentence says that none of its sources says.

        It may name what they call but "it" or "she", in words and names that were said ``elsewhere``, and by a number
        that is part of what the ``minutes`` call it.
        """
        shared = self._share(sources)
        is_unlike = shared is not None and shared < UNLIKE_ITS_MESSAGES and (self._share(elsewhere) or 0.0) < SUPPORTED
        groups = 1 if is_unlike else SUSPICIOUS
        if reads_like_a_refusal(self._text, (source.text for source in sources), groups):
            return Rejection.REFUSAL
        missing_figures = [one for one in self._not_said(sources) if not self._may_be_said(one, sources)]
        if any(not self._is_called(one, minutes) for one in missing_figures):
            return Rejection.NUMBER_NOT_SAID
        if shared is not None and shared < BY_CHANCE and (self._share(elsewhere) or 0.0) < BY_CHANCE:
            return Rejection.UNRELATED
        names = NamesSaid(sources)
        missing = [
            name.word
            for name in self._unnamed(sources)
            if name.certain and not names.has_like(name.word) and not _is_read_out(name.word, sources)
        ]
        return Rejection.NAME_NOT_SAID if missing and not all(map(NamesSaid(elsewhere).has, missing)) else None

    def missing(self, sources: Sequence[_Source]) -> list[Figure | Name]:
        """Return the numbers and the names of the sentence that none of its sources says."""
        names = NamesSaid(sources)
        return [
            *(one for one in self._not_said(sources) if not self._may_be_said(one, sources)),
            *(name for name in self._unnamed(sources) if name.certain and not names.has_like(name.word)),
        ]

    def guesses(self, quotes: Sequence[_Source], sources: Sequence[_Source]) -> bool:
        """Return whether the sentence may say more than its quotes and the sources that they are from."""
        shared = self._share(sources)
        return (
            shared is None
            or shared < SUPPORTED
            or bool(self._not_said(quotes) or self._not_said(sources))
            or any(name.certain or not NamesSaid(sources).has_like(name.word) for name in self._unnamed(sources))
        )

    def speaks_for_others(self, quoted: Collection[str]) -> bool:
        """Return whether the sentence names a speaker none of whose words are quoted."""
        return any(not is_one_of(name, quoted) for name in self._known.named_in(self._text))

    def swaps(self, spoken: Mapping[str, Sequence[_Source]]) -> bool:
        """Return whether a clause names one of those who are quoted, and says what another of them said."""
        if len(spoken) < 2:
            return False
        for name, clause in self._known.clauses(self._text):
            others = [source for other in spoken.keys() - {name} for source in spoken[other]]
            by_others = self._share(others, clause)
            if name in spoken and by_others and by_others > (self._share(spoken[name], clause) or 0.0) + MORE_BY_OTHERS:
                return True
        return False

    def names_one_of(self, speakers: Collection[str]) -> bool:
        """Return whether the sentence says whose view it is."""
        return any(is_one_of(name, speakers) for name in self._known.named_in(self._text))

    def misplaces_a_number(self, sources: Sequence[_Source]) -> bool:
        """Return whether one sentence said the number and another, with a number of its own, all the rest."""
        if not self._figures:
            return False
        spoken = [_Source(one) for source in sources for one in SENTENCE_END.split(source.plain) if one.strip()]
        with_ours = [one for one in spoken if any(FiguresSaid([one.figures]).has(figure) for figure in self._figures)]
        others = [one for one in spoken if one not in with_ours and one.figures.counts]
        if not with_ours or not others:
            return False
        numbers = {word for word in words_of(self.plain) if word.isdecimal() or value_of(word) is not None}
        beside = self._known.words | numbers
        by_ours, by_another = (
            max(Terms([one]).share_of(self._text, without=beside) or 0.0 for one in side)
            for side in (with_ours, others)
        )
        return by_another > by_ours + MORE_BY_ANOTHER

    def announces(self) -> bool:
        """Return whether the sentence says that something was decided."""
        return SETTLING.occurs_in(self.plain)

    def _share(self, sources: Collection[_Source], clause: str | None = None) -> float | None:
        """Return how much of the sentence, or of one clause of it, the sources say."""
        return Terms(sources).share_of(self._text if clause is None else clause, without=self._known.words)

    def _not_said(self, sources: Sequence[_Source]) -> list[Figure]:
        if not self._figures:
            return []
        said = FiguresSaid(source.figures for source in sources)
        return [figure for figure in self._figures if not said.has(figure)]

    def _may_be_said(self, figure: Figure, sources: Sequence[_Source]) -> bool:
        """Return whether a number may have been said in a way that is not read here, for a model to look at.

        Its unit may be told by the question; its sign may be left out, or its groups be decimals; in figures it may
        stand for words that are not surely read; a small number in a word may count what is said one by one.
        """
        said = FiguresSaid(source.figures for source in sources)
        if said.lacks_unit(figure) or said.may_have(figure):
            return True
        if not figure.spelled:
            return any(source.is_read_in_part for source in sources)
        if figure.unit or figure.value not in SMALL_COUNTS:
            return False
        return said.counts <= {each.value for each in self._figures}

    def _is_called(self, figure: Figure, minutes: Collection[_Source]) -> bool:
        """Return whether a number is part of a name that the minutes have: "pump three", "five-percent threshold"."""
        if figure.value.startswith("-"):
            return False
        compounds = [
            rf"{regex.escape(beginning)}(?![\p{{L}}\p{{Nd}}])"
            for found in _COMPOUND.findall(self.plain)
            for beginning in [*accumulate(found.split("-")[:_MOST_PARTS], "{}-{}".format)][1:]
            if any((each.value, each.unit) == (figure.value, figure.unit) for each in figures_of(beginning))
        ]
        numbered = [
            rf"{regex.escape(found[1])}(?![\w-]| point| komma)"
            for found in _CALLED.finditer(self.plain)
            if not figure.unit and any(each.value == figure.value for each in figures_of(found[2]))
        ]
        names = [regex.compile(rf"(?<![\w-]){name}") for name in (*compounds, *numbered)]
        return any(name.search(source.plain) for name in names for source in minutes)

    def _unnamed(self, sources: Sequence[_Source]) -> list[Name]:
        names = NamesSaid(sources) if self._names else None
        return [name for name in self._names if names and not names.has(name.word)]


def _is_read_out(name: str, sources: Sequence[_Source]) -> bool:
    """Return whether the digits of an identifier were said, without its letters: "two seven two" for E272."""
    digits = "".join(c for c in name if c.isdecimal())
    if not LEAST_READ_OUT <= len(digits) < len(name):
        return False
    return FiguresSaid(source.figures for source in sources).has(Figure(digits)) or NamesSaid(sources).spells(digits)


def _is_accepted(said: Sequence[_Said]) -> bool:
    """Return whether the quotes have more than a proposal: its acceptance, or the decision announced."""
    if any(SETTLING.occurs_in(each.text) and not negates(each.text) for each in said):
        return True
    by_several = len({each.speaker for each in said}) > 1
    return len(said) > 1 and any(
        (by_several or len(words_of(each.text)) <= LONGEST_ACCEPTANCE)
        and ACCEPTING.occurs_in(each.text)
        and not negates(each.text)
        for each in said
    )


def _takes_over(draft: DraftPoint, known: KnownPoint, quoted: Sequence[str]) -> bool:
    """Return whether a point takes the place of one that binds somebody, none of whom is quoted."""
    binds = known.kind in {PointKind.DECISION, PointKind.ACTION}
    return binds and not any(is_one_of(name, quoted) for name in known.by)
