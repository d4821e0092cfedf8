"""What is taken back, laughed at or only told of others does not stand; what only looks so does."""

from __future__ import annotations

import pytest

from context_builder.analysis.analyst import PointKind
from tests.analysis.text.test_acting_on_it import told

Talk = list[tuple[str, str]]


def kinds(talk: Talk) -> list[PointKind]:
    return [kind for kind, _ in told(talk)]


@pytest.mark.parametrize(
    "talk",
    [
        [("Tom", "I'll put the parser behind a feature flag."), ("Tom", "Hm no, never mind, it's forty lines.")],
        [
            ("Ann", "I'll take the pager this weekend."),
            ("Mo", "No need, it's my turn."),
            ("Ann", "Ok, never mind then."),
        ],
        [("Ann", "I'll take the pager this weekend."), ("Mo", "No need, it's my turn.")],
        [("Ann", "We could raffle off the headteacher."), ("Mo", "Haha, sure, right after lunch.")],
        [("Ann", "Let's rewrite the importer in Rust."), ("Ann", "Just kidding.")],
        [("Anna", "Ich schreibe morgen dem Vermieter."), ("Ben", "Nicht nötig, das ist erledigt.")],
        [("Anna", "Ich schlage vor, dass wir die Wand rot streichen."), ("Anna", "Ach, vergesst es.")],
        [("Anna", "Je vais appeler le fournisseur demain."), ("Ben", "Pas la peine, il est venu hier.")],
        [("Ann", "I'll tell Mrs Costa today. No, wait, her son should be there."), ("Ben", "Right.")],
        [("Ana", "Voy a llamar al taller mañana."), ("Luis", "No hace falta, ya está hecho.")],
    ],
)
def test_what_is_taken_back_or_turned_down_is_not_to_be_done(talk: Talk) -> None:
    assert {PointKind.ACTION, PointKind.PROPOSAL, PointKind.DECISION}.isdisjoint(kinds(talk))


@pytest.mark.parametrize(
    "talk",
    [
        [("Tom", "I'll draft the licence form by Friday."), ("Tom", "Don't forget it is due on Monday.")],
        [("Tom", "I'll draft the licence form by Friday."), ("Ben", "I had a plan too, but never mind.")],
        [("Tom", "I'll draft the licence form by Friday."), ("Tom", "I was going to ask for lunch, but never mind.")],
        [("Tom", "I'll draft the licence form by Friday."), ("Ben", "No need to hurry.")],
        [("Tom", "I'll draft the licence form by Friday."), ("Ben", "Ha, finally.")],
        [("Anna", "Ich schreibe morgen dem Vermieter."), ("Ben", "Ja, ja, vergiss es nicht wieder.")],
    ],
)
def test_what_is_not_taken_back_stays_to_be_done(talk: Talk) -> None:
    assert PointKind.ACTION in kinds(talk)


@pytest.mark.parametrize(
    "said",
    [
        "Some parents told me we should cancel homework altogether.",
        "Jo says we should stop all deploys until the audit.",
        "Der Hausmeister meint, wir sollten die Proben wegwerfen.",
    ],
)
def test_what_others_want_is_no_proposal_of_who_tells_it(said: str) -> None:
    assert kinds([("Ann", said)]) == [PointKind.CLAIM]
    assert kinds([("Ann", "I think we should cancel the autumn fair.")]) == [PointKind.PROPOSAL]


@pytest.mark.parametrize(
    "talk",
    [
        [
            ("Ann", "We could give the library 200 pounds."),
            ("Ben", "All right."),
            ("Ann", "So we give the library 200."),
        ],
        [("Ann", "Could he start then?"), ("Ann", "Then the 11th."), ("Ben", "The 11th works.")],
        [
            ("Ann", "The cleaner wants 16 an hour."),
            ("Ben", "No objection from me."),
            ("Ann", "So we pay her 16 from May."),
        ],
        [("Mo", "So we drop Redis for the sessions?"), ("Ann", "Yes."), ("Tom", "Fine by me.")],
        [
            ("Ann", "Retro on Monday at two?"),
            ("Ben", "Works."),
            ("Cy", "Yep."),
            ("Ann", "Ok, retro moves to Monday at 2."),
        ],
        [
            ("Cy", "The job in Harlow, do we want it?"),
            ("Ben", "Okay, rather no."),
            ("Ann", "Okay so we don't take Harlow."),
        ],
    ],
)
def test_what_sums_up_a_choice_that_was_accepted_is_decided(talk: Talk) -> None:
    assert PointKind.DECISION in kinds(talk)


@pytest.mark.parametrize(
    "talk",
    [
        [
            ("Ann", "The cache was stale all night."),
            ("Ben", "Right."),
            ("Ann", "So it's the cache that broke the build."),
        ],
        [("Ann", "The alert never fired on Sunday."), ("Ben", "Yes."), ("Ann", "So we lost the logs of Sunday.")],
        [("Mo", "So we lost the logs of the whole weekend?"), ("Ann", "Yes.")],
        [("Mo", "We could paint the office pink."), ("Ann", "Sure."), ("Mo", "I'm serious, it's calming.")],
    ],
)
def test_what_sums_up_how_things_are_is_not_decided(talk: Talk) -> None:
    assert PointKind.DECISION not in kinds(talk)


def test_a_promise_gives_way_to_another_day_only_where_who_made_it_agrees() -> None:
    promised = ("Mo", "I'll write the migration by Wednesday.")
    talk = [
        promised,
        ("Ann", "Fine."),
        ("Ann", "We said Wednesday for the deploy."),
        ("Mo", "The migration is only ready on Wednesday."),
        ("Ann", "Okay, then we deploy on Thursday."),
        ("Tom", "Agreed."),
    ]
    assert promised[1] in " ".join(text for _, text in told(talk))


def test_a_task_is_told_with_the_day_that_its_speaker_adds() -> None:
    talk = [("Peter", "I'll write to the council. You'll have it by Wednesday, no, let me say Friday.")]
    assert told(talk) == [(PointKind.ACTION, talk[0][1])]


def test_a_question_is_open_when_who_asks_has_no_answer_either() -> None:
    talk = [
        ("Ann", "Who pays for the second staging box?"),
        ("Tom", "Not us I hope."),
        ("Ann", "I have to ask finance, no answer yet."),
    ]
    assert (PointKind.QUESTION, talk[0][1]) in told(talk)


@pytest.mark.parametrize(
    "talk",
    [
        [("Léa", "Alors pas de version anglaise pour l'instant."), ("Claire", "Non, pas pour l'instant.")],
        [("Ann", "So no English version then."), ("Ben", "No, no English version.")],
        [("Anna", "Also keine englische Fassung."), ("Ben", "Nein, keine.")],
    ],
)
def test_no_to_what_says_no_agrees(talk: Talk) -> None:
    assert kinds(talk) == [PointKind.DECISION]
    assert PointKind.DECISION not in kinds([talk[0], (talk[1][0], "No, I want the whole shop in English by May.")])


@pytest.mark.parametrize(
    "talk",
    [
        [("Weber", "Also lagern wir die Proben ab jetzt bei minus 80."), ("Jana", "Finde ich auch.")],
        [
            ("Jana", "Dienstag um zehn?"),
            ("Murat", "Mir auch."),
            ("Weber", "Gut, also treffen wir uns dienstags um zehn."),
        ],
        [("Reid", "Then we stop the amoxicillin and give doxycycline."), ("Nina", "Okay. I'll change the chart.")],
        [("Léa", "D'accord, donc on met le site en ligne le 12 mai."), ("Claire", "Très bien.")],
    ],
)
def test_a_conclusion_is_decided_once_another_agrees_or_acts_on_it(talk: Talk) -> None:
    assert talk[-1 if "also" in talk[-1][1] else 0][1].split("lso ")[-1][-20:] in " ".join(
        text for kind, text in told(talk) if kind is PointKind.DECISION
    )


@pytest.mark.parametrize(
    "talk",
    [
        [("Ann", "Repeat the potassium at noon, Nina."), ("Nina", "I will.")],
        [("Ann", "The prices of the cakes are wrong."), ("Hugo", "Je les corrige aujourd'hui.")],
        [("Ann", "Die Proben liegen im falschen Schrank."), ("Felix", "Dann räume ich sie heute um.")],
        [("Ann", "Nobody told Mrs Costa."), ("Reid", "I'll talk to both of them on Thursday at three.")],
    ],
)
def test_work_is_a_task_in_whatever_words_it_is_taken_on(talk: Talk) -> None:
    assert PointKind.ACTION in kinds(talk)


@pytest.mark.parametrize(
    "talk",
    [
        [("Ann", "The sea is cold in March, Nina."), ("Nina", "Yes.")],
        [("Ann", "I'll talk about the sea a little."), ("Nina", "Okay.")],
        [("Ann", "Die Drucker stehen im Lager."), ("Felix", "Heute hasse ich sie.")],
        [("Ann", "Les clients sont du quartier."), ("Hugo", "Je les trouve gentils aujourd'hui.")],
    ],
)
def test_what_only_sounds_like_work_is_no_task(talk: Talk) -> None:
    assert PointKind.ACTION not in kinds(talk)


@pytest.mark.parametrize(
    "reply",
    ["Haha yes, good idea.", "Haha, good idea.", "Haha ja, machen wir.", "Hahaha oui, bonne idée."],
)
def test_a_laugh_before_a_yes_takes_nothing_back(reply: str) -> None:
    talk = [("Anna", "Let's move the launch to Friday."), ("Ben", reply)]
    assert not {PointKind.PROPOSAL, PointKind.DECISION}.isdisjoint(kinds(talk))
