"""No refusal becomes a decision, no fact a promise, and nothing that was told is lost to what only resembles it."""

from __future__ import annotations

import pytest

from context_builder.analysis.analyst import KnownPoint, PointKind, Quote
from tests.analysis.text.test_summary import points, said, told

SETTLED = {PointKind.DECISION, PointKind.ACTION}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("We decided to open the Basel office in 2027.", "We decided to sell the Leeds factory in 2027."),
        ("We decided that Maria gets 3 laptops.", "We decided to repaint 3 ferries."),
        ("We decided that the standup begins at 9.", "We decided that the pumps ship on May 9."),
        (
            "We decided that sales gets 20,000 euros for travel.",
            "We decided that support gets 30,000 euros for travel.",
        ),
        ("We go with the red logo for the homepage.", "We go with the red font for the homepage."),
        ("We decided to rent room 1 to Siemens.", "We decided to rent room 2 to Siemens."),
        ("We decided to buy the chairs on Monday.", "We decided to buy the pumps on Tuesday."),
        (
            "We decided that the rubbish is collected on Monday.",
            "We decided that the rubbish is collected on Thursday as well.",
        ),
        (
            "We decided that he works on Monday in the bakery.",
            "We decided that she works on Friday in the bakery.",
        ),
        (
            "We decided that the first meeting with Siemens is on Monday.",
            "We decided that the next meeting with Siemens is on Friday.",
        ),
    ],
)
def test_a_decision_leaves_another_that_only_resembles_it(first: str, second: str) -> None:
    assert told([("Ann", first), ("Ben", second)]) == [(PointKind.DECISION, first), (PointKind.DECISION, second)]
    known = [KnownPoint(1, first, PointKind.DECISION, ("Ann",), (Quote(95, first),))]
    assert [point.replaces for point in points(said([("Ben", second)]), known=known)] == [()]


def test_a_decision_leaves_a_known_question_about_more_than_it() -> None:
    question = "Should the night ward get a second oxygen monitor for the nurse?"
    known = [KnownPoint(1, question, PointKind.QUESTION, ("Ann",), (Quote(95, question),))]
    (decided,) = points(said([("Cy", "We decided to hire a nurse for the night ward.")]), known=known)
    assert decided.replaces == ()


@pytest.mark.parametrize(
    ("proposed", "refusal"),
    [
        ("Let's delete the old backups in Leeds.", "Better not."),
        ("Let's delete the old backups in Leeds.", "I suppose not."),
        ("Let's delete the old backups in Leeds.", "Agree to disagree."),
        ("Let's sell the office in Leeds.", "I suppose that would ruin us."),
        ("Let's replace the pump in the basement.", "The old pump is fine."),
        ("Let's replace the pump in the basement.", "Better to repair the old pump."),
        ("Let's replace the pump in the basement.", "Brilliant, and who pays for that?"),
        ("Let's move the server to Basel.", "Wonderful, then you pay for it."),
        ("I could delete the old backups in Leeds.", "Please do not."),
        ("I could delete the old backups in Leeds.", "Do that and you are fired."),
        ("I could check the valve in the basement.", "Go ahead and break it."),
        ("Can you pay the invoice from Siemens?", "I suppose I can't."),
        ("Wir sollten die alten Sicherungen in Leeds löschen.", "Bitte nicht."),
        ("Wir sollten den Vertrag mit Siemens kündigen.", "Meinetwegen nicht."),
        ("Ich könnte den Bericht für Basel schreiben.", "Mach das nicht."),
        ("Podríamos vender la casa de Leeds.", "Me parece fatal."),
        ("Vendemos la casa de Leeds.", "Me parece una locura."),
        ("Vamos a vender la casa de Leeds.", "Me parece que no."),
        ("On pourrait vendre la maison de Leeds.", "Super mauvaise idée."),
    ],
)
def test_a_refusal_settles_nothing(proposed: str, refusal: str) -> None:
    assert not SETTLED & {kind for kind, _ in told([("Ann", proposed), ("Ben", refusal)])}


@pytest.mark.parametrize(
    ("fact", "reply"),
    [
        ("We sold the factory in Leeds.", "Fine."),
        ("We spent 5000 euros on chairs for the lobby.", "Fine."),
        ("We paid the Siemens invoice on Monday.", "Wonderful."),
        ("We sent the samples to Basel.", "Perfect."),
        ("We owe Siemens ninety thousand euros.", "Agreed."),
        ("We live in Leeds with two dogs.", "Wonderful."),
        ("We never agreed to pay the penalty.", "Agreed."),
        ("Gestern verloren wir den Vertrag mit Siemens.", "Einverstanden."),
        ("Dann verloren wir den Auftrag in Bremen.", "Einverstanden."),
        ("Leider bekommen wir kein Geld von Siemens.", "Einverstanden."),
        ("Perdimos el contrato con Siemens.", "De acuerdo."),
        ("Últimos datos: perdemos veinte mil euros al mes.", "De acuerdo."),
        ("Ich kann den Bericht für Basel morgen leider nicht schreiben.", "Gut."),
        ("No puedo llevar el coche al taller mañana.", "Vale."),
        ("Je peux pas relire le contrat de Siemens.", "D'accord."),
        ("I don't think I can finish the audit report by Friday.", "Fine."),
        ("I could never send samples to Basel.", "Perfect."),
        ("I could not find the invoice from Siemens.", "Fair enough."),
        ("I might have broken the pump in the basement.", "Fine."),
        ("I could have saved the pump in the basement.", "Perfect."),
        ("I could order the pumps if the budget allows.", "Great idea."),
        ("I can hear the pump in the basement.", "Great idea."),
        ("I can see your screen with the Siemens invoice.", "Perfect."),
        ("Let me be clear, the pump in the basement is broken.", "Agreed."),
        ("Je pourrais tuer le propriétaire de la maison.", "D'accord."),
        ("Heute hasse ich den Drucker im Lager.", "Oje."),
        ("Hoy te odio con todo mi corazón.", "Vaya."),
        ("Je vois le médecin demain pour mon genou.", "Ah."),
        ("Ich frag mich, wer den Vertrag kündigt.", "Tja."),
        ("Lo busco desde el lunes en la tienda.", "Vaya."),
        ("Ich schick dir seit Montag jeden Tag eine Mail.", "Oh."),
        ("Je passe demain au laboratoire, sauf s'il neige.", "Ah."),
        ("Okay, so that is how bad the Leeds pump is.", "Right."),
    ],
)
def test_a_fact_settles_nothing(fact: str, reply: str) -> None:
    assert not SETTLED & {kind for kind, _ in told([("Ann", fact), ("Ben", reply)])}


PROMISES = [
    "I'll raise a ticket with the vendor.",
    "I'll handle the onboarding of Maria.",
    "I'll give Jonas the keys.",
    "I'll close the old account.",
    "I'll pay the Siemens invoice.",
    "I'm going to drive the samples to Basel.",
    "I will approve the holiday requests.",
    "I'll put it on the calendar.",
    "I'll join the call with Oslo.",
    "I'll let the landlord know.",
    "I'll escalate the outage to the provider.",
    "I'll attend the hearing in court.",
    "I will terminate the lease in Leeds.",
    "I'll log the incident.",
]


def test_every_promise_is_told_whatever_its_verb() -> None:
    talk = [
        ("Ann", "The release of billing is on Monday and the tests fail."),
        ("Ben", "The tests of billing fail because of the clock."),
        *((f"Speaker {number}", promise) for number, promise in enumerate(PROMISES)),
    ]
    tasks = [point.text for point in points(said(talk), per_point=5.0) if point.kind is PointKind.ACTION]
    assert tasks == PROMISES


@pytest.mark.parametrize(
    ("spoken", "laugh"),
    [
        ("We decided to cut the Berlin team by half in March.", "Haha, finally."),
        ("The reactor in Leeds leaks coolant since Monday.", "Ha, I told them about the valve."),
        ("The budget for Oslo is 5000 euros.", "Haha, no, it is 7000 euros."),
        ("Ich schicke den Vertrag am Montag an Siemens.", "Jaja."),
    ],
)
def test_a_laugh_takes_nothing_back(spoken: str, laugh: str) -> None:
    assert spoken in [text for _, text in told([("Ann", spoken), ("Ben", laugh)])]


@pytest.mark.parametrize("reply", ["I forgot.", "I can't.", "I don't."])
def test_a_question_stays_open_when_nobody_takes_it_on(reply: str) -> None:
    question = "Who pays the landlord?"
    assert told([("Ann", question), ("Ben", reply)]) == [(PointKind.QUESTION, question)]


def test_a_pronoun_is_not_given_what_somebody_else_spoke_of() -> None:
    talk = [
        ("Ann", "The rollback script lives in the ops repo."),
        ("Ben", "I looked at the billing tests for Siemens."),
        ("Cy", "I could fix it tomorrow."),
        ("Ann", "That'd be great."),
    ]
    assert told(talk) == [(PointKind.CLAIM, talk[0][1]), (PointKind.CLAIM, talk[1][1])]


def test_a_promise_that_names_its_object_needs_no_other_sentence() -> None:
    talk = [
        ("Ann", "Can you send the report to Basel?"),
        ("Ben", "Can do. I'll call Maria on Monday."),
        ("Cy", "I'll call Jonas."),
    ]
    assert told(talk)[-1] == (PointKind.ACTION, "I'll call Jonas.")


def test_an_offer_that_is_taken_back_is_no_task() -> None:
    talk = [("Ann", "I could send the invoice to Siemens."), ("Ben", "Please do."), ("Ann", "Actually I can't.")]
    assert told(talk) == [(PointKind.CLAIM, talk[0][1])]


def test_to_be_asked_what_one_sees_is_no_task() -> None:
    assert told([("Ann", "Can you see Maria?"), ("Ben", "Yes.")]) == []


@pytest.mark.parametrize(
    "promise",
    [
        "Ich bin morgen nicht da, ich schicke den Vertrag heute noch an die Anwältin.",
        "Ich weiß es nicht genau, ich kläre das mit der Buchhaltung bis Freitag.",
        "Ich schicke nicht nur den Vertrag, sondern auch die Rechnung bis Freitag an Kiel.",
        "Ich warte seit Montag auf die Bank, ich rufe morgen dort an.",
        "Je ne trouve pas le contrat, je vais appeler la banque demain.",
        "– ich schicke den Vertrag bis Freitag an Kiel.",
    ],
)
def test_a_promise_is_one_beside_a_denial(promise: str) -> None:
    assert [kind for kind, _ in told([("Jan", promise)])] == [PointKind.ACTION]


@pytest.mark.parametrize(
    "said",
    [
        "Ich mach gern Sport am Morgen.",
        "Ich bring die Kinder jeden Tag zur Schule.",
        "I can take the train to Bremen from here, it runs every hour.",
        "Aujourd'hui je passe mon temps à regarder des films.",
    ],
)
def test_a_habit_is_no_promise(said: str) -> None:
    assert PointKind.ACTION not in {kind for kind, _ in told([("Jan", said), ("Eva", "Perfect.")])}


@pytest.mark.parametrize(
    ("settled", "later"),
    [
        (
            "We decided that the pumps ship on Thursday.",
            "The auditors come on Thursday. We decided to meet them on Friday.",
        ),
        ("I'll call Siemens on Thursday.", "My sister has her exam on Thursday. I'll cook for her on Friday."),
        ("We decided that the pumps ship on Thursday.", "Is Thursday a holiday? We could ship the pumps on Friday."),
        (
            "We decided that the pumps ship on Thursday.",
            "The pumps ship on Thursday. We decided that the valves ship on Friday.",
        ),
    ],
)
def test_what_is_on_another_day_leaves_what_it_has_nothing_to_do_with(settled: str, later: str) -> None:
    known = [KnownPoint(7, settled, PointKind.DECISION, ("Ann",), (Quote(95, settled),))]
    assert all(7 not in point.replaces for point in points(said([("Ann", later)]), known=known))
    assert settled in [text for _, text in told([("Ann", settled), ("Ben", later)])]


def test_a_promise_of_others_is_not_what_a_question_asks_for() -> None:
    talk = [("Ann", "Who pays the landlord?"), ("Ben", "I forgot."), ("Cy", "I'll call Maria about the pumps.")]
    assert not any("landlord" in text and "Maria" in text for _, text in told(talk))


@pytest.mark.parametrize(
    "talk",
    [
        [("Ann", "The old printer was loud then."), ("Ben", "Yes, great.")],
        [("Ann", "We had three servers in Dublin back then."), ("Ben", "Okay, fine.")],
        [("Ann", "Prices rise every now and then."), ("Ben", "Right, agreed.")],
        [("Ann", "We lost the case then."), ("Ben", "Okay, agreed.")],
        [("Anna", "Il habitait à Lyon alors."), ("Ben", "D'accord.")],
        [("Ana", "Vivía en Madrid entonces."), ("Luis", "Vale.")],
        [("Ann", "Where does it rain?"), ("Ben", "In Berlin it is, as far as I know, always raining.")],
        [("Ann", "What day is the exam?"), ("Ben", "Tuesday it is, I think, but the office has to confirm.")],
        [("Ann", "How late is it?"), ("Ben", "In New York it is.")],
        [("Ann", "Friday or Monday?"), ("Ben", "Friday it is, said nobody ever.")],
    ],
)
def test_what_was_then_or_is_somewhere_is_no_decision(talk: list[tuple[str, str]]) -> None:
    assert PointKind.DECISION not in [kind for kind, _ in told(talk)]


@pytest.mark.parametrize(
    "talk",
    [
        [("Ruth", "I will refund the forty euros today. Do you have any other questions?"), ("Omar", "No, thank you.")],
        [("Ruth", "I'll send the replacement today. Can I help with anything else?"), ("Omar", "No, thanks.")],
        [("Ann", "I'll move the servers on Sunday. Is that a problem?"), ("Ben", "No.")],
        [("Anna", "Ich schicke Ihnen den Router heute. Kann ich sonst etwas für Sie tun?"), ("Ben", "Nein, danke.")],
        [("Ana", "Le mando el contrato mañana. ¿Puedo ayudarle en algo más?"), ("Luis", "No, gracias.")],
        [("Anna", "Ich schreibe dem Vermieter morgen. Noch Fragen?"), ("Ben", "Nein.")],
        [("Anna", "Je vous envoie un technicien mardi. Autre chose ?"), ("Ben", "Non, merci.")],
        [("Ana", "Le mando un técnico el martes. ¿Algo más?"), ("Luis", "No, gracias.")],
        [("Omar", "The router is dead."), ("Ruth", "I'll send a technician.")],
        [("Ann", "Customers complain about slow checkout."), ("Ben", "I'll write a benchmark.")],
        [("Ann", "The build is red since Tuesday."), ("Ben", "I'll look into flaky tests.")],
        [("Ann", "The tests hang."), ("Ben", "I'll kill the stuck job on the second node.")],
        [("Ann", "I'll wipe the records."), ("Ben", "Please don't. I'll export the customer records first.")],
        [("Ann", "What else?"), ("Ben", "I need to go through the contracts with Lena tomorrow.")],
        [("Ann", "Do we have the figures?"), ("Ben", "I can send them to you."), ("Ann", "That would help a lot.")],
    ],
)
def test_a_promise_stays_a_task(talk: list[tuple[str, str]]) -> None:
    assert PointKind.ACTION in [kind for kind, _ in told(talk)]


def test_a_new_day_is_that_of_what_was_named_last() -> None:
    talk = [
        ("Ann", "We decided that the dentist visit is on Thursday."),
        ("Ben", "Yes."),
        ("Ann", "And we agreed that the oil delivery comes on Thursday as well."),
        ("Ben", "Yes, the oil comes on Thursday."),
        ("Ann", "The dentist is ill on Thursday."),
        ("Ben", "Okay then, let's do it on Friday."),
        ("Ann", "Fine."),
    ]
    decided = [text for kind, text in told(talk) if kind is PointKind.DECISION]
    assert any("oil delivery" in text and "Friday" not in text for text in decided)
    assert not any("oil" in text for text in decided if "Friday" in text)


def test_a_ratio_stays_as_it_was_said() -> None:
    (text,) = [text for _, text in told([("Ann", "We decided to use the ratio 3 – 1: it worked.")])]
    assert "3 – 1" in text
