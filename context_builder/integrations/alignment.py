"""Aligns a framework's own history with a session's record: both tell the same talk, in the same order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from context_builder.spoken_dates import undated

CUT_OFF: Final = " —"
"""Mark after the words of an agent that was interrupted within a sentence."""

MOST_ALIGNED: Final = 200
"""Newest messages of a framework that are looked for in the record, which has the newest of the talk alone."""

MOST_PARTS: Final = 20
"""Messages of the record among which one of the framework's is looked for, if it was said in several."""

MOST_STEPS: Final = 500_000
"""Comparisons of texts after which no older messages of a framework are looked for; usual histories take a fifth. To
read four letters of a text counts as one."""

_LETTERS_OF_STEP: Final = 4

_BEGINNING: Final = 4
"""Words by which it is seen quickly that a text begins otherwise."""

TALK: Final = frozenset({"user", "assistant"})
"""Roles of those who talk."""

_ALONE: Final = TALK | {"system", "developer"}

HistoryMessage = tuple[str, str]
"""Role and text of a message; a message of the record begins with its speaker's name."""

FirstWording = Callable[[str], bool]
"""Returns whether a text is what a message of the record said before it was corrected."""


class Place(NamedTuple):
    """One place in a merged history: a message of the framework, of the record, or of both.

    ``own`` is its number in the framework's history. ``told`` are its numbers in the record: several where what the
    framework has as one message was said in several.
    """

    own: int | None
    told: Sequence[int] = ()


def question_in(own: Sequence[HistoryMessage]) -> int | None:
    """Return the number of the newest message of a user that has words; None without any."""
    asked = (number for number in range(len(own) - 1, -1, -1) if own[number][0] == "user" and own[number][1].strip())
    return next(asked, None)


def merged(
    own: Sequence[HistoryMessage],
    record: Sequence[HistoryMessage],
    corrected: Mapping[int, FirstWording] | None = None,
) -> list[Place]:
    """Return a framework's history and the record as one, in the order of the talk.

    What the framework alone has, such as a tool's call, stays behind what it followed there. A question that is the
    framework's last message is the last here too. The record's system messages follow the framework's instructions:
    many models take none within the talk. ``corrected`` as in :func:`aligned`.
    """
    talk = [number for number, (role, _) in enumerate(record) if role in TALK]
    end = talk[-1] + 1 if talk else len(record)
    question = question_in(own)
    is_last = question is not None and question == len(own) - 1
    same = aligned(own, record, corrected)
    found = {number for numbers in same.values() for number in numbers}
    waiting = [number for number in talk if number not in found]
    places: list[Place] = []

    def tell_until(number: int) -> None:
        while waiting and waiting[0] < number:
            places.append(Place(None, (waiting.pop(0),)))

    for block in _blocks(own):
        told = [number for one in block for number in same.get(one, ())]
        asked = question in block
        answered = min((numbers[0] for one, numbers in same.items() if one > block[-1]), default=end)
        tell_until(answered if asked and (is_last or not told) else max(told, default=0))
        places.extend(Place(one, tuple(same.get(one, ()))) for one in block)
        if asked:
            tell_until(answered)
    if question is None:
        end_of_talk = _end_of_talk(own, places)
        places[end_of_talk:end_of_talk] = [Place(None, (number,)) for number in waiting]
    else:
        tell_until(end)
    begin = next(
        (at for at, place in enumerate(places) if place.own is None or not _is_instruction(own[place.own])), len(places)
    )
    places[begin:begin] = [Place(None, (number,)) for number, (role, _) in enumerate(record) if role not in TALK]
    return places


def _is_instruction(message: HistoryMessage) -> bool:
    return message[0] in {"system", "developer"}


def _end_of_talk(own: Sequence[HistoryMessage], places: Sequence[Place]) -> int:
    """Return where what was said ends, in places without a question: behind the last message that both have, or else
    behind the instructions."""
    both = [at for at, place in enumerate(places, 1) if place.own is not None and place.told]
    instructions = next((at for at, one in enumerate(own) if not _is_instruction(one)), len(own))
    return both[-1] if both else instructions


def _blocks(own: Sequence[HistoryMessage]) -> Iterator[range]:
    """Yield what stays together: an answer with the calls of tools, their results and the thoughts that it follows."""
    begin = 0
    for number, (role, _) in enumerate(own):
        following = own[number + 1][0] if number + 1 < len(own) else "user"
        if role in _ALONE or (following in _ALONE and following != "assistant"):
            yield range(begin, number + 1)
            begin = number + 1


def aligned(
    own: Sequence[HistoryMessage],
    record: Sequence[HistoryMessage],
    corrected: Mapping[int, FirstWording] | None = None,
) -> dict[int, list[int]]:
    """Return which messages of the record a framework's messages are: as many of them as can be in one order.

    A question that is the framework's last message is only one that nobody has answered yet. ``corrected`` tells what
    messages of the record said at first, by their numbers. Where the search takes too long, the newest are found.
    """
    search = RecordSearch(record)
    begin = max(0, len(own) - MOST_ALIGNED)
    question = question_in(own)
    answered = max((number for number, (role, _) in enumerate(record) if role == "assistant"), default=-1)
    runs: dict[int, Mapping[int, list[int]]] = {}
    best = {len(own): [0] * (len(record) + 1)}
    for one in range(len(own) - 1, begin - 1, -1):
        found = search.runs(*own[one])
        if found is None:
            begin = one + 1
            break
        if one == question == len(own) - 1:
            found = {number: run for number, run in found.items() if number > answered}
        runs[one], after, row = found, best[one + 1], best[one + 1].copy()
        for number in range(max(found, default=-1), -1, -1):  # behind the last place nothing changes
            run = found.get(number)
            row[number] = max(after[number], row[number + 1], 1 + after[run[-1] + 1] if run else 0)
        best[one] = row
    same, one, number = dict[int, list[int]](), begin, 0
    while one < len(own) and number < len(record):  # of several of the same words, the newest ones are the same
        if best[one + 1][number] == best[one][number]:
            one += 1
        elif best[one][number + 1] == best[one][number]:
            number += 1
        else:
            same[one] = runs[one][number]
            one, number = one + 1, same[one][-1] + 1
    return same | _corrected(same, own, record, corrected or {}, answered)


def _corrected(
    same: Mapping[int, list[int]],
    own: Sequence[HistoryMessage],
    record: Sequence[HistoryMessage],
    corrected: Mapping[int, FirstWording],
    answered: int,
) -> dict[int, list[int]]:
    """Return which messages of the framework say what corrected messages said at first, between those that both have.

    ``answered`` is the number of the last answer, behind which the record has a question that is the last message.
    """
    found: dict[int, list[int]] = {}
    for (before, early), (after, late) in pairwise([(-1, [-1]), *sorted(same.items()), (len(own), [len(record)])]):
        left = [number for number in range(early[-1] + 1, late[0]) if number in corrected][-MOST_PARTS:]
        unknown = [one for one in range(before + 1, after) if own[one][0] in TALK][-MOST_PARTS:] if left else []
        for one in unknown:
            role, text = own[one]
            if role == "user" and one == len(own) - 1:
                left = [number for number in left if number > answered]
            number = next((number for number in left if record[number][0] == role and corrected[number](text)), None)
            if number is not None:
                found[one] = [number]
                left = [other for other in left if other > number]
    return found


class RecordSearch:
    """Finds texts in the record, in at most about :data:`MOST_STEPS` ``steps`` altogether."""

    def __init__(self, record: Sequence[HistoryMessage]) -> None:
        self.steps = 0
        self._record = record
        self._wordings = [_wordings(text) if role in TALK else [] for role, text in record]
        self._beginning_with: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        for number, (role, _) in enumerate(record):
            for one in self._wordings[number]:
                self._beginning_with[role, _beginnings(one)[-1]].add(number)
        self._found: dict[HistoryMessage, dict[int, list[int]]] = {}

    def runs(self, role: str, text: str) -> Mapping[int, list[int]] | None:
        """Return the messages of the record that together say ``text``, by the number of the first of them, for each
        that it may be; None once there were too many steps.
        """
        self.steps += 1
        if role not in TALK or (role, text) in self._found:
            return self._found.get((role, text), {}) if self.steps <= MOST_STEPS else None
        self.steps += len(text) // _LETTERS_OF_STEP
        if self.steps > MOST_STEPS:
            return None
        found: dict[int, list[int]] = {}
        words = " ".join(undated(text).split())
        for number in sorted(set().union(*(self._beginning_with.get((role, one), ()) for one in _beginnings(words)))):
            if self.steps > MOST_STEPS:
                return None
            if run := self._run(words, role, number):
                found[number] = run
        self._found[role, text] = found
        return found

    def _run(self, text: str, role: str, begin: int) -> list[int]:
        """Return the messages of the record, from ``begin`` on, that together say ``text``; empty if they do not.

        Others may have spoken between them, and what was said again counts once.
        """
        run: list[int] = []
        parts: list[str] = []
        at = 0
        for number in range(begin, min(len(self._record), begin + MOST_PARTS)):
            if self._record[number][0] != role:
                continue
            part = self._part_at(text, at, self._wordings[number])
            if part is None and not run:
                return []
            if part is not None:
                run.append(number)
            while part is not None and len(parts) < MOST_PARTS:
                parts.append(part)
                at += len(part) + 1
                part = self._part_at(text, at, parts)
            if at > len(text):
                return run
        return []

    def _part_at(self, text: str, at: int, parts: Sequence[str]) -> str | None:
        """Return the first of the parts that stands, as whole words, at a place of the text."""
        self.steps += len(parts)
        return next(
            (one for one in parts if text.startswith(one, at) and text[at + len(one) : at + len(one) + 1] in " "), None
        )


def _beginnings(text: str) -> list[str]:
    """Return the first word of a text, its first two, and so on."""
    words = text.split(" ", _BEGINNING)[:_BEGINNING]
    return [" ".join(words[:count]) for count in range(1, len(words) + 1)]


def _wordings(message: str) -> list[str]:
    """Return a message of the record in one line: with its speaker's name and without, and as before it was cut off."""
    plain = undated(message)
    lines = [" ".join(one.split()) for one in (plain, plain.partition(": ")[2]) if one.strip()]
    return [*lines, *(line.removesuffix(CUT_OFF) for line in lines if line.endswith(CUT_OFF))]
