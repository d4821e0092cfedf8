"""What of a reply is believed."""

from __future__ import annotations

import re

import pytest

from context_builder.analysis.analyst import AnalystMessage, DraftPoint, KnownPoint, PointKind, SummaryRequest
from context_builder.analysis.openai.parsing import domains_of, keywords_of, points_of
from context_builder.analysis.openai.reply import parse_reply
from context_builder.analysis.openai.schemas import (
    DomainReply,
    KeywordReply,
    PointEntry,
    SummaryReply,
    schema_of,
)
from context_builder.domains import DOMAINS
from context_builder.errors import ReplyInvalid
from tests.analysis.openai.conversation import TEXTS, said
from tests.analysis.talk_in_languages import TALKS
from tests.growth import is_linear

KNOWN = KnownPoint(70, "Alice asks how DNA replication works in human cells.", PointKind.QUESTION)
REQUEST = SummaryRequest(said(*TEXTS), known=[KNOWN])


def entry(text: str = TEXTS[0], cites: tuple[int, ...] = (1,), kind: str = "claim", replaces: int = 0) -> PointEntry:
    """A point as prompts of earlier versions ask for it: it names messages, and quotes nothing."""
    return PointEntry.model_validate({"text": text, "cites": list(cites), "kind": kind, "replaces": replaces})


def summary(*entries: PointEntry, chatter: bool = False) -> SummaryReply:
    return SummaryReply(points=list(entries), chatter=chatter)


def test_keywords_go_to_the_message_whose_number_they_carry() -> None:
    reply = KeywordReply(keywords=[["2", "PCR"], ["1", "DNA", "DNA replication"]])
    assert keywords_of(reply, 2) == (("DNA", "DNA replication"), ("PCR",))


def test_keywords_without_numbers_go_by_their_place() -> None:
    assert keywords_of(KeywordReply(keywords=[["DNA"], []]), 2) == (("DNA",), ())


def test_every_list_is_a_lone_messages() -> None:
    assert keywords_of(KeywordReply(keywords=[["1", "DNA"], ["cells"]]), 1) == (("DNA", "cells"),)


@pytest.mark.parametrize("rows", [[], [["1", "DNA"]], [["1", "DNA"], ["cells"]], [["1", "a"], ["7", "b"]]])
def test_keywords_that_miss_a_message_are_invalid(rows: list[list[str]]) -> None:
    with pytest.raises(ReplyInvalid, match="of 2 messages"):
        keywords_of(KeywordReply(keywords=rows), 2)


def test_keywords_are_clean_distinct_short_and_at_most_ten() -> None:
    row = ["1", " DNA ", "dna", "", "x" * 81, "two\nlines\x1b[31m", *(f"term {n}" for n in range(20))]
    (words,) = keywords_of(KeywordReply(keywords=[row]), 1)
    assert words[:2] == ("DNA", "two lines [31m")
    assert len(words) == 10


def test_only_the_eighteen_domains_are_read_with_confidences_clamped_and_ranked() -> None:
    entries = [
        {"domain": DOMAINS[0], "confidence": 0.4},
        {"domain": "Astrology", "confidence": 1},
        {"domain": DOMAINS[1], "confidence": 95},
        {"domain": DOMAINS[0], "confidence": 0.6},
        {"domain": DOMAINS[2], "confidence": -1},
    ]
    reply = DomainReply.model_validate({"domains": entries, "keywords": ["DNA"] * 3})
    assert domains_of(reply) == ({DOMAINS[1]: 1.0, DOMAINS[0]: 0.6}, ("DNA",))


SHORT_NAMES = (
    "Biology",
    "Chemistry",
    "Physics / Astronomy",
    "Mathematics / Statistics",
    "Computer Science",
    "Medicine / Neuroscience",
    "Psychology",
    "Engineering",
    "Business / Economics",
    "Social Sciences",
    "Environmental Science",
    "Political Science / Law",
    "Philosophy",
    "History / Humanities",
    "Linguistics",
    "Machine Learning",
    "Design",
    "Robotics",
)
"""What earlier versions asked for, and what a model may make of a name."""


@pytest.mark.parametrize(("name", "domain"), [*zip(SHORT_NAMES, DOMAINS, strict=True), ("Law", DOMAINS[11])])
def test_a_model_may_call_a_domain_by_its_short_name_or_by_its_full_one(name: str, domain: str) -> None:
    assert set(re.findall(r"\w+", name)) <= set(re.findall(r"\w+", domain))
    for word in (name, domain):
        reply = DomainReply.model_validate({"domains": [{"domain": word, "confidence": 0.9}], "keywords": []})
        assert domains_of(reply) == ({domain: 0.9}, ())


def read(reply: SummaryReply, request: SummaryRequest = REQUEST) -> tuple[list[DraftPoint], int]:
    """The points that are accepted, and how many were rejected."""
    found = points_of(reply, request)
    return [draft for draft, _ in found.points], found.rejected.total()


def test_points_cite_the_ids_behind_the_labels_in_the_messages_order() -> None:
    later, earlier = "The PCR is repeated with primer B7.", "The polymerase copies each strand of the helix."
    reply = summary(entry(later, (5, 4)), entry(earlier, (2, 2), "decision"))
    points, rejected = read(reply)
    assert [(p.text, p.cites, p.kind, p.replaces) for p in points] == [
        (earlier, (101,), PointKind.DECISION, ()),
        (later, (104, 103), PointKind.CLAIM, ()),
    ]
    assert rejected == 0


def test_a_point_that_cites_nothing_or_the_unknown_is_rejected_and_counted() -> None:
    reply = summary(entry(cites=()), entry(cites=(0,)), entry(cites=(1, 6)), entry(TEXTS[4], (5,)))
    points, rejected = read(reply)
    assert ([p.text for p in points], rejected) == ([TEXTS[4]], 3)


def test_more_quotes_than_were_asked_for_are_all_read() -> None:
    request = SummaryRequest(said(*(TEXTS * 2)))
    (point,), _ = read(summary(entry(TEXTS[0], (1, 2, 3, 4, 5, 6, 7))), request)
    assert point.cites == (100, 101, 102, 103, 104, 105, 106)


def test_what_is_too_long_for_a_sentence_is_rejected_and_never_cut() -> None:
    points, rejected = read(summary(entry(), entry("helicase and polymerase " * 50, (1, 2))))
    assert ([p.text for p in points], rejected) == ([TEXTS[0]], 1)


def test_a_repeated_point_counts_once() -> None:
    points, _ = read(summary(entry(cites=(1, 2)), entry(cites=(1, 3))))
    assert [point.cites for point in points] == [(100, 101)]


def test_what_the_assistant_said_is_its_intervention_and_nothing_else_is() -> None:
    request = SummaryRequest(
        [AnalystMessage(1, "Consilience", TEXTS[0], consilience=True), AnalystMessage(2, "Alice", TEXTS[1])]
    )
    points, _ = read(summary(entry(TEXTS[0], (1,), "claim"), entry(TEXTS[1], (2,), "consilience")), request)
    assert [point.kind for point in points] == [PointKind.CONSILIENCE, PointKind.CLAIM]


@pytest.mark.parametrize("text", [*(text for talk in TALKS for text in talk.refusals), "NONE", "N/A", "", "\x1b"])
def test_an_answer_that_is_no_summary_is_invalid_in_any_language(text: str) -> None:
    for chatter in (False, True):
        for replaces in (0, 1):
            with pytest.raises(ReplyInvalid) as raised:
                points_of(summary(entry(text, (1, 2, 3, 4, 5), replaces=replaces), chatter=chatter), REQUEST)
            assert raised.value.rejected == 1


def test_a_refusal_among_points_is_rejected_alone() -> None:
    points, rejected = read(summary(entry(), entry("Je ne peux pas résumer le reste.", (2, 3))))
    assert ([point.text for point in points], rejected) == ([TEXTS[0]], 1)


@pytest.mark.parametrize(
    ("text", "cites", "replaces"),
    [
        ("I'm sorry, I cannot summarize the budget meeting in Oslo on 14 March.", (1, 2), 1),
        ("Unfortunately, I am unable to provide a summary of the contract K-4711.", (2, 1), 2),
        ("Error 4711: upstream timed out", (1, 2), 0),
    ],
)
def test_a_refusal_that_names_the_topic_is_no_point(text: str, cites: tuple[int, ...], replaces: int) -> None:
    known = ["The budget meeting in Oslo is moved to Thursday, 14 March.", "Contract K-4711 is not signed yet."]
    request = SummaryRequest(
        said(*known), known=[KnownPoint(number, text, PointKind.CLAIM) for number, text in enumerate(known, 1)]
    )
    with pytest.raises(ReplyInvalid):
        points_of(summary(entry(text, cites, replaces=replaces)), request)


@pytest.mark.parametrize(
    "text", ["Nothing but the helicase unwinds the double helix.", "Error analysis of the PCR with primer B7 follows."]
)
def test_a_point_that_only_begins_like_a_refusal_is_kept(text: str) -> None:
    assert read(summary(entry(text, (2, 4))))[0][0].text == text


def test_a_point_may_replace_a_known_one_that_is_about_the_same() -> None:
    text = "Alice asks how DNA replication works in bacteria and human cells."
    (point,), rejected = read(summary(entry(text, (1,), replaces=1)))
    assert (point.replaces, rejected) == ((70,), 0)


@pytest.mark.parametrize(("text", "cites"), [("The helicase unwinds the double helix.", 2)])
def test_a_point_about_something_else_stands_beside_the_known_one_it_names(text: str, cites: int) -> None:
    (point,), rejected = read(summary(entry(text, (cites,), replaces=1)))
    assert (point.text, point.replaces, rejected) == (text, (), 1)


def test_no_points_are_a_summary_only_of_chatter() -> None:
    assert read(summary(chatter=True)) == ([], 0)
    with pytest.raises(ReplyInvalid):
        points_of(summary(), REQUEST)


def test_it_is_no_chatter_that_something_was_decided() -> None:
    assert points_of(summary(chatter=True), SummaryRequest(said("Okay.", "So we'll see."))).points == []
    with pytest.raises(ReplyInvalid):
        points_of(summary(chatter=True), SummaryRequest(said("Okay.", "We decided to survey every week.")))


def test_the_schemas_are_strict_and_name_every_domain_once() -> None:
    schema = schema_of(DomainReply)
    item = schema["properties"]["domains"]["items"]
    assert item["properties"]["domain"]["enum"] == list(DOMAINS)
    assert item["additionalProperties"] is False
    assert item["required"] == ["domain", "confidence"]
    assert not {"title", "$defs"} & set(schema)


def test_a_reply_in_a_code_fence_is_read() -> None:
    reply = parse_reply(KeywordReply, 'Here you are:\n```json\n{"keywords": [["1", "DNA"]], "note": 1}\n```')
    assert reply.keywords == [["1", "DNA"]]


@pytest.mark.parametrize("content", ["NONE", "}{", '{"keywords": [["1", "secret', '{"keywords": "secret"}', "[]", "{}"])
def test_what_does_not_fit_is_invalid_and_not_quoted(content: str) -> None:
    with pytest.raises(ReplyInvalid) as raised:
        parse_reply(KeywordReply, content)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("before", ["{", '{"points":['])
@pytest.mark.parametrize("is_cut_off", [False, True])
def test_a_reply_of_escaped_quotation_marks_takes_no_time_by_their_square(before: str, is_cut_off: bool) -> None:
    def read(text: str) -> None:
        with pytest.raises(ReplyInvalid):
            parse_reply(SummaryReply, text, is_cut_off=is_cut_off)

    assert is_linear(read, '\\"', before=before, after="}", most=8_000)
