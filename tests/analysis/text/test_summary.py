"""A summary is made of sentences that were said, each traced to who said it."""

from __future__ import annotations

import re

import pytest

from context_builder.analysis.analyst import AnalystMessage, DraftPoint, KnownPoint, PointKind
from context_builder.analysis.text.summary import Digest, SummarySize, kind_of

TALK = [
    ("Ann", "So, um, the ribosome assay failed because the buffer was too warm."),
    ("Bob", "Yeah."),
    ("Bob", "Which buffer did you use for the ribosome assay?"),
    ("Ann", "The Tris buffer at 37 degrees, from the old batch."),
    ("Cy", "Mm-hmm. Okay."),
    ("Cy", "I disagree, the old batch of Tris was tested on Monday."),
    ("Bob", "Let's use the HEPES buffer from now on."),
    ("Ann", "I'll send the new protocol to the whole lab by Friday."),
    ("Cy", "Sounds good."),
]


def said(talk: list[tuple[str, str]], start: int = 100) -> list[AnalystMessage]:
    return [AnalystMessage(start + number, speaker, text) for number, (speaker, text) in enumerate(talk)]


def points(
    messages: list[AnalystMessage], *, known: list[KnownPoint] | None = None, per_point: float = 1.0
) -> tuple[DraftPoint, ...]:
    digest = Digest(known=known or [], size=SummarySize(messages_per_point=per_point))
    digest.add(messages)
    return digest.points()


def test_every_word_of_a_point_was_said_where_it_cites() -> None:
    texts = {message.id: message.text.lower() for message in said(TALK)}
    made = points(said(TALK))
    assert made
    for point in made:
        assert 1 <= len(point.cites) <= 5
        source = set(re.findall(r"\w+", " ".join(texts[cited] for cited in point.cites)))
        assert source.issuperset(re.findall(r"\w+", point.text.lower()))


def test_points_come_in_the_order_they_were_said_and_backchannel_is_none() -> None:
    cites = [point.cites[0] for point in points(said(TALK))]
    assert cites == sorted(cites)
    assert not {101, 104, 108} & set(cites)


def test_a_question_carries_the_answer_that_follows_it() -> None:
    talk = said([("Bob", "Which buffer did you use for the assay?"), ("Ann", "The Tris buffer at 37 degrees.")])
    (point,) = points(talk, per_point=2)
    assert point == DraftPoint(
        "Which buffer did you use for the assay? – The Tris buffer at 37 degrees.", (100, 101), PointKind.QUESTION
    )


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("The assay failed at 37 degrees.", PointKind.CLAIM),
        ("How many samples do we have?", PointKind.QUESTION),
        ("how do we calibrate the sensor", PointKind.QUESTION),
        ("We decided to use PostgreSQL.", PointKind.DECISION),
        ("Let's go with the second design.", PointKind.DECISION),
        ("I'll send the protocol by Friday.", PointKind.ACTION),
        ("Someone needs to order more reagent.", PointKind.ACTION),
        ("I don’t think that's the cause.", PointKind.DISAGREEMENT),
        ("I disagree with the model.", PointKind.DISAGREEMENT),
    ],
)
def test_a_sentence_is_recognized_by_how_it_is_put(sentence: str, kind: PointKind) -> None:
    assert kind_of(sentence) is kind


def test_what_the_assistant_contributes_is_marked_as_such() -> None:
    message = AnalystMessage(
        7, "Consilience", "From a chemistry perspective, Tris buffers drift with temperature.", consilience=True
    )
    assert [point.kind for point in points([message])] == [PointKind.CONSILIENCE]


def test_what_is_known_already_yields_to_what_is_new() -> None:
    talk = said([("Ann", "The ribosome assay failed in the warm buffer."), ("Bob", "Primer dimers spoil the PCR run.")])
    known = [KnownPoint(1, talk[0].text, PointKind.CLAIM)]
    assert [point.cites for point in points(talk, known=known, per_point=2)] == [(101,)]


def test_a_repeated_point_is_made_once() -> None:
    assert len(points(said([("Ann", "The ribosome assay failed in the warm buffer.")] * 6))) == 1


def test_the_number_of_points_grows_with_the_talk_up_to_its_bound() -> None:
    talk = said([("Ann", f"Sample{number} reached {number} volts in trial{number}.") for number in range(400)])
    assert len(points(talk[:20], per_point=5)) == 4
    drafted = points(talk, per_point=5)
    assert len(drafted) == SummarySize().most
    assert drafted[-1].cites[0] > talk[300].id, "the end of a long talk is covered too"


@pytest.mark.parametrize("talk", [[], [("Ann", "")], [("Ann", "Yeah."), ("Bob", "Mm-hmm.")]])
def test_nothing_said_makes_no_point(talk: list[tuple[str, str]]) -> None:
    assert points(said(talk)) == ()
