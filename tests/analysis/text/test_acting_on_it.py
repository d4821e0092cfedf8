"""Whoever reads a summary half an hour later can act on each line: it was meant, still holds, and says about what."""

from __future__ import annotations

import pytest

from context_builder.analysis.analyst import PointKind
from tests.analysis.text.test_summary import told


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
