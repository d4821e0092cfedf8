"""Keywords of a message: what it is about, in its own words, and nothing else."""

from __future__ import annotations

import pytest

from context_builder.analysis.text.keywords import keywords, topic_keywords
from context_builder.analysis.text.words import Recurrence

ABSTRACT = (
    "Mitochondria produce ATP through oxidative phosphorylation in the inner membrane, where the electron "
    "transport chain pumps protons and ATP synthase uses the proton gradient. Cyanide blocks cytochrome oxidase."
)


def lowered(text: str) -> set[str]:
    return {keyword.lower() for keyword in keywords(text)}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("We trained a machine learning algorithm on the scans.", "machine learning algorithm"),
        ("How does DNA replication work?", "DNA replication"),
        ("The data-driven approach needs labels.", "data-driven approach"),
        ("Does BRCA1 matter for this patient?", "BRCA1"),
        ("Let's ask GPT-4o about it.", "GPT-4o"),
        ("It is written in C++ and runs fast.", "C++"),
        ("Is vitamin C good against scurvy?", "vitamin C"),
        ("How do neurons learn?", "neurons"),
    ],
)
def test_a_term_stays_in_one_piece_and_as_it_was_spelled(text: str, kept: str) -> None:
    found = keywords(text)
    assert any(kept in keyword or keyword in kept.replace(" approach", "") for keyword in found), found


def test_a_rich_text_gives_five_to_ten() -> None:
    assert 5 <= len(keywords(ABSTRACT)) <= 10
    assert {"oxidative phosphorylation", "electron transport chain"} <= lowered(ABSTRACT)


@pytest.mark.parametrize(
    "text",
    [
        "The helicase unwinds the double helix before the polymerase copies strand 3.",
        "I think we need to calibrate the sensor before we deploy the robot arm in the warehouse.",
        "Our startup lost two customers in Berlin because the invoice portal crashed on Monday.",
        "CRISPR edits genes in stem cells, but off-target mutations worry the ethics board.",
        "Inflation erodes savings while the central bank raises interest rates.",
    ],
)
def test_a_short_sentence_gives_five_where_it_has_them(text: str) -> None:
    assert len(keywords(text)) >= 5


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Could machine learning predict the error rate?", {"machine learning", "predict", "error rate"}),
        ("Purple sea urchins graze what survives.", {"purple sea urchins", "graze"}),
        ("The crust burned in the oven.", {"crust", "oven", "burned"}),
        ("The surgeon clamped the artery.", {"surgeon", "artery", "clamped"}),
        ("We meet at the drone survey in June.", {"drone survey", "june"}),
        ("You called it Barnacle?", {"barnacle"}),
    ],
)
def test_verbs_part_terms_and_help_out_where_there_are_few(text: str, found: set[str]) -> None:
    assert lowered(text) == found


def test_a_text_under_ten_characters_gives_none() -> None:
    assert keywords("DNA? RNA!") == ()


@pytest.mark.parametrize(
    "chatter",
    [
        "Yeah, mm-hmm, okay, right.",
        "Um, uh, you know, I mean, kind of.",
        "Thanks, that sounds good to me!",
        "Maybe we should wait and see what happens, of course.",
        "They give it to somebody and see what works.",
        "?!?!?!?!?!?!",
    ],
)
def test_chatter_is_not_padded_into_keywords(chatter: str) -> None:
    assert keywords(chatter) == ()


def test_fillers_inside_a_term_do_not_part_it() -> None:
    assert "neural network" in keywords("So the um neural uh network is, you know, overfitting.")


def test_korean_keywords_are_words_without_particles() -> None:
    assert set(keywords("다음주 화요일에 서버실에서 비상발전기를 점검합니다")) == {
        "다음주", "화요일", "서버실", "비상발전기", "점검",
    }  # fmt: skip
    assert {"PostgreSQL", "서버"} <= set(keywords("우리 서버는 PostgreSQL을 씁니다"))


def test_what_ends_like_a_korean_particle_stays_a_part_of_its_noun() -> None:
    nouns = {"고양이", "회의", "가을", "겨울", "마늘을지로"}
    assert set(keywords("고양이, 회의, 가을, 겨울, 마늘을지로")) == nouns
    assert set(keywords("The data pipeline of 서버 is new.")) == {"data pipeline", "서버"}


def test_duplicates_and_parts_of_terms_are_folded() -> None:
    found = lowered("A neural network is a network. Neural networks, these neural networks, learn.")
    assert len([keyword for keyword in found if "network" in keyword]) == 1


def test_a_term_that_recurs_in_the_session_is_preferred() -> None:
    text = "The plasmid, the vector, the enzyme, the buffer, the primer and the ligase are ready."
    recurring = Recurrence()
    for _ in range(9):
        recurring.add(["ligase", "here"])
    assert keywords(text)[0] == "plasmid"
    assert keywords(text, recurring)[0] == "ligase"


def test_topic_keywords_prefer_what_was_said_last_and_skip_the_speakers() -> None:
    texts = ["Ann, the tariff on steel is high.", "Bob, what about quantum entanglement?"]
    found = topic_keywords(texts, {"Ann", "Bob"})
    assert found[0] == "quantum entanglement"
    assert not {"Ann", "Bob"} & set(found)


@pytest.mark.parametrize(
    "text",
    ["", "   ", "\x00" * 20, "東京大学は日本の大学です。", "🙂" * 20, "a'" * 5000, "word" * 5000, "dogs " * 6000],
)
def test_any_text_gives_at_most_ten_short_keywords(text: str) -> None:
    found = keywords(text)
    assert len(found) <= 10
    assert all(keyword.strip() and len(keyword) <= 200 for keyword in found)


def test_recurrence_forgets_rare_terms_and_keeps_what_recurs() -> None:
    recurring = Recurrence(limit=10)
    for number in range(500):
        recurring.add(["ligase", f"sample{number}"])
    assert len(recurring) <= 20
    assert max(recurring, key=recurring.__getitem__) == "ligase"
