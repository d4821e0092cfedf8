"""Statements that belong together become one candidate: a question and its answer, a proposal and its acceptance, a
view and the other view.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from context_builder.analysis.analyst import PointKind
from context_builder.analysis.text.days import days_in, is_moved
from context_builder.analysis.text.phrases import Marker
from context_builder.analysis.text.pronouns import NAMED
from context_builder.analysis.text.replies import LOOKED_AT, NEAR, SHORT, Replies
from context_builder.analysis.text.sentences import is_foreign
from context_builder.analysis.text.statements import PAST, Statement, sameness
from context_builder.quoting import begins_with_a_name, of_one_speaker, quoted_name

LONGEST_EXCHANGE: Final = 340
"""Characters of two statements that are told together."""

LONGEST_ANSWERED: Final = 240
"""Characters up to which an answer is told with the sentence after it."""

SAME_SUBJECT_NEAR: Final = 0.25
"""Part of what one of two statements near to each other tells that the other tells too, when they are about the
same."""

SUBSTANCE_OF_QUESTION: Final = 2.0
"""Sum of specificity below which a question is told with the sentence before it."""

_WANTS: Final = frozenset({Marker.REQUESTS, Marker.PROPOSES})
_CONSIDERS: Final = re.compile(
    r"\b(?:we|you|one) (?:could|might)\b|\b(?:wir|man) könnten?\b|\bkönnten? (?:wir|man)\b"
    r"|\bon pourrait\b|\bnous pourrions\b|\bpodríamos\b|\bse podría\b|\bpotremmo\b|\bpoderíamos\b",
    re.IGNORECASE,
)
"""Words with which something is only thought of: it reads as undecided, whoever likes the idea."""

_SETTLED: Final = frozenset({PointKind.DECISION, PointKind.ACTION})
_RESOLVES: Final = re.compile(
    r"\b(?:we(?:['’]ll)?|let['’]s) (?!(?:can|could|might|may)\b)\w+|\b(?:no|not)\b|(?<!haben )(?<!sind )\bwir\b"
    r"|\bkeine?n?\b|\b(?:on|nous) (?!(?:a|est|avons|sommes)\b)\w+|\bpas d|\b\w+mos\b|\bsin\b",
    re.IGNORECASE,
)
"""Words of a conclusion about what the speakers do, rather than about how things are."""

_AGREES: Final = frozenset({Marker.ACCEPTS, Marker.NODS, Marker.REQUESTS})
_OFFERS: Final = re.compile(r"(?:should|shall) I |do you want me to |soll ich |dois-je |debo ", re.IGNORECASE)
"""How a question begins whose asker offers to do something."""

_IS_DONE: Final = re.compile(
    r"(?:(?:I|we)['’]ve (?!got to)|I have (?!to)|already|it['’]s |there |ich hab|hab ich|schon |j['’]ai |ya )",
    re.IGNORECASE,
)
"""How a reply begins that tells of what was done rather than promises it."""

_INSTEAD_OF: Final = re.compile(
    r"\d[^,]*, (?:and |und |y |et )?(?:not|nicht|no|pas|non|não) (?:\w+ ){0,3}\w*\d\w*\W*$", re.IGNORECASE
)
"""How a sentence ends that says one number instead of another."""

_NEEDS: Final = re.compile(
    r"\b(?:need|needs|someone|somebody|brauche\w*|jemand\w*|besoin|quelqu['’]un|necesit\w+|alguien)\b", re.IGNORECASE
)
"""Words with which somebody asks for help."""

_KNOWN: Final = re.compile(
    r"\b(?:the|this|that|these|those|it|them|him|her|his|its|my|our|your|their|you|us|everyone|everybody|all|both|today"
    r"|tonight|tomorrow|next|by|now|later|after|before|first|again|back|soon|\d+|someone|somebody|one|two|three)\b",
    re.IGNORECASE,
)
"""Words before what others know of, and for times and counts."""

_FOR_ONESELF: Final = re.compile(
    r"\b(?:adopt|bring|buy|cry|dance|drink|eat|grab|hide|knit|marry|pack|pray|sing|sleep|wear)\b", re.IGNORECASE
)
"""Verbs of what people say in jest that they will do; with any other a promise is taken at its word."""

_SPEAKER_CHANGES: Final = " – "


@dataclass(frozen=True, slots=True)
class PointCandidate:
    """What may become a point: the statements that it makes, and those that only support it."""

    kind: PointKind
    told: tuple[Statement, ...]
    support: tuple[Statement, ...] = ()
    by: tuple[str, ...] = ()
    reverses: bool = False
    is_open: bool = False
    """Whether somebody said that the question is open."""
    replaces: int | None = None
    asked: str = ""
    """A known question that is told again with its answer."""
    is_aside: bool = False
    """Whether it promises nothing that anybody asked for, accepted or had named: "I'll buy earplugs." """

    @property
    def is_exchange(self) -> bool:
        """Return whether two people tell it, who are then named in it."""
        is_known_exchange = any(statement.is_exchange for statement in self.told)
        return bool(self.asked) or is_known_exchange or len({statement.speaker for statement in self.told}) > 1

    @property
    def names_speakers(self) -> bool:
        """Return whether the text says who tells it: of an exchange, and where a sentence begins as if another did."""
        return self.is_exchange or begins_with_a_name(self.told[0].text)

    @property
    def text(self) -> str:
        """Return the sentences as they were said; what each says of an exchange after the speaker's name."""
        turns = [
            (speaker, " ".join(one.text if one.is_exchange else of_one_speaker(one.text) for one in said))
            for speaker, said in groupby(self.told, key=lambda one: "" if one.is_exchange else one.speaker)
        ]
        if not self.names_speakers:
            return turns[0][1]
        named = [f"{quoted_name(speaker)}: {said}" if speaker else said for speaker, said in turns]
        return _SPEAKER_CHANGES.join(filter(None, [self.asked, *named]))

    @property
    def order(self) -> int:
        return self.told[-1].order

    @property
    def stems(self) -> dict[str, float]:
        return {stem: weight for statement in self.told for stem, weight in statement.stems.items()}


class Exchanges:
    """Reads the statements of a talk, in order, message by message."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        self._statements = statements
        self._replies = Replies(statements)
        self._told: set[int] = set()
        self._added: set[int] = set()
        """What is told after another statement, and may still be what a pronoun stands for."""

    def candidates(self) -> Iterator[PointCandidate]:
        """Yield the candidates in the order they were said; a statement is part of one at most."""
        for place, statement in enumerate(self._statements):
            if place in self._told or place in self._added or not statement.is_whole:
                continue
            for candidate in self._of(place, statement):
                known = next((told for told in candidate.told if told.known is not None), None)
                if known is None:
                    yield candidate
                elif len(candidate.told) > 1 or candidate.support:
                    yield replace(candidate, replaces=known.known)

    def _of(self, place: int, statement: Statement) -> Iterator[PointCandidate]:
        kind = statement.kind
        if Marker.CHATTERS in statement.markers and not statement.is_labelled:
            return
        if kind is not PointKind.DECISION and not statement.is_labelled and self._replies.is_withdrawn(place):
            return
        if kind is PointKind.CONSILIENCE:
            yield from self._contributed(place, statement)
        elif kind is PointKind.QUESTION:
            yield from self._asked(place, statement)
        elif kind in (PointKind.PROPOSAL, PointKind.DECISION, PointKind.ACTION):
            yield from self._settled(place, statement)
        elif self._corrects(place, statement):
            yield PointCandidate(PointKind.CLAIM, (statement,), reverses=True)
        elif (concluded := self._concluded(place, statement)) is not None:
            yield concluded
        elif (offered := self._offered(place, statement)) is not None:
            yield offered
        elif Marker.DISAGREES in statement.markers and Marker.DOUBTS not in statement.markers:
            yield from self._disagreed(place, statement)
        elif not statement.is_thin or (statement.has_number and _reverses(statement)) or is_moved(statement.text):
            yield PointCandidate(kind, (statement,), reverses=_reverses(statement))

    def _concluded(self, place: int, said: Statement) -> PointCandidate | None:
        """Return the decision that a conclusion is once others accept it: "Okay, then on Friday." "Fine." """
        accepted = self._replies.confirms(place) if said.stems and said.kind is PointKind.CLAIM else None
        if accepted is None and (Marker.CONCLUDES in said.markers or self._replies.seeks_assent(place)):
            accepted = self._replies.assent(place)
        resolves = (_RESOLVES.search(said.text) or days_in(said.text)) and not PAST.search(said.text)
        if accepted is None and Marker.CONCLUDES in said.markers and resolves:
            accepted = self._replies.accepted_before(place)
        if accepted is None:
            return None
        told = self._with_context(place) if said.is_thin else (said,)
        if told is None and not said.refers_back and max(said.stems.values(), default=0) > NAMED:
            told = (said,)
        if told is None or not said.stems:
            return None
        support = (self._statements[accepted],)
        by = _speakers(said, *support)
        return PointCandidate(PointKind.DECISION, told, support, by, reverses=_reverses(said))

    def _offered(self, place: int, said: Statement) -> PointCandidate | None:
        """Return the task that an offer is once another takes it: "I could check the script." "Please do." """
        if not said.offers:
            return None
        accepted = self._replies.taken_up(place)
        if accepted is None:
            return None
        told = self._asked_for(place, self._statements[accepted].speaker) or self._with_own_context(place)
        if told is None:
            return None
        return PointCandidate(PointKind.ACTION, told, (self._statements[accepted],), _speakers(said))

    def _asked_for(self, place: int, asker: str) -> tuple[Statement, ...] | None:
        """Return an offer that says only "it", after what the one who takes it up said just before that is needed."""
        said, before = self._statements[place], self._statements[max(0, place - 1)]
        is_need = before.speaker == asker and before.last_order == said.order - 1 and bool(_NEEDS.search(before.text))
        if not said.refers_back or not is_need or not before.is_whole or _length((before, said)) > LONGEST_EXCHANGE:
            return None
        return (before, said)

    def _corrects(self, place: int, said: Statement) -> bool:
        """Return whether the statement says how things are instead, and does not only hold another view."""
        if Marker.REVERSES not in said.markers or said.is_thin:
            return False
        view = self._replies.view_before(place)
        return view is None or sameness(view.stems, said.stems) >= SAME_SUBJECT_NEAR

    def _contributed(self, place: int, said: Statement) -> Iterator[PointCandidate]:
        if said.is_thin:
            return
        told: tuple[Statement, ...] = (said,)
        after = place + 1
        if after < len(self._statements) and self._statements[after].order == said.order:
            both = (said, self._statements[after])
            if both[1].is_whole and _length(both) <= LONGEST_EXCHANGE:
                told = both
                self._told.add(after)
        yield PointCandidate(PointKind.CONSILIENCE, told)

    def _asked(self, place: int, asked: Statement) -> Iterator[PointCandidate]:
        if asked.markers & _WANTS and asked.stems and not asked.has_quotation:
            accepted = self._replies.acceptance(place)
            asking = self._with_own_context(place) or ()
            if accepted is not None and len(asking) > asked.is_thin:
                self._told.add(accepted)
                reply = self._statements[accepted]
                is_done = _IS_DONE.match(reply.text)
                told = (*asking, reply, *(() if is_done else self._going_on(accepted)))
                is_promise = reply.kind is PointKind.ACTION or Marker.PROPOSES not in asked.markers
                kind = PointKind.ACTION if is_promise else PointKind.DECISION
                kind = PointKind.CLAIM if is_done else kind
                yield PointCandidate(kind, told, by=_speakers(*told))
                return
        yield from self._questioned(place, asked)

    def _going_on(self, place: int) -> tuple[Statement, ...]:
        """Return the promise with which a message goes on: "Can do. I'll call on Monday." """
        after = place + 1
        if after >= len(self._statements) or self._statements[after].order != self._statements[place].order:
            return ()
        if self._statements[after].kind is not PointKind.ACTION or not self._statements[after].is_whole:
            return ()
        self._told.add(after)
        return (self._statements[after],)

    def _questioned(self, place: int, asked: Statement) -> Iterator[PointCandidate]:
        if asked.word_count < SHORT or not asked.stems:
            return
        last = self._replies.last_of_questions(place)
        asking = (asked,) if last == place else (asked, self._statements[last])
        reply = self._replies.answer(last, self._told)
        if last != place and (reply.places or reply.is_open):
            self._told.add(last)
        if reply.places:
            yield from self._answered(place, asking, reply.places)
        elif reply.is_open:
            is_clear = len(asking) > 1 or asked.weight >= SUBSTANCE_OF_QUESTION
            told = asking if is_clear else self._with_context(place)
            if told is not None:
                kind = PointKind.PROPOSAL if Marker.PROPOSES in asked.markers else PointKind.QUESTION
                yield PointCandidate(kind, told, is_open=asked.is_labelled or reply.is_doubted)

    def _answered(self, place: int, asking: tuple[Statement, ...], replies: Sequence[int]) -> Iterator[PointCandidate]:
        answers = [self._statements[replies[0]].as_answer, *(self._statements[reply] for reply in replies[1:])]
        if _length((*asking, *answers)) > LONGEST_EXCHANGE:
            answers, replies = answers[-1:], replies[-1:]
        if _length((*asking, *answers)) > LONGEST_EXCHANGE:
            return
        told, answer = (*asking, *answers), answers[-1]
        accepted = self._replies.acceptance(replies[-1]) if answer.kind is PointKind.PROPOSAL else None
        if answer.kind is PointKind.CLAIM and Marker.CONCLUDES in answer.markers:
            accepted = self._replies.assent(replies[-1])
        self._told.update(replies)
        if self._replies.is_withdrawn(replies[-1]) and answer.kind is PointKind.ACTION:
            return
        if accepted is None and self._replies.asks_to_conclude(place):
            accepted = self._replies.acceptance(place, beyond_nods=True)
        if _OFFERS.match(asking[0].text) and answer.is_thin and answer.markers & _AGREES:
            yield PointCandidate(PointKind.ACTION, told, by=_speakers(*asking))
        elif answer.offers and self._replies.taken_up(replies[-1]) is not None:
            yield PointCandidate(PointKind.ACTION, told, by=_speakers(answer))
        elif answer.kind in _SETTLED and not _only_asks(answer) and not self._replies.is_turned_down(replies[-1]):
            told = (*(self._with_own_context(place) or asking[:1]), *asking[1:], *answers)
            yield PointCandidate(answer.kind, told, by=_speakers(answer), is_aside=_is_aside(answer))
        elif accepted is None:
            told = (*told, *self._more_of_answer(replies[-1], told))
            yield PointCandidate(PointKind.CLAIM, told, by=_speakers(*told))
        else:
            support = (self._statements[accepted],)
            yield PointCandidate(PointKind.DECISION, told, support, by=_speakers(answer, *support))

    def _more_of_answer(self, place: int, told: Sequence[Statement]) -> tuple[Statement, ...]:
        """Return the sentence with which an answer goes on, if only that one says what was asked about."""
        after = place + 1
        if after >= len(self._statements) or self._statements[after].order != self._statements[place].order:
            return ()
        more = self._statements[after]
        is_matter_of_its_own = more.kind is not PointKind.CLAIM or more.is_thin or not more.is_whole or more.offers
        asked, answered = told[0].stems.keys(), self._statements[place].stems.keys()
        if is_matter_of_its_own or not (asked & more.stems.keys()) - answered or after in self._told:
            return ()
        if _length((*told, more)) > LONGEST_ANSWERED:
            return ()
        self._added.add(after)
        return (more,)

    def _settled(self, place: int, said: Statement) -> Iterator[PointCandidate]:
        accepted = self._replies.acceptance(place)
        told = self._with_context(place)
        kind = said.kind
        if accepted is not None and self._statements[accepted].word_count <= SHORT:
            self._told.add(accepted)
        if told is not None and kind is PointKind.ACTION and not days_in(said.text):
            told = (*told, *self._due(place))
        if accepted is not None and kind is PointKind.PROPOSAL and not _CONSIDERS.search(said.text):
            kind = PointKind.DECISION
        if (
            accepted is None
            and kind is PointKind.ACTION
            and not said.is_labelled
            and not said.markers & {Marker.PROMISES, Marker.IS_DUE}
        ):
            kind = PointKind.CLAIM
        if kind is PointKind.ACTION and self._replies.is_turned_down(place):
            kind = PointKind.CLAIM
        if told is None and said.kind is PointKind.DECISION and (days_in(said.text) or said.names_something):
            told = (said,)
        is_empty = said.kind is PointKind.PROPOSAL and said.word_count <= SHORT and said.weight < NAMED
        if told is None or not said.stems or is_empty or (kind is PointKind.PROPOSAL and said.is_thin):
            return
        support: tuple[Statement, ...] = ()
        if accepted is not None and kind is PointKind.DECISION:
            support = (self._statements[accepted],)
        is_laughed_at = not said.is_labelled and self._replies.is_laughed_at(place)
        if is_laughed_at and kind is PointKind.PROPOSAL:
            return
        is_aside = kind is PointKind.ACTION and accepted is None and not said.is_labelled and _is_aside(said)
        yield PointCandidate(
            kind, told, support, _speakers(said, *support), reverses=_reverses(said), is_aside=is_aside
        )

    def _due(self, place: int) -> tuple[Statement, ...]:
        """Return the next sentence of the message, if it tells of "it" by what day a task will be done."""
        after = place + 1
        if after >= len(self._statements) or self._statements[after].order != self._statements[place].order:
            return ()
        due = self._statements[after]
        if not due.refers_back or not days_in(due.text) or due.is_question or not due.is_whole:
            return ()
        self._told.add(after)
        return (due,)

    def _with_context(self, place: int) -> tuple[Statement, ...] | None:
        """Return the statement, with the one before where it says too little by itself; None if that is no help."""
        said = self._statements[place]
        if not said.is_thin or (said.kind is PointKind.ACTION and said.names_something and not said.refers_back):
            return self._with_own_context(place, replies=said.kind in (PointKind.ACTION, PointKind.QUESTION)) or (said,)
        near = [
            at for at in range(place - 1, max(-1, place - 4), -1) if said.order - self._statements[at].order <= NEAR
        ]
        for before in sorted(near, key=lambda at: _is_apart(self._statements[at], said)):
            context = self._statements[before]
            is_own = context.speaker == said.speaker and context.word_count > SHORT and bool(context.stems)
            is_told = context.kind is PointKind.ACTION or (context.kind is PointKind.DECISION and is_own)
            if (context.is_thin and not is_own) or not context.is_whole or is_told:
                continue
            if Marker.DOUBTS in context.markers and not is_own:
                continue
            if len(context.text) + len(said.text) <= LONGEST_EXCHANGE and before not in self._told:
                return (context, said)
            break
        return None

    def _with_own_context(self, place: int, *, replies: bool = False) -> tuple[Statement, ...] | None:
        """Return the statement, after what its speaker, or a question to them, just named if it says only "it".

        One that ``replies`` may be about what another said in the message before. None if nothing names what it is.
        """
        said = self._statements[place]
        if not said.refers_back and (not said.is_thin or said.names_something):
            return (said,)
        for before in range(place - 1, max(-1, place - 1 - LOOKED_AT), -1):
            context = self._statements[before]
            if said.order - context.last_order > 2 or context.known is not None:
                break
            is_own = context.speaker == said.speaker
            is_brief = replies and said.order - context.last_order == 1 and _is_brief(context)
            if not is_brief and not _names_something(context, said):
                if is_own or context.is_thin:
                    continue
                break
            is_replied_to = replies and said.order - context.last_order == 1 and context.kind is not PointKind.ACTION
            is_about = is_own or context.is_question or is_replied_to
            return (context, said) if is_about and _length((context, said)) <= LONGEST_EXCHANGE else None
        return None

    def _disagreed(self, place: int, said: Statement) -> Iterator[PointCandidate]:
        own = said
        if said.is_thin:
            after = place + 1
            if after >= len(self._statements) or self._statements[after].order != said.order:
                return
            own = self._statements[after]
            if own.is_thin or own.is_question or not own.is_whole or own.kind is not PointKind.CLAIM:
                return
            self._told.add(after)
        view = self._replies.view_before(place)
        if view is not None and self._replies.agrees_to_no(place, view):
            return
        if view is not None and _length((view, said, own)) <= LONGEST_EXCHANGE:
            is_told = own is not said and own.refers_back and bool(said.stems)
            support = () if own is said or is_told else (said,)
            told = (view, said, own) if is_told else (view, own)
            yield PointCandidate(PointKind.DISAGREEMENT, told, support, _speakers(view, own))
        else:
            yield PointCandidate(PointKind.CLAIM, (own,), reverses=Marker.REVERSES in said.markers)


def _is_apart(context: Statement, said: Statement) -> bool:
    """Return whether a statement in another message names nothing of what ``said`` is about, but says only "it"."""
    return context.order != said.order and context.refers_back and not context.stems.keys() & said.stems.keys()


def _is_brief(context: Statement) -> bool:
    """Return whether a conclusion of few words names something: "We do an ultrasound instead." """
    concludes = bool(context.markers & {Marker.CONCLUDES, Marker.REVERSES}) and not context.refers_back
    return (
        concludes
        and context.is_whole
        and context.kind is PointKind.CLAIM
        and max(context.stems.values(), default=0) > NAMED
    )


def _names_something(context: Statement, said: Statement) -> bool:
    """Return whether ``said`` may refer to what the statement is about."""
    is_about_talk = context.kind is PointKind.CONSILIENCE or Marker.CHATTERS in context.markers
    is_own = context.speaker == said.speaker and not context.is_question
    may_be_thin = is_own and (context.word_count > SHORT or context.last_order == said.order)
    is_told = not context.is_thin or (may_be_thin and max(context.stems.values(), default=0) > NAMED)
    return is_told and context.is_whole and not context.refers_back and not is_about_talk


def _reverses(said: Statement) -> bool:
    """Return whether the statement takes something back: "Actually no", or "on the 23rd, not the 26th"."""
    return Marker.REVERSES in said.markers or bool(_INSTEAD_OF.search(said.text))


def _is_aside(said: Statement) -> bool:
    """Return whether a promise in English is no work and names nothing, nobody and no time that others may know."""
    if not said.text.isascii() or is_foreign(said.text) or not _FOR_ONESELF.search(said.text):
        return False
    return not (said.names_something or _KNOWN.search(said.text))


def _only_asks(said: Statement) -> bool:
    """Return whether an answer only asks for something, such as "Please.", and promises nothing."""
    is_promised = said.is_labelled or said.markers & {Marker.PROMISES, Marker.IS_DUE, Marker.DECIDES}
    return Marker.REQUESTS in said.markers and said.is_thin and not is_promised


def _length(told: Sequence[Statement]) -> int:
    return sum(len(statement.text) for statement in told)


def _speakers(*statements: Statement) -> tuple[str, ...]:
    return tuple(dict.fromkeys(statement.speaker for statement in statements))
