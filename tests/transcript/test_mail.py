"""E-mails: their texts in any encoding, without what a reply quotes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transcript.reading import heard, transcript

FIELDS = "From: Ida Lind <ida@harbour.example>\nSubject: x\nDate: Wed, 3 May 2023 09:00:01 +0000\n"


@pytest.mark.parametrize("encoding", ["", "Content-Transfer-Encoding: 8bit\n", "Content-Transfer-Encoding: 7bit\n"])
def test_a_text_that_is_not_encoded_for_its_way(tmp_path: Path, encoding: str) -> None:
    mail = f"{FIELDS}Content-Type: text/plain; charset=utf-8\n{encoding}\nDie Brücke ist gesperrt – 今日は.\n"
    assert heard(tmp_path, "a.eml", mail) == ["Ida Lind | Die Brücke ist gesperrt – 今日は."]


@pytest.mark.parametrize(
    "above",
    [
        "2023년 5월 2일 (화) 오후 4:12, Bo Berg <bo@harbour.example>님이 작성:",
        "2023年5月2日(火) 16:12 Bo Berg <bo@harbour.example>：",
        "Il giorno mar 2 mag 2023 alle ore 16:12 Bo Berg <bo@harbour.example> ha scritto:",
        "wt., 2 maj 2023 o 16:12 Bo Berg <bo@harbour.example> napisał(a):",
        "вт, 2 мая 2023 г. в 16:12, Bo Berg <bo@harbour.example>:",
    ],
)
def test_who_wrote_what_is_quoted_is_left_out_in_any_language(tmp_path: Path, above: str) -> None:
    mail = f"{FIELDS}Content-Type: text/plain; charset=utf-8\n\nWe sail at nine. Bring:\n- ropes\n\n{above}\n> When?\n"
    assert heard(tmp_path, "a.eml", mail) == ["Ida Lind | We sail at nine. Bring: - ropes"]


@pytest.mark.parametrize(
    ("charset", "encoding", "text"),
    [
        ("gb2312", "gb18030", "明天在港口见面吧，好吗？我们九点出发。"),
        ("iso-8859-1", "cp1252", "Die Brücke ist – wie üblich – gesperrt."),
        ("ISO-2022-JP", "iso2022_jp", "明日、港で会いましょう。"),
        ("windows-1251", "cp1251", "Встретимся завтра в порту?"),
    ],
)
def test_a_mail_in_the_encoding_that_it_names(tmp_path: Path, charset: str, encoding: str, text: str) -> None:
    fields = f"{FIELDS}Content-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: 8bit\n\n"
    found = transcript(tmp_path, "a.eml", fields.encode() + text.encode(encoding) + b"\n")
    assert ([one.text for one in found.utterances], found.problems) == ([text], ())


def test_an_encoding_that_a_file_names_and_does_not_have(tmp_path: Path) -> None:
    fields = f"{FIELDS}Content-Type: text/plain; charset=utf-8\n\n"
    found = transcript(tmp_path, "a.eml", fields.encode() + "Die Brücke ist größer als üblich.\n".encode("cp1252"))
    assert [one.text for one in found.utterances] == ["Die Brücke ist größer als üblich."]
    assert len(found.problems) == 1


def test_a_line_of_ones_own_above_what_is_quoted(tmp_path: Path) -> None:
    mail = f"{FIELDS}Content-Type: text/plain; charset=utf-8\n\nWhat you said at 9:00:\n> At noon.\nNo.\n"
    assert heard(tmp_path, "a.eml", mail) == ["Ida Lind | What you said at 9:00: No."]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "cp037"])
def test_an_encoding_in_which_nobody_could_have_read_its_name(tmp_path: Path, encoding: str) -> None:
    fields = f"{FIELDS}Content-Type: text/plain; charset={encoding}\n\n"
    for said in ("Die Brücke ist größer als üblich.", "Die Brücke ist größer als üblich!?"):
        found = transcript(tmp_path, "a.eml", fields.encode() + f"{said}\n".encode("cp1252"))
        assert [one.text for one in found.utterances] == [said]
