"""Whoever reads a summary half an hour later can act on each line: it was meant, still holds, and says about what."""

from __future__ import annotations

import pytest

from context_builder.analysis.analyst import KnownPoint, PointKind, Quote
from tests.analysis.text.test_summary import points, said, told


@pytest.mark.parametrize("work", ["I'll tell sales about the new date.", "I'll rerun the staining of the larvae."])
def test_work_is_a_task_though_nobody_asked_for_it(work: str) -> None:
    assert told([("Ann", work)]) == [(PointKind.ACTION, work)]


@pytest.mark.parametrize(
    ("offer", "reply"),
    [
        ("I could look at the rollback script tomorrow.", "That'd be great."),
        ("Ich könnte das Skript für den Notfall prüfen.", "Prima, mach das."),
        ("Puedo repartir los quesos con mi coche.", "Genial, gracias."),
        ("Je pourrais relire le script de secours.", "D'accord, merci."),
    ],
)
def test_an_offer_is_a_task_once_another_accepts_it(offer: str, reply: str) -> None:
    assert told([("Ann", offer), ("Ben", reply)])[0] == (PointKind.ACTION, offer)
    assert PointKind.ACTION not in [kind for kind, _ in told([("Ann", offer)])]


@pytest.mark.parametrize(
    "promise",
    [
        "Ich ruf morgen beim Verleih an.",
        "Dann schreib ich den Entwurf der Satzung.",
        "La llevo al taller el lunes.",
        "Je passe demain au laboratoire.",
    ],
)
def test_the_present_tense_promises_where_a_language_has_it_so(promise: str) -> None:
    assert [kind for kind, _ in told([("Ann", "Die Kamera hat einen Sprung."), ("Ben", promise)])][-1] is (
        PointKind.ACTION
    )


@pytest.mark.parametrize(
    "none",
    ["Ich mach das Protokoll nicht noch mal.", "Am Montag bin ich in Bremen.", "Wenn ich morgen komme, regnet es."],
)
def test_what_is_denied_or_only_so_is_no_promise(none: str) -> None:
    assert PointKind.ACTION not in [kind for kind, _ in told([("Ann", none)])]


@pytest.mark.parametrize(
    "done", ["We moved the sessions table to the new cluster.", "We lost the importer's certificate."]
)
def test_what_all_did_is_not_decided(done: str) -> None:
    assert [kind for kind, _ in told([("Ann", done), ("Ben", "Okay.")])] == [PointKind.CLAIM]


def test_a_request_for_that_is_told_with_what_it_is() -> None:
    talk = [
        ("Mara", "What happens if the triggers fall behind?"),
        ("Deniz", "I don't know yet."),
        ("Mara", "Bring that on Friday, please."),
        ("Deniz", "Will do."),
    ]
    assert (PointKind.ACTION, "What happens if the triggers fall behind? Bring that on Friday, please.") in told(talk)


def test_a_question_that_names_nothing_is_told_with_what_it_is_about() -> None:
    talk = [("Mara", "Let's fix the rounding before Thursday. Oskar, you take that?"), ("Oskar", "I'll do it today.")]
    expected = "Mara: Let's fix the rounding before Thursday. Oskar, you take that? – Oskar: I'll do it today."
    assert (PointKind.ACTION, expected) in told(talk)


def test_another_day_for_the_same_replaces_the_day_that_was_decided() -> None:
    talk = [
        ("Renate", "Okay, also das Sommerfest ist am 19. Juli. Einverstanden?"),
        ("Birgit", "Einverstanden."),
        ("Renate", "Am 19. ist doch die Hochzeit von der Moni."),
        ("Renate", "Gut, dann machen wir das Sommerfest am 26. Juli."),
        ("Birgit", "Passt."),
    ]
    assert [text for kind, text in told(talk) if kind is PointKind.DECISION] == [
        "Dann machen wir das Sommerfest am 26. Juli."
    ]


def test_a_task_is_told_with_the_conclusion_that_it_follows_from() -> None:
    talk = [
        ("Renate", "Gut, dann leihen wir das Zelt. Birgit, bestellst du das?"),
        ("Birgit", "Ja, ich ruf morgen beim Verleih an."),
    ]
    expected = (
        "Renate: Dann leihen wir das Zelt. Birgit, bestellst du das? – Birgit: Ja, ich ruf morgen beim Verleih an."
    )
    assert told(talk) == [(PointKind.ACTION, expected)]


def test_to_begin_is_no_proposal_and_to_begin_at_noon_is_one() -> None:
    assert PointKind.DECISION not in [kind for kind, _ in told([("Pat", "Okay, let's start."), ("Lou", "Fine.")])]
    talk = [("Pat", "Let's start the street party at noon instead of three."), ("Lou", "Works for me.")]
    assert [kind for kind, _ in told(talk)] == [PointKind.DECISION]


def test_a_proposal_that_names_nothing_and_that_nobody_accepts_is_not_told() -> None:
    assert told(
        [("Ann", "Postdocs want a printout of the whole transcript."), ("Ben", "We could offer that, in a way.")]
    ) == [(PointKind.CLAIM, "Postdocs want a printout of the whole transcript.")]


def test_an_open_question_of_few_words_is_told_with_the_one_before() -> None:
    talk = [("Mara", "What happens if the triggers fall behind? Like, do we abort?"), ("Deniz", "I don't know yet.")]
    assert told(talk) == [(PointKind.QUESTION, "What happens if the triggers fall behind? Like, do we abort?")]


def test_a_pronoun_at_the_end_of_a_spanish_verb_is_told_with_what_it_stands_for() -> None:
    talk = [("Carmen", "La ayuda para la furgoneta vence en junio."), ("Marta", "Tengo que buscarlo.")]
    assert any("furgoneta" in text and "buscarlo" in text for _, text in told(talk))


def test_please_to_what_was_promised_is_no_task_of_its_own() -> None:
    talk = [
        ("山本", "ポスターの日付も直すように美術部に連絡します。"),
        ("佐藤", "お願いします。"),
        ("田中", "わかりました。"),
    ]
    assert told(talk) == [(PointKind.ACTION, talk[0][1])]


@pytest.mark.parametrize(
    ("before", "idle"),
    [
        ("The brass band wants six hundred pounds.", "I'll buy earplugs."),
        ("The copy of the table takes five hours on Sunday.", "I'll bring a tent."),
        ("The brass band wants six hundred pounds.", "I've got to go, something's burning."),
        ("What happens if the triggers fall behind?", "I have to think about that."),
        ("The login is still broken on phones.", "I'll kill myself if it isn't fixed by Monday."),
    ],
)
def test_what_nobody_asked_for_or_knows_of_is_no_task(before: str, idle: str) -> None:
    assert PointKind.ACTION not in [
        kind for kind, _ in told([("Ann", before), ("Ben", idle), ("Cy", "Is that a cat?")])
    ]


def test_who_does_it_is_answered_by_who_takes_it_on() -> None:
    talk = [
        ("Gwen", "Who asks Mr Dunmore to move his caravan?"),
        ("Lou", "I'd rather die."),
        ("Ravi", "I'd rather fight the shark of my sister."),
        ("Pat", "I'll do it."),
    ]
    expected = "Gwen: Who asks Mr Dunmore to move his caravan? – Pat: I'll do it."
    assert (PointKind.ACTION, expected) in told(talk)


def test_a_question_is_told_with_the_one_that_goes_on_with_it() -> None:
    talk = [("Lou", "Do we need a licence? For giving out beer on the street?"), ("Pat", "Not if the beer is free.")]
    expected = "Lou: Do we need a licence? For giving out beer on the street? – Pat: Not if the beer is free."
    assert told(talk) == [(PointKind.CLAIM, expected)]


def test_an_answer_is_told_with_what_its_speaker_adds() -> None:
    talk = [
        ("Renate", "Klaus, du warst bei der Gemeinde?"),
        ("Klaus", "Ich hab mit der Frau Seidl gesprochen. Die Gemeinde will den Vertrag nur um ein Jahr verlängern."),
    ]
    assert told(talk) == [(PointKind.CLAIM, f"Renate: {talk[0][1]} – Klaus: {talk[1][1]}")]


def test_a_nod_before_it_does_not_hide_that_somebody_agrees() -> None:
    talk = [
        ("Renate", "Das vertagen wir auf August, wenn Klaus mehr weiß."),
        ("Birgit", "Okay."),
        ("Jürgen", "Einverstanden."),
    ]
    assert told(talk) == [(PointKind.DECISION, talk[0][1])]


def test_one_of_what_was_proposed_is_decided_once_it_is_the_one() -> None:
    talk = [("Deniz", "Sunday night then?"), ("Mara", "Works for me."), ("Deniz", "Okay, Sunday night it is.")]
    assert PointKind.DECISION in [kind for kind, _ in told(talk)]
    for remark in ("I don't know what it is.", "Sure it is.", "I think it is.", "Yes it is, Mara.", "So there it is."):
        assert PointKind.DECISION not in [kind for kind, _ in told([("Deniz", "Is it?"), ("Mara", remark)])]


RESCHEDULED = [
    [
        ("Renate", "Okay, also das Sommerfest ist am 19. Juli. Einverstanden?"),
        ("Birgit", "Einverstanden."),
        ("Renate", "Ach, noch mal zum Sommerfest, am 19. ist doch die Hochzeit von der Moni."),
        ("Klaus", "Da sind wir alle eingeladen."),
        ("Renate", "Gut, dann machen wir's am 26. Juli."),
        ("Birgit", "Passt."),
    ],
    [
        ("Ruth", "I'll book the engineer for you, Thursday between one and six."),
        ("Omar", "Thank you."),
        ("Omar", "My daughter has an exam on Thursday."),
        ("Ruth", "Shall we move it?"),
        ("Ruth", "Okay, I've moved it to Friday between eight and one."),
    ],
]


@pytest.mark.parametrize("talk", RESCHEDULED)
def test_what_is_put_on_another_day_is_told_for_that_day_alone(talk: list[tuple[str, str]]) -> None:
    lines = [text for _, text in told(talk)]
    assert talk[0][1].split(". ")[0] not in " ".join(lines)
    (moved,) = [line for line in lines if "26. Juli" in line or "moved it to Friday" in line]
    assert talk[2][1].removeprefix("Ach, ") in moved


@pytest.mark.parametrize("talk", RESCHEDULED)
def test_a_known_day_gives_way_to_another(talk: list[tuple[str, str]]) -> None:
    settled = talk[0][1]
    known = [KnownPoint(7, settled, PointKind.DECISION, (talk[0][0],), (Quote(3, settled),))]
    assert 7 in [one for point in points(said(talk[2:]), known=known) for one in point.replaces]


@pytest.mark.parametrize(
    ("promise", "reply"),
    [
        ("I'll text the number to you. Can I do that?", "No, sorry, we can't take texts."),
        ("I'll buy you a drink if it ever works.", "Lovely."),
    ],
)
def test_what_is_turned_down_or_meant_for_never_is_no_task(promise: str, reply: str) -> None:
    assert PointKind.ACTION not in [kind for kind, _ in told([("Omar", promise), ("Ruth", reply)])]


def test_what_a_promise_is_about_is_known_though_it_was_told_with_an_answer() -> None:
    talk = [
        ("Omar", "What does the router cost?"),
        ("Ruth", "Nothing, the router is free for customers. The router has twenty gigabytes."),
        ("Omar", "Then yes, please."),
        ("Ruth", "Okay, I'll get that sent out today."),
    ]
    assert any(kind is PointKind.ACTION and "router" in text for kind, text in told(talk))


def test_a_conclusion_about_the_same_takes_the_place_of_the_first_day() -> None:
    talk = [
        ("Garnier", "Alors c'est décidé, on vide la cave 4 le 15 novembre."),
        ("Yassine", "Le 15 je ne suis pas là, je garde mes enfants."),
        ("Garnier", "Bon, alors on vide la cave le 22 novembre."),
        ("Lucien", "Qui a la clé de la cave ?"),
    ]
    expected = f"Yassine: {talk[1][1]} – Garnier: Alors on vide la cave le 22 novembre."
    assert [text for kind, text in told(talk) if kind is PointKind.DECISION] == [expected]


def test_help_that_is_offered_is_told_with_what_it_was_asked_for() -> None:
    talk = [
        ("Deniz", "I need somebody to check the rollback script before that."),
        ("Oskar", "I could look at it tomorrow."),
        ("Deniz", "That'd be great."),
    ]
    assert any(kind is PointKind.ACTION and "rollback script" in text for kind, text in told(talk))


def test_what_has_happened_to_what_was_decided_is_told() -> None:
    known = [
        KnownPoint(
            7, "Decidimos alquilar el local de la calle Mayor.", PointKind.DECISION, ("Marta",), (Quote(3, "alquilar"),)
        )
    ]
    happened = "El local de la calle Mayor ya lo ha alquilado otro."
    talk = [("Carmen", happened), *(("Pablo", f"El queso número {place} pesa veinte kilos.") for place in range(9))]
    assert happened in [point.text for point in points(said(talk), known=known, per_point=9.0)]


def test_what_a_thing_is_comes_before_small_talk() -> None:
    definition = "Field capacity is the water that is left in a soil after two days."
    talk = [
        ("Ann", "The projector of this soil lab was slow in the morning, and the water was cold."),
        ("Ann", definition),
        ("Ann", "The water in the kitchen of the soil lab tasted like iron in the summer holidays."),
    ]
    assert [point.text for point in points(said(talk), per_point=3.0)] == [definition]
