"""Final texts that say again what was final before."""

from __future__ import annotations

import pytest

from context_builder.transcript.restated import RestatedSpeech


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
