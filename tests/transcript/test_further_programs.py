"""What programs write that few people know, in a table: each says the same, by the same people, at the same times."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

import pytest

from context_builder.errors import TranscriptError
from tests.transcript.reading import heard, transcript

ASKED, SAID, AGAIN = "Shall we sail?", "Not in this wind.", "Tomorrow, then."
TALK = [f"Ida Lind | {ASKED}", f"Bo Berg | {SAID}"]
MORE = [*TALK, f"Ida Lind | {AGAIN}"]
TURNS = [("Ida Lind", ASKED, 1.0), ("Bo Berg", SAID, 4.0)]


def named(start: str, who: str, text: str, unit: float = 1.0) -> list[dict[str, object]]:
    return [{start: at * unit, who: name, text: said} for name, said, at in TURNS]


def pdf(lines: list[str]) -> bytes:
    """Return a PDF document of one page with these lines."""
    drawn = zlib.compress(("BT /F 9 Tf 12 TL " + " ".join(f"({line}) Tj T*" for line in lines) + " ET").encode())
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
        b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (len(drawn), drawn),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    body = b"".join(b"%d 0 obj%s endobj\n" % (number, one) for number, one in enumerate(objects, start=1))
    return b"%PDF-1.4\n" + body + b"trailer<</Root 1 0 R/Size 6>>\nstartxref\n0\n%%EOF"


def ebu_stl() -> bytes:
    """Return the talk in EBU STL: a block of 1,024 bytes about it, and 128 for each subtitle."""
    about = b"850STL25.01000" + b"9" + b" " * 208 + b"23050323050300000020000200140231" + b"0" * 16 + b"11SWE"
    blocks = [
        bytes([0, number, 0, 255, 0, 0, 0, int(at), 0, 0, 0, int(at) + 1, 0, 20, 2, 0])
        + f"{who}: {text}".encode().ljust(112, b"\x8f")
        for number, (who, text, at) in enumerate(TURNS)
    ]
    return about.ljust(1024) + b"".join(blocks)


TIMED: dict[str, tuple[str, str | bytes]] = {
    "EBU STL": ("talk.stl", ebu_stl()),
    "YAML": (
        "talk.yaml",
        "turns:\n" + "".join(f"- start: {at}\n  speaker: {who}\n  text: >\n    {text}\n" for who, text, at in TURNS),
    ),
    "3Play": (
        "talk.json",
        json.dumps(
            {
                "words": [
                    ["1000", "Shall"],
                    ["1200", "we"],
                    ["1400", "sail?"],
                    ["4000", "Not in"],
                    ["4300", "this wind."],
                ],
                "paragraphs": ["1000", "4000"],
                "speakers": {"1000": "Ida Lind", "4000": "Bo Berg"},
            }
        ),
    ),
    "SubRip without ends": (
        "talk.srt",
        "1\n00:00:01,000 -->\nIda Lind: Shall we sail?\n\n2\n00:00:04,000 --> \nBo Berg: Not in this wind.\n",
    ),
    "frames of drop-frame": (
        "talk.txt",
        "Ida Lind\t00:00:01;12\nShall we sail?\n\nBo Berg\t00:00:04;02\nNot in this wind.\n",
    ),
    "Webex": ("talk.json", json.dumps({"items": named("offsetMillisecond", "personName", "text", 1000)})),
    "Amazon's scribe": (
        "talk.json",
        json.dumps(
            {
                "Conversation": {
                    "TranscriptSegments": [
                        {"BeginAudioTime": at, "Content": text, "ParticipantDetails": {"ParticipantRole": who}}
                        for who, text, at in TURNS
                    ]
                }
            }
        ),
    ),
    "FunASR": (
        "talk.json",
        json.dumps(
            [
                {
                    "key": "a",
                    "text": "x",
                    "timestamp": [[0, 1]],
                    "sentence_info": [
                        {"text": text, "start": at * 1000, "end": at * 1000 + 900, "spk": who}
                        for who, text, at in TURNS
                    ],
                }
            ]
        ),
    ),
    "Clova": (
        "talk.json",
        json.dumps(
            {
                "text": "x",
                "segments": [
                    {
                        "start": int(at * 1000),
                        "end": int(at * 1000) + 900,
                        "text": text,
                        "speaker": {"label": "1", "name": who},
                    }
                    for who, text, at in TURNS
                ],
            }
        ),
    ),
    "Tencent": (
        "talk.json",
        json.dumps({"Response": {"Data": {"ResultDetail": named("StartMs", "SpeakerName", "FinalSentence", 1000)}}}),
    ),
    "Volcengine": (
        "talk.json",
        json.dumps(
            {
                "resp": {
                    "text": "x",
                    "utterances": [
                        {
                            "text": text,
                            "start_time": at * 1000,
                            "end_time": at * 1000 + 900,
                            "additions": {"speaker": who},
                        }
                        for who, text, at in TURNS
                    ],
                }
            }
        ),
    ),
    "NeMo": (
        "talk.json",
        json.dumps(
            {
                "status": "x",
                "words": [{"word": "x", "start_time": 1.0}],
                "sentences": named("start_time", "speaker", "text"),
            }
        ),
    ),
    "a table in Italian": (
        "talk.csv",
        "Ora;Relatore;Testo\n00:01;Ida Lind;Shall we sail?\n00:04;Bo Berg;Not in this wind.\n",
    ),
    "a table in Japanese": (
        "talk.csv",
        "時間,話者,発言\n00:01,Ida Lind,Shall we sail?\n00:04,Bo Berg,Not in this wind.\n",
    ),
    "Excel's separator": (
        "talk.csv",
        "sep=;\nStart;Ende;Sprecher;Text\n1,0;2,0;Ida Lind;Shall we sail?\n4,0;5,0;Bo Berg;Not in this wind.\n",
    ),
    "bars": (
        "talk.csv",
        "# of ours\nstart|speaker|text\n00:01|Ida Lind|Shall we sail?\n00:04|Bo Berg|Not in this wind.\n",
    ),
    "seconds named": (
        "talk.csv",
        "Speaker Name,Start (s),Text\nIda Lind,1.0,Shall we sail?\nBo Berg,4.0,Not in this wind.\n",
    ),
    "milliseconds named": (
        "talk.csv",
        "speaker_id,start_ms,text\nIda Lind,1000,Shall we sail?\nBo Berg,4000,Not in this wind.\n",
    ),
    "ELAN's table": (
        "talk.txt",
        "".join(
            f"{who}\t\t00:00:0{at:.3f}\t{at}\t00:00:06.000\t6.0\t00:00:01.000\t1.0\t{text}\n" for who, text, at in TURNS
        ),
    ),
    "times in bold": ("talk.md", "**[00:01] Ida Lind:** Shall we sail?\n\n**[00:04] Bo Berg:** Not in this wind.\n"),
    "times behind bold names": (
        "talk.md",
        "**Ida Lind (00:01):** Shall we sail?\n\n**Bo Berg (00:04):** Not in this wind.\n",
    ),
    "times before bold names": (
        "talk.md",
        "0:01 - **Ida Lind**\n  Shall we sail?\n\n0:04 - **Bo Berg**\n  Not in this wind.\n",
    ),
    "a quotation": ("talk.md", "> **Ida Lind** 00:01\n> Shall we sail?\n\n> **Bo Berg** 00:04\n> Not in this wind.\n"),
    "a page with spans": (
        "talk.html",
        "".join(
            f'<div><span class="speaker">{who}</span><span>00:0{at:.0f}</span><p>{text}</p></div>'
            for who, text, at in TURNS
        ),
    ),
    "Transana": ("talk.txt", "¤<1000>Ida Lind: Shall we sail?\n¤<4000>Bo Berg: Not in this wind.\n"),
}


MORE_TIMED: dict[str, tuple[str, str | bytes]] = {
    "aTrain": (
        "talk.txt",
        "Transcription for a.mp3\n\nIda Lind\n[00:00:01] - Shall we sail?\n\nBo Berg\n[00:00:04] - Not in this wind.\n",
    ),
    "a speaker and a range, both in brackets": (
        "talk.txt",
        "[Ida Lind] [00:00:01.000 --> 00:00:03.204]: Shall we sail?\n"
        "[Bo Berg] [00:00:04.000 --> 00:00:05.000]: Not in this wind.\n",
    ),
    "Spruce": (
        "talk.stl",
        "//Font\n$FontName = Arial\n\n00:00:01:00 , 00:00:02:00 , Ida Lind: Shall we|sail?\n"
        "00:00:04:00 , 00:00:05:00 , ^IBo Berg: Not in this wind.^I\n",
    ),
    "Avid": (
        "talk.txt",
        "@ Written by a plugin\n\n<begin subtitles>\n\n00:00:01:00 00:00:02:00\nIda Lind: Shall we sail?\n\n"
        "00:00:04:00 00:00:05:00\nBo Berg: Not in this wind.\n\n<end subtitles>\n",
    ),
    "QuickTime": (
        "talk.txt",
        "{QTtext} {font:Tahoma}\n{timeScale:30}\n[00:00:01.00]\nIda Lind: Shall we\nsail?\n[00:00:02.00]\n\n"
        "[00:00:04.00]\nBo Berg: Not in this wind.\n[00:00:05.00]\n",
    ),
    "lyrics that come sooner": (
        "talk.lrc",
        "[offset:+500]\n[00:01.50]Ida Lind: Shall we sail?\n[00:04.50]Bo Berg: Not in this wind.\n",
    ),
    "TEI": (
        "talk.xml",
        '<TEI><teiHeader><person xml:id="a"><persName>Ida Lind</persName></person><person xml:id="b"><persName>'
        "<forename>Bo</forename> <surname>Berg</surname></persName></person></teiHeader><text><timeline>"
        '<when xml:id="T1" interval="1.0"/><when xml:id="T2" absolute="00:00:04"/></timeline><body>'
        '<u who="#a" start="#T1">Shall we sail?</u><u who="#b" start="#T2">Not in this wind.</u></body></text></TEI>',
    ),
    "arrows of two strokes": (
        "talk.srt",
        "1\n00:00:01,000 ==> 00:00:02,000\nIda Lind: Shall we sail?\n\n2\n00:00:04,000 --&gt; 00:00:05,000\n"
        "Bo Berg: Not in this wind.\n",
    ),
    "seconds in brackets": (
        "talk.txt",
        "(1.0, 2.0) Ida Lind: Shall we sail?\n(4.0, 5.0) Bo Berg: Not in this wind.\n",
    ),
    "a .gz": ("talk.json.gz", gzip.compress(json.dumps(named("start", "speaker", "text")).encode())),
}


@pytest.mark.parametrize("name", [*TIMED, *MORE_TIMED])
def test_who_said_what_and_when(name: str, tmp_path: Path) -> None:
    file, content = {**TIMED, **MORE_TIMED}[name]
    found = transcript(tmp_path, file, content).utterances
    assert [(one.speaker, one.text) for one in found] == [(who, text) for who, text, _ in TURNS]
    assert [one.at for one in found] == pytest.approx([1.0, 4.0])


RANGES = {
    "aTrain's for MAXQDA": "SPEAKER_00\n[00:00:01] - Shall we sail? [00:00:04] - Not in this wind. \n",
    "pyannote-whisper": "1.00 3.44 SPEAKER_00  Shall we sail?\n4.00 4.84 SPEAKER_00  Not in this wind.\n",
    "whisper_streaming": "2691.4399 1000 1380 Shall we sail?\n6914.5501 4000 4940 Not in this wind.\n",
}


@pytest.mark.parametrize("name", RANGES)
def test_times_before_what_is_said_are_not_said(name: str, tmp_path: Path) -> None:
    found = transcript(tmp_path, "talk.txt", RANGES[name]).utterances
    assert [(one.text, one.at) for one in found] == [(ASKED, 1.0), (SAID, 4.0)]
    assert {one.speaker for one in found} <= {"SPEAKER_00", "Unknown"}


def test_a_heading_above_times_with_names_is_nobody(tmp_path: Path) -> None:
    text = f"Our talk\n[00:00:01] - Ida Lind: {ASKED}\n[00:00:04] - Bo Berg: {SAID}\n"
    assert heard(tmp_path, "talk.txt", text) == TALK


MOMENT = 1683104401


MESSAGES: dict[str, tuple[str, object]] = {
    "LinkedIn": (
        "m.csv",
        "FROM,TO,DATE,CONTENT\nIda Lind,Bo,2023-05-03 09:00:01 UTC,Shall we sail?\n"
        "Bo Berg,Ida,2023-05-03 09:00:04 UTC,Not in this wind.\n",
    ),
    "Snapchat": (
        "m.json",
        {
            "bo": [
                {"From": who, "Created": f"2023-05-03 09:00:0{at:.0f} UTC", "Content": text} for who, text, at in TURNS
            ]
        },
    ),
    "Telegram's bots": (
        "m.json",
        {
            "result": [
                {
                    "message": {
                        "from": {"id": 1, "first_name": who.split()[0], "last_name": who.split()[1]},
                        "date": MOMENT - 1 + at,
                        "text": text,
                    }
                }
                for who, text, at in TURNS
            ]
        },
    ),
    "Twitter's archive": (
        "direct-messages.js",
        "window.YTD.direct_messages.part0 = "
        + json.dumps(
            [
                {
                    "dmConversation": {
                        "messages": [
                            {
                                "messageCreate": {
                                    "senderId": who,
                                    "text": text,
                                    "createdAt": f"2023-05-03T09:00:0{at:.0f}.000Z",
                                }
                            }
                            for who, text, at in reversed(TURNS)
                        ]
                    }
                }
            ]
        ),
    ),
    "Signal's export": (
        "main.jsonl",
        "\n".join(
            map(
                json.dumps,
                [
                    {"account": {"givenName": "Ida", "familyName": "Lind"}},
                    {"recipient": {"id": "1", "self": {}}},
                    {"recipient": {"id": "2", "contact": {"profileGivenName": "Bo", "profileFamilyName": "Berg"}}},
                    *(
                        {
                            "chatItem": {
                                "authorId": str(n),
                                "dateSent": f"{MOMENT - 1 + at:.0f}000",
                                "standardMessage": {"text": {"body": text}},
                            }
                        }
                        for n, (_, text, at) in enumerate(TURNS, start=1)
                    ),
                ],
            )
        ),
    ),
    "Signal's desktop": (
        "m.json",
        [
            {
                "conversationId": "c",
                "type": "incoming",
                "source": who,
                "body": text,
                "sent_at": (MOMENT - 1 + at) * 1000,
            }
            for who, text, at in TURNS
        ],
    ),
    "a live video's chat": (
        "m.json",
        "\n".join(
            json.dumps(
                {
                    "replayChatItemAction": {
                        "actions": [
                            {
                                "addChatItemAction": {
                                    "item": {
                                        "liveChatTextMessageRenderer": {
                                            "message": {"runs": [{"text": text}]},
                                            "authorName": {"simpleText": who},
                                            "timestampUsec": f"{MOMENT - 1 + at:.0f}000000",
                                        }
                                    }
                                }
                            }
                        ]
                    }
                }
            )
            for who, text, at in TURNS
        ),
    ),
    "Google's CCAI": (
        "m.json",
        {
            "entries": named("start_timestamp_usec", "role", "text", 1)
            and [
                {"text": text, "role": who, "start_timestamp_usec": int((MOMENT - 1 + at) * 1e6)}
                for who, text, at in TURNS
            ]
        },
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_have_their_moments(name: str, tmp_path: Path) -> None:
    found = transcript(tmp_path, *MESSAGES[name])
    assert [f"{one.speaker} | {one.text}" for one in found.utterances] == TALK
    assert found.started is not None
    assert found.started.timestamp() == pytest.approx(MOMENT, abs=0.01)


@pytest.mark.parametrize(
    "text",
    [
        "## Ida Lind\n\nShall we sail?\n\n## Bo Berg\n\nNot in this wind.\n\n## Ida Lind\n\nTomorrow, then.\n",
        "- **Ida Lind**: Shall we sail?\n- **Bo Berg**: Not in this wind.\n- **Ida Lind**: Tomorrow, then.\n",
        "Ida Lind\n\nShall we sail?\n\nBo Berg\n\nNot in this wind.\n\nIda Lind\n\nTomorrow, then.\n",
        "Ida Lind – Shall we sail?\nBo Berg – Not in this wind.\nIda Lind – Tomorrow, then.\n",
        "Ida Lind (00:00:01) Shall we sail?\nBo Berg (00:00:04) Not in this wind.\n"
        "Ida Lind (00:00:09) Tomorrow, then.\n",
        "1: Ida Lind: Shall we sail?\n2: Bo Berg: Not in this wind.\n3: Ida Lind: Tomorrow, then.\n",
        "<dl><dt>Ida Lind</dt><dd>Shall we sail?</dd><dt>Bo Berg</dt><dd>Not in this wind.</dd>"
        "<dt>Ida Lind</dt><dd>Tomorrow, then.</dd></dl>",
    ],
)
def test_names_stand_in_many_places(text: str, tmp_path: Path) -> None:
    assert heard(tmp_path, "talk.html" if text[0] == "<" else "talk.md", text) == MORE


def test_a_table_of_names_and_texts_needs_no_heading(tmp_path: Path) -> None:
    table = 'Ida Lind,Shall we sail?\nBo Berg,Not in this wind.\nIda Lind,"Tomorrow, then."\n'
    assert heard(tmp_path, "talk.csv", table) == MORE


def test_names_of_plays_and_pages_of_models(tmp_path: Path) -> None:
    play = "IDA. Shall we sail?\nSoon?\n\nBO. Not in this wind.\n\nIDA. Tomorrow, then.\n"
    assert heard(tmp_path, "play.txt", play) == [
        "IDA | Shall we sail? Soon?",
        "BO | Not in this wind.",
        f"IDA | {AGAIN}",
    ]
    page = "You said:\nShall we sail?\nChatGPT said:\nNot in this wind.\nYou said:\nTomorrow, then.\n"
    assert heard(tmp_path, "page.txt", page) == [f"You | {ASKED}", f"ChatGPT | {SAID}", f"You | {AGAIN}"]


ASKED_AND_ANSWERED: dict[str, tuple[str, object]] = {
    "a prompt": ("a.jsonl", json.dumps({"prompt": ASKED, "completion": SAID})),
    "an instruction": ("a.json", [{"instruction": ASKED, "input": "", "output": SAID}]),
    "a history": ("a.json", {"internal": [["x", SAID]], "visible": [[ASKED, SAID]]}),
    "a log": (
        "a.jsonl",
        json.dumps(
            {
                "request": {"messages": [{"role": "user", "content": ASKED}]},
                "response": {"choices": [{"message": {"role": "assistant", "content": SAID}}]},
            }
        ),
    ),
    "threads": (
        "a.json",
        {
            "data": [
                {
                    "created_at": MOMENT,
                    "role": "user",
                    "content": [{"type": "text", "text": {"value": ASKED, "annotations": []}}],
                },
                {"created_at": MOMENT + 3, "role": "assistant", "content": [{"type": "text", "text": {"value": SAID}}]},
            ]
        },
    ),
    "LM Studio": (
        "a.json",
        {
            "messages": [
                {"versions": [{"role": "user", "content": [{"type": "text", "text": ASKED}]}], "currentlySelected": 0},
                {
                    "versions": [
                        {"role": "x", "content": "x"},
                        {"role": "assistant", "steps": [{"content": [{"text": SAID}]}]},
                    ],
                    "currentlySelected": 1,
                },
            ]
        },
    ),
    "Codex": (
        "a.jsonl",
        "\n".join(
            json.dumps(
                {
                    "timestamp": "2023-05-03T09:00:01Z",
                    "type": kind,
                    "payload": {"type": "message", "role": role, **said},
                }
            )
            for kind, role, said in [
                ("response_item", "user", {"content": [{"type": "input_text", "text": ASKED}]}),
                ("event_msg", "user", {"message": ASKED}),
                ("response_item", "assistant", {"content": [{"type": "output_text", "text": SAID}]}),
            ]
        ),
    ),
    "thoughts": (
        "a.json",
        {
            "contents": [
                {"role": "user", "parts": [{"text": ASKED}]},
                {"role": "assistant", "parts": [{"text": "Hm.", "thought": True}, {"text": SAID}]},
            ]
        },
    ),
    "server-sent events": (
        "a.txt",
        f'event: x\ndata: {{"role": "user", "content": "{ASKED}"}}\n\n'
        f'data: {{"role": "assistant", "content": "{SAID}"}}\n\ndata: [DONE]\n',
    ),
}


@pytest.mark.parametrize("name", ASKED_AND_ANSWERED)
def test_questions_to_models_and_answers(name: str, tmp_path: Path) -> None:
    assert heard(tmp_path, *ASKED_AND_ANSWERED[name]) == [f"user | {ASKED}", f"assistant | {SAID}"]


def test_scenarist(tmp_path: Path) -> None:
    captions = (
        "Scenarist_SCC V1.0\n\n00:00:01:00\t"
        "94ae 94ae 9420 9420 9470 9470 5368 616c 6c20 7765 2073 6169 6cbf 942f 942f\n\n"
        "00:00:02:00\t942c 942c\n"
    )
    assert heard(tmp_path, "talk.scc", captions) == [f"Unknown | {ASKED}"]
    with pytest.raises(TranscriptError, match=r"holds nothing|cannot be read"):
        heard(tmp_path, "bad.scc", "Scenarist_SCC V1.0\n\n00:00:01:00\tzzzz\n")


def test_a_document_that_is_printed(tmp_path: Path) -> None:
    assert heard(tmp_path, "talk.pdf", pdf([f"{who}: {text}" for who, text, _ in TURNS])) == TALK
    with pytest.raises(TranscriptError, match="without text"):
        heard(tmp_path, "scan.pdf", pdf([]))


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.wts", "#!/bin/bash\nffmpeg -i a.wav\n", "a script that makes a video"),
        ("a.yaml", "a: &x [1]\nb: *x\n", "YAML with aliases"),
        ("a.yaml", "a: [", "not YAML"),
    ],
)
def test_refused_in_a_line(name: str, content: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match=why):
        heard(tmp_path, name, content)


@pytest.mark.parametrize(
    ("morning", "afternoon"),
    [("9:05 π.μ.", "2:10 μ.μ."), ("9:05 SA", "2:10 CH"), ("ÖÖ 9:05", "ÖS 2:10"), ("de. 9:05", "du. 2:10"),
     ("9:05 पूर्वाह्न", "2:10 अपराह्न"), ("9:05 ap.", "2:10 ip."), ("9:05 ق.ظ.", "2:10 ب.ظ.")],
)  # fmt: skip
def test_halves_of_the_day_in_many_languages(morning: str, afternoon: str, tmp_path: Path) -> None:
    chat = f"13/8/2024, {morning} - Ida Lind: {ASKED}\n13/8/2024, {afternoon} - Bo Berg: {SAID}\n"
    found = transcript(tmp_path, "WhatsApp Chat.txt", chat).utterances
    assert [one.at for one in found] == [0.0, 5 * 3600 + 5 * 60]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [("Dobrý den, začneme schůzi. Přišli všichni?", "cp1250"),
     ("Où est le café? C'était très bien, à bientôt.", "cp1252"),
     ("Über die Brücke, größer als früher.", "cp1252")],
)  # fmt: skip
def test_letters_of_central_europe_are_told_from_western_ones(text: str, encoding: str, tmp_path: Path) -> None:
    assert heard(tmp_path, "a.txt", f"Ida: {text}\nBo: {text}\nIda: {text}\n".encode(encoding))[0] == f"Ida | {text}"


@pytest.mark.parametrize("end", ["\u2028", "\x85"])
def test_lines_that_end_in_unicode(end: str, tmp_path: Path) -> None:
    assert heard(tmp_path, "a.txt", end.join(["Ida: Shall we sail?", "Bo: No.", "Ida: Why?"])) == [
        "Ida | Shall we sail?", "Bo | No.", "Ida | Why?",
    ]  # fmt: skip


def test_further_logs_of_irc(tmp_path: Path) -> None:
    said = ["ida | Shall we sail?", "ida | sighs"]
    konversation = "[Wednesday, May 3, 2023] [09:00:01 AM CEST] {}\n"
    assert (
        heard(tmp_path, "a.log", konversation.format("<ida>\tShall we sail?") + konversation.format("* ida sighs"))
        == said
    )
    assert (
        heard(
            tmp_path, "b.log", "[00:00] --- Wed May  3 2023\n[09:00] <ida> Shall we sail?\n[09:05] Action: ida sighs\n"
        )
        == said
    )


def test_words_of_an_aligner_are_sentences(tmp_path: Path) -> None:
    def tier(kind: str, name: str, parts: list[tuple[str, str]]) -> str:
        listed = "".join(f'{times}\n"{text}"\n' for times, text in parts)
        return f'"{kind}"\n"{name}"\n0\n9\n{len(parts)}\n{listed}'

    tiers = [
        tier("IntervalTier", "ida - words", [("1\n1.2", "shall"), ("1.2\n1.4", "we"), ("4\n5", "sail")]),
        tier("IntervalTier", "ida - phones", [("1\n1.1", "SH"), ("1.1\n1.2", "AE1")]),
        tier("TextTier", "bell", [("3", "H*")]),
    ]
    grid = 'File type = "ooTextFile"\n"TextGrid"\n0\n9\n<exists>\n3\n' + "".join(tiers)
    assert heard(tmp_path, "a.TextGrid", grid) == ["ida | shall we", "ida | sail"]


@pytest.mark.parametrize(
    "line",
    [
        "2023-05-03T09:00:0{}Z {}: {}",
        "[2023-05-03T11:00:0{}.000+02:00] {}: {}",
        "168310440{} <{}> {}",
        "2023-05-03 09:00:0{},000Z INFO app.transcript: {}: {}",
    ],
)
def test_lines_that_begin_with_a_moment(line: str, tmp_path: Path) -> None:
    found = transcript(tmp_path, "a.log", "\n".join(line.format(int(at), who, text) for who, text, at in TURNS))
    assert [(one.speaker, one.text, one.at) for one in found.utterances] == [
        (who, text, at - 1) for who, text, at in TURNS
    ]
    assert found.started is not None
    assert found.started.timestamp() == MOMENT


def test_hansard_has_seats_and_parties_behind_names(tmp_path: Path) -> None:
    house = (
        "Ida Lind (Harbour) (Lab)\nShall we sail?\n\nBo Berg (Sea) (Con)\nNot in this wind.\n\nIda Lind\nTomorrow.\n"
    )
    assert [one.partition(" (")[0].partition(" |")[0] for one in heard(tmp_path, "a.txt", house)] == [
        "Ida Lind",
        "Bo Berg",
        "Ida Lind",
    ]


def test_a_name_and_a_time_of_hours_with_one_blank_between(tmp_path: Path) -> None:
    text = (
        "Ida Lind 00:00:01\nShall we sail?\n\nBo Berg 00:00:04\nNot in this wind.\n\n"
        "Ida Lind 00:00:09\nTomorrow, then.\n"
    )
    assert heard(tmp_path, "talk.txt", text) == MORE


def test_turns_as_models_are_given_them(tmp_path: Path) -> None:
    said = [f"user | {ASKED}", f"assistant | {SAID}"]
    marked = "<|im_start|>system\nx<|im_end|>\n<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n{}<|im_end|>\n"
    assert heard(tmp_path, "a.txt", marked.format(ASKED, SAID)) == said
    headed = "<|start_header_id|>{}<|end_header_id|>\n\n{}<|eot_id|>"
    assert heard(tmp_path, "b.txt", headed.format("user", ASKED) + headed.format("assistant", SAID)) == said


def test_pages_of_imessage_exporter(tmp_path: Path) -> None:
    message = (
        '<div class="message"><span class="timestamp">May 03, 2023  9:00:0{} AM</span><span class="sender">{}</span>'
        '<span class="bubble">{}</span></div>'
    )
    page = "".join(message.format(int(at), who, text) for who, text, at in TURNS)
    assert heard(tmp_path, "a.html", f"<html><body>{page}</body></html>") == TALK


def test_a_line_of_a_mailbox_that_begins_with_from(tmp_path: Path) -> None:
    message = (
        "From x Wed May  3 09:00:01 2023\nFrom: Ida <i@x.se>\nSubject: x\n"
        "Date: Wed, 3 May 2023 09:00:01 +0000\n\n{}\n\n"
    )
    mailbox = message.format("Yes.\n>From here.") + message.format("No.")
    assert heard(tmp_path, "a.mbox", mailbox) == ["Ida | Yes. From here.", "Ida | No."]


def test_what_a_page_in_a_mail_quotes_is_left_out(tmp_path: Path) -> None:
    mail = "From: Ida <i@x.se>\nSubject: x\nDate: Wed, 3 May 2023 09:00:01 +0000\nContent-Type: text/html\n\n{}\n"
    assert heard(tmp_path, "a.eml", mail.format("<p>Yes.</p><blockquote>Shall we?</blockquote>")) == ["Ida | Yes."]


def test_words_of_files_in_a_bucket_and_of_chunks(tmp_path: Path) -> None:
    words = [{"startOffset": "1s", "word": "Yes.", "speakerLabel": "1"}]
    answer = {
        "results": {
            "gs://b/a.wav": {"inlineResult": {"transcript": {"results": [{"alternatives": [{"words": words}]}]}}}
        }
    }
    assert heard(tmp_path, "a.json", answer) == ["Speaker 1 | Yes."]
    chunks = {
        "response": {"chunks": [{"alternatives": [{"text": "Yes.", "words": [{"word": "Yes."}]}], "channelTag": "1"}]}
    }
    assert heard(tmp_path, "b.json", chunks) == ["Channel 1 | Yes."]


def test_fields_of_who_and_when_that_programs_call_otherwise(tmp_path: Path) -> None:
    for who, when in (
        ("actorDisplayName", "date_created"),
        ("sender_display_name", "sent_at"),
        ("personEmail", "published_at"),
        ("voice", "created_on"),
    ):
        entries = [{who: name, "text": text, when: f"2023-05-03T09:00:0{int(at)}Z"} for name, text, at in TURNS]
        told = transcript(tmp_path, "a.json", {"items": entries[::-1]})
        assert [(one.speaker, one.text, one.at) for one in told.utterances] == [
            (name, text, at - 1) for name, text, at in TURNS
        ]


def test_moments_beside_times_from_the_beginning(tmp_path: Path) -> None:
    entries = [
        {"speaker": who, "text": text, "start": at, "created_at": f"2023-05-03T09:00:0{int(at)}Z"}
        for who, text, at in TURNS
    ]
    started = transcript(tmp_path, "a.json", {"comments": entries}).started
    assert started is not None
    assert started.isoformat().startswith("2023-05-03T09:00:00")
    entries[1]["created_at"] = entries[0]["created_at"]  # when it was written down
    entries[1]["start"] = 400.0
    assert transcript(tmp_path, "b.json", {"comments": entries}).started is None


def test_words_in_a_list_are_joined_by_speaker(tmp_path: Path) -> None:
    spoken = [(n, word) for n, text in enumerate((ASKED, SAID)) for word in text.replace("?", " ?").split()]
    tokens = [
        {"token": word, "startTime": f"{at}s", "endTime": f"{at}.9s", "speakerIndex": n}
        for at, (n, word) in enumerate(spoken)
    ]
    answer = {"transcriptions": [{"transcription": f"{ASKED} {SAID}", "tokens": tokens}]}
    assert heard(tmp_path, "a.json", answer) == [f"Speaker 0 | {ASKED}", f"Speaker 1 | {SAID}"]


def test_shapes_of_documents(tmp_path: Path) -> None:
    segments = [{"start": 1.0, "end": 2.0, "text": f"<|en|><|0.00|> {ASKED}<|1.00|>"}]
    assert heard(tmp_path, "a.json", {"text": "", "segments": segments}) == [f"Unknown | {ASKED}"]
    spoken = [{"speaker_id": "Ida Lind", "start": 1.0, "end": 2.0, "text": ASKED}]
    assert heard(tmp_path, "b.json", {"segments": segments, "speaker_segments": spoken}) == TALK[:1]
    utterances = [{"speaker": who, "start": at, "end": at + 1, "text": text} for who, text, at in TURNS]
    told = transcript(tmp_path, "c.json", {"utterances": utterances})  # seconds, not AssemblyAI's milliseconds
    assert [one.at for one in told.utterances] == [1.0, 4.0]
    events = [
        {"event": "user", "text": ASKED, "timestamp": 1683104401.0},
        {"event": "bot", "text": SAID, "timestamp": 1683104404.0},
        {"event": "slot", "name": "city", "value": "Porto", "timestamp": 1683104405.0},
    ]
    assert heard(tmp_path, "d.json", {"events": events}) == [f"user | {ASKED}", f"bot | {SAID}"]
    message = {"actorDisplayName": "Ida Lind", "timestamp": 1683104401, "message": "{a}, {b}?"}
    named = {**message, "messageParameters": {"a": {"name": "Bo Berg"}}}
    assert heard(tmp_path, "e.json", {"data": [named, {**message, "messageType": "system"}]}) == [
        "Ida Lind | Bo Berg, {b}?"
    ]
    doubling = {f"k{n}": {"name": f"{{k{n + 1}}}" * 2} for n in range(40)}  # filled again, it would not fit in memory
    bomb = {**message, "message": "{k0}, no?", "messageParameters": doubling}
    assert heard(tmp_path, "bomb.json", {"data": [bomb]}) == ["Ida Lind | {k1}{k1}, no?"]
    source = {"body": ASKED, "author": {"name": "Ida Lind"}}
    reply = {"body": SAID, "author": {"name": "Bo Berg"}, "created_at": 1683104404}
    assert heard(tmp_path, "f.json", {"created_at": 1683104401, "source": source, "parts": [reply]}) == TALK


def test_lines_and_pages_of_further_programs(tmp_path: Path) -> None:
    lines = [f"{at} {at + 1} {who}: {text}\n" for who, text, at in TURNS]
    assert heard(tmp_path, "a.txt", "# a comment\n\n" + "\n".join(lines)) == TALK
    stamped = [f"[2023-05-03 09:00:0{int(at)} UTC] {who}: {text}\n" for who, text, at in TURNS]
    assert heard(tmp_path, "b.txt", "".join(stamped)) == TALK
    logged = f"2023-05-03T09:00:00  *** ida has joined #a\n2023-05-03T09:00:01  <ida> {ASKED}\n"
    assert heard(tmp_path, "c.log", logged) == [f"ida | {ASKED}"]
    goes_on = f"{logged}2023-05-03T09:00:02  *** bo has joined #a\ntomorrow?\n"
    assert heard(tmp_path, "i.log", goes_on) == [f"ida | {ASKED} tomorrow?"]
    copied = [f"[5/3 9:0{int(at)} AM] {who}\n{text}\n\n" for who, text, at in TURNS]
    assert heard(tmp_path, "d.txt", "".join(copied)) == TALK
    line = [f"{half}09:01\t{who}\t{text}\n" for half, (who, text, _) in zip(("上午", "下午"), TURNS, strict=True)]
    told = transcript(tmp_path, "e.txt", "[LINE]\n\n2023/05/03（三）\n" + "".join(line)).utterances
    assert [(one.speaker, one.at) for one in told] == [("Ida Lind", 0.0), ("Bo Berg", 43_200.0)]
    cited = [f"<cite>{who}:</cite>\n<time>0:0{int(at)}</time>\n<p>{text}</p>\n" for who, text, at in TURNS]
    assert heard(tmp_path, "f.html", "".join(cited)) == TALK
    spans = [f'<p><span class="speaker">[{who}] </span><span>{text}</span></p>' for who, text, _ in TURNS]
    assert heard(tmp_path, "g.html", f"<article>{''.join(spans)}</article>") == TALK
    words = "".join(
        f"a {channel} {at}.0 0.5 {word}\n" for at, (channel, word) in enumerate((("A", "yes"), ("B", "no")))
    )
    assert len({one.speaker for one in transcript(tmp_path, "h.ctm", words).utterances}) == 2


def test_chinese_that_is_taken_for_japanese(tmp_path: Path) -> None:
    text = "早安，今天的會議幾點開始？\n十點鐘，在三樓的會議室。\n好的，我馬上就到。\n別忘了帶報告。"
    cues = [f"{n}\n00:00:0{n},000 --> 00:00:0{n},900\n{line}\n" for n, line in enumerate(text.split("\n"), start=1)]
    said = [one.partition(" | ")[2] for one in heard(tmp_path, "a.srt", "\n".join(cues).encode("big5"))]
    assert said == text.split("\n")
