"""A statement is a sentence that somebody said, with what it does in the talk and how much it tells."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import Final

from context_builder.analysis.analyst import AnalystMessage, KnownPoint, PointKind
from context_builder.analysis.evidence.words import TABLES
from context_builder.analysis.text.days import days_in
from context_builder.analysis.text.markers import (
    is_plain,
    label_of,
    markers,
    markers_of_unspaced,
    spelled_out,
)
from context_builder.analysis.text.phrases import Marker
from context_builder.analysis.text.promises import DOING, denies_its_verb, offers, will_do_soon
from context_builder.analysis.text.pronouns import hangs, refers_back
from context_builder.analysis.text.sentences import (
    BROKEN_OFF,
    LONGEST,
    capitalized,
    fluent,
    without_opening,
)
from context_builder.analysis.text.vocabulary import SUBJECTS, VERBS
from context_builder.analysis.text.words import Word, words
from context_builder.quoting import names_speakers

SUBSTANCE: Final = 1.2
"""Sum of specificity below which a sentence says nothing by itself ("Yeah, sounds good.")."""

FEWEST_WORDS: Final = 5
"""Words below which a claim is rather a part of a sentence ("Thirteen fifty-two."), in English and the like."""

LONGEST_STATEMENT: Final = 360
"""Characters above which a sentence is too long for a summary, and is left out as a whole."""

_ASKED: Final = re.compile(r"[?？؟⸮՞](?:[\"”»'’)\]」』]|\s)*$|[\u0370-\u03ff\u1f00-\u1fff][;\u037e]$")
_ENDED: Final = re.compile(r"[.?!…。？！｡؟۔।։;][\"”»'’)\]」』]*$")
_IN_QUOTES: Final = re.compile(r"[\"“”„«»「]")
_DENSE: Final = re.compile(
    r"[\u4e00-\u9fff\u3400-\u4dbf]{2,}|[\u30a1-\u30faー]{2,}|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]{3,}"
)
_VERB_STEM: Final = re.compile(r"(?<![\u4e00-\u9fff])[\u4e00-\u9fff](?=[\u3041-\u3096])")
"""A Chinese letter with its Japanese ending."""
_ABBREVIATED: Final = "th|ms|mm|cm|km|kg|mg|ml|hz|kb|mb|gb|tv|vs|pm|nm|ph|db|css|html|sql|xml|bzw|ggf|usw|mrs?|dr"
_GARBLED: Final = re.compile(
    r" @|^[B-HJ-Z] (?:you|we|I|the|it)\b|\b[Ss]h-|\bth (?!century)|\b(i|we|you|it|they|is|to) [a-z] \1\b"
    rf"|(?<!['’.])\b(?!(?:{_ABBREVIATED})\b)[bcdfghjklmnpqrstvwxz]{{2,3}}\b(?!\.)"
    r"|(?<=[a-z] )(?<!plan )(?<!type )(?<!part )(?<!option )(?<!vitamin )[bcdfghjlmnpqrtx] (?=[a-z])"
)
"""What remains of words that were broken off, in Latin letters."""

_STOPS: Final = re.compile(r"(?<!\.)(?:(\.)\s*[.?]|([?!])\s*\.)$")
_BREAKS_OFF: Final = frozenset(
    """a an the of to and but or so because that which who with for from in on at by as if than into i we you it's i'm
    is are was were be not my your our their his her this these those um uh gonna don't doesn't have has had do does did
    can could will would probably maybe just also very i'll we'll i've
    we've he's she's there's und oder aber der die das ein eine zu mit
    von für et ou mais le la les un une de du des à que y o pero el los las con""".split()
)
_JOINTS: Final = frozenset(
    """and or but because as so which who where when if that with for from in on to than until unless while und oder
    aber weil dass wenn mit für et ou mais parce que qui avec pour si y o pero porque con para""".split()
)
"""Words in small letters with which a message goes on with the sentence that its speaker began in an earlier one."""

_DEPENDENT: Final = frozenset("as that which who whose where whereas than cuz dass weil que qui".split())
"""Words in small letters that begin no sentence."""

_CONJUNCTIONS: Final = frozenset("and but or".split())
_PREPOSITIONS: Final = frozenset("to for with of in from on".split())
_SIGNS: Final = re.compile(r"[.,;:?!'’]")
_NO_OF_A_VERB: Final = re.compile(r"no\s+(?!(?:we|let|it|not|wait|hemos|decidimos|al|mejor)\b)\w", re.IGNORECASE)
"""A "no" that its speaker goes on from without a pause: it denies the verb after it."""

_VERDICT: Final = re.compile(r"\b(?:yes|no|nope|ja|nein|nee|doch|oui|non|si|sí)\b(?=[,.!;:]?\s)", re.IGNORECASE)

_IN_JEST: Final = re.compile(
    r"\bif (?:\w+ ){1,3}ever\b|^please (?:don['’]t|do not)[.!]*$"
    r"|\bI(?:['’]ve got| have| need) to (?:go|run)(?: now)?(?=[,.!]|$)",
    re.IGNORECASE,
)
"""What is promised for a day that may never come, how somebody asks not to be taken at their word, or leaves."""

_REPORTED: Final = re.compile(
    r"(?!(?:i|we|you|ich|wir|du|je|j['’]|on|nous|yo)\b)(?:[\w'’-]+ ){1,4}"
    r"(?:say|says|said|thinks?|thought|told (?:me|us)|wants?|wanted|sagt|sagte|sagen|meint|meinte|meinen|will|wollte"
    r"|dit|disent|disait|pense|dice|dicen|dijo)(?: que| that|,)? (?=we|us|wir|on|nous|you|they|he|she|i\b|dass|\w+mos)",
    re.IGNORECASE,
)
"""How a sentence begins that tells what another said or wants."""

_RECAPS: Final = re.compile(
    r"(?:so|ok|okay|then|dann|alors|gut|donc|bon|d['’]accord|entonces|vale|(?:gut,? )?also)\b(?!\s+(?:far|much|many))",
    re.IGNORECASE,
)
"""How a sentence begins that sums up what was found."""

_SO_WE_DO: Final = re.compile(
    r"(?:(?:gut|okay|ok|ja|schön),? )*also (?!haben|hatten|sind|waren|wären|können|könnten|wissen)\w+n wir\b",
    re.IGNORECASE,
)
"""How a German sentence begins that concludes what the speakers do, whatever the verb; after "dann" it may be past."""

_ADDRESSES: Final = re.compile(r"\w, (\w+)[.!]*$")
_IMPERATIVE: Final = frozenset(verb for verb in VERBS | DOING if not verb.endswith(("s", "ed", "ing"))) - {"thank"}
"""Verbs that ask for something at the beginning of a sentence which ends in the name of who is asked."""

_COUNTED: Final = re.compile(
    rf"\d|\b(?:{'|'.join(spelled[0] for spelled in TABLES['numbers'].values())})\b(?!\s*$)", re.IGNORECASE
)
"""A figure of something, unlike "that one"."""

_THEN: Final = re.compile(
    r"\w(?<!\b(?:back|even|from|just|till))(?<!\band)(?<!\b(?:since|until))(?<!\bby) then[.!]*$"
    r"|(?<!jusqu['’])\balors[.!]*$|(?<!desde )(?<!hasta )\bentonces[.!]*$",
    re.IGNORECASE,
)
"""How a conclusion ends: "Thursday at eight then." """

PAST: Final = re.compile(
    r"\b(?:was|were|had|did|used|went|came|got|made|knew|lost|took|said|saw|told|left|kept|held|paid|sold|sent|spent|bought"
    r"|brought|thought|felt|found|gave|wrote|ran|began|(?<!\bon )met|\w{2,}ed"
    r"|\w+(?:ais|ait|aient|aba|aban|ía|ían)|era|eran|fue)\b",
    re.IGNORECASE,
)
"""Verbs with which "then" is a time in the past."""

_SO_IT_IS: Final = re.compile(
    r"(?:(?:okay|ok|right|good|fine|alright|then|so|well),? )*(?P<chosen>(?!(?:in|at) )(?:[\w'-]+ ){1,4})"
    r"(?:then )?it is(?:,? then)?[.!]*$",
    re.IGNORECASE,
)
"""How a sentence begins that settles on one of what was proposed: "Okay, Sunday night it is." """

_FIGURES: Final = frozenset(
    """ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty
    seventy eighty ninety hundred thousand million percent prozent hundert tausend cent mille cien mil ciento""".split()
)
"""Words of larger numbers; smaller ones are said without counting."""

_NOT_TO_DO: Final = re.compile(
    r"\b(?:(?:should|would|could|might) have|not|never|only (?:until|till)|was|were|had been"
    r"|nicht|nie|kein\w*|nur bis|hätten?|war(?:en)?|wurden?|pas|jamais|aurait|était|nunca|habría|era)\b|n['’]t\b",
    re.IGNORECASE,
)
"""Words with which a day is not the one by which something is still to be done."""

_SPOKEN: Final = {"wir's": "wir", "würd": "würde", "könnt": "könnte"}
"""German words as they are said, with how the phrases spell them."""

_NAME: Final = re.compile(r"\s(?!I\b)[^\W\d_]*[A-ZÄÖÜÉ]")
_CONDITIONS: Final = frozenset("if when unless wenn falls si".split())


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, its message (``order`` counts the messages), and what tells whether it is worth keeping.

    ``hangs`` if it begins with a pronoun that stands for something said before, and ``refers_back`` if it has one that
    nothing in it names; ``is_whole`` unless it breaks off or is too long. A question that ``is_asked`` waits for an
    answer, unlike "I wonder whether".
    ``weight`` is the sum of the specificity of its ``stems``.
    """

    text: str
    quotes: tuple[tuple[int, str], ...]
    order: int
    last_order: int
    speaker: str
    kind: PointKind
    markers: frozenset[Marker]
    stems: Mapping[str, float]
    word_count: int
    hangs: bool
    refers_back: bool
    is_question: bool
    is_asked: bool
    is_labelled: bool
    is_whole: bool
    is_garbled: bool
    has_number: bool
    is_ended: bool
    known: int | None = None
    """Id of the known point that it is, if it was said before all that is read now."""
    is_exchange: bool = False
    """Whether its text names several speakers, as that of a known point may; its own speaker is the last of them."""

    @property
    def weight(self) -> float:
        return sum(self.stems.values())

    @property
    def as_answer(self) -> Statement:
        """Return the statement with the yes or no that it opens with, without which it may answer the opposite."""
        if len(self.quotes) != 1:
            return self
        spoken = self.quotes[0][1]
        opening = spoken[: max(0, len(spoken) - len(without_opening(spoken)))]
        said = _VERDICT.search(opening)
        return self if said is None else replace(self, text=_tidy(capitalized(spoken[said.start() :])))

    @property
    def has_quotation(self) -> bool:
        return bool(_IN_QUOTES.search(self.text))

    @property
    def is_fragment(self) -> bool:
        return self.word_count < FEWEST_WORDS and self.text.isascii()

    @property
    def offers(self) -> bool:
        """Return whether the speaker offers to do something."""
        return not self.is_question and not self.has_quotation and offers(self.text)

    @property
    def names_something(self) -> bool:
        """Return whether a word after the first has a capital, as names have, and nouns in German."""
        return bool(_NAME.search(self.text))

    @property
    def is_thin(self) -> bool:
        return len(self.stems) < 2 or self.weight < SUBSTANCE


def statement_of(
    spoken: str, said: AnalystMessage, order: int, *, names: Set[str], label: PointKind | None = None
) -> Statement:
    """Return the statement of a sentence of a message; ``label`` is the kind that a label before it gave it."""
    opened = without_opening(spoken)
    labelled, unlabelled = label_of(opened)
    if labelled is not None and unlabelled:
        label, opened = labelled, capitalized(unlabelled)
    text = _tidy(opened)
    found = words(spoken)
    opened_words = found if opened == spoken else words(opened)
    is_question = bool(_ASKED.search(text)) or label is PointKind.QUESTION
    marked = _markers(spoken, found, opened_words, names)
    is_question |= Marker.RAISES in marked or (Marker.ASKS in marked and not _ENDED.search(text))
    stems = stems_of(opened_words, text)
    is_short = sum(stems.values()) < SUBSTANCE
    return Statement(
        text=text,
        quotes=((said.id, spoken),),
        order=order,
        last_order=order,
        speaker=said.speaker,
        kind=PointKind.CONSILIENCE if said.consilience else label or _kind(text, opened_words, marked, is_question),
        markers=frozenset(marked),
        stems=stems,
        word_count=max(len(found), len(stems)),
        hangs=hangs(_lower(text, opened_words), is_short=is_short),
        refers_back=refers_back(text, _lower(text, opened_words), names, is_short=is_short),
        is_question=is_question,
        is_asked=is_question and Marker.RAISES not in marked,
        is_labelled=label is not None,
        is_whole=_is_whole(text, spoken, opened_words),
        is_garbled=bool(_GARBLED.search(text[:LONGEST_STATEMENT])) or _stutters(opened_words),
        has_number=any(word.is_number or word.lower in _FIGURES for word in opened_words),
        is_ended=bool(_ENDED.search(spoken)),
    )


def known_statement(point: KnownPoint, order: int) -> Statement:
    """Return a known point as the statement that it was; what several people said is the last one's."""
    is_exchange = tells_exchange(point)
    speaker = point.evidence[-1].speaker if is_exchange else next(iter(point.by), "")
    statement = statement_of(
        point.text, AnalystMessage(0, speaker, point.text), order, names=frozenset(), label=point.kind
    )
    return replace(
        statement,
        text=point.text,
        quotes=(),
        known=point.id,
        is_question=point.kind is PointKind.QUESTION,
        is_whole=True,
        is_exchange=is_exchange,
    )


def tells_exchange(point: KnownPoint) -> bool:
    """Return whether the point's text says what people said, each after the name."""
    return names_speakers(point.text, {quote.speaker for quote in point.evidence if quote.speaker})


def joined(begun: Statement, rest: Statement) -> Statement | None:
    """Return what two messages of one speaker say together; None unless the second goes on where the first ended."""
    if begun.is_ended or not begun.is_whole or begun.known is not None or len(begun.text) > LONGEST:
        return None
    message, second = rest.quotes[0]
    if not begun.quotes[0][1][0].isupper():
        return None  # a talk without capitals does not show what goes on and what begins
    if not second[0].islower() or second.split(" ", 1)[0].strip(",") not in _JOINTS:
        return None
    spoken = f"{' '.join(said for _, said in begun.quotes)} {second}"
    whole = statement_of(spoken, AnalystMessage(message, begun.speaker, spoken), begun.order, names=frozenset())
    if not whole.is_whole:
        return None
    kind = begun.kind if begun.kind in (PointKind.DECISION, PointKind.ACTION, PointKind.CONSILIENCE) else whole.kind
    return replace(whole, quotes=(*begun.quotes, *rest.quotes), last_order=rest.order, kind=kind)


def kind_of(sentence: str) -> PointKind:
    """Return the kind of one sentence by itself; a claim when nothing marks it as anything else."""
    return statement_of(sentence, AnalystMessage(0, "", sentence), 0, names=frozenset()).kind


def stems_of(found: list[Word], text: str) -> dict[str, float]:
    """Return what the words tell, by their stems; of scripts that part no words, by two characters each."""
    stems = {word.stem: word.specificity for word in found if word.is_content and not is_plain(word.lower)}
    if not text.isascii():
        for run in _DENSE.findall(text):
            stems.pop(run, None)
            stems.update((run[at : at + 2], 0.4) for at in range(len(run) - 1))
        stems.update(dict.fromkeys(_VERB_STEM.findall(text), 0.4))
        for long in [stem for stem in stems if len(stem) > 2 and _DENSE.search(stem)]:
            del stems[long]
    return stems


def sameness(stems: Mapping[str, float], others: Mapping[str, float]) -> float:
    """Return the part of what the one with fewer words tells that the other tells too, by the words' weights."""
    fewer = min((stems, others), key=lambda told: sum(told.values()))
    total = sum(fewer.values())
    return sum(weight for stem, weight in fewer.items() if stem in stems and stem in others) / total if total else 0.0


def _tidy(sentence: str) -> str:
    """Return the sentence without loose ends: stops left over by fillers, and a quotation mark without its partner."""
    text = sentence.rstrip(" ,:–—-")
    if not _ASKED.search(text):
        text = text.rstrip(" ,;:–—-")
    text = _STOPS.sub(r"\1\2", text)
    if text.count('"') == 1 and (text[0] == '"' or text.rstrip(".")[-1:] == '"'):
        text = capitalized(text.replace('"', "").strip())
    return text


def _stutters(found: list[Word]) -> bool:
    """Return whether a word is the beginning of one that follows: "the strong impre it gives very impressive"."""
    return any(
        len(said.text) < 6
        and said.text.islower()
        and (said.is_content or len(said.text) == 1)
        and said.lower != "a"
        and any(after.lower.startswith(said.lower) and after.lower != said.lower for after in following)
        for said, *following in zip(found, found[1:], found[2:], strict=False)
    )


def _lower(text: str, found: list[Word]) -> list[str]:
    """Return the words in lower case, their apostrophes restored where a talk is written without any sign."""
    lower = [_SPOKEN.get(word.lower, word.lower) for word in found]
    return lower if _SIGNS.search(text) else spelled_out(lower)


def _markers(spoken: str, found: list[Word], opened: list[Word], names: Set[str]) -> set[Marker]:
    """Return what the sentence does, with its opening words ("No, we ...") and without them."""
    denies = not (_ENDED.search(spoken) and _NO_OF_A_VERB.match(without_opening(spoken)))
    marked = markers(_lower(spoken, found), names, denies=denies) | markers_of_unspaced(spoken)
    if len(opened) < len(found):
        marked |= markers(_lower(spoken, opened), names, denies=denies)
    if found and found[0].lower in names and not _SIGNS.search(spoken):
        marked |= markers(_lower(spoken, found[1:]), names, denies=denies)
    addressed = _ADDRESSES.search(spoken)
    if addressed and addressed[1].lower() in names and opened[0].lower in _IMPERATIVE:
        marked.add(Marker.REQUESTS)
    if denies_its_verb(spoken):
        marked.discard(Marker.PROMISES)
    elif will_do_soon(spoken):
        marked.add(Marker.PROMISES)
    if _IN_JEST.search(spoken):
        marked -= {Marker.PROMISES, Marker.REQUESTS}
    if _THEN.search(spoken) and not PAST.search(spoken):
        marked.add(Marker.CONCLUDES)
    if _SO_WE_DO.match(spoken):
        marked.add(Marker.CONCLUDES)
    if _RECAPS.match(spoken) and days_in(spoken) and not PAST.search(spoken):
        marked.add(Marker.CONCLUDES)
    if settled := _SO_IT_IS.match(spoken):
        begun, chosen = spoken[: settled.start("chosen")], settled["chosen"]
        if days_in(chosen) or _COUNTED.search(chosen) or _NAME.search(f"{begun and ' '}{chosen}"):
            marked.add(Marker.DECIDES)
    for name, will, verb in zip(opened, opened[1:], opened[2:], strict=False):
        if will.lower == "will" and verb.lower in DOING and name.text[0].isupper() and name.is_content:
            marked.add(Marker.PROMISES)
    return marked


def _kind(text: str, found: list[Word], marked: Set[Marker], is_question: bool) -> PointKind:  # noqa: FBT001
    if is_question:
        return PointKind.QUESTION
    if Marker.DECIDES in marked:
        return PointKind.DECISION
    if not _IN_QUOTES.search(text) and not (found and found[0].lower in _CONDITIONS):
        if Marker.PROMISES in marked:
            return PointKind.ACTION
        if Marker.PROPOSES in marked:
            return PointKind.CLAIM if _REPORTED.match(text) else PointKind.PROPOSAL
        if Marker.REQUESTS in marked or (Marker.IS_DUE in marked and not _NOT_TO_DO.search(text)):
            return PointKind.ACTION
    return PointKind.DISAGREEMENT if Marker.DISAGREES in marked else PointKind.CLAIM


def _is_whole(text: str, spoken: str, found: list[Word]) -> bool:
    if len(text) > LONGEST_STATEMENT:
        return False
    if spoken.endswith(BROKEN_OFF):
        return False
    if len(found) > 1 and found[0].lower in _CONJUNCTIONS and found[1].lower in _PREPOSITIONS:
        return any(word.lower in SUBJECTS for word in found)
    if found and spoken[:1].islower() and found[0].lower in _DEPENDENT and not _ASKED.search(text):
        return False
    return bool(_ENDED.search(text)) or not found or found[-1].lower not in _BREAKS_OFF


def verbatim(sentence: str, message: str) -> str:
    """Return the words of ``sentence`` as they stand in ``message``: all of them, or the longest run without a gap."""
    if sentence in message:
        return sentence
    wanted, given = sentence.split(), message.split()
    best: list[str] = []
    run: list[str] = []
    at = 0
    for word in wanted:
        bare = _bare(word)
        place = next((place for place in range(at, len(given)) if _bare(given[place]) == bare), None)
        if place is None:
            run = []
            continue
        run = [*run, given[place]] if place == at and run else [given[place]]
        at = place + 1
        if len(run) > len(best):
            best = run
    return " ".join(best) or fluent(sentence)


def _bare(word: str) -> str:
    return word.strip(".,;:!?…\"'()").lower()
