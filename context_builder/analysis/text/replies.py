"""What others reply to a statement: an answer, an acceptance, or the view that it contradicts."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Final

from context_builder.analysis.analyst import PointKind
from context_builder.analysis.text.phrases import Marker
from context_builder.analysis.text.statements import Statement

REPLIES_WITHIN: Final = 6
"""Messages after a statement among which its reply is looked for."""

ANSWERS_WITHIN: Final = 3
"""Messages after a question among which its answer is looked for."""

NEAR: Final = 3
"""Messages between a statement and the one that it contradicts without naming it."""

LOOKED_AT: Final = 6
"""Statements of one message among which a reply is looked for: however long a message is, it takes no longer."""

SHORT: Final = 3
"""Words; a nod with fewer stands alone and so accepts a proposal, and a question with fewer asks nothing."""

_SELF: Final = re.compile(r"(?:I|Me|Ich|Moi|Yo)\b", re.IGNORECASE)
"""How a short answer begins that names its speaker: "Who is on call?" "I am." """

_POLAR: Final = frozenset({Marker.NODS, Marker.DISAGREES, Marker.ACCEPTS})
_NEEDS_REPLY: Final = frozenset({PointKind.QUESTION, PointKind.PROPOSAL, PointKind.DECISION, PointKind.ACTION})


@dataclass(frozen=True, slots=True)
class QuestionAnswer:
    """The places of the statements that answer a question; without any, the question ``is_open`` or was passed over.

    It ``is_doubted`` if somebody said that the answer is not known.
    """

    places: Sequence[int] = ()
    is_open: bool = False
    is_doubted: bool = False


class Replies:
    """Looks for replies among the statements of a talk, which are in order, message by message."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        self._statements = statements
        self._messages: dict[int, list[int]] = {}
        for place, statement in enumerate(statements):
            self._messages.setdefault(statement.order, []).append(place)
        self._orders = sorted(self._messages)

    def answer(self, place: int, told: Set[int]) -> QuestionAnswer:
        """Return the answer to the question at ``place``, without the statements that are ``told`` already."""
        asked = self._statements[place]
        own = self._following(place)
        if len(own) > 1 or any(self._asks(at) for at in own):
            return QuestionAnswer()
        for order in self._after(asked.last_order, ANSWERS_WITHIN):
            reply = self._messages[order][:LOOKED_AT]
            if self._statements[reply[0]].speaker == asked.speaker:
                if any(self._asks(at) or Marker.CONCLUDES in self._statements[at].markers for at in reply):
                    return QuestionAnswer()
                continue
            if any(Marker.DOUBTS in self._statements[at].markers for at in reply[:2]):
                return QuestionAnswer(is_open=True, is_doubted=True)
            found = self._told_in_answer(reply, told)
            if found and (asked.is_asked or self._statements[found[0]].kind is PointKind.PROPOSAL):
                return QuestionAnswer(found)
            guesses = self._statements[reply[0]].is_question
            if not found and (guesses or any(not self._statements[at].is_thin for at in reply if at not in told)):
                return QuestionAnswer()
        return QuestionAnswer(is_open=True)

    def _told_in_answer(self, reply: Sequence[int], told: Set[int]) -> list[int]:
        answer: list[int] = []
        for at in reply[:3]:
            said = self._statements[at]
            if at in told or said.is_question or not said.is_whole or said.kind is PointKind.CONSILIENCE:
                break
            if not said.is_thin:
                return [*answer, at]
            tells = bool(said.stems) or bool(_SELF.match(said.text))
            if not answer and (tells or said.markers & _POLAR or (said.word_count == 1 and len(said.text) > 4)):
                answer.append(at)
        return answer

    def _asks(self, place: int) -> bool:
        said = self._statements[place]
        return said.is_question and said.word_count > SHORT and bool(said.stems)

    def acceptance(self, place: int, *, explicit: bool = False) -> int | None:
        """Return the place of the statement in which another speaker accepts what was said.

        If that is to be ``explicit``, a nod is none where nothing was asked: it may do no more than to listen.
        """
        proposed = self._statements[place]
        is_asked = proposed.is_question or self._ends_asking(place)
        for order in self._after(proposed.last_order, REPLIES_WITHIN):
            reply = self._messages[order][:LOOKED_AT]
            first = self._statements[reply[0]]
            if first.kind is PointKind.CONSILIENCE:
                continue
            if first.speaker == proposed.speaker:
                if any(self._statements[at].kind in _NEEDS_REPLY for at in reply):
                    return None
                continue
            if self._refuses(reply):
                return None
            accepting = next(
                (at for at in reply[:3] if self._accepts(at, proposed, is_asked=is_asked, explicit=explicit)), None
            )
            if accepting is not None:
                return accepting
            if any(not self._statements[at].is_thin for at in reply):
                return None
        return None

    def _repeats(self, place: int, proposed: Statement) -> bool:
        """Return whether the statement reads back what was proposed, and says nothing else."""
        said = self._statements[place]
        is_reply = Marker.NODS in said.markers or len(said.stems) > 1
        return bool(said.stems) and is_reply and said.stems.keys() <= proposed.stems.keys()

    def _accepts(self, place: int, proposed: Statement, *, is_asked: bool, explicit: bool) -> bool:
        said = self._statements[place]
        if said.is_question:
            return False
        if Marker.ACCEPTS in said.markers:
            return True
        if said.kind is PointKind.ACTION and Marker.PROMISES in said.markers:
            return is_asked
        nods = Marker.NODS in said.markers and not _only_listens(said.text)
        return (nods and (is_asked or (said.word_count < SHORT and not explicit))) or self._repeats(place, proposed)

    def is_laughed_at(self, place: int) -> bool:
        """Return whether another speaker laughs at once."""
        said = self._statements[place]
        return any(
            Marker.LAUGHS in reply.markers and reply.speaker != said.speaker
            for order in self._after(said.last_order, 2)
            for reply in (self._statements[self._messages[order][0]],)
        )

    def seeks_assent(self, place: int) -> bool:
        """Return whether the message goes on by asking whether all accept what was said."""
        return any(
            self._statements[at].is_question and Marker.SEEKS_ASSENT in self._statements[at].markers
            for at in self._following(place)
        )

    def _ends_asking(self, place: int) -> bool:
        """Return whether the message goes on with a short question: "We take B7. OK?"."""
        return any(self._statements[at].is_question for at in self._following(place))

    def _following(self, place: int) -> list[int]:
        """Return the places of the next statements of the same message."""
        order = self._statements[place].order
        end = min(place + 1 + LOOKED_AT, len(self._statements))
        return [at for at in range(place + 1, end) if self._statements[at].order == order]

    def _refuses(self, reply: Sequence[int]) -> bool:
        return any(
            Marker.DISAGREES in said.markers or said.text.lower().startswith(("but ", "aber ", "mais ", "pero "))
            for said in (self._statements[at] for at in reply[:2])
            if Marker.ACCEPTS not in said.markers
        )

    def view_before(self, place: int) -> Statement | None:
        """Return what another speaker said just before, if that tells a view."""
        said = self._statements[place]
        for before in range(place - 1, max(-1, place - 6), -1):
            view = self._statements[before]
            if said.order - view.last_order > NEAR - 1:
                return None
            if view.speaker != said.speaker and not view.is_thin:
                return None if view.is_question or not view.is_whole else view
        return None

    def _after(self, order: int, within: int) -> Sequence[int]:
        """Return the messages that say something, of those ``within`` so many after ``order``."""
        return self._orders[bisect_right(self._orders, order) : bisect_right(self._orders, order + within)]


def _only_listens(text: str) -> bool:
    return text.lower().rstrip(".!, ").split(",")[0] in (
        "yeah",
        "right",
        "mm-hmm",
        "exactly",
        "good",
        "great",
        "genau",
        "richtig",
    )
