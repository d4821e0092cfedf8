"""What others reply to a statement: an answer, an acceptance, or the view that it contradicts."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Final

from context_builder.analysis.analyst import PointKind
from context_builder.analysis.text.days import days_in
from context_builder.analysis.text.phrases import Marker
from context_builder.analysis.text.sentences import is_foreign
from context_builder.analysis.text.statements import PAST, Statement

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

_AND: Final = (
    r"(?:yes|yeah|okay|ok|please|thanks|thank you|then|ja|bitte|danke|dann|oui|merci|alors|s['’]il (?:te|vous) plaît"
    r"|sí|gracias|por favor|entonces)"
)
_TAKES_UP: Final = re.compile(
    rf"(?:{_AND}[,.!]* )*(?:yes,? please|please do|do that|go ahead|that(?:['’]d| would) be (?:great|good|lovely|nice)"
    r"|great idea|good idea|sounds good|perfect|wonderful|works for me|let['’]s try that|ja,? bitte"
    r"|that(?:['’]d| would) help(?: a lot)?|\+1|I will|will do|mach(?:e)? ich|je le fais|lo haré"
    r"|(?:many )?thanks(?: a lot| so much)?|thank you(?: very much| so much)?"
    r"|(?:much |even )?better|(?:viel )?besser|mejor|(?:prima,? )?mach das|finde? ich gut|gerne?"
    r"|prima|super|meinetwegen|passt|einverstanden"
    r"|oui,? s['’]il (?:te|vous) plaît|d['’]accord|parfait"
    r"|sí,? por favor|genial|estupendo|perfecto|adelante|vale|de acuerdo)"
    rf"(?:[,.!]* {_AND})*[.! ]*",
    re.IGNORECASE,
)
"""A whole reply that takes up what was proposed or offered; with any other word it may say the opposite."""

_TAKES_BACK: Final = re.compile(
    r"\b(?:actually|can['’]t|cannot|won['’]t|kann [^.,;!?]{0,60}nicht|doch nicht|al final no|no puedo|finalement"
    r"|je ne peux)\b",
    re.IGNORECASE,
)

_WITHDRAWS: Final = re.compile(
    r"(?<!n['’]t )(?<!not )(?<!never )\b(?:never ?mind|forget (?:about )?it|scratch that|(?:just|only|i['’]m) kidding"
    r"|(?:was|i['’]m) jok(?:e|ing)|was a joke|changed my mind|vergiss es|vergesst es|vergessen sie es"
    r"|war (?:nur )?(?:ein )?(?:witz|scherz|spaß)|laisse(?:z)? tomber|oublie(?:z)?|je plaisante"
    r"|(?:était|est) une blague"
    r"|olvídal[oa]|olvidadl[oa]|déjal[oa]|(?:es|era) (?:una )?broma)(?=\W*$|[,.;!–—]| then\b)",
    re.IGNORECASE,
)
"""Words with which somebody takes back what they proposed, promised or asked."""

_NO_WAIT: Final = re.compile(
    r"(?:no|nein|nee|non),? (?:wait|hold on|halt|warte\w*|moment|attend\w*|espera\w*)\b", re.IGNORECASE
)
"""How a speaker begins who at once takes back what they just said."""

_BEFORE_WITHDRAWING: Final = 4
"""Words before those, at most, of a sentence that takes back what was said before rather than what it says itself."""

_DECLINES: Final = re.compile(
    r"(?:(?:oh|no|nah|nein|nee|non|ach),? )*(?:there['’]s |das ist |c['’]est |ce n['’]est )?"
    r"(?:no need(?! to)|not (?:needed|necessary)|don['’]t bother|you don['’]t (?:have|need) to"
    r"|nicht nötig|(?:musst|brauchst) du nicht|lass mal|pas la peine|pas (?:besoin|nécessaire)|no hace falta"
    r"|no es necesario)\b",
    re.IGNORECASE,
)
"""How a reply begins with which another turns down what was promised or offered."""

_LAUGHS: Final = re.compile(r"(?:ha|(?:ha|he|hi){2,}\w*|(?:ja){3,}|lol|mdr|träum weiter)\b(?!')", re.IGNORECASE)
"""How a reply begins that takes what was proposed for a joke."""

_SAYS_YES: Final = re.compile(
    r"[\W_]*(?:(?:yes|yeah|yep|ja|oui|s[ií]|ok|okay)\b[\W_]*(?=\w)|good|great|fine|agreed|let['’]s|gut|gerne?"
    r"|machen wir|einverstanden|bonne idée|d['’]accord|buena idea|de acuerdo|vale)",
    re.IGNORECASE,
)
"""How a reply goes on after a laugh that is none at the proposal: "Haha yes, good idea"."""

_PROTESTS: Final = re.compile(
    r"(?:no,? )?(?:i['’]m serious|im ernst|das mein(?:e)? ich ernst|je suis sérieu|lo digo en serio)", re.IGNORECASE
)
"""How somebody shows that what seemed to accept their proposal made fun of it."""

_FITS: Final = re.compile(
    r"\b(?:works|fine|okay|perfect|passt|geht|perfekt|marche|me va|convient|parfait|vale|perfecto|me viene bien)\b",
    re.I,
)
_FITS_NOT: Final = re.compile(
    r"\b(?:not|no|only|but|if|nicht|kein\w*|nur|aber|wenn|pas|mais|si|pero|works? (?:on|at|in|from))\b|n['’]t\b", re.I
)
"""Words of a reply that says of a day that it is a good one, and words with which it says something else."""

_SAYS_NO: Final = re.compile(r"(?:no|nope|nein|nee|non)\b", re.IGNORECASE)
_DENIES: Final = re.compile(
    r"\b(?:no|not|nobody|nothing|nicht|kein\w*|pas|aucune?|sin)\b|n['’]t\b|(?<=[a-z],) no\b", re.IGNORECASE
)
"""A reply that says no, and words with which a statement does."""

_CHOICE: Final = re.compile(
    r"\b(?:do we want|wants|asked for|möchte|verlangt|(?:wollen|sollen|brauchen) wir|best|better|rather|am besten"
    r"|am liebsten|lieber|mieux|mejor|on veut|voulons-nous|queremos)\b",
    re.IGNORECASE,
)

_ASKS_WHO: Final = re.compile(
    r"(?:(?:and|but|so|seriously|und|aber|et|mais|y|pero),? ){0,2}¿?(?:who|wer|qui|quién|quien)\b", re.IGNORECASE
)
_TAKES_ON: Final = re.compile(
    r"(?:I['’]ll|I will|I can) (?:do|take) (?:it|that)\b|(?:das )?mach(?:e)? ich\b|je m['’]en (?:occupe|charge)\b"
    r"|yo (?:lo hago|me encargo)\b|me encargo\b|(?:I am|I do|me|ich|moi|yo)[.!]*$",
    re.IGNORECASE,
)
"""How a reply begins that takes something on without naming it."""

_ASKS_LEAVE: Final = re.compile(
    r"(?!.*\b(?:else|anything|help|all|problem|mind|bother|sonst|noch|helfen|alles|autre|aider|tout|problème|más|ayudar\w*"
    r"|todo|problema)\b)"
    r"¿?(?:(?:can|may|could|should|shall) (?:I|we)|(?:is|would) (?:that|this|it)|does (?:that|this) (?:work|suit)"
    r"|(?:darf|kann|soll) ich|(?:ist|wäre|geht|passt) (?:das|es)|est-ce que je peux|je peux|ça (?:te|vous) va"
    r"|puedo|(?:te|le|os) parece)\b",
    re.IGNORECASE,
)
"""A question whether what was promised may be done, to which no is no: "Can I help you with anything else?" is none."""

_OF_US: Final = re.compile(r"\b(?:we|us|let['’]s)\b", re.IGNORECASE)

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

    def last_of_questions(self, place: int) -> int:
        """Return the place of the question that ends the message of the one at ``place``, if it comes next."""
        own = self._following(place)
        is_next = len(own) == 1 and self._statements[own[0]].is_question and self._statements[own[0]].is_whole
        return own[0] if is_next else place

    def answer(self, place: int, told: Set[int]) -> QuestionAnswer:
        """Return the answer to the question at ``place``, without the statements that are ``told`` already."""
        asked = self._statements[place]
        own = self._following(place)
        if len(own) > 1 or any(self._asks(at) for at in own):
            return QuestionAnswer()
        asks_who = _ASKS_WHO.match(asked.text) is not None
        if asks_who and (taken := self._taken_on(place, told)) is not None:
            return QuestionAnswer([taken])
        for order in self._after(asked.last_order, ANSWERS_WITHIN):
            reply = self._messages[order][:LOOKED_AT]
            if self._statements[reply[0]].speaker == asked.speaker:
                if any(Marker.DOUBTS in self._statements[at].markers for at in reply[:2]):
                    return QuestionAnswer(is_open=True, is_doubted=True)
                if any(self._asks(at) for at in reply):
                    return QuestionAnswer()
                continue
            if any(Marker.DOUBTS in self._statements[at].markers for at in reply[:2]):
                return QuestionAnswer(is_open=True, is_doubted=True)
            found = self._told_in_answer(reply, told)
            if asks_who and found and self._statements[found[-1]].kind is PointKind.ACTION:
                continue  # it promises something else
            if found and self._is_doubted_later(order, asked, found):
                return QuestionAnswer(is_open=True, is_doubted=True)
            if found and (asked.is_asked or self._statements[found[0]].kind is PointKind.PROPOSAL):
                return QuestionAnswer(found)
            guesses = self._statements[reply[0]].is_question
            if not found and (guesses or any(not self._statements[at].is_thin for at in reply if at not in told)):
                return QuestionAnswer()
        return QuestionAnswer(is_open=True)

    def _is_doubted_later(self, order: int, asked: Statement, found: Sequence[int]) -> bool:
        """Return whether the next message says that the answer is not known, after one that tells nothing."""
        if any(not self._statements[at].is_thin or self._statements[at].markers & _POLAR for at in found):
            return False
        if any(self._statements[at].has_number or self._statements[at].names_something for at in found):
            return False
        later = [self._messages[then][:2] for then in self._after(order, 1)]
        return any(Marker.DOUBTS in self._statements[at].markers for reply in later for at in reply)

    def _taken_on(self, place: int, told: Set[int]) -> int | None:
        """Return the place of the statement in which somebody takes on what the question asks somebody to do.

        It says no more than that, or has a word of the question or of what the asker said just before.
        """
        asked = self._statements[place]
        begin = place - 1 if place and self._statements[place - 1].order == asked.order else place
        stems = self._statements[begin].stems.keys() | asked.stems.keys()
        for order in self._after(asked.last_order, REPLIES_WITHIN):
            for at in self._messages[order][:LOOKED_AT]:
                said = self._statements[at]
                if said.is_question and self._asks(at) and said.speaker == asked.speaker:
                    return None
                if at in told or said.is_question or not said.is_whole:
                    continue
                promises = said.kind is PointKind.ACTION and Marker.PROMISES in said.markers
                if _TAKES_ON.match(said.text) or (promises and stems & said.stems.keys()):
                    return at
        return None

    def _told_in_answer(self, reply: Sequence[int], told: Set[int]) -> list[int]:
        answer: list[int] = []
        for at in reply[:3]:
            said = self._statements[at]
            if at in told or said.is_question or not said.is_whole or said.kind is PointKind.CONSILIENCE:
                break
            if not said.is_thin:
                return [*answer, at]
            tells = said.stems and said.word_count >= SHORT
            if not answer and (tells or said.markers & _POLAR or (said.word_count == 1 and len(said.text) > 4)):
                answer.append(at)
        return answer

    def _asks(self, place: int) -> bool:
        said = self._statements[place]
        return said.is_question and said.word_count > SHORT and bool(said.stems)

    def acceptance(self, place: int, *, beyond_nods: bool = False) -> int | None:
        """Return the place of the statement in which another speaker accepts what was said, by more than a nod if that
        is asked for.
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
            if self.agrees_to_no(reply[0], proposed):
                return reply[0]
            if self._refuses(reply):
                return None
            accepting = next((at for at in reply[:3] if self._accepts(at, proposed, is_asked=is_asked)), None)
            if accepting is not None and self._is_in_irony(accepting, proposed):
                return None
            if accepting is not None and not (beyond_nods and self._only_nods(accepting, proposed)):
                return accepting
            if any(not self._statements[at].is_thin for at in reply):
                return None
        return None

    def _is_in_irony(self, place: int, proposed: Statement) -> bool:
        """Return whether who proposed something protests that they mean it, after what accepted it in jest."""
        after = (self._statements[self._messages[order][0]] for order in self._after(self._statements[place].order, 1))
        return any(then.speaker == proposed.speaker and _PROTESTS.match(then.text) for then in after)

    def _repeats(self, place: int, proposed: Statement) -> bool:
        """Return whether the statement reads back what was proposed, and says nothing else."""
        said = self._statements[place]
        is_reply = Marker.NODS in said.markers or len(said.stems) > 1
        return bool(said.stems) and is_reply and said.stems.keys() <= proposed.stems.keys()

    def _accepts(self, place: int, proposed: Statement, *, is_asked: bool) -> bool:
        said = self._statements[place]
        if said.is_question:
            return False
        if Marker.ACCEPTS in said.markers or self._takes_up(place) or _fits(said, proposed):
            return True
        if is_asked and said.kind is PointKind.ACTION and Marker.PROMISES in said.markers:
            return True
        nods = Marker.NODS in said.markers and not _only_listens(said.text)
        return (nods and (is_asked or said.word_count < SHORT)) or self._repeats(place, proposed)

    def assent(self, place: int) -> int | None:
        """Return the place of the statement that accepts a conclusion: a nod may do no more than to listen."""
        is_asked = any(Marker.SEEKS_ASSENT in self._statements[at].markers for at in self._following(place))
        return self.acceptance(place, beyond_nods=not is_asked)

    def _only_nods(self, place: int, proposed: Statement) -> bool:
        said = self._statements[place]
        accepts = Marker.ACCEPTS in said.markers or _fits(said, proposed) or self._takes_up(place)
        accepts |= any(self._statements[at].kind is PointKind.ACTION for at in (place, *self._following(place)[:1]))
        return not accepts and not self._repeats(place, proposed)

    def is_turned_down(self, place: int) -> bool:
        """Return whether the message goes on by asking whether that may be, and another speaker says no to it."""
        said = self._statements[place]
        if not any(_ASKS_LEAVE.match(self._statements[at].text) for at in self._following(place)):
            return False
        after = next(iter(self._after(said.last_order, 1)), None)
        reply = None if after is None else self._statements[self._messages[after][0]]
        return reply is not None and reply.speaker != said.speaker and Marker.DISAGREES in reply.markers

    def is_withdrawn(self, place: int) -> bool:
        """Return whether the speaker takes the statement back, in it or soon after, or another turns it down."""
        said = self._statements[place]
        if self._withdraws_itself(said):
            return True
        if any(
            _NO_WAIT.match(spoken) for at in self._following(place)[:1] for _, spoken in self._statements[at].quotes
        ):
            return True
        after = self._after(said.last_order, 1)
        if after and said.kind is PointKind.ACTION and not said.is_question:
            reply = self._statements[self._messages[after[0]][0]]
            if reply.speaker != said.speaker and _DECLINES.match(reply.text):
                return True
        later = [at for order in self._after(said.last_order, NEAR) for at in self._messages[order][:LOOKED_AT]]
        for then in (self._statements[at] for at in (*self._following(place), *later)):
            if then.speaker != said.speaker:
                continue
            if _WITHDRAWS.search(then.text):
                return not self._withdraws_itself(then)
            if then.kind in _NEEDS_REPLY:
                return False
        return False

    def _withdraws_itself(self, said: Statement) -> bool:
        found = _WITHDRAWS.search(said.text)
        return found is not None and len(said.text[: found.start()].split()) > _BEFORE_WITHDRAWING

    def is_laughed_at(self, place: int) -> bool:
        """Return whether another speaker takes the statement for a joke."""
        said = self._statements[place]
        for order in self._after(said.last_order, 2):
            reply = self._statements[self._messages[order][0]]
            words = reply.quotes[0][1] if reply.quotes else reply.text
            laughs = _LAUGHS.match(words) if reply.speaker != said.speaker else None
            if laughs is not None:
                return _SAYS_YES.match(words, laughs.end()) is None
        return False

    def accepted_before(self, place: int) -> int | None:
        """Return the place of the statement that accepted what the one at ``place`` sums up: "Fine." "So we take it."

        It is about what was proposed just before.
        """
        said = self._statements[place]
        before = [at for at in range(max(0, place - 3 * LOOKED_AT), place) if self._statements[at].order < said.order]
        accepted = next(
            (
                at
                for at in reversed(before)
                if said.order - self._statements[at].last_order < NEAR and self._agrees(at, said)
            ),
            None,
        )
        if accepted is None:
            return None
        for at in before:
            raised = self._statements[at]
            if said.order - raised.last_order > 2 * REPLIES_WITHIN or not raised.stems.keys() & said.stems.keys():
                continue
            is_choice = raised.markers & {Marker.PROPOSES, Marker.CONCLUDES} or _CHOICE.search(raised.text)
            same_day = {*days_in(raised.text)} & {*days_in(said.text)}
            if is_choice or same_day or (at == accepted and raised.has_number):
                return accepted
        return None

    def _agrees(self, place: int, said: Statement) -> bool:
        reply = self._statements[place]
        if reply.speaker == said.speaker or reply.is_question or Marker.DISAGREES in reply.markers:
            return False
        return bool(reply.markers & {Marker.ACCEPTS, Marker.NODS}) or self._takes_up(place)

    def confirms(self, place: int) -> int | None:
        """Return the place of the statement that accepted what the one at ``place`` says again as settled."""
        said = self._statements[place]
        for before in range(place - 1, max(-1, place - 1 - LOOKED_AT), -1):
            asked = self._statements[before]
            if said.order - asked.last_order > REPLIES_WITHIN:
                return None
            if asked.is_question and said.stems.keys() <= asked.stems.keys() and self._wants_assent(before):
                accepted = self.acceptance(before)
                return accepted if accepted is not None and accepted < place else None
        return None

    def _wants_assent(self, place: int) -> bool:
        said = self._statements[place]
        if Marker.PROPOSES in said.markers or self.seeks_assent(place):
            return True
        return Marker.CONCLUDES in said.markers and (is_foreign(said.text) or bool(_OF_US.search(said.text)))

    def asks_to_conclude(self, place: int) -> bool:
        """Return whether a question asks whether a conclusion about what the speakers do is right: "So we sell it?" """
        said = self._statements[place]
        is_conclusion = Marker.CONCLUDES in said.markers and PAST.search(said.text) is None
        return is_conclusion and said.is_question and self._wants_assent(place)

    def taken_up(self, place: int) -> int | None:
        """Return the place of the next reply if another speaker takes up an offer in it, and says nothing else."""
        said = self._statements[place]
        if any(not self._statements[at].is_thin for at in self._following(place)):
            return None
        after = [self._messages[order][0] for order in self._after(said.last_order, NEAR)]
        if not after or self._statements[after[0]].speaker == said.speaker or not self._takes_up(after[0]):
            return None
        own = (self._statements[at] for at in after[1:] if self._statements[at].speaker == said.speaker)
        return None if any(_TAKES_BACK.search(then.text) for then in own) else after[0]

    def _takes_up(self, place: int) -> bool:
        """Return whether the message that begins at ``place`` takes something up, and says nothing else."""
        whole = self._messages[self._statements[place].order]
        if whole[0] != place or len(whole) > SHORT:
            return False
        return bool(_TAKES_UP.fullmatch(" ".join(said for at in whole for _, said in self._statements[at].quotes)))

    def seeks_assent(self, place: int) -> bool:
        """Return whether the message goes on by asking whether all accept what was said."""
        return any(
            self._statements[at].is_question and Marker.SEEKS_ASSENT in self._statements[at].markers
            for at in self._following(place)
        )

    def _ends_asking(self, place: int) -> bool:
        """Return whether the message goes on with a short question: "We take B7. OK?"."""
        return any(self._statements[at].is_question and self._statements[at].is_thin for at in self._following(place))

    def _following(self, place: int) -> list[int]:
        """Return the places of the next statements of the same message."""
        order = self._statements[place].order
        end = min(place + 1 + LOOKED_AT, len(self._statements))
        return [at for at in range(place + 1, end) if self._statements[at].order == order]

    def agrees_to_no(self, place: int, proposed: Statement) -> bool:
        """Return whether a reply says no to what says no itself: "So no castle then." "No, no castle." """
        said = self._statements[place]
        says_more = said.stems.keys() - proposed.stems.keys()
        spoken = " ".join(words for _, words in said.quotes)
        return not says_more and _SAYS_NO.match(spoken) is not None and _DENIES.search(proposed.text) is not None

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


def _fits(said: Statement, proposed: Statement) -> bool:
    """Return whether a statement says of the day that was proposed that it is a good one: "The ninth, that works." """
    same_day = {*days_in(said.text)} & {*days_in(proposed.text)}
    return bool(same_day) and _FITS.search(said.text) is not None and _FITS_NOT.search(said.text) is None


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
