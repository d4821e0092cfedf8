"""Whoever reads a summary half an hour later can act on each line: it was meant, still holds, and says about what."""

from __future__ import annotations

import pytest

from context_builder.analysis.analyst import KnownPoint, PointKind, Quote
from tests.analysis.text.test_summary import points, said, told


@pytest.mark.parametrize(
    "joke",
    [
        "I'm going to smell like it till June.",
        "I'll grow a beard.",
        "I'll cry later.",
        "I'm going to be licking the space bar till Christmas.",
    ],
)
def test_a_joke_is_no_task(joke: str) -> None:
    talk = [("Ann", "The keyboard got jam on it."), ("Ben", joke), ("Ann", "The migration runs on Sunday night.")]
    assert PointKind.ACTION not in [kind for kind, _ in told(talk)]


def test_what_another_laughs_at_is_not_told() -> None:
    talk = [("Ann", "We'll send you the soup for the night shift by drone."), ("Ben", "Hah.")]
    assert told(talk) == []
    assert told([*talk[:1], ("Ben", "At what time?")])


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
        "Ich komme am Freitag ins Labor.",
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
    ("decided", "reply"),
    [
        ("We do the mixed model, and we put the test in the supplement.", "Fine."),
        ("Das vertagen wir auf die Sitzung im August.", "Einverstanden."),
        ("Participamos en la fiesta, pero sin barra.", "Vale, de acuerdo."),
        ("Nous gardons le vieux four jusqu'en mars.", "D'accord."),
    ],
)
def test_what_all_will_do_is_decided_once_another_accepts_it(decided: str, reply: str) -> None:
    assert told([("Ann", decided), ("Ben", reply)]) == [(PointKind.DECISION, decided)]


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


@pytest.mark.parametrize("fragment", ["Thirteen fifty-two.", "Kettle Rock outer.", "Mike Dunn, electrician."])
def test_a_part_of_a_sentence_is_no_claim(fragment: str) -> None:
    assert told([("Ann", fragment)]) == []


def test_a_decision_leaves_nothing_of_the_dispute_that_it_settles() -> None:
    talk = [
        ("Ann", "We could publish the raw stacks on Zenodo."),
        ("Ben", "I disagree, Zenodo takes only fifty gigabytes of raw stacks."),
        ("Cy", "We publish the raw stacks in the image archive."),
        ("Ann", "Fine, agreed."),
    ]
    assert told(talk) == [(PointKind.DECISION, "We publish the raw stacks in the image archive.")]


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


def test_a_decision_replaces_the_known_points_that_it_settles() -> None:
    known = [
        KnownPoint(
            7,
            "Ann: We sign the lease of the field. – Ben: I'm against the lease of the field.",
            PointKind.DISAGREEMENT,
            ("Ann", "Ben"),
            (Quote(97, "We sign the lease of the field."),),
        ),
        KnownPoint(8, "We decided to rent the tent.", PointKind.DECISION, ("Ann",), (Quote(96, "We decided to rent"),)),
    ]
    talk = [("Cy", "We put off the lease of the field until August."), ("Ben", "Agreed.")]
    (decided,) = points(said(talk), known=known)
    assert (decided.kind, decided.replaces) == (PointKind.DECISION, (7,))


def test_a_decision_is_told_beside_the_task_that_follows_from_it() -> None:
    talk = [
        ("Renate", "Gut, dann leihen wir das Zelt. Birgit, bestellst du das?"),
        ("Birgit", "Ja, ich ruf morgen beim Verleih an."),
    ]
    assert [kind for kind, _ in told(talk)] == [PointKind.DECISION, PointKind.ACTION]


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


@pytest.mark.parametrize("pointing", ["Pues míralo, por favor.", "Tengo que buscarlo."])
def test_a_pronoun_at_the_end_of_a_spanish_verb_is_told_with_what_it_stands_for(pointing: str) -> None:
    talk = [("Carmen", "La ayuda para la furgoneta vence en junio."), ("Marta", pointing), ("Carmen", "Vale.")]
    assert any("furgoneta" in text and pointing in text for _, text in told(talk))


def test_please_to_what_was_promised_is_no_task_of_its_own() -> None:
    talk = [
        ("山本", "ポスターの日付も直すように美術部に連絡します。"),
        ("佐藤", "お願いします。"),
        ("田中", "わかりました。"),
    ]
    assert told(talk) == [(PointKind.ACTION, talk[0][1])]
