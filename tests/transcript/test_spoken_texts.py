"""Texts of courts, parliaments, chats and small programs, each with what is beside what was said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from context_builder.errors import TranscriptError
from tests.transcript.reading import heard, transcript

TALK = ["Ida Lind | Shall we sail?", "Bo Berg | Not in this wind.", "Ida Lind | Then at noon."]


def test_times_in_seconds_within_brackets(tmp_path: Path) -> None:
    text = (
        "Call 7\n\n[001.50s] Ida Lind: Shall we sail?\n[12s] Bo Berg: Not in this wind.\n"
        "(75.25 s) Ida Lind: Then at noon.\n"
    )
    found = transcript(tmp_path, "a.txt", text)
    assert [f"{one.speaker} | {one.text}" for one in found.utterances] == TALK
    assert [one.at for one in found.utterances] == [1.5, 12.0, 75.25]


@pytest.mark.parametrize("signs", ["🟢🟣🟢", "▶▶▶", "•••"])
def test_signs_before_the_names_of_headings(tmp_path: Path, signs: str) -> None:
    first, second, third = signs
    text = (
        f"{first} Ida Lind [00:00:00]\nShall we sail?\n\n{second} Bo Berg [00:00:05]\nNot in this wind.\n\n"
        f"{third} Ida Lind [00:01:12]\nThen at noon.\n"
    )
    assert heard(tmp_path, "a.md", text) == TALK


def test_a_name_that_has_a_sign_keeps_it_where_others_have_none(tmp_path: Path) -> None:
    text = "★ Ida [00:00]\nShall we sail?\n\nBo Berg [00:05]\nNot in this wind.\n\n★ Ida [00:12]\nThen at noon.\n"
    assert heard(tmp_path, "a.txt", text)[0] == "★ Ida | Shall we sail?"


def test_remarks_in_brackets_between_speeches(tmp_path: Path) -> None:
    text = (
        "Präsidentin Ida Lind: Das Wort hat Frau Berg.\n\n"
        "Abg. Dr. Bo Berg ABC: Danke sehr.\n\n"
        "(Beifall bei der ABC – Abg. Eva Ek DEF: Sehr gut!)\n\n"
        "Präsidentin Ida Lind: Vielen Dank.\n\n(Heiterkeit)\n\nWir fahren fort.\n"
    )
    found = transcript(tmp_path, "a.txt", text)
    assert [f"{one.speaker} | {one.text}" for one in found.utterances] == [
        "Präsidentin Ida Lind | Das Wort hat Frau Berg.",
        "Abg. Dr. Bo Berg ABC | Danke sehr.",
        "Präsidentin Ida Lind | Vielen Dank. Wir fahren fort.",
    ]
    assert found.notes == ("2 remarks in brackets not read",)


def test_what_is_in_brackets_in_a_text_without_names_was_said(tmp_path: Path) -> None:
    assert heard(tmp_path, "a.txt", "We sail.\n(at noon)\n") == ["Unknown | We sail.", "Unknown | (at noon)"]


def test_numbers_of_lines_that_stand_above_them(tmp_path: Path) -> None:
    text = "1\nCOUNTY COURT\n2\nTHE COURT: Please sit.\n3\nMR. BERG: We are\n4\nready.\n5\nTHE COURT: Good.\n"
    assert heard(tmp_path, "a.txt", text) == [
        "THE COURT | Please sit.",
        "MR. BERG | We are ready.",
        "THE COURT | Good.",
    ]


def test_the_moment_above_each_message_and_what_the_program_tells(tmp_path: Path) -> None:
    text = (
        "May 03, 2023  9:00:01 AM\nIda Lind\nShall we sail?\n\n"
        "May 03, 2023  9:00:02 AM (Read by them after 1 second)\nMe\nNot in this wind.\n"
        "This message responded to an earlier message.\n\n"
        "May 03, 2023  9:00:03 AM Ida Lind added Eva Ek to the conversation.\n\n"
        "May 03, 2023  9:00:04 AM\nEva Ek\nHello.\n"
    )
    found = transcript(tmp_path, "a.txt", text)
    assert [f"{one.speaker} | {one.text}" for one in found.utterances] == [
        "Ida Lind | Shall we sail?",
        "Me | Not in this wind.",
        "Eva Ek | Hello.",
    ]
    assert found.notes == ("1 line of who joined and left not read",)


def test_kakaotalk_with_the_day_between_rules(tmp_path: Path) -> None:
    rule = "-" * 30
    text = f"{rule}\n2023년 5월 3일 수요일\n{rule}\n오전 9:01, 이다 : 갈까?\n오후 1:02, 보 : 바람이 세.\n내일 가자.\n"
    found = transcript(tmp_path, "a.txt", text)
    assert [f"{one.speaker} | {one.text}" for one in found.utterances] == ["이다 | 갈까?", "보 | 바람이 세. 내일 가자."]
    assert found.started is not None
    assert f"{found.started:%Y-%m-%d %H:%M}" == "2023-05-03 09:01"
    assert [one.at for one in found.utterances] == [0.0, 4 * 3600 + 60]


def test_a_page_with_names_in_bold_and_no_blank_behind_the_colon(tmp_path: Path) -> None:
    page = (
        "<html><body><p><b>Ida Lind</b> (Harbour) (ABC):Shall we sail?</p><p>I would.</p>"
        "<p><b>Bo Berg</b> (Quay):Not in this wind.</p><p><b>Ida Lind:</b> Then at noon.</p>"
        "<p><b>Bo Berg:</b>Yes.</p></body></html>"
    )
    assert heard(tmp_path, "a.html", page) == [
        "Ida Lind (Harbour) (ABC) | Shall we sail? I would.",
        "Bo Berg (Quay) | Not in this wind.",
        "Ida Lind | Then at noon.",
        "Bo Berg | Yes.",
    ]


def test_messages_of_an_agent_by_the_moments_at_which_they_were_made(tmp_path: Path) -> None:
    events = [
        {
            "kind": "message",
            "offset": place,
            "creation_utc": f"2023-05-03T09:00:0{at}Z",
            "data": {"message": text, "participant": {"id": who, "display_name": who}},
        }
        for place, (who, text, at) in enumerate([("Ida", "Is it in stock?", 1), ("Shop", "Three are left.", 4)])
    ]
    found = transcript(tmp_path, "a.json", events)
    assert [(one.speaker, one.text, one.at) for one in found.utterances] == [
        ("Ida", "Is it in stock?", 0.0),
        ("Shop", "Three are left.", 3.0),
    ]


def test_pages_and_lines_before_a_testimony(tmp_path: Path) -> None:
    told = [
        "COUNTY COURT",
        "BY MR. BERG:",
        "   Q.   Where did you",
        "work?",
        "   A.   At the mill.",
        "   Q.   And then?",
    ]
    told += ["   A.   At sea."]
    text = "".join(f"00002:{place:02}  {line}\n" for place, line in enumerate(told, start=1))
    assert heard(tmp_path, "a.txt", text) == [
        "MR. BERG | Where did you work?",
        "THE WITNESS | At the mill.",
        "MR. BERG | And then?",
        "THE WITNESS | At sea.",
    ]


def test_names_with_offices_alone_above_speeches(tmp_path: Path) -> None:
    text = (
        "Präsidentin Ida Lind:\nDie Sitzung ist eröffnet.\n(Beifall)\n"
        "Bo Berg, Minister für das Meer:\nLiebe Kollegen!\n"
        "(Heiterkeit)\nWir tun was.\nPräsidentin Ida Lind:\nVielen Dank.\n"
    )
    assert heard(tmp_path, "a.txt", text) == [
        "Präsidentin Ida Lind | Die Sitzung ist eröffnet.",
        "Bo Berg, Minister für das Meer | Liebe Kollegen! Wir tun was.",
        "Präsidentin Ida Lind | Vielen Dank.",
    ]


def test_what_a_program_says_of_its_own_text(tmp_path: Path) -> None:
    text = (
        "说话人1 00:00\n我们走吗？\n\n说话人2 00:05\n今天不行。\n\n说话人1 00:09\n好。\n\n以上内容由AI生成，仅供参考\n"
    )
    assert heard(tmp_path, "a.txt", text)[-1] == "说话人1 | 好。"


def test_who_joined_a_chat_of_kakaotalk(tmp_path: Path) -> None:
    text = (
        "친구들 카카오톡 대화\n저장한 날짜 : 2023. 5. 4. 오후 3:10\n\n2023년 5월 3일 수요일\n"
        "2023. 5. 3. 오전 9:01, 이다 : 갈까?\n2023. 5. 3. 오전 9:02: 보님이 들어왔습니다.\n"
        "2023년 5월 4일 목요일\n2023. 5. 4. 오후 1:02, 보 : 안녕\n"
    )
    found = transcript(tmp_path, "a.txt", text)
    assert [f"{one.speaker} | {one.text}" for one in found.utterances] == ["이다 | 갈까?", "보 | 안녕"]
    assert (found.problems, found.notes) == ((), ("2 lines above the first message not read",))


def test_messages_of_a_telephone_with_several_kinds_of_parts(tmp_path: Path) -> None:
    text = (
        '<smses><sms address="1" date="1683104401000" type="1" body="Shall we sail?" contact_name="Ida" />'
        '<sms address="1" date="1683104402000" type="3" body="Perh" contact_name="Ida" />'
        '<mms address="1" date="1683104403000" msg_box="2" contact_name="Ida"><parts>'
        '<part ct="image/png" text="null" /><part ct="text/plain" text="Not in this wind." /></parts></mms></smses>'
    )
    found = transcript(tmp_path, "a.xml", text)
    assert [(one.speaker, one.text, one.at) for one in found.utterances] == [
        ("Ida", "Shall we sail?", 0.0),
        ("Me", "Not in this wind.", 2.0),
    ]
    assert found.notes == ("1 draft and the like not read",)


@pytest.mark.parametrize(("begin", "end", "at"), [("11s", "12s", 11.0), ("1s", "2s", 11.0), ("0s", "12s", 10.0)])
def test_times_of_captions_count_from_the_beginning_where_they_would_lie_behind_their_section(
    tmp_path: Path, begin: str, end: str, at: float
) -> None:
    text = (
        '<tt xmlns="http://www.w3.org/ns/ttml"><body><div begin="10s" end="20s">'
        f'<p begin="{begin}" end="{end}">Shall we sail?</p></div></body></tt>'
    )
    assert [one.at for one in transcript(tmp_path, "a.ttml", text).utterances] == [at]


def test_segments_of_each_recording_of_several_one_of_which_failed(tmp_path: Path) -> None:
    segments = [{"speaker": 0, "text": "Shall we sail?"}, {"speaker": 1, "text": "No."}]
    answer = {
        "results": [
            {"name": "a.mp3", "transcript": "Shall we sail? No.", "segments": segments},
            {"name": "b.mp3", "error": {"code": "failed"}},
            {"name": "c.mp3", "segments": [{"speaker": 0, "text": "At noon."}]},
        ]
    }
    assert heard(tmp_path, "a.json", answer) == [
        "Speaker 0 | Shall we sail?",
        "Speaker 1 | No.",
        "Speaker 0 | At noon.",
    ]


def test_segments_of_a_call_one_an_event(tmp_path: Path) -> None:
    told = (("AGENT", "Hello.", 100), ("CUSTOMER", "A question.", 1500))
    parts = [{"ParticipantRole": who, "Content": text, "BeginOffsetMillis": at} for who, text, at in told]
    lines = "\n".join(json.dumps({"EventType": "SEGMENTS", "Segments": [{"Transcript": one}]}) for one in parts)
    found = transcript(tmp_path, "a.jsonl", lines)
    assert [(one.speaker, one.text, one.at) for one in found.utterances] == [
        ("AGENT", "Hello.", 0.1),
        ("CUSTOMER", "A question.", 1.5),
    ]


def test_a_time_alone_above_what_somebody_goes_on_to_say(tmp_path: Path) -> None:
    text = (
        "Ida Lind (00:00:00):\nShall we sail?\n\n(00:02:42):\nOr wait?\n\nBo Berg (00:20:11):\nNot in this wind.\n\n"
        "Ida Lind (00:20:12):\n[inaudible 00:20:12] noon.\n"
    )
    assert [(one.speaker, one.text, one.at) for one in transcript(tmp_path, "a.txt", text).utterances] == [
        ("Ida Lind", "Shall we sail?", 0.0),
        ("Ida Lind", "Or wait?", 162.0),
        ("Bo Berg", "Not in this wind.", 1211.0),
        ("Ida Lind", "[inaudible 00:20:12] noon.", 1212.0),
    ]


@pytest.mark.parametrize("tag", ["u", "b", "strong", "em"])
def test_names_in_tags_within_markdown(tmp_path: Path, tag: str) -> None:
    said = [one.split(" | ") for one in TALK]
    text = "# Talk\n\n" + "\n\n".join(f"<{tag}>{who}:</{tag}>\t{words}" for who, words in said) + "\n"
    assert heard(tmp_path, "a.md", text) == TALK


@pytest.mark.parametrize("ends", ["[End of Transcript]", "*** END OF INTERVIEW ***", "(end of the recording)"])
def test_where_a_transcript_begins_and_ends(tmp_path: Path, ends: str) -> None:
    said = "\n\n".join(one.replace(" | ", ": ") for one in TALK)
    assert heard(tmp_path, "a.txt", f"[Start of Transcript]\n\n{said}\n\n{ends}\n") == TALK


def test_names_in_brackets_below_a_list_of_who_they_are(tmp_path: Path) -> None:
    text = (
        "---VOICES---\nSprecher 1: tief\nSprecher 2: hell\n---VOICES---\n\n[Sprecher 1]: Guten Tag.\n\n"
        "[Sprecher 2]: Danke.\n\n[Sprecher 1]: Los.\n"
    )
    assert heard(tmp_path, "a.txt", text)[-3:] == [
        "Sprecher 1 | Guten Tag.",
        "Sprecher 2 | Danke.",
        "Sprecher 1 | Los.",
    ]


def test_what_was_said_beside_its_translation(tmp_path: Path) -> None:
    segments = [
        {"speaker": who, "start_ms": at, "original_text": text, "translated_text": "…", "words": []}
        for who, at, text in (("Ida", 0, "Ska vi segla?"), ("Bo", 1200, "Nej."))
    ]
    found = transcript(tmp_path, "a.json", {"transcript_segments": segments, "transcript_words": []})
    assert [(one.speaker, one.text, one.at) for one in found.utterances] == [
        ("Ida", "Ska vi segla?", 0.0),
        ("Bo", "Nej.", 1.2),
    ]


@pytest.mark.parametrize(
    "form",
    [
        "0:0{at}\t{who}\t{text}\n",
        "[0:0{at}] <{who}> {text}\n",
        "【{who}】0:0{at}\n{text}\n\n",
        "== {who} (0:0{at}) ==\n{text}\n\n",
    ],
)
def test_who_and_when_in_further_forms(tmp_path: Path, form: str) -> None:
    said = [(*one.split(" | "), at) for one, at in zip(TALK, (3, 5, 9), strict=True)]
    text = "".join(form.format(who=who, text=words, at=at) for who, words, at in said)
    found = transcript(tmp_path, "a.md", text)
    assert [(one.speaker, one.text, one.at) for one in found.utterances] == said


def test_a_log_of_irc_after_midnight_that_goes_on_beyond_an_hour(tmp_path: Path) -> None:
    text = "--- Log opened Wed May 03 00:01:00 2023\n00:01 <ida> Shall we sail?\n01:02 <bo> No.\n"
    assert [one.at for one in transcript(tmp_path, "a.log", text).utterances] == [0.0, 3660.0]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.csv", "id,price,qty\n1,2.5,3\n2,3.5,4\n", "a table of figures"),
        ("a.log", "2023-05-03 09:00:01 INFO started\n2023-05-03 09:00:02 WARN low disk\n", "no transcript was recog"),
        (
            "a.json",
            '{"name": "x", "Ida Lind": 1, "scripts": {}, "private": true, "engines": {}}',
            "an object with name, ",
        ),
    ],
)
def test_other_files_are_refused_by_what_they_look_like(tmp_path: Path, name: str, content: str, why: str) -> None:
    with pytest.raises(TranscriptError, match=why) as told:
        heard(tmp_path, name, content)
    assert "\n" not in str(told.value)
    assert "Ida" not in str(told.value)


@pytest.mark.parametrize(
    "added",
    [
        "(Correction: the board decided on ten.)",
        "(Nachtrag: Bo zahlt die Miete bis Freitag.)",
        "（ただし雨なら中止。）",
    ],
)
def test_what_somebody_adds_in_brackets_was_said(tmp_path: Path, added: str) -> None:
    text = f"Ida: We sail at nine.\n{added}\nBo: Fine.\n(Applause)\nIda: Good.\n"
    assert heard(tmp_path, "a.txt", text) == [f"Ida | We sail at nine. {added}", "Bo | Fine.", "Ida | Good."]


def test_a_line_of_a_message_that_begins_with_a_moment_was_said(tmp_path: Path) -> None:
    text = (
        "May 03, 2023  9:00:01 AM\nIda Lind\nWhen?\n\n"
        "May 03, 2023  9:00:02 AM\nMe\nHow about\nMay 05, 2023 9:00:00 AM at the quay?\n"
    )
    assert heard(tmp_path, "a.txt", text)[1] == "Me | How about May 05, 2023 9:00:00 AM at the quay?"
