"""Domains: hand-written vocabularies, calibrated, silent about small talk."""

from __future__ import annotations

import pytest

from context_builder.analysis.text.domains import ACTIVE, MAX_ACTIVE, score_domains
from context_builder.analysis.text.profiles import lexicon
from context_builder.domains import DOMAINS

SAID = {
    "Biology / Life Sciences": "The mitochondria of the cell carry their own DNA, inherited from bacteria.",
    "Chemistry / Biochemistry": "Which catalyst speeds up the oxidation of the alcohol to a ketone?",
    "Physics / Astronomy": "A neutron star bends spacetime, so the photon is redshifted.",
    "Mathematics / Statistics": "The proof of the theorem needs a lemma about prime ideals in a ring.",
    "Computer Science / Software Engineering": "The compiler inlines the function, but the mutex still deadlocks.",
    "Medicine / Health Sciences / Neuroscience": "The patient has chest pain and high blood pressure.",
    "Psychology / Cognitive Science": "Working memory and attention decline with anxiety, said the psychologist.",
    "Engineering (Mechanical, Electrical, Civil, etc.)": "The beam deflects, so reinforce the bridge with steel.",
    "Business / Economics / Management": "Demand fell, revenue shrank, and investors doubt the startup.",
    "Social Sciences / Sociology / Anthropology": "Ethnography shows how race and social class shape kinship.",
    "Environmental Science / Ecology": "Deforestation and greenhouse gas emissions threaten the ecosystem.",
    "Political Science / Law": "The supreme court ruled that the statute violates the constitution.",
    "Philosophy / Ethics": "Kant would say the trolley problem is about moral duty.",
    "History / Humanities": "Medieval monks copied Roman manuscripts in the twelfth century.",
    "Linguistics / Communication": "In that dialect the verb agrees with the noun, and vowels are longer.",
    "Data Science / Machine Learning": "We fine-tuned a transformer on the training data with gradient descent.",
    "Design / User Experience": "The wireframe confused users, so the designer redid the user interface.",
    "Robotics / Automation": "The robot arm uses inverse kinematics to plan the gripper's trajectory.",
}


def test_there_is_a_profile_for_each_domain() -> None:
    heard = {DOMAINS[index] for weights in lexicon().words.values() for index in weights}
    assert heard == set(DOMAINS) == set(SAID)


@pytest.mark.parametrize(("domain", "text"), SAID.items())
def test_a_plain_sentence_of_a_field_is_recognized(domain: str, text: str) -> None:
    assert next(iter(score_domains([text]).confidence())) == domain


@pytest.mark.parametrize(
    "texts",
    [
        [],
        [""],
        ["Yeah.", "Mm-hmm.", "Okay, let's start then."],
        ["Hey, how are you? Good to see you!", "I'm fine, thanks. What are you up to this weekend?"],
    ],
)
def test_small_talk_has_no_domain(texts: list[str]) -> None:
    assert score_domains(texts).confidence() == {}


def test_confidences_are_ordered_and_between_the_threshold_and_one() -> None:
    values = list(score_domains(list(SAID.values())).confidence().values())
    assert values == sorted(values, reverse=True)
    assert len(values) <= MAX_ACTIVE
    assert all(ACTIVE <= value <= 1 for value in values)


def test_more_evidence_makes_more_confident() -> None:
    biology = SAID["Biology / Life Sciences"]
    one = score_domains(["Is DNA involved?"]).confidence()["Biology / Life Sciences"]
    many = score_domains([biology, "Ribosomes translate mRNA.", "Is DNA involved?"]).confidence()[
        "Biology / Life Sciences"
    ]
    assert many > one


def test_two_fields_at_once_are_both_active() -> None:
    texts = [SAID["Political Science / Law"], SAID["Environmental Science / Ecology"]]
    assert set(score_domains(texts).confidence()) == {"Political Science / Law", "Environmental Science / Ecology"}


def test_the_longest_term_wins() -> None:
    assert next(iter(score_domains(["Is it a neural network?"]).confidence())) == "Data Science / Machine Learning"
