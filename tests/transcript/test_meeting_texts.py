"""Texts that meeting tools and chats export, as each of them writes them."""

from __future__ import annotations

import io
import zipfile
from datetime import datetime
from pathlib import Path

import pytest

from context_builder.transcript.transcript import read_transcript
from tests.transcript.reading import heard, transcript

OTTER = """Harbour weekly
Wed, May 3, 2023 9:00AM • 32:10

SUMMARY KEYWORDS
pump, crane

SPEAKERS
Ida Lind, Speaker 2

Ida Lind  00:03
Good morning, everyone.

Is the pump here?

Speaker 2  01:15
Since noon: it came by truck.

Unknown Speaker  1:02:03
Good.

Transcribed by https://otter.ai
"""

TEAMS = """Harbour weekly-20230503_090000-Meeting Recording
May 3, 2023, 9:00AM
32m 10s

Ida Lind started transcription

Lind, Ida (Extern)   0:03
Good morning.
Is the pump here?

Bo Ek   0:15
Since noon.

Ida Lind stopped transcription
"""

MEET = """May 3, 2023
Harbour weekly - Transcript
00:00:00

Ida Lind: Good morning.
Bo Ek (Acme): Is the pump here?
00:05:00

Ida Lind: Since noon. One thing: the crane.
Meeting ended after 00:32:10 👋
This editable transcript was computer generated and might contain errors. People can change the text later.
"""

MEET_WITH_NOTICE = """Weekly (2023-05-03 09:00 GMT+2) – Transcript
Attendees
Bo Ek, Ida Lind
Transcript
This editable transcript was computer generated and might contain errors.

00:00:00
Ida Lind: Good morning.

Bo Ek: Is the pump here?

00:05:00
Ida Lind: Since noon.

Meeting ended after 00:05:10
"""

OLDER_MEET = """Harbour weekly (2023-05-03 at 09:00 GMT-7) - Transcript
Attendees
Ida Lind, Bo Ek
Transcript
Ida Lind: Good morning.
Bo Ek: Is the pump here?
Ida Lind: Since noon.
Transcription ended after 00:32:10
"""

REV = """Ida Lind (00:03):
Good morning.

Bo Ek (00:15):
Is the pump here?

Ida Lind (01:02:03):
Since noon.
"""

FIREFLIES = """Harbour weekly
May 3, 2023, 9:00 AM

00:03
Ida Lind
Good morning.

00:15
Bo Ek
Is the pump here?

01:02
Ida Lind
Since noon.
"""

TIME_FIRST = """[00:00:03] Ida Lind: Good morning.
[00:00:15] Bo Ek: Is the pump here?
It was to come at noon.
[00:01:02] Ida Lind: It did.
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            OTTER,
            [
                "Ida Lind | Good morning, everyone. Is the pump here?",
                "Speaker 2 | Since noon: it came by truck.",
                "Unknown | Good.",
            ],
        ),
        (TEAMS, ["Lind, Ida (Extern) | Good morning. Is the pump here?", "Bo Ek | Since noon."]),
        (
            MEET,
            [
                "Ida Lind | Good morning.",
                "Bo Ek (Acme) | Is the pump here?",
                "Ida Lind | Since noon. One thing: the crane.",
            ],
        ),
        (MEET_WITH_NOTICE, ["Ida Lind | Good morning.", "Bo Ek | Is the pump here?", "Ida Lind | Since noon."]),
        (OLDER_MEET, ["Ida Lind | Good morning.", "Bo Ek | Is the pump here?", "Ida Lind | Since noon."]),
        (REV, ["Ida Lind | Good morning.", "Bo Ek | Is the pump here?", "Ida Lind | Since noon."]),
        (FIREFLIES, ["Ida Lind | Good morning.", "Bo Ek | Is the pump here?", "Ida Lind | Since noon."]),
        (
            TIME_FIRST,
            ["Ida Lind | Good morning.", "Bo Ek | Is the pump here? It was to come at noon.", "Ida Lind | It did."],
        ),
    ],
    ids=["otter", "teams", "meet", "meet with notice", "older meet", "rev", "fireflies", "times first"],
)
def test_who_said_what_in_a_meeting(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert heard(tmp_path, "meeting.txt", text) == expected
    assert heard(tmp_path, "meeting.txt", text.replace("\n", "\r\n").encode("utf-16")) == expected


@pytest.mark.parametrize(
    ("text", "started", "offsets"),
    [
        (OTTER, datetime(2023, 5, 3, 9).astimezone(), [3.0, 75.0, 3723.0]),
        (TEAMS, datetime(2023, 5, 3, 9).astimezone(), [3.0, 15.0]),
        (MEET, datetime(2023, 5, 3).astimezone(), [0.0, None, 300.0]),
        (OLDER_MEET, datetime.fromisoformat("2023-05-03T09:00:00-07:00"), [None, None, None]),
        (REV, None, [3.0, 15.0, 3723.0]),
        (FIREFLIES, datetime(2023, 5, 3, 9).astimezone(), [3.0, 15.0, 62.0]),
    ],
)
def test_the_heading_tells_when_the_meeting_was(
    tmp_path: Path, text: str, started: datetime | None, offsets: list[float | None]
) -> None:
    found = transcript(tmp_path, "meeting.txt", text)
    assert found.started == started
    assert [one.at for one in found.utterances] == offsets


def word_document(*paragraphs: str) -> bytes:
    """Return a Word document; a line break within a paragraph is one there, too."""
    body = "".join(
        f"<w:p><w:r><w:t>{'</w:t><w:br/><w:t>'.join(one.split(chr(10)))}</w:t></w:r></w:p>" for one in paragraphs
    )
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
        archive.writestr("word/document.xml", f'<w:document xmlns:w="{space}"><w:body>{body}</w:body></w:document>')
    return written.getvalue()


def test_a_word_document_of_teams(tmp_path: Path) -> None:
    document = word_document(
        "Harbour weekly", "May 3, 2023, 9:00AM", "Ida Lind   0:03\nGood morning.", "Bo Ek   0:15\nMorning."
    )
    assert heard(tmp_path, "meeting.docx", document) == ["Ida Lind | Good morning.", "Bo Ek | Morning."]


def test_an_older_word_document_of_teams_has_lines_of_times(tmp_path: Path) -> None:
    document = word_document(
        "0:0:3.210 --> 0:0:6.450\nIda Lind\nGood morning.",
        "0:0:7.0 --> 0:0:8.50\nBo Ek\nMorning.",
        "0:0:9.0 --> 0:0:10.50\nIda Lind\nIs the pump here?",
    )
    assert heard(tmp_path, "meeting.docx", document) == [
        "Ida Lind | Good morning.",
        "Bo Ek | Morning.",
        "Ida Lind | Is the pump here?",
    ]


IOS = "\u200e[03.05.23, 09:00:12] Harbour: \u200eMessages and calls are end-to-end encrypted.\n" + (
    "[03.05.23, 09:00:12] Ida Lind: Is the pump here?\n"
    "[03.05.23, 09:01:40] ~\u202fBo: Since noon.\nIt came: by truck.\n"
    "\u200e[03.05.23, 09:02:00] Ida Lind: \u200eimage omitted\n"
    "\u200e[03.05.23, 09:02:01] Ida Lind: \u200e<attached: 00000012-PHOTO-2023-05-03.jpg>\n"
    "[03.05.23, 09:03:00] +49 151 555 0100: Good. \u200e<This message was edited>\n"
    "[03.05.23, 09:03:10] Bo: \u200eThis message was deleted.\n"
)

ANDROID = (
    "5/3/23, 9:00\u202fAM - Messages and calls are end-to-end encrypted. Tap to learn more.\n"
    '5/3/23, 9:00\u202fAM - Ida created group "Harbour"\n'
    "5/3/23, 9:00\u202fAM - Ida Lind: Is the pump here?\n"
    "5/3/23, 9:01\u202fAM - Bo: Since noon.\nIt came: by truck.\n"
    "5/3/23, 9:02\u202fAM - Ida Lind: <Media omitted>\n"
    "5/3/23, 9:02\u202fAM - Ida Lind: IMG-20230503-WA0001.jpg (file attached)\n"
    "5/3/23, 1:03\u202fPM - +49 151 555 0100: Good. <This message was edited>\n"
    "5/3/23, 1:04\u202fPM - Bo: This message was deleted\n"
)


@pytest.mark.parametrize(("text", "second"), [(IOS, "Bo"), (ANDROID, "Bo")], ids=["ios", "android"])
def test_a_chat_of_whatsapp(tmp_path: Path, text: str, second: str) -> None:
    assert heard(tmp_path, "_chat.txt", text) == [
        "Ida Lind | Is the pump here?",
        f"{second} | Since noon. It came: by truck.",
        "+49 151 555 0100 | Good.",
    ]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("[03/05/2023, 09:00:12] Ida: Hello", "[13/05/2023, 21:00:12] Bo: Hi"),
        ("[3/5/23 09:00:12] Ida: Hello", "[13/5/23 21:00:12] Bo: Hi"),
        ("03/05/2023, 09:00 - Ida: Hello", "13/05/2023, 21:00 - Bo: Hi"),
        ("03.05.23, 09:00 - Ida: Hello", "13.05.23, 21:00 - Bo: Hi"),
        ("5/3/23, 9:00 AM - Ida: Hello", "5/13/23, 9:00 PM - Bo: Hi"),
        ("[5/3/23, 9:00:12 AM] Ida: Hello", "[5/13/23, 9:00:12 PM] Bo: Hi"),
        ("2023-05-03, 9:00 a.m. - Ida: Hello", "2023-05-13, 9:00 p.m. - Bo: Hi"),
        ("3/5/2023, 9:00 a. m. - Ida: Hello", "13/5/2023, 9:00 p. m. - Bo: Hi"),
        ("2023/05/03 9:00 - Ida: Hello", "2023/05/13 21:00 - Bo: Hi"),
        ("[3.5.2023 klo 9.00.12] Ida: Hello", "[13.5.2023 klo 21.00.12] Bo: Hi"),
        ("2023/5/3 上午9:00 - Ida: Hello", "2023/5/13 下午9:00 - Bo: Hi"),
        ("03-05-2023 09:00 - Ida: Hello", "13-05-2023 21:00 - Bo: Hi"),
        ("03.05.2023, 09:00 – Ida: Hello", "13.05.2023, 21:00 – Bo: Hi"),
        ("3/5/23 à 09:00 - Ida: Hello", "13/5/23 à 21:00 - Bo: Hi"),
    ],
)
def test_whatsapp_writes_times_as_the_phone_does(tmp_path: Path, first: str, second: str) -> None:
    found = transcript(tmp_path, "chat.txt", f"{first}\n{second}\n")
    assert [f"{one.speaker} | {one.text}" for one in found.utterances] == ["Ida | Hello", "Bo | Hi"]
    assert found.started is not None
    assert f"{found.started:%Y-%m-%d %H:%M}" == "2023-05-03 09:00"
    last = found.said_at(found.utterances[1])
    assert last is not None
    assert f"{last:%Y-%m-%d %H:%M}" == "2023-05-13 21:00"


ZOOM = """09:00:12 From Ida Lind to Everyone:
\tIs the pump here?
09:00:40 From  Bo | Acme  to  Everyone:
\tReplying to "Is the pump here?"

\tSince noon.
\tIt came: by truck.
09:00:41 From Ida Lind to Everyone:
\tReacted to "Since noon." with 👍
09:00:50 From Ida Lind to Bo (Direct Message):
\tThank you
"""
OLDER_ZOOM = "09:00:12\t From  Ida Lind : Is the pump here?\n09:00:40\t From  Bo  to  Everyone : Since noon.\n"
RECORDED_ZOOM = "00:05:12\tIda Lind:\tIs the pump here?\n00:05:40\tBo:\tSince noon.\nIt came: by truck.\n"


def test_a_chat_of_zoom(tmp_path: Path) -> None:
    assert heard(tmp_path, "chat.txt", ZOOM) == [
        "Ida Lind | Is the pump here?",
        "Bo | Acme | Since noon. It came: by truck.",
        "Ida Lind | Thank you",
    ]
    assert heard(tmp_path, "chat.txt", OLDER_ZOOM) == ["Ida Lind | Is the pump here?", "Bo | Since noon."]
    assert heard(tmp_path, "chat.txt", RECORDED_ZOOM) == [
        "Ida Lind | Is the pump here?",
        "Bo | Since noon. It came: by truck.",
    ]
    assert [one.at for one in transcript(tmp_path, "chat.txt", RECORDED_ZOOM).utterances] == [312.0, 340.0]
    folder = tmp_path / "2023-05-03 09.00.00 Harbour weekly"
    folder.mkdir()
    found = transcript(folder, "meeting_saved_chat.txt", ZOOM)
    assert [one.at for one in found.utterances] == [0.0, 28.0, 38.0]
    assert found.started == datetime(2023, 5, 3, 9, 0, 12).astimezone()
    dated = "2023-05-03 23:59:50 From Ida to Everyone:\n\tHello\n2023-05-04 00:00:10 From Bo to Everyone:\n\tHi\n"
    found = transcript(tmp_path, "chat.txt", dated)
    assert [one.at for one in found.utterances] == [0.0, 20.0]
    assert found.started == datetime(2023, 5, 3, 23, 59, 50).astimezone()


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.txt", "Good morning.\nIs the pump here?\n", ["Unknown | Good morning.", "Unknown | Is the pump here?"]),
        (
            "a.txt",
            "[SPEAKER_00]: Good morning.\n[SPEAKER_01]: Is the pump here?\n",
            ["SPEAKER_00 | Good morning.", "SPEAKER_01 | Is the pump here?"],
        ),
        ("a.txt", "(speaker 0) Good morning.\n(speaker ?) Is it?\n", ["Speaker 0 | Good morning.", "Unknown | Is it?"]),
        (
            "a.txt",
            "SPEAKER: S1\nGood morning.\n\nSPEAKER: S2\nIs the pump here?\n",
            ["S1 | Good morning.", "S2 | Is the pump here?"],
        ),
        (
            "a.txt",
            "[00:00:00.000 --> 00:00:02.000]  (speaker 0) Good morning.\n[00:00:02.000 --> 00:00:03.000]   Yes.\n",
            ["Speaker 0 | Good morning.", "Unknown | Yes."],
        ),
        (
            "a.lrc",
            "[by:whisper.cpp]\n[00:00.00] Good morning.\n[00:02.50](speaker 1) Is the pump here?\n",
            ["Unknown | Good morning.", "Speaker 1 | Is the pump here?"],
        ),
        (
            "a.tsv",
            'start\tend\ttext\n0\t2000\t[SPEAKER_00]: Good morning.\n2000\t3000\t[SPEAKER_01]: Is "it" here?\n',
            ["SPEAKER_00 | Good morning.", 'SPEAKER_01 | Is "it" here?'],
        ),
        (
            "a.csv",
            'start,end,speaker,text\n0,2000,"0"," Good, morning."\n2000,3000,"1"," Is ""it"" here?"\n',
            ["Speaker 0 | Good, morning.", 'Speaker 1 | Is "it" here?'],
        ),
        (
            "a.csv",
            "Speaker Name,Start Time,End Time,Sentence\nIda Lind,00:03,00:05,Good morning.\n",
            ["Ida Lind | Good morning."],
        ),
        (
            "a.aud",
            "0.0\t2.0\t[[SPEAKER_00]]Good morning.\n2.0\t3.0\t[[SPEAKER_01]]Is it?\n",
            ["SPEAKER_00 | Good morning.", "SPEAKER_01 | Is it?"],
        ),
        (
            "a.txt",
            "The plan is this: we go.\nThen we stop.\nNobody: not even Bo.\nYes.\nNo.\n",
            [
                "Unknown | The plan is this: we go.",
                "Unknown | Then we stop.",
                "Unknown | Nobody: not even Bo.",
                "Unknown | Yes.",
                "Unknown | No.",
            ],
        ),
        (
            "a.txt",
            "We meet at 10:30\nand stop at 11:00\n",
            ["Unknown | We meet at 10:30", "Unknown | and stop at 11:00"],
        ),
    ],
)
def test_lines_and_tables_of_whisper_and_its_like(tmp_path: Path, name: str, text: str, expected: list[str]) -> None:
    assert heard(tmp_path, name, text) == expected


def test_times_with_frames_above_a_name_and_what_it_says(tmp_path: Path) -> None:
    text = "00:00:01:00 - 00:00:03:11\nSpeaker 1\nThin ice.\n\n00:00:04:00 - 00:00:06:02\nIda Lind\nTurn back.\n"
    found = transcript(tmp_path, "sequence.txt", text)
    assert [(one.speaker, one.text, one.at) for one in found.utterances] == [
        ("Speaker 1", "Thin ice.", 1.0),
        ("Ida Lind", "Turn back.", 4.0),
    ]


def test_jitsis_transcript_has_what_was_said_alone(tmp_path: Path) -> None:
    heading = (
        "Transcript of conference held at 3 May, 2023 in room a@b.example.org\n"
        "Initial people present at 11:59:00 PM:\nIda Berg\n\nTranscript, started at 11:59:00 PM:\n" + "_" * 80
    )
    said = (
        "<11:59:01 PM> Bo Dahl joined the conference\n<11:59:02 PM> Ida Berg: \n<11:59:26 PM> Ida Berg: It failed\n"
        "              on Monday.\n<11:59:39 PM> Bo Dahl raised their hand\n<12:00:05 AM> Bo Dahl: How many: forty?\n"
    )
    end = "_" * 80 + "\n\n\nEnd of transcript at 4 May, 2023 12:02:10 AM\n"
    found = transcript(tmp_path, "a.txt", f"{heading}\n{said}{end}")
    assert [(one.speaker, one.text, str(found.said_at(one))[:19]) for one in found.utterances] == [
        ("Ida Berg", "It failed on Monday.", "2023-05-03 23:59:26"),
        ("Bo Dahl", "How many: forty?", "2023-05-04 00:00:05"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "call-17.WAV\n\nida: [00:00:02] The pump came.\n\nbo: [00:00:04] Which one?\n",
        "ida(00:00:02)：The pump came.\n\nbo(00:00:04): Which one?\n",
        "ida（00:00:02）：The pump came.\nbo（00:00:04）：Which one?\n",
        "ida：[00:00:02] The pump came.\nbo：[00:00:04] Which one?\n",
        "Notes\nida: [00:00:02] The\npump came.\nbo: [00:00:04] Which one?\n",
        "时间：2023年5月3日 13:27\n\nida（00:02）\nThe pump came.\n\nbo（00:04）：\nWhich one?\n",
    ],
)
def test_names_and_times_before_colons_of_either_width(tmp_path: Path, text: str) -> None:
    found = transcript(tmp_path, "a.txt", text)
    assert [(one.speaker, one.text, one.at) for one in found.utterances] == [
        ("ida", "The pump came.", 2.0),
        ("bo", "Which one?", 4.0),
    ]


@pytest.mark.parametrize(
    ("heading", "moment"),
    [
        ("2023.05.03 수 오후 1:27 ・ 12분 30초", "2023-05-03T13:27"),
        ("2023. 5. 3. 오전 9:05", "2023-05-03T09:05"),
        ("2023年5月3日 13:27", "2023-05-03T13:27"),
        ("2023年5月3日(水) 午後1:27", "2023-05-03T13:27"),
        ("2023年05月03日 下午 1:27", "2023-05-03T13:27"),
    ],
)
def test_headings_of_east_asia_say_when_it_was(tmp_path: Path, heading: str, moment: str) -> None:
    text = f"회의\n{heading}\nida\n\n\n"
    text += "Speaker 1 00:03\nThe pump came.\n\nSpeaker 2 61:10\nWhich one?\n\n\nclovanote.naver.com\n"
    found = transcript(tmp_path, "a.txt", text)
    assert found.started is not None
    assert found.started.isoformat().startswith(moment)
    assert [(one.text, one.at) for one in found.utterances] == [("The pump came.", 3.0), ("Which one?", 3670.0)]


def test_a_chat_that_is_copied_of_webex(tmp_path: Path) -> None:
    text = (
        "from Ida Lind (Guest) to Everyone:    11:58  AM\nShall we sail?\nTo the island?\n"
        "from Bo Berg (Acme) to Everyone:    12:03  PM\nNo.\n"
    )
    assert [(one.speaker, one.text, one.at) for one in transcript(tmp_path, "chat.txt", text).utterances] == [
        ("Ida Lind (Guest)", "Shall we sail? To the island?", 0), ("Bo Berg (Acme)", "No.", 300),
    ]  # fmt: skip


def test_further_words_of_somebody_on_a_page_of_teams_have_their_own_times(tmp_path: Path) -> None:
    text = (
        "IL\nIda Lind\n1 minute 3 seconds1:03\nIda Lind 1 minute 3 seconds\nShall we sail?\n"
        "Ida Lind 1 minute 8 seconds\nNow?\n"
        "BB\nBo Berg\n1 minute 10 seconds1:10\nBo Berg 1 minute 10 seconds\nNo.\n"
        "IL\nIda Lind\n1 minute 12 seconds1:12\nIda Lind 1 minute 12 seconds\nGood.\n"
    )
    assert [(one.speaker, one.text, one.at) for one in transcript(tmp_path, "page.txt", text).utterances] == [
        ("Ida Lind", "Shall we sail?", 63), ("Ida Lind", "Now?", 68), ("Bo Berg", "No.", 70), ("Ida Lind", "Good.", 72),
    ]  # fmt: skip


def test_links_in_rich_text_are_their_words(tmp_path: Path) -> None:
    link = r'{\field{\*\fldinst{HYPERLINK "https://example.org/?t=%s"}}{\fldrslt @%s}} - %s\line '
    text = "".join(
        link % (second, time, who) + rf"{said}\line "
        for second, time, who, said in (
            (13, "0:13", "Ida", "Shall we sail?"),
            (71, "1:11", "Bo", "No."),
            (73, "1:13", "Ida", "Good."),
        )
    )
    assert [
        (one.speaker, one.text, one.at)
        for one in transcript(tmp_path, "call.rtf", (r"{\rtf1\ansi " + text + "}").encode()).utterances
    ] == [("Ida", "Shall we sail?", 13), ("Bo", "No.", 71), ("Ida", "Good.", 73)]


def test_titles_above_what_sonix_and_pauses_that_trint_writes_are_not_said(tmp_path: Path) -> None:
    sonix = "Crossing.mp3\nMonday\n\nIda: [00:00:03] Shall we sail?\n\nBo: [00:00:09] No.\n\nIda: [00:00:12] Fine.\n"
    trint = (
        "Ida [00:00:03] Shall we sail? [00:00:05][4.1]\n\nBo [00:00:09] No. [00:00:10][1.2]\n\nIda [00:00:12] Fine.\n"
    )
    for text in (sonix, trint):
        assert [(one.speaker, one.text, one.at) for one in transcript(tmp_path, "talk.txt", text).utterances] == [
            ("Ida", "Shall we sail?", 3), ("Bo", "No.", 9), ("Ida", "Fine.", 12),
        ]  # fmt: skip


@pytest.mark.parametrize("seconds", ["", ":03"])
def test_reactions_in_signal_export_s_text_are_not_said(tmp_path: Path, seconds: str) -> None:
    text = "".join(
        f"[2024-05-05 10:0{minute}{seconds}] {who}: {said}  \n(- Ida: 👍, Bo: ❤️ -)\n"
        for minute, (who, said) in enumerate((("Ida", "Shall we sail?"), ("Me", "No."), ("Ida", "Fine.")))
    )
    assert heard(tmp_path, "chat.md", text) == ["Ida | Shall we sail?", "Me | No.", "Ida | Fine."]


def test_names_in_bold_before_dates(tmp_path: Path) -> None:
    text = "**Ida Lind** 2024-05-05 10:00\nShall we sail?\n\n**Bo Berg** 2024-05-05 10:02\nNo.\n"
    assert heard(tmp_path, "talk.md", text) == ["Ida Lind | Shall we sail?", "Bo Berg | No."]


def test_a_table_that_somebody_shows_is_part_of_the_chat(tmp_path: Path) -> None:
    table = "| Name | Text |\n|---|---|\n| Ida | hello |\n| Bo | hi |"
    text = f"Ida: First.\nBo: Second.\nIda: Look at this:\n\n{table}\n\nIda: We go on.\nBo: Yes.\n"
    (tmp_path / "chat.md").write_text(text)
    said = read_transcript(tmp_path / "chat.md").utterances
    assert [one.speaker for one in said] == ["Ida", "Bo", "Ida", "Ida", "Bo"]
