"""Each thing is said once, and what was said twice is heard twice."""

from __future__ import annotations

import pytest

from context_builder.transcript.repeats import RestatedSpeech, once
from context_builder.transcript.utterance import Utterance


def said(*spoken: tuple[float, float, str]) -> list[str]:
    return [one.text for one in once([Utterance("Unknown", text, at, until=until) for at, until, text in spoken])]


def test_captions_that_roll_up_by_three_lines() -> None:
    assert said(
        (0, 2, "the pump failed"),
        (2, 4, "the pump failed on its second day"),
        (4, 6, "the pump failed on its second day so we stopped"),
        (6, 8, "on its second day so we stopped and called"),
    ) == ["the pump failed", "on its second day", "so we stopped", "and called"]


def test_captions_that_grow_word_by_word() -> None:
    assert said((0, 1, "the"), (1, 2, "the pump"), (2, 3, "the pump failed"), (3, 4, "twice")) == [
        "the", "pump", "failed", "twice",
    ]  # fmt: skip


def test_captions_that_roll_may_pause() -> None:
    assert said(
        (0, 2, "the pump failed"),
        (2, 2.01, "the pump failed"),
        (4, 6, "the pump failed on its second day"),
        (6, 6.01, "on its second day"),
        (60, 62, "on its second day we stopped"),
    ) == ["the pump failed", "on its second day", "on its second day we stopped"]


def test_windows_that_overlap_in_time() -> None:
    assert said(
        (0, 30, "It was late. The pump failed on its second day"),
        (25, 55, "on its second day, so we stopped."),
        (50, 80, "We called the harbour."),
    ) == ["It was late. The pump failed on its second day", "so we stopped.", "We called the harbour."]


def test_a_final_that_comes_twice() -> None:
    assert said((0, 2, "The pump is here."), (0, 2, "The pump is here."), (2, 3, "Good.")) == [
        "The pump is here.",
        "Good.",
    ]
    assert said((0, 2, "The pump is here."), (0.4, 2, "The pump is here."), (2, 3, "Good.")) == [
        "The pump is here.",
        "Good.",
    ]


def test_who_says_the_same_again_is_heard_again() -> None:
    assert said((0, 1, "No."), (1, 2, "No."), (2, 3, "No, I said."), (3, 4, "I see.")) == [
        "No.",
        "No.",
        "No, I said.",
        "I see.",
    ]
    assert said((0, 1, "Yes."), (1, 2, "Yes. I do."), (5, 6, "I do.")) == ["Yes.", "Yes. I do.", "I do."]


def test_two_people_may_say_the_same_at_once() -> None:
    both = [Utterance("Ida", "It is here.", 0.0, until=2.0), Utterance("Bo", "It is here.", 0.5, until=2.0)]
    assert once(both) == both


def test_without_times_nothing_is_known_to_be_the_same() -> None:
    assert once([Utterance("Ida", "It is here.")] * 2) == [Utterance("Ida", "It is here.")] * 2


@pytest.mark.parametrize(
    ("finals", "expected"),
    [
        (
            ["my order number", "is four two one.", "My order number is four two one."],
            ["my order number", "is four two one.", ""],
        ),
        (["a b", "c d", "e", "a b c d e f"], ["a b", "c d", "e", "f"]),
        (["a b", "c d", "c d e"], ["a b", "c d", "e"]),
        (
            ["Yeah.", "Yeah. I order two pumps.", "Yeah. I order two pumps. The small ones."],
            ["Yeah.", "I order two pumps.", "The small ones."],
        ),
        (["i order two", "i order two pumps", "i order two pumps and"], ["i order two", "pumps", "and"]),
        (["Yes.", "Yes."], ["Yes.", "Yes."]),
        (
            ["It is here by truck.", "it is here by truck", "And the crane."],
            ["It is here by truck.", "", "And the crane."],
        ),
        (["yes", "yes i do"], ["yes", "yes i do"]),
        (["No, no.", "It is here."], ["No, no.", "It is here."]),
        (["", "Hello"], ["", "Hello"]),
        (["...", "Hello"], ["...", "Hello"]),
        (["Yes.", "No.", "Yes. No. Maybe."], ["Yes.", "No.", "Maybe."]),
        (
            ["名前は井田です。", "名前は井田です。仕事は何ですか？", "名前は井田です。仕事は何ですか？ありがとう。"],
            ["名前は井田です。", "仕事は何ですか？", "ありがとう。"],
        ),
        (["はい", "はい、そうです。", "はい"], ["はい", "はい、そうです。", "はい"]),
        (["我买两个泵", "我买两个泵，小的"], ["我买两个泵", "小的"]),
        (["สวัสดีครับ", "สวัสดีครับ ผมชื่อโบ"], ["สวัสดีครับ", "ผมชื่อโบ"]),
    ],
)
def test_only_what_is_new_is_heard(finals: list[str], expected: list[str]) -> None:
    speech = RestatedSpeech()
    assert [speech.unsaid("ida", text) for text in finals] == expected


def test_each_speaker_is_known_alone() -> None:
    speech = RestatedSpeech()
    assert [speech.unsaid(who, "It is here.") for who in ("ida", "bo", None)] == ["It is here."] * 3
