"""Labels of speakers are told from text, by the whole file."""

from __future__ import annotations

from pathlib import Path

import pytest

from context_builder.transcript.labels import Labels, spoken
from tests.transcript.reading import heard


def told(*entries: str) -> list[str]:
    return [
        f"{one.speaker} | {one.text}" for lines in spoken([entry.split("\n") for entry in entries]) for one in lines
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("[SPEAKER_00]: Good morning.", "SPEAKER_00 | Good morning."),
        ("[SPEAKER_12] Good morning.", "SPEAKER_12 | Good morning."),
        ("[Speaker 1]: Good morning.", "Speaker 1 | Good morning."),
        ("(speaker 1) Good morning.", "Speaker 1 | Good morning."),
        ("(speaker ?) Good morning.", "Unknown | Good morning."),
        ("Speaker 1: Good morning.", "Speaker 1 | Good morning."),
        ("SPEAKER_03: Good morning.", "SPEAKER_03 | Good morning."),
        ("[UNKNOWN]: Good morning.", "Unknown | Good morning."),
        ("Good morning. [SPEAKER_TURN]", "None | Good morning."),
        ("[Music]", "None | [Music]"),
        ("(laughs) Good morning.", "None | (laughs) Good morning."),
        ("[inaudible]: who knows", "None | [inaudible]: who knows"),
    ],
)
def test_the_labels_of_programs_are_known_wherever_they_stand(line: str, expected: str) -> None:
    assert told("Yes.", line, "No.", "Well.")[1] == expected


def test_where_every_entry_has_a_label_it_is_a_name_whatever_it_holds() -> None:
    names = [
        "Lind, Ida (she/her)", "Bo | Acme", "+1 555-0100", "Ana Maria de la Cruz", "O'Neil 🌊", "user@example.org",
        "Rm. 4 / Speakerphone", "田中 太郎", "iPhone (2)", "[Guest] Jo", "Consilience",
    ]  # fmt: skip
    said = told(*(f"{name}: Note: it is here." for name in names))
    assert said == [f"{name} | Note: it is here." for name in names[:-1]] + [
        "Consilience (speaker) | Note: it is here."
    ]


def test_a_sentence_with_a_colon_stays_text() -> None:
    lines = ["We begin.", "One thing: the pump.", "And another one: the crane.", "Note: it is late.", "Yes.", "No."]
    assert told(*lines) == [f"None | {line}" for line in lines]


def test_a_name_in_brackets_behind_a_dash_stands_where_the_speaker_changes() -> None:
    said = told("- [Ida] Hello!", "This is new.", "We begin.", "- [A Guest] Is it?", "- [Ida] It is.", "Yes.")
    assert said == [
        "Ida | Hello!", "Ida | This is new.", "Ida | We begin.", "A Guest | Is it?", "Ida | It is.", "Ida | Yes.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "lines",
    [
        ["- [Laughs] Hello!", "It is new.", "- [Whispers] Is it?", "- [Laughs] It is.", "Yes."],
        ["- [Whispering] Hello!", "It is new.", "- No.", "- [Sobbing] Is it?", "- [Whispering] It is.", "So."],
        ["- [Draft] Buy a pump", "We begin.", "It is new.", "- [Draft] Call them", "- [Draft] Mend it", "So."],
        ["- [x] Buy a pump", "We begin.", "It is new.", "- [ ] Call them", "- [x] Mend it"],
        ["We begin.", "It is new.", "- [Ida] Hello!", "So.", "- [Bo] Yes.", "- [Ida] No."],
    ],
)
def test_what_else_stands_in_brackets_behind_dashes_is_text(lines: list[str]) -> None:
    assert told(*lines) == [f"None | {line}" for line in lines]


def test_a_name_that_comes_again_is_a_label_also_where_few_entries_have_one() -> None:
    lines = [
        "We begin.",
        "IDA: It is here.",
        "And then?",
        "BO: No.",
        "I see.",
        "Go on.",
        "IDA: Yes.",
        "Well.",
        "So.",
        "OK.",
    ]
    said = told(*lines)
    assert [line for line in said if not line.startswith("None")] == ["IDA | It is here.", "BO | No.", "IDA | Yes."]


def test_names_in_capitals_are_labels_in_any_line_of_a_caption() -> None:
    said = told("[door opens]", "IDA: Is it here?\nBO: Since noon.", "By truck?", "IDA: Good.", "So.", "Well.")
    assert "BO | Since noon." in said


def test_a_colon_of_chinese_and_one_after_a_blank() -> None:
    assert told("张伟：早上好", "李娜：你好") == ["张伟 | 早上好", "李娜 | 你好"]
    assert told("Ida : bonjour", "Bo : salut") == ["Ida | bonjour", "Bo | salut"]


def test_a_label_alone_stands_for_the_lines_below() -> None:
    assert told("Ida:\nGood morning.", "Bo:\nIs it here?") == ["Ida | Good morning.", "Bo | Is it here?"]


def test_two_speakers_in_an_entry_and_a_colon_in_its_second_line() -> None:
    assert told("- Ida: Yes.\n- Bo: No.") == ["Ida | Yes.", "Bo | No."]
    assert told("Ida: The list.\nOne thing: pumps", "Bo: Good.\nIda: Well.") == [
        "Ida | The list. One thing: pumps", "Bo | Good.", "Ida | Well.",
    ]  # fmt: skip


def test_times_and_addresses_are_no_names() -> None:
    assert told("10:30: we begin", "https://example.org", "11:45: we stop") == [
        "None | 10:30: we begin", "None | https://example.org", "None | 11:45: we stop",
    ]  # fmt: skip


@pytest.mark.parametrize("sign", [" №", " #", " Nr. ", " No. "])
def test_a_name_with_a_number_may_stand_once_where_another_comes_again(sign: str) -> None:
    lines = [
        f"Sprecher{sign}1: It is here.",
        "And there.",
        "And so.",
        f"Sprecher{sign}2: No.",
        f"Sprecher{sign}1: Yes.",
    ]
    labels = Labels(lines)
    assert [labels.line(line).speaker for line in lines] == [
        f"Sprecher{sign}1", None, None, f"Sprecher{sign}2", f"Sprecher{sign}1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "names", [["Müller, Ida", "Sam Okoro (they/them)", "+1 555-0100", "Dr. Jo Lind, PhD"], ["प्रिया", "रवि"]]
)
def test_whatever_stands_before_all_entries_is_a_name(names: list[str]) -> None:
    lines = [[f"{name}: Good morning."] for name in names]
    assert [one.speaker for said in spoken(lines) for one in said] == names


def test_names_in_scripts_with_vowel_signs_are_names_without_a_label_on_each_entry() -> None:
    lines = [["प्रिया: नमस्ते"], ["जी"], ["रवि: जी"], ["प्रिया: जी"]]
    assert [one.speaker for said in spoken(lines) for one in said] == ["प्रिया", "प्रिया", "रवि", "प्रिया"]


def _cues(*texts: str) -> str:
    return "\n".join(f"{n}\n00:00:0{n},000 --> 00:00:0{n},900\n{text}\n" for n, text in enumerate(texts, start=1))


@pytest.mark.parametrize(
    "texts",
    [
        [
            "It has three parts: dough,",
            "filling. Step one: weigh it.",
            "Remember: cold butter.",
            "A question: why?",
            "So.",
        ],
        ["Note: cold butter.", "It tears.", "Note: never warm.", "So it is."],
        ["(Laughter)\nGood.", "(Applause)\nThanks.", "It came.", "Which one?"],
        ["[Music]\nGood.", "[Music]\nThanks.", "(applause)\nIt came."],
    ],
)
def test_a_lecture_with_colons_is_all_text(tmp_path: Path, texts: list[str]) -> None:
    assert heard(tmp_path, "a.srt", _cues(*texts)) == [f"Unknown | {' '.join(text.split())}" for text in texts]


@pytest.mark.parametrize("form", ["({})\n{}", "[{}]\n{}"])
def test_names_in_brackets_on_lines_of_their_own(tmp_path: Path, form: str) -> None:
    said = [("Ida Lind", "The pump came."), ("Bo Dahl", "Which one (of two)?"), ("Ida Lind", "The small one.")]
    assert heard(tmp_path, "a.srt", _cues(*[form.format(*one) for one in said])) == [" | ".join(one) for one in said]
