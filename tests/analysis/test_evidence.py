"""A point must say what its quotes say: code rejects what nobody said, and doubts what it cannot count."""

from __future__ import annotations

from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_builder.analysis.analyst import AnalystMessage, DraftPoint, KnownPoint, PointKind, Quote
from context_builder.analysis.evidence import (
    Doubt,
    EvidenceCheck,
    Findings,
    Rejection,
    check_rewritten,
    is_told_in,
)
from context_builder.analysis.evidence.figures import figures_of
from context_builder.analysis.evidence.names import People
from context_builder.analysis.evidence.rewriting import loses_a_task
from tests.analysis.points_with_evidence import TRUE, WRITTEN, Written
from tests.analysis.talk_in_languages import TALKS, Talk

ACCEPTABLE_DOUBTS = 3
"""Of the written true points: each costs one line of a call to a small model."""

TRUE_ONES = [written for written in WRITTEN if written.verdict == TRUE]
FALSE_ONES = [written for written in WRITTEN if written.verdict != TRUE]

by_language = pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.language)


def found(written: Written) -> Findings:
    return EvidenceCheck(written.messages).check(written.point)


def check(
    said: str | tuple[str, ...],
    text: str,
    *quotes: str,
    kind: PointKind = PointKind.CLAIM,
    by: tuple[str, ...] = (),
    replaced: KnownPoint | None = None,
) -> Findings:
    """What is found in a point that quotes what Ana said, and then Ben; without quotes, all of it."""
    texts = (said,) if isinstance(said, str) else said
    messages = [AnalystMessage(place, ("Ana Lopez", "Ben")[place % 2], each) for place, each in enumerate(texts)]
    evidence = [Quote(place, each) for place, each in enumerate(quotes or texts)]
    return EvidenceCheck(messages).check(DraftPoint(text, tuple(evidence), kind, by), [replaced] if replaced else ())


@pytest.mark.parametrize(
    "written", [each for each in WRITTEN if each.verdict == TRUE], ids=lambda each: each.point.text
)
def test_what_is_said_is_never_rejected(written: Written) -> None:
    assert found(written).rejected is None


def test_what_is_said_is_seldom_doubted() -> None:
    assert sum(bool(found(each).doubts) for each in TRUE_ONES) <= ACCEPTABLE_DOUBTS


@pytest.mark.parametrize(
    "written", [each for each in WRITTEN if each.verdict != TRUE], ids=lambda each: each.point.text
)
def test_what_nobody_said_is_rejected_or_doubted_for_its_reason(written: Written) -> None:
    findings = found(written)
    if written.verdict == Rejection.NUMBER_NOT_SAID and findings.rejected is None:
        assert any(map(str.isdecimal, written.point.text)), (
            "a number in figures may stand for words: a model looks at it"
        )
        assert Doubt.SUPPORT in findings.doubts
    else:
        assert written.verdict == findings.rejected or written.verdict in findings.doubts


@by_language
def test_what_retells_its_messages_is_not_rejected(talk: Talk) -> None:
    check = EvidenceCheck([AnalystMessage(number, "Alice", text) for number, text in enumerate(talk.messages, 1)])
    for text, cites in talk.points:
        evidence = tuple(Quote(number, talk.messages[number - 1]) for number in cites)
        assert check.check(DraftPoint(text, evidence)).rejected is None, text


@by_language
def test_a_refusal_is_rejected_or_doubted_whatever_it_quotes(talk: Talk) -> None:
    check = EvidenceCheck([AnalystMessage(place, "Alice", text) for place, text in enumerate(talk.messages)])
    places = range(len(talk.messages))
    for cited in chain.from_iterable(combinations(places, count) for count in range(1, len(places) + 1)):
        evidence = tuple(Quote(place, talk.messages[place]) for place in cited)
        for text in talk.refusals:
            findings = check.check(DraftPoint(text, evidence))
            assert findings.rejected or Doubt.SUPPORT in findings.doubts, text
        for text in talk.refusals_of_topic:
            assert check.check(DraftPoint(text, evidence)).rejected, text


@by_language
def test_a_point_in_another_language_than_its_messages_is_rejected(talk: Talk) -> None:
    check = EvidenceCheck([AnalystMessage(place, "Alice", text) for place, text in enumerate(talk.messages)])
    evidence = tuple(Quote(place, text) for place, text in enumerate(talk.messages))
    for text in (text for other in TALKS if other is not talk for text, _ in other.points):
        assert check.check(DraftPoint(text, evidence)).rejected, text


@pytest.mark.parametrize(
    ("said", "quote", "accepted"),
    [
        ("I'll order it, uh, tomorrow.", "I’ll ORDER it tomorrow!", True),
        ("So the, the yield was elev eleven.", "So the yield was eleven", True),
        ("We need to We need to provide it, you know, today.", "we need to provide it today", True),
        ("We take B7, and then on Monday we order it.", "We take B7 … we order it", True),
        ("We take B7, and then on Monday we order it.", "we order it ... We take B7", False),
        ("We do not take B7.", "We do take B7", False),
        ("We don't take B7.", "We do not take B7", True),
        ("We take B7 on Monday.", "We take B7 Monday", False),
        ("We take B7.", "We take B8", False),
        ("Ｗｅ ｔａｋｅ Ｂ７", "We take B7", True),
        ("Fine.", "fine", True),
        ("Fine.", "…", False),
        ("Fine.", "", False),
    ],
)
def test_a_quote_was_said_but_for_stutter_and_fillers(said: str, quote: str, accepted: bool) -> None:
    assert (check(said, said, quote).rejected is not Rejection.QUOTE_NOT_SAID) is accepted


def test_a_gap_in_a_quote_hides_no_negation() -> None:
    said = "We really do not want to take primer B7."
    assert (
        Doubt.NEGATION
        in check(said, "They really want to take primer B7.", "We really … want to take primer B7").doubts
    )


def test_a_quote_of_no_message_is_rejected() -> None:
    draft = DraftPoint("Primer B7 is taken.", (Quote(7, "We take primer B7"),))
    assert (
        EvidenceCheck([AnalystMessage(1, "Ana", "We take primer B7.")]).check(draft).rejected
        is Rejection.QUOTE_NOT_SAID
    )
    assert EvidenceCheck([]).check(DraftPoint("Primer B7 is taken.", ())).rejected is Rejection.NO_QUOTE


def test_a_long_message_is_quoted_across_its_pieces() -> None:
    pieces = [AnalystMessage(1, "Ana", "We take the primer "), AnalystMessage(1, "Ana", "that is called B7.")]
    draft = DraftPoint("They take the primer that is called B7.", (Quote(1, "the primer that is called B7"),))
    assert EvidenceCheck(pieces).check(draft) == Findings()


@pytest.mark.parametrize(
    ("said", "text", "accepted"),
    [
        ("The yield was thirty-eight percent.", "The yield was 38 %.", True),
        ("The yield was 38%.", "The yield was thirty-eight percent.", True),
        ("The yield was thirty-eight percent.", "The yield was 83 percent.", False),
        ("It runs for half a minute.", "It runs for half an hour.", False),
        ("It costs two million dollars.", "It costs $2 million.", True),
        ("Es waren zwei Komma vier Millionen Stimmen.", "Es waren 2,4 Millionen Stimmen.", True),
        ("Es waren zwei Komma vier Millionen Stimmen.", "Es waren 4,2 Millionen Stimmen.", False),
        ("The share is nought point four.", "The share is 0.4.", True),
        ("It costs two million dollars.", "It costs €2 million.", False),
        ("It began in nineteen eighty-four.", "It began in 1984.", True),
        ("We meet at half past ten.", "They meet at 10:30.", True),
        ("We meet at half past ten.", "They meet at 10:45.", False),
        ("We meet at half past ten.", "They meet at half past ten.", True),
        ("We gave the quarter to three people.", "The quarter was given to 2:45 people.", False),
        ("We gave the quarter to three people.", "The quarter was given to three people.", True),
        ("We meet at a quarter to eleven.", "They meet at 10:45.", True),
        ("Take the quarter past ten train.", "The train is at 10:15.", True),
        ("We meet at ten to eleven percent.", "They meet at 10 to 11 percent.", True),
        ("Wir beginnen um zehn Uhr dreißig.", "Beginn ist um 10:30 Uhr.", True),
        ("Wir beginnen um halb elf.", "Beginn ist um 10.30 Uhr.", True),
        ("Wir beginnen um halb elf.", "Beginn ist um 11:30 Uhr.", False),
        ("Wir beginnen um 10:30 Uhr.", "Beginn ist um halb elf.", True),
        ("Wir beginnen abends um halb elf.", "Beginn ist um 22:30 Uhr.", True),
        ("We begin at twenty five past seven.", "We begin at 7:25.", True),
        ("We begin at twenty five past seven.", "We begin at 7:05.", False),
        ("We begin in quarter three.", "We begin at 2:15.", False),
        ("Der Zug ist um zehn nach zehn da.", "Der Zug kommt um 10:10 Uhr.", True),
        ("Nicht um Viertel nach zehn.", "Nicht um 10:15 Uhr.", True),
        ("Das war zehn vor drei Jahren.", "Das war 2:50.", False),
        ("We meet at ten thirty.", "They meet at 10:30.", True),
        ("The yield was 1,250 grams.", "The yield was 1250 grams.", True),
        ("We'll paint the hall and the fence.", "They will paint two: the hall and the fence.", True),
        ("Two of us will paint the fence.", "Three of them will paint the fence.", False),
    ],
)
def test_a_number_and_its_unit_were_said_in_digits_or_in_words(said: str, text: str, accepted: bool) -> None:
    assert (check(said, text).rejected is None) is accepted


@pytest.mark.parametrize(
    ("said", "text", "accepted"),
    [
        ("we take the train to oslo.", "They take the train to Oslo.", True),
        ("We take the train to Oslo.", "They take the train to Bergen.", False),
        ("We take primer B seven.", "They take primer B7.", True),
        ("We take primer B7.", "They take primer TP53.", False),
        ("The loan is LN two two nine oh.", "The loan is LN2290.", True),
        ("The loan is LN two two nine oh.", "The loan is LN2291.", False),
        ("Oh, the loan is LN two two nine.", "The loan is LN2290.", False),
        ("The limit is P double one eight.", "The limit is P118.", True),
        ("Der Antrieb zeigt E zweihundertzweiundsiebzig.", "Der Antrieb zeigt E272.", True),
        ("The drive shows E two seven three.", "The drive shows E272.", False),
        ("We call get user id twice.", "They call get_user_id twice.", True),
        ("It's in the git hub repository.", "It is in the GitHub repository.", True),
        ("Wir nehmen den Zug nach Oslo.", "Sie nehmen den Zug mit einer Fahrkarte nach Oslo.", True),
        ("Wir nehmen das von Frau Berg.", "Sie nehmen das von Frau Tal.", False),
        ("We take primer B7.", "Ben and Ana take primer B7.", True),
    ],
)
def test_a_name_was_said_or_is_a_speakers(said: str, text: str, accepted: bool) -> None:
    assert (check((said, "Fine."), text).rejected is None) is accepted


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("It says two seven two on the display.", "The drive shows E272 on the display."),
        ("It says two seventy-two on the display.", "The drive shows E272 on the display."),
        ("Es steht zwo sieben zwo auf der Anzeige.", "Der Antrieb hat E272 auf der Anzeige."),
    ],
)
def test_an_identifier_whose_digits_alone_were_said_is_doubted(said: str, text: str) -> None:
    assert check(said, text) == Findings(doubts=(Doubt.SUPPORT,))


def test_a_number_that_only_a_known_point_says_lets_a_point_rest_on_it() -> None:
    known = [
        KnownPoint(
            7,
            "Kettle Rock is thirty-two metres deep.",
            evidence=(Quote(1, "it's thirty-two", "Ana"),),
            kind=PointKind.CLAIM,
        ),
        KnownPoint(8, "Ana cuts the rope.", PointKind.CLAIM),
    ]
    checked = EvidenceCheck([AnalystMessage(2, "Tobias", "I make the new rope for Kettle Rock.")], known)
    quotes = (Quote(2, "I make the new rope for Kettle Rock"),)
    draft = DraftPoint("Tobias makes the rope for Kettle Rock, thirty-two metres deep.", quotes, by=("Tobias",))
    assert checked.check(draft).rejected == "number_not_said"
    completed = checked.completed(draft)
    assert (completed.rests_on, completed.evidence, checked.check(completed).rejected) == ((7,), quotes, None)
    unsaid = DraftPoint("Tobias makes the rope for Kettle Rock, ninety-nine metres deep.", quotes, by=("Tobias",))
    assert checked.check(checked.completed(unsaid)).rejected == "number_not_said"


def test_each_known_point_is_read_once_for_all_points(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(
        "context_builder.analysis.evidence.check.figures_of", lambda text: read.append(text) or figures_of(text)
    )
    known = [KnownPoint(7, "Kettle Rock is deep.", PointKind.CLAIM, evidence=(Quote(1, "deep it is", "Ana"),))]
    checked = EvidenceCheck([AnalystMessage(2, "Ana", "I make the rope.")], known)
    for metres in (97, 98):
        checked.completed(DraftPoint(f"Ana makes the rope, {metres} metres.", (Quote(2, "I make the rope"),)))
    assert read.count("deep it is") == 1


def test_who_is_not_quoted_does_not_hold_a_point_beside_those_who_are() -> None:
    checked = EvidenceCheck([AnalystMessage(1, "Ana", "The rope is cut."), AnalystMessage(2, "Ben", "And wet.")])
    both = DraftPoint("The rope is cut.", (Quote(1, "The rope is cut"),), by=("Ana", "Ben"))
    assert checked.completed(both).by == ("Ana",)
    other = DraftPoint("The rope is cut.", (Quote(1, "The rope is cut"),), by=("Ben",))
    assert checked.check(checked.completed(other)).rejected == "speaker_not_quoted"


def test_a_number_that_another_message_says_is_quoted_from_the_nearest_that_does() -> None:
    texts = ("Ten hours in all.", "Say ten hours without digits. Or so.", "Eleven hours with the digits.")
    messages = [AnalystMessage(place, "Ana", text) for place, text in enumerate(texts)]
    checked, quotes = EvidenceCheck(messages), (Quote(2, "Eleven hours with the digits"),)
    draft = DraftPoint("It is eleven hours with the digits, and ten hours without.", quotes)
    assert checked.check(draft).rejected is Rejection.NUMBER_NOT_SAID
    assert checked.completed(draft).evidence == (*quotes, Quote(1, "Say ten hours without digits."))
    unsaid = DraftPoint("It is eleven hours with the digits, and nine hours without.", quotes)
    assert checked.completed(unsaid) == unsaid


def test_a_number_is_quoted_from_the_middle_of_a_long_message() -> None:
    long = f"{'and so on ' * 60}the part costs 4420 euros {'and so on ' * 60}"
    checked = EvidenceCheck([AnalystMessage(1, "Ana", "The part is ordered."), AnalystMessage(2, "Ben", long)])
    completed = checked.completed(DraftPoint("The part for 4420 euros is ordered.", (Quote(1, "part is ordered"),)))
    assert "costs 4420 euros" in completed.evidence[1].text
    assert checked.check(completed).rejected is None


def test_a_name_that_was_said_elsewhere_is_doubted() -> None:
    messages = [
        AnalystMessage(1, "Ana", "Liz has the recorder."),
        AnalystMessage(2, "Ana", "She tests it with the long files."),
    ]
    draft = DraftPoint(
        "The recorder is tested by Liz with the long files.", (Quote(2, "She tests it with the long files"),)
    )
    assert EvidenceCheck(messages).check(draft) == Findings(doubts=(Doubt.SUPPORT,))


@pytest.mark.parametrize(
    ("by", "accepted"),
    [(("ana  LOPEZ",), True), (("Ana",), True), (("Ana Lopez", "Ben"), False), (("Lopez Diaz",), False), ((), True)],
)
def test_those_whose_view_it_is_are_quoted(by: tuple[str, ...], accepted: bool) -> None:
    findings = check("The wash does not matter.", "The wash does not matter.", by=by)
    assert (findings.rejected is not Rejection.SPEAKER_NOT_QUOTED) is accepted


def test_what_the_replaced_point_says_is_evidence_too() -> None:
    known = KnownPoint(3, "Is 40 percent enough for Oslo?", PointKind.QUESTION, ("Cleo",), (Quote(1, "is it enough"),))
    text = "Cleo's question is settled: 40 percent is enough for Oslo, Ana says."
    assert check("That is enough, yes.", text).rejected
    assert check("That is enough, yes.", text, by=("Cleo", "Ana"), replaced=known).rejected is None


@pytest.mark.parametrize(
    ("said", "doubted"),
    [
        (("Let's take primer B7.",), True),
        (("We decided to take primer B7.",), False),
        (("That we take primer B7 is not decided.",), True),
        (("Let's take primer B7.", "Fine."), False),
        (("Let's take primer B7.", "", "Primer B7 it is, good."), False),
        (("Let's take primer B7.", "", "It is the cheaper primer for the next three runs."), True),
    ],
)
def test_a_decision_needs_its_acceptance(said: tuple[str, ...], doubted: bool) -> None:
    messages = [AnalystMessage(place, ("Ana", "Ben")[place % 2], text) for place, text in enumerate(said)]
    evidence = tuple(Quote(place, text) for place, text in enumerate(said) if text)
    findings = EvidenceCheck(messages).check(DraftPoint("Primer B7 is taken.", evidence, PointKind.DECISION))
    assert (Doubt.ACCEPTANCE in findings.doubts) is doubted


OLD = ("Ana proposes primer B7 because A2 gave 38 percent.", "Primer B7 is not washed.")
QUOTES = ("let's take B7", "A2 gave thirty-eight percent", "we don't wash B7")


def test_a_rewritten_sentence_calls_things_as_the_other_points_do_and_is_doubted() -> None:
    text, minutes = "Cleo Marsh's primer B7 is not washed.", ["Cleo Marsh keeps the primers."]
    assert check_rewritten(text, QUOTES, OLD, ["Ana", "Ben"]) == Findings(Rejection.NAME_NOT_SAID)
    assert check_rewritten(text, QUOTES, OLD, ["Ana", "Ben"], minutes) == Findings(doubts=(Doubt.SUPPORT,))


def test_the_plural_of_an_abbreviation_is_the_name() -> None:
    assert check("The node IDs differ.", "The IDs of the nodes differ.").rejected is None


@pytest.mark.parametrize("known", ["The five-percent threshold holds.", "The threshold holds."])
def test_a_number_in_a_compound_that_the_minutes_have_is_doubted(known: str) -> None:
    said = "Either view of the threshold is fine, if you give a reason."
    draft = DraftPoint(
        "Either view of the five-percent threshold is fine with a reason.",
        (Quote(1, "Either view of the threshold is fine"),),
        PointKind.CLAIM,
        ("Ana",),
    )
    is_known = "percent" in known
    expected = Findings(doubts=(Doubt.SUPPORT,)) if is_known else Findings(Rejection.NUMBER_NOT_SAID)
    point = KnownPoint(1, known, PointKind.CLAIM, ("Ana",))
    assert EvidenceCheck([AnalystMessage(1, "Ana", said)], [point]).check(draft) == expected


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        ("Ana's primer B7 is not washed; A2 gave 38 percent.", Findings()),
        ("Primer B7 is not washed, since A2 gave 36 percent.", Findings(Rejection.NUMBER_NOT_SAID)),
        ("Primer B7 is not washed, says Cleo.", Findings(Rejection.NAME_NOT_SAID)),
        ("Primer B7 is washed.", Findings(doubts=(Doubt.NEGATION,))),
        ("I cannot condense these points.", Findings(Rejection.REFUSAL)),
        ("", Findings(Rejection.UNRELATED)),
    ],
)
def test_a_rewritten_sentence_says_what_the_old_points_and_their_quotes_say(text: str, findings: Findings) -> None:
    assert check_rewritten(text, QUOTES, OLD, ["Ana", "Ben"]) == findings


RULES = (
    "Ana writes the acoustic annex by Monday the twentieth of April.",
    "Ben checks the battery chargers by Friday.",
    "The assay costs forty-two euros, not the 24 of the spreadsheet.",
    "In October p was 0.4 at Middle Bank and 0.2 at Kettle Rock.",
    "Ana and Ben propose three bottles a pool.",
)


@pytest.mark.parametrize(
    ("text", "old", "doubts"),
    [
        (
            "Ana writes the acoustic annex by Monday the twentieth of April, Ben checks the battery chargers.",
            (0, 1),
            (),
        ),
        ("Ben writes the acoustic annex, Ana checks the battery chargers.", (0, 1), (Doubt.SPEAKER,)),
        ("The assay costs 24 euros, not the forty-two of the spreadsheet.", (2,), (Doubt.NUMBER,)),
        ("The assay costs forty-two, not the 24 of the spreadsheet.", (2,), (Doubt.NUMBER,)),
        ("In October p was 0.2 at Middle Bank and 0.4 at Kettle Rock.", (3,), (Doubt.NUMBER,)),
        ("Ana and Ben decided three bottles a pool.", (4,), (Doubt.ACCEPTANCE,)),
        ("In October p was 0.4 at Middle Bank, therefore three bottles a pool.", (3, 4), (Doubt.SUPPORT,)),
    ],
)
def test_a_rewritten_sentence_that_swaps_or_adds_something_is_doubted(
    text: str, old: tuple[int, ...], doubts: tuple[Doubt, ...]
) -> None:
    before = [RULES[one] for one in old]
    assert check_rewritten(text, before, before, ["Ana", "Ben"]) == Findings(doubts=doubts)


@pytest.mark.parametrize(
    ("text", "old", "loses"),
    [
        ("The second pump is bought in June.", "The second pump is bought in June if the budget allows.", True),
        ("If the budget allows, the second pump is bought.", "The second pump is bought if the budget allows.", False),
        ("Ana orders the pump.", "Ana orders the pump; if the budget allows, Ben orders a second filter.", False),
        ("The course is open.", "The course is open only for adults.", False),
        ("The course is open for adults and children.", "The course is open only for adults.", True),
        ("The course is only open for adults.", "The course is open only for adults.", False),
        ("Das Becken bleibt geschlossen.", "Das Becken bleibt geschlossen, bis die Leitung geprüft ist.", True),
        ("Das Becken wird für Mitglieder geöffnet.", "Das Becken wird nur für Mitglieder geöffnet.", True),
        ("La piscine reste fermée.", "La piscine reste fermée tant que la conduite fuit.", True),
        ("如果漏水，泵就停。", "如果漏水，泵就停。", False),
        ("Nous payons la facture.", "Nous payons la facture si le client signe le bon de livraison.", True),
        ("Le patient peut rentrer.", "Le patient peut rentrer s'il va mieux pendant deux jours.", True),
        ("Il faut envoyer le contrat à Lyon.", "Envoyez le contrat à Lyon, s'il vous plaît.", False),
        ("La pompe est réparée depuis lundi.", "Si, la pompe est réparée depuis lundi.", False),
        ("Pagamos la factura.", "Pagamos la factura si el cliente firma el albarán.", True),
        ("La bomba está reparada desde el lunes.", "Si, la bomba está reparada desde el lunes.", False),
        ("Paghiamo la fattura.", "Paghiamo la fattura se il cliente firma la bolla di consegna.", True),
        ("Con la pompa nuova si lavora meglio.", "Si lavora meglio con la pompa nuova.", False),
        ("Pagamos a fatura.", "Pagamos a fatura se o cliente assinar a guia de entrega.", True),
        ("A equipe tem reunião em Lyon na terça.", "A equipe se reúne na terça em Lyon.", False),
        ("We betalen de factuur.", "We betalen de factuur als de klant de leveringsbon tekent.", True),
        ("De server is een reserve voor Lyon.", "We gebruiken de server als reserve voor Lyon.", False),
        ("Die Pumpe ist die Reserve für das Lager.", "Die Pumpe ist als Reserve für das Lager gedacht.", False),
        ("Wir liefern die Pumpen aus.", "Wir liefern die Pumpen erst nach der Zahlung aus.", True),
        ("The dose is given at night in the ward.", "The second dose is given at night in the ward.", True),
        ("The second meeting takes place in Leeds.", "The second meeting is in Leeds.", False),
    ],
)
def test_a_rewritten_sentence_keeps_the_conditions_of_what_it_says(text: str, old: str, loses: bool) -> None:
    assert check_rewritten(text, [old], [old]) == Findings(doubts=(Doubt.SUPPORT,) if loses else ())


def test_a_rewritten_sentence_keeps_a_without_beside_another_negation() -> None:
    old = "The lab is not closed and the samples can be used without the licence."
    text = "The lab is not closed and the samples can be used."
    assert check_rewritten(text, [old], [old]) == Findings(doubts=(Doubt.SUPPORT,))


TASKS = (
    "Tobias schickt das Protokoll bis Freitag.",
    "Ana writes the annex by Monday the twentieth.",
    "田中が二十日までに申し込む。",
    "Ana will order 3 primers by the 23rd.",
    "Ana will order three primers tomorrow.",
    "Ana will order one of the primers by 5 May.",
    "Ana will call on Friday and write on Monday.",
)


@pytest.mark.parametrize(
    ("text", "task", "is_lost"),
    [
        ("Bis Freitag schickt Tobias das Protokoll an alle.", 0, False),
        ("Tobias schickt das Protokoll.", 0, True),
        ("Das Protokoll wird bis Freitag geschickt.", 0, True),
        ("Ana writes the annex by Monday.", 1, False),
        ("Ana writes the annex by Friday.", 1, True),
        ("田中が申し込む。", 2, True),
        ("二十日までに田中が申し込む。", 2, False),
        ("Ana will order 3 primers.", 3, True),
        ("By the 23rd Ana will order 3 primers of Ben's.", 3, False),
        ("Ana will order three primers.", 4, True),
        ("Ana orders one of the primers.", 5, True),
        ("Ana will call on Friday.", 6, True),
    ],
)
def test_a_task_is_lost_without_its_person_or_its_day(text: str, task: int, is_lost: bool) -> None:
    assert loses_a_task(text, [TASKS[task]], People(["Tobias", "Ana", "田中"])) is is_lost


def test_most_of_a_phrase_is_told() -> None:
    assert is_told_in("short answers", "I'd like the answers to be short.")
    assert not is_told_in("long stories about trains", "I'd like the answers to be short.")


def test_a_number_is_told_from_another_and_one_that_is_not_surely_read_is_in_doubt() -> None:
    assert check("It holds forty litres.", "The tank holds 40 litres.").rejected is None
    assert check("It holds forty-two litres.", "The tank holds 24 litres.").rejected is Rejection.NUMBER_NOT_SAID
    assert check("It took half a minute.", "It took half an hour.").rejected is Rejection.NUMBER_NOT_SAID
    for said in (
        "The tank holds four twenty litres.",
        "The tank, two point four twenty-one litres.",
        "Der Tank am einundzwanzigsten.",
    ):
        assert Doubt.SUPPORT in check(said, "The tank, der Tank: 421 litres.").doubts, said
    assert Doubt.SUPPORT in check("The tank? Forty.", "The tank holds forty litres.").doubts


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("Give 0.125 mg of digoxin.", "Give 125 mg of digoxin."),
        ("The ratio is 1/2 of it.", "The ratio is 12 of it."),
        ("We invite 15 to 20 people.", "They invite 1520 people."),
        ("We invite 15-20 people.", "They invite 1520 people."),
        ("Give five mg twice.", "Give 5 mcg twice."),
        ("Give 5 µg twice.", "Give 5 mg twice."),
    ],
)
def test_two_numbers_are_not_one_and_a_part_of_a_number_is_another(said: str, text: str) -> None:
    assert check(said, text).rejected is Rejection.NUMBER_NOT_SAID


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("Give 1.500 mg.", "Give 1500 mg."),
        ("Give 1.500 mg.", "Give 1.5 mg."),
        ("Keep it at -20 degrees.", "Keep it at 20 degrees."),
        ("Keep it at 20 degrees.", "Keep it at -20 degrees."),
        ("The profit went to minus 5 million.", "The profit went to 5 million."),
        ("Dial 5, 5, 2, 1.", "Dial 5521."),
        ("It is for three people, 50 euro.", "It is for people: 3.50 euro."),
    ],
)
def test_a_number_whose_sign_or_grouping_may_be_another_is_in_doubt(said: str, text: str) -> None:
    assert check(said, text) == Findings(doubts=(Doubt.SUPPORT,))


def test_a_quote_that_cuts_off_the_sign_of_a_number_is_in_doubt() -> None:
    found = check("Keep it at -20 degrees.", "Keep it at 20 degrees.", "20 degrees")
    assert found == Findings(doubts=(Doubt.SUPPORT,))


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("Keep it at -20 degrees.", "Keep it at minus 20 degrees."),
        ("Keep it at minus twenty degrees.", "Keep it at -20 degrees."),
        ("It is 1.500 euro.", "It is 1.500 euro."),
        ("It is one thousand five hundred euro.", "It is 1,500 euro."),
        ("It is three euro fifty.", "It is 3.50 euro."),
        ("It grew by two point four percent.", "It grew by 2.4 percent."),
        ("Il faut au moins 20 euros.", "Il faut 20 euros."),
        ("Give 5 mcg twice.", "Give 5 µg twice."),
        ("Dial five five two one.", "Dial 5521."),
    ],
)
def test_a_number_that_is_said_in_its_own_way_is_not_in_doubt(said: str, text: str) -> None:
    assert check(said, text) == Findings()


def test_a_false_start_of_any_length_is_left_out() -> None:
    assert (
        check("so um " * 1_000 + "the freezer is sold", "The freezer is sold.", "so the freezer is sold") == Findings()
    )


odd_text = st.text(max_size=80) | st.sampled_from(
    ["\ud800", "…", "́" * 50, "٤٢ ４２ 42", "\u202e\u0000", "ﷺ" * 20, "İ", "²³½"]
)


@given(odd_text, odd_text, odd_text, odd_text)
def test_no_text_is_too_odd_to_check(speaker: str, said: str, quote: str, text: str) -> None:
    known = [KnownPoint(1, quote, PointKind.CLAIM, (speaker,), (Quote(1, said),))]
    check = EvidenceCheck([AnalystMessage(1, speaker, said)], known)
    for each in (quote, said):
        check.check(DraftPoint(text, (Quote(1, each),), PointKind.DECISION, (speaker,)), known)
    check_rewritten(text, [quote], [said], [speaker])


@given(
    st.lists(
        st.sampled_from(["no", "not", "uh", "we", "we", "can't", "B7,", "38", "東京へ", "नहीं", "l'eau"]), min_size=1
    ),
    st.data(),
)
def test_a_slice_of_a_messages_words_is_a_quote_of_it(words: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(words) - 1))
    end = data.draw(st.integers(start + 1, len(words)))
    findings = check(" ".join(words), " ".join(words), " ".join(words[start:end]))
    assert findings.rejected is not Rejection.QUOTE_NOT_SAID


@pytest.mark.parametrize(
    "unit",
    [
        "a ",
        "a",
        "1.",
        "twenty hundred ",
        "A B7 ",
        "万一三",
        "a…",
        '"',
        "no ",
        "ımıyor",
        "i can't ",
        "so ",
        "um, uh, ",
        "1 ",
    ],
)
def test_hostile_length_takes_no_long_time(unit: str) -> None:
    text = unit * (60_000 // len(unit))
    check(text, text[:2_000], text)
    check(text, text[:2_000], f"{text[:500]} b")
    check(f"{text} b", text[:2_000], f"{text[:500]} b")


def test_digits_within_a_name_of_things_are_no_number() -> None:
    assert check(("we keep m000017", "and m000042"), "They keep m000042 and m000017.").rejected is None


def test_a_speaker_called_by_a_digit_takes_no_digit_out_of_a_number() -> None:
    messages = [AnalystMessage(1, "7", "it costs 170 euros"), AnalystMessage(2, "Ben", "and takes 17 days")]
    point = DraftPoint("It takes 170 days.", (Quote(2, "takes 17 days"),))
    assert EvidenceCheck(messages).check(point).rejected is Rejection.NUMBER_NOT_SAID
    point = DraftPoint("It costs 170 euros.", (Quote(1, "it costs 170 euros"),))
    assert EvidenceCheck(messages).check(point).rejected is None


@pytest.mark.parametrize(
    ("text", "doubted"),
    [
        ("Ana thinks the wash matters above sixty degrees; Ben wants the report before Friday.", False),
        ("Ben thinks the wash matters above sixty degrees; Ana wants the report before Friday.", True),
        ("The wash matters above sixty degrees, Ana says, and Ben wants the report before Friday.", False),
        ("Ana Lopez wants the report before Friday, and Ben knows the wash matters above sixty degrees.", True),
    ],
)
def test_words_of_one_that_are_given_to_another_who_is_quoted_as_well_are_doubted(text: str, doubted: bool) -> None:
    findings = check(("The wash matters above sixty degrees.", "I want the report before Friday."), text)
    assert findings.rejected is None
    assert (Doubt.SPEAKER in findings.doubts) is doubted


@pytest.mark.parametrize(
    ("text", "rejected"),
    [
        ("Pump seven is losing the network every hour.", False),
        ("Pump eight is losing the network every hour.", True),
        ("It is losing the network seven times an hour.", True),
        ("It is losing the network for seven minutes.", True),
    ],
)
def test_a_number_that_is_part_of_a_name_may_come_from_the_minutes_and_is_doubted(text: str, rejected: bool) -> None:
    known = KnownPoint(1, "The controller of pump seven is new.", PointKind.CLAIM, ("Ana",))
    messages = [AnalystMessage(1, "Ana", "And it is losing the network every hour.")]
    draft = DraftPoint(text, (Quote(1, "it is losing the network every hour"),), PointKind.CLAIM, ("Ana",))
    expected = Findings(Rejection.NUMBER_NOT_SAID) if rejected else Findings(doubts=(Doubt.SUPPORT,))
    assert EvidenceCheck(messages, [known]).check(draft) == expected
