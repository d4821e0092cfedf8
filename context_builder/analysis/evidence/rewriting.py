"""The checks whether a sentence that stands for old points leaves each of them its person, its number and its day."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import combinations, islice
from typing import Final

import regex

from context_builder.analysis.evidence.figures import FiguresSaid, figures_of, places_of_figures
from context_builder.analysis.evidence.names import People
from context_builder.analysis.evidence.negation import negates
from context_builder.analysis.evidence.overlap import Terms
from context_builder.analysis.evidence.words import SETTLING, TABLES, CheckedText, Vocabulary, plain, words_of

_CONCLUDING: Final = Vocabulary(TABLES["concluding"], TABLES["concluding_parts"])
"""Words by which one thing follows from another: therefore."""

_SPOKEN_DATES: Final = json.loads((files("context_builder.spoken_dates") / "words.json").read_text("utf-8")).values()
_WEEKDAYS: Final = frozenset(
    plain(day.partition("(")[0])
    for language in _SPOKEN_DATES
    for days in language["weekdays"]
    for day in days.split("|")
)
_DAYS: Final = Vocabulary([day for language in _SPOKEN_DATES for day in language["days"] if " " not in day])
"""Words that name a day: tomorrow."""

MOSTLY: Final = 0.6
"""Part of what is said of a person or a number, by what its words tell, that makes it what was said of another."""

MORE_OF_ANOTHER: Final = 0.3
"""How much more of it that must be than what was said of the person or the number itself."""

_BEFORE: Final = 80
"""Characters before a number in which two words stand that may deny it."""

_MOST_NUMBERS: Final = 40
"""Numbers of a sentence that are held against each other; a sentence of a summary has a handful."""

_CLAUSE_END: Final = regex.compile(r"[,;:；、。.!?！？](?!\d)")


def loses_a_task(text: str, tasks: Sequence[str], people: People) -> bool:
    """Return whether a sentence leaves out who has to do one of the ``tasks``, or the day by which."""
    named = {*people.named_in(text)}
    doers = (next(iter(people.named_in(task)), None) for task in tasks)
    return any(doer is not None and doer not in named for doer in doers) or any(
        _loses_the_day(text, task, people) for task in tasks
    )


def swaps_people(text: str, before: Sequence[str], people: People) -> bool:
    """Return whether a sentence says of one person what the texts ``before`` say of another."""
    return _swaps(_of_people(text, people), [_of_people(one, people) for one in before], people)


def swaps_numbers(text: str, before: Sequence[str], people: People) -> bool:
    """Return whether a sentence says of two numbers what a text ``before`` says of the other one, or denies another."""
    denied = frozenset(value for one in before for value in _denied(one, people))
    if denied & _of_numbers(text, people).keys() - _denied(text, people) and _denied(text, people) - denied:
        return True
    ours, theirs = _of_numbers(text, people), [_of_numbers(one, people) for one in before]
    return any(
        _is_of_another(ours[one], said.get(another), said.get(one), people)
        and _is_of_another(ours[another], said.get(one), said.get(another), people)
        for one, another in combinations(islice(ours, _MOST_NUMBERS), 2)
        for said in theirs
    )


def adds_a_conclusion(text: str, before: Sequence[str]) -> bool:
    """Return whether a plain sentence draws a conclusion by a word that no plain text ``before`` has."""
    return not _CONCLUDING.found_in(text) <= frozenset().union(*map(_CONCLUDING.found_in, before))


def drops_a_unit(text: str, before: Sequence[str], people: People) -> bool:
    """Return whether a sentence has a number without the unit that it has wherever the texts ``before`` have it."""
    ours = [*figures_of(people.without_names(plain(text)))]
    theirs: defaultdict[str, set[str]] = defaultdict(set)
    for one in before:
        for figure in figures_of(people.without_names(plain(one))):
            theirs[figure.value].add(figure.unit)
    units = {figure.unit for figure in ours}
    bare = [theirs[figure.value] for figure in ours if not figure.unit and figure.value in theirs]
    return any("" not in said and not said & units for said in bare)


def settles(text: str, before: Sequence[str]) -> bool:
    """Return whether a plain sentence says that something was decided, and no plain text ``before`` does."""
    return SETTLING.occurs_in(text) and not any(map(SETTLING.occurs_in, before))


def _loses_the_day(text: str, task: str, people: People) -> bool:
    """Return whether a day of the task is missing.

    Without the day of a week, any number may be a day; one may be missing where the sentence names the day of a week,
    which may be what the task's was told by, or another task's.
    """
    weekdays, days = _weekdays_in(task), _days_in(task, people)
    our_weekdays, ours = _weekdays_in(text), _days_in(text, people)
    if weekdays:
        return not weekdays <= our_weekdays and not (days and days <= ours)
    return not days <= ours and not (our_weekdays and days & ours)


def _weekdays_in(text: str) -> frozenset[str]:
    return _WEEKDAYS.intersection(words_of(plain(text)))


def _days_in(text: str, people: People) -> frozenset[str]:
    """Return the numbers and the words for days of a text."""
    low = people.without_names(plain(text))
    return FiguresSaid.of(low, [*figures_of(low)]).values | _DAYS.found_in(low)


def _denied(text: str, people: People) -> frozenset[str]:
    """Return the numbers right after a negation: "not 192", "not the 24"."""
    low = people.without_names(plain(text))
    return frozenset(
        figure.value
        for start, _, figure in places_of_figures(low)
        if negates(" ".join(words_of(low[max(0, start - _BEFORE) : start])[-2:]))
    )


def _of_people(text: str, people: People) -> Mapping[str, str]:
    """Return what a text says of each person after the name; of people who are named together, of neither."""
    said: dict[str, str] = {}
    is_one_of_several = False
    for name, clause in people.clauses(text):
        was_one_of_several = is_one_of_several
        is_one_of_several = len(words_of(clause)) < 2 and not _CLAUSE_END.search(clause.removeprefix(","))
        told = "" if is_one_of_several or was_one_of_several else clause
        said[name] = f"{said.get(name, '')} {told}"
    return said


def _of_numbers(text: str, people: People) -> Mapping[str, str]:
    """Return what comes after each number that a text has once, up to the next number or the end of the clause."""
    low = people.without_names(plain(text))
    places = places_of_figures(low)
    values = Counter(figure.value for _, _, figure in places)
    ends = [*(start for start, _, _ in places[1:]), len(low)]
    return {
        figure.value: _CLAUSE_END.split(low[end:after], maxsplit=1)[0]
        for (_, end, figure), after in zip(places, ends, strict=False)
        if values[figure.value] == 1
    }


def _swaps(ours: Mapping[str, str], theirs: Sequence[Mapping[str, str]], people: People) -> bool:
    for name, clause in ours.items():
        own = " ".join(said.get(name, "") for said in theirs)
        others = {other for said in theirs for other in said} - {name}
        if any(
            _is_of_another(clause, " ".join(said.get(other, "") for said in theirs), own, people) for other in others
        ):
            return True
    return False


def _is_of_another(clause: str, of_another: str | None, own: str | None, people: People) -> bool:
    share = _share(clause, of_another, people)
    return share >= MOSTLY and share > _share(clause, own, people) + MORE_OF_ANOTHER


def _share(clause: str, said: str | None, people: People) -> float:
    return Terms([CheckedText(said)]).share_of(clause, without=people.words) or 0.0 if said else 0.0
