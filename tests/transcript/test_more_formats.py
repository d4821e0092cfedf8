"""Files of further programs, each as its own description has it: who said what, and when where the file tells."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from context_builder.errors import TranscriptError
from context_builder.transcript import read_transcript
from tests.transcript.reading import heard, transcript

TALK = ["Ida Lind | Shall we sail?", "Bo Berg | Not in this wind."]
TURNS = [("Ida Lind", "Shall we sail?", 1.0), ("Bo Berg", "Not in this wind.", 3.0)]


def named(**fields: str) -> list[dict[str, object]]:
    """Return the talk as objects whose fields are called so."""
    return [{fields["who"]: who, fields["text"]: text, fields["at"]: at} for who, text, at in TURNS]


def heard_of(file: Path) -> list[str]:
    return [f"{one.speaker} | {one.text}" for one in read_transcript(file).utterances]


FILES = {
    "SAMI": (
        "talk.smi",
        "<SAMI><BODY><SYNC Start=1000><P Class=EN>Ida Lind: Shall we<br>sail?<SYNC Start=2000><P Class=EN>&nbsp;"
        "<SYNC Start=3000><P Class=EN>Bo Berg: Not in this wind.</BODY></SAMI>",
    ),
    "MicroDVD": ("talk.sub", "{1}{1}25.0\n{25}{50}Ida Lind: Shall we|sail?\n{75}{100}Bo Berg: Not in this wind.\n"),
    "MPL2": ("talk.txt", "[10][20]Ida Lind: Shall we|sail?\n[30][40]Bo Berg: Not in this wind.\n"),
    "SubViewer": (
        "talk.sub",
        "[INFORMATION]\n[TITLE]Talk\n[END INFORMATION]\n[SUBTITLE]\n00:00:01.00,"
        "00:00:02.00\nIda Lind: Shall we[br]sail?\n\n"
        "00:00:03.00,00:00:04.00\nBo Berg: Not in this wind.\n",
    ),
    "TextGrid": (
        "talk.TextGrid",
        'File type = "ooTextFile"\nObject class = "TextGrid"\n\nxmin = 0\nxmax = 5\ntiers? '
        "<exists>\nsize = 2\nitem []:\n"
        + "".join(
            f'item [{n}]:\nclass = "IntervalTier"\nname = "{who}"\nxmin = 0\nxmax = '
            f"5\nintervals: size = 1\nintervals [1]:\n"
            f'xmin = {at}\nxmax = {at + 1}\ntext = "{text}"\n'
            for n, (who, text, at) in enumerate(TURNS, start=1)
        ),
    ),
    "short TextGrid": (
        "talk.TextGrid",
        'File type = "ooTextFile"\n"TextGrid"\n0\n5\n<exists>\n2\n'
        + "".join(f'"IntervalTier"\n"{who}"\n0\n5\n1\n{at}\n{at + 1}\n"{text}"\n' for who, text, at in TURNS),
    ),
    "ELAN": (
        "talk.eaf",
        '<?xml version="1.0"?><ANNOTATION_DOCUMENT><TIME_ORDER>'
        + "".join(f'<TIME_SLOT TIME_SLOT_ID="t{at:.0f}" TIME_VALUE="{at * 1000:.0f}"/>' for *_, at in TURNS)
        + "</TIME_ORDER>"
        + "".join(
            f'<TIER TIER_ID="{who}"><ANNOTATION><ALIGNABLE_ANNOTATION TIME_SLOT_REF1="t{at:.0f}" TIME_SLOT_REF2="t9">'
            f"<ANNOTATION_VALUE>{text}</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION></TIER>"
            for who, text, at in TURNS
        )
        + '<TIER TIER_ID="gloss" PARENT_REF="Ida Lind"><ANNOTATION><REF_ANNOTATION>'
        "<ANNOTATION_VALUE>x</ANNOTATION_VALUE>"
        "</REF_ANNOTATION></ANNOTATION></TIER></ANNOTATION_DOCUMENT>",
    ),
    "Transcriber": (
        "talk.trs",
        '<?xml version="1.0"?>\n<!DOCTYPE Trans SYSTEM "trans-14.dtd">\n<Trans><Speakers>'
        '<Speaker id="a" name="Ida Lind"/>'
        '<Speaker id="b" name="Bo Berg"/></Speakers><Episode><Section><Turn speaker="a b" '
        'startTime="1"><Sync time="1"/>'
        '<Who nb="1"/>Shall we sail?<Sync time="3"/><Who nb="2"/>Not in this wind.</Turn></Section></Episode></Trans>',
    ),
    "EXMARaLDA": (
        "talk.exb",
        '<?xml version="1.0"?><basic-transcription><head><speakertable><speaker id="A">'
        "<abbreviation>Ida Lind</abbreviation>"
        '</speaker><speaker id="B"><abbreviation>Bo Berg</abbreviation></speaker></speakertable></head><basic-body>'
        '<common-timeline><tli id="T1" time="1"/><tli id="T3" time="3"/></common-timeline>'
        '<tier speaker="A" type="t"><event start="T1" end="T3">Shall we sail?</event></tier>'
        '<tier speaker="B" type="t"><event start="T3" end="T9">Not in this wind.</event></tier></basic-body>'
        "</basic-transcription>",
    ),
    "CHAT": (
        "talk.cha",
        "@UTF8\n@Begin\n@Participants:\tIDA Ida_Lind Adult, BOB Bo_Berg Adult\n*IDA:\tshall "
        "&-uh we\n\tsail ? \x151000_2000\x15\n"
        "%mor:\tx\n*BOB:\tnot in this wind . \x153000_4000\x15\n@End\n",
    ),
    "f4": ("talk.txt", "#00:00:01-0# Ida Lind: Shall we sail?\n#00:00:03-0# Bo Berg: Not in this wind.\n"),
    "a page": (
        "talk.html",
        "<html><p>0:01 <b>Ida Lind:</b> Shall we sail?</p><p>0:03 <b>Bo Berg:</b> Not in this wind.</p>",
    ),
    "oTranscribe": (
        "talk.otr",
        {
            "text": '<p><span class="timestamp">0:01</span>Ida Lind: Shall we sail?</p><p>0:03 '
            "Bo Berg: Not in this wind.</p>"
        },
    ),
    "Rich Text": ("talk.rtf", r"{\rtf1\ansi 0:01 Ida Lind: Shall we sail?\par 0:03 Bo Berg: Not in this wind.\par}"),
    "JSON with comments": (
        "talk.json",
        '// by hand\n{"turns": [ // all\n{"speaker": "Ida Lind", "text": "Shall we sail?", "start": 1},\n'
        "{speaker: 'Bo Berg', text: 'Not in this wind.', start: 3,},]}",
    ),
    "what Python prints": ("talk.json", str({"turns": named(who="speaker", text="text", at="start"), "ok": True})),
    "objects one after another": (
        "talk.json",
        '{\n"speaker": "Ida Lind", "text": "Shall we sail?", "start": 1}\n{"speaker": "Bo Berg",'
        ' "text": "Not in this wind.",\n'
        '"start": 3}',
    ),
    "a text within JSON": (
        "talk.json",
        {"id": 1, "transcript": "[0:01] Ida Lind: Shall we sail?\n[0:03] Bo Berg: Not in this wind."},
    ),
    "no ending": ("talk", "[0:01] Ida Lind: Shall we sail?\n[0:03] Bo Berg: Not in this wind.\n"),
    "times and names with a bar": (
        "talk.txt",
        "00:01 | Ida Lind\nShall we sail?\n00:03 | Bo Berg\nNot in this wind.\n",
    ),
    "bold names with times": (
        "talk.md",
        "**Ida Lind** *00:01*\n\nShall we sail?\n\n**Bo Berg** *00:03*\n\nNot in this wind.\n",
    ),
    "Avoma": (
        "talk.json",
        {
            "transcript": [
                {"speaker_id": n, "transcript": text, "timestamps": [at, at + 1]}
                for n, (_, text, at) in enumerate(TURNS)
            ],
            "speakers": [{"id": n, "name": who} for n, (who, _, _) in enumerate(TURNS)],
        },
    ),
    "Gong with its parties": (
        "talk.json",
        {
            "callTranscripts": [
                {"transcript": [{"speakerId": who[::-1], "sentences": [{"start": at * 1000, "text": text}]}]}
                for who, text, at in TURNS
            ],
            "parties": [{"speakerId": who[::-1], "name": who} for who, _, _ in TURNS],
        },
    ),
    "Amazon Connect": (
        "talk.json",
        {
            "Segments": [
                {"Transcript": {"ParticipantRole": who, "Content": text, "BeginOffsetMillis": int(at * 1000)}}
                for who, text, at in TURNS
            ]
        },
    ),
    "words of a turn": (
        "talk.json",
        [{"speaker": who, "words": [{"text": word, "start": at} for word in text.split()]} for who, text, at in TURNS],
    ),
    "whole milliseconds": (
        "talk.json",
        [
            {"speaker": who, "text": text, "start": int(at * 1000), "end": int(at * 1000) + 900}
            for who, text, at in TURNS
        ],
    ),
    "Chorus": ("talk.json", {"utterances": named(who="speaker_name", text="snippet", at="snippet_time")}),
    "ElevenLabs' agents": ("talk.json", {"transcript": named(who="role", text="message", at="time_in_call_secs")}),
    "ticks": (
        "talk.json",
        {"lines": [{"name": who, "text": text, "offsetInTicks": at * 1e7} for who, text, at in TURNS]},
    ),
    "words with paragraphs": (
        "talk.json",
        {
            "words": [{"text": word, "start": at} for _, text, at in TURNS for word in text.split()],
            "paragraphs": [{"speaker": who, "start": at, "end": at + 1} for who, _, at in TURNS],
        },
    ),
    "Soniox": (
        "talk.json",
        {
            "text": "…",
            "tokens": [
                {"text": f"{' ' * (n > 0)}{word}", "start_ms": at * 1000, "speaker": who}
                for who, text, at in TURNS
                for n, word in enumerate(text.split())
            ],
        },
    ),
    "Markdown's table": (
        "talk.md",
        "| Time | Speaker | Text |\n|---|---|---|\n| 0:01 | Ida Lind | Shall we sail? |\n| 0:03 "
        "| Bo Berg | Not in this wind. |\n",
    ),
    "a table in a text": (
        "talk.txt",
        "Time\tSpeaker\tText\n0:01\tIda Lind\tShall we sail?\n0:03\tBo Berg\tNot in this wind.\n",
    ),
    "a table of a page": (
        "talk.html",
        "<html><table><tr><th>Time<th>Speaker<th>Text</tr>"
        + "".join(f"<tr><td>0:0{at:.0f}</td><td>{who}</td><td>{text}</td></tr>" for who, text, at in TURNS)
        + "</table></html>",
    ),
    "a range behind a name": (
        "talk.txt",
        "Ida Lind (0:01 - 0:02)\nShall we sail?\n\nBo Berg (0:03 - 0:04)\nNot in this wind.\n",
    ),
    "a time behind a comma": ("talk.txt", "Ida Lind, 0:01: Shall we sail?\nBo Berg, 0:03: Not in this wind.\n"),
    "a list for each speaker": ("talk.json", {who: [{"start": at, "text": text}] for who, text, at in reversed(TURNS)}),
    "turns by number": (
        "talk.json",
        {str(n): {"speaker": who, "text": text, "start": at} for n, (who, text, at) in enumerate(TURNS)},
    ),
    "JSON in Markdown": (
        "talk.md",
        f"Here:\n\n```json\n{json.dumps({'turns': named(who='speaker', text='text', at='start')})}\n```\n",
    ),
    "segments of NIST": (
        "talk.stm",
        ";; x\nm 1 Ida_Lind 1 2 <o,f0> Shall we sail?\nm 1 Bo_Berg 3 4 Not in this wind.\n",
    ),
    "a range in a table": (
        "talk.csv",
        "Timespan,Content,Speaker\n0:01.0 - 0:02.0,Shall we sail?,Ida Lind\n0:03.0 - 0:04.0,Not "
        "in this wind.,Bo Berg\n",
    ),
}


@pytest.mark.parametrize("kind", FILES)
def test_who_says_what_and_when(kind: str, tmp_path: Path) -> None:
    found = transcript(tmp_path, *FILES[kind])
    said = [(one.speaker.replace("_", " "), one.text.capitalize(), one.at) for one in found.utterances]
    assert said == TURNS
    assert found.problems == ()


MOMENTS = {
    "Adium": (
        "talk.chatlog",
        '<?xml version="1.0"?><chat xmlns="http://purl.org/net/ulf/ns/0.4-02"><event type="windowOpened" time="x"/>'
        '<message sender="i@x" time="2023-05-03T09:00:01Z" alias="Ida Lind"><div>Shall <b>we</b> sail?</div></message>'
        '<message sender="b@x" time="2023-05-03T09:00:03Z" alias="Bo Berg"><div>Not in this '
        "wind.</div></message></chat>",
    ),
    "a log of MSN": (
        "talk.xml",
        "<Log>"
        + "".join(
            f'<Message Date="x" Time="y" DateTime="2023-05-03T09:00:0{at:.0f}Z"><From><User '
            f'FriendlyName="{who}"/></From>'
            f"<Text>{text}</Text></Message>"
            for who, text, at in TURNS
        )
        + "</Log>",
    ),
    "speeches of a parliament": (
        "talk.xml",
        '<?xml version="1.0"?><akomaNtoso><debateBody>'
        + "".join(
            f'<speech by="#x" startTime="2023-05-03T09:00:0{at:.0f}Z"><from>{who}</from><p>{text}</p></speech>'
            for who, text, at in TURNS
        )
        + "</debateBody></akomaNtoso>",
    ),
    "Zoom's timeline": (
        "talk.json",
        {
            "recording_start": "2023-05-03T09:00:00Z",
            "timeline": [
                {"text": text, "ts": f"00:00:0{at:.3f}", "users": [{"username": who}]} for who, text, at in TURNS
            ],
        },
    ),
    "Read's blocks": (
        "talk.json",
        {
            "speaker_blocks": [
                {"start_time": 1683104400000 + int(at * 1000), "speaker": {"name": who}, "words": text}
                for who, text, at in TURNS
            ]
        },
    ),
    "Recall.ai": (
        "talk.json",
        [
            {
                "participant": {"name": who},
                "words": [
                    {"text": text, "start_timestamp": {"relative": 9, "absolute": f"2023-05-03T09:00:0{at:.0f}Z"}}
                ],
            }
            for who, text, at in TURNS
        ],
    ),
    "newest first": (
        "talk.json",
        {
            "messages": [
                {"senderName": who, "text": text, "timestamp": 1683104400000 + int(at * 1000)}
                for who, text, at in reversed(TURNS)
            ]
        },
    ),
    "Teams' metadata": (
        "talk.vtt",
        "WEBVTT\n\n"
        + "\n\n".join(
            f'00:00:0{at:.3f} --> 00:00:09.000\n{{"startDateTime": "2023-05-03T09:00:0{at:.0f}Z", '
            f'"speakerName": "{who}", "spokenText": "{text}"}}'
            for who, text, at in TURNS
        ),
    ),
    "a day and a time in a table": (
        "talk.csv",
        "13/04/2023,09:00:00,Ida Lind,+4711,Shall we sail?\n13/04/2023,09:00:03,Bo Berg,+4712,Not in this wind.\n",
    ),
    "WeChat": (
        "talk.txt",
        "2023-05-03 09:00:01 Ida Lind\nShall we sail?\n\n2023-05-03 09:00:03 Bo Berg\nNot in this wind.\n",
    ),
    "KakaoTalk": (
        "talk.txt",
        "2023년 5월 3일 오전 9:00, Ida Lind : Shall we sail?\n2023년 5월 3일 오전 9:01, Bo Berg : Not in this wind.\n",
    ),
    "LINE": ("talk.txt", 'Mon, 01/05/2023\n09:00\tIda Lind\tShall we sail?\n09:01\tBo Berg\t"Not in\nthis wind."\n'),
    "copied of WhatsApp": (
        "talk.txt",
        "[09:00, 13/04/2023] Ida Lind: Shall we sail?\n[09:01, 13/04/2023] Bo Berg: Not in this wind.\n",
    ),
    "Hangouts": (
        "talk.json",
        {
            "conversations": [
                {
                    "conversation": {
                        "conversation": {
                            "participant_data": [
                                {"id": {"gaia_id": who[:2]}, "fallback_name": who} for who, _, _ in TURNS
                            ]
                        }
                    },
                    "events": [
                        {
                            "sender_id": {"gaia_id": who[:2]},
                            "timestamp": str(1683104400000000 + int(at * 1e6)),
                            "chat_message": {
                                "message_content": {"segment": [{"text": f"{word} "} for word in text.split()]}
                            },
                        }
                        for who, text, at in TURNS
                    ],
                }
            ]
        },
    ),
    "mail": (
        "talk.mbox",
        "From i@x Wed May  3 09:00:01 2023\nFrom: Ida Lind <i@x>\nSubject: Sea\nDate: Wed, 03 "
        "May 2023 09:00:01 +0000\n\n"
        'Shall we sail?\n\nFrom b@x Wed May  3 09:00:03 2023\nFrom: "Bo Berg" <b@x>\nSubject: Re: Sea\n'
        "Date: Wed, 03 May 2023 09:00:03 +0000\n\nNot in this wind.\n\nOn Wed, May 3, 2023 Ida "
        "Lind wrote:\n> Shall we sail?\n",
    ),
}


@pytest.mark.parametrize("kind", MOMENTS)
def test_who_says_what_on_which_day(kind: str, tmp_path: Path) -> None:
    found = transcript(tmp_path, *MOMENTS[kind])
    assert [f"{one.speaker} | {one.text}" for one in found.utterances] == TALK
    assert found.started is not None
    assert found.started.year == 2023
    assert found.utterances[1].at
    assert found.problems == ()


@pytest.mark.parametrize(
    "text",
    [
        "IDA LIND\nShall we sail?\n\nBO BERG\nNot in this wind.\n\nIDA LIND\nWhy?\n",
        "Ida Lind:\nShall we sail?\n\nBo Berg:\nNot in this wind.\n\nIda Lind:\nWhy?\n",
        "1. Ida Lind: Shall we sail?\n2. Bo Berg: Not in this wind.\n3. Ida Lind: Why?\n",
        "<Ida Lind> Shall we sail?\n<Bo Berg> Not in this wind.\n<Ida Lind> Why?\n",
    ],
)
def test_names_stand_in_many_ways_before_what_is_said(text: str, tmp_path: Path) -> None:
    said = [line.partition(" | ") for line in heard(tmp_path, "talk.txt", text)]
    assert [f"{who.title()} | {words}" for who, _, words in said] == [*TALK, "Ida Lind | Why?"]


@pytest.mark.parametrize(
    ("dressed", "problem"),
    [
        ("INFO loading\n{}", ":1: text that is no JSON"),
        ("{}\nDone.\n", ":2: text that is no JSON"),
        ('{}, {{"speaker": "Ida", "te', ":1: cut off; read as far as it goes"),
    ],
)
def test_a_document_with_other_text_or_without_its_end_is_read(dressed: str, problem: str, tmp_path: Path) -> None:
    document = json.dumps({"turns": named(who="speaker", text="text", at="start")})
    document = document.removesuffix("]}") if "te" in dressed else document
    found = transcript(tmp_path, "talk.json", dressed.format(document))
    assert [f"{one.speaker} | {one.text}" for one in found.utterances] == TALK
    assert found.problems[0].endswith(problem)


def test_gemini_keeps_what_was_asked_and_answered(tmp_path: Path) -> None:
    one = {"header": "Gemini Apps", "title": "Prompted Sail?", "time": "2023-05-03T09:00:01Z", "products": ["x"]}
    entry = {**one, "safeHtmlItem": [{"html": "<p>Not <b>now</b>.</p>"}]}
    assert heard(tmp_path, "MyActivity.json", [entry]) == ["user | Sail?", "Gemini | Not now."]


def test_programs_for_chats_with_models_tell_who_by_the_kind(tmp_path: Path) -> None:
    turns = [
        {"type": "user", "content": "Sail?", "timestamp": "2023-05-03T09:00:01Z"},
        {"type": "gemini", "content": "No."},
    ]
    assert heard(tmp_path, "session.json", {"messages": turns}) == ["user | Sail?", "gemini | No."]
    assert heard(tmp_path, "chain.json", [{"type": "human", "data": {"content": "Sail?"}}]) == ["human | Sail?"]


def test_an_open_document_is_read_as_text(tmp_path: Path) -> None:
    body = '<x xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><text:h>Talk</text:h>'
    body += "".join(f"<text:p>{who}:<text:s/>{text}</text:p>" for who, text, _ in [*TURNS, *TURNS]) + "</x>"
    with zipfile.ZipFile(tmp_path / "talk.odt", "w") as packed:
        packed.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        packed.writestr("content.xml", body)
    assert heard_of(tmp_path / "talk.odt") == [*TALK, *TALK]


def test_telephones_keep_what_their_owner_sent(tmp_path: Path) -> None:
    sms = '<sms address="+47" date="{}" type="{}" body="{}" contact_name="Ida Lind" />'
    file = f"<smses>{sms.format(1683104401000, 1, 'Shall we sail?')}{sms.format(1683104403000, 2, 'No.')}</smses>"
    assert heard(tmp_path, "sms.xml", f"<?xml version='1.0'?>{file}") == ["Ida Lind | Shall we sail?", "Me | No."]


COURT = """                                             12
 1              DIRECT EXAMINATION
 2   BY MR. BERG:
 3       Q.   Did the ship
 4   sail?
 5       A.   No.
 6       Q.   Why?
 7            MS. FOX:  Objection.
 8       A.   The wind.
 9              (Recess taken.)
10            THE WITNESS:  The wind, I said.
"""


def test_a_court_asks_by_name_and_its_witness_answers(tmp_path: Path) -> None:
    assert heard(tmp_path, "hearing.txt", COURT) == [
        "MR. BERG | Did the ship sail?",
        "THE WITNESS | No.",
        "MR. BERG | Why?",
        "MS. FOX | Objection.",
        "THE WITNESS | The wind.",
        "THE WITNESS | The wind, I said.",
    ]
    assert heard(tmp_path, "hearing.txt", "Q. Sail?\nA. No.\nQ. Why?\nA. Wind.\n")[:2] == ["Q | Sail?", "A | No."]


def test_a_parliament_names_who_has_the_floor(tmp_path: Path) -> None:
    record = "  Mr. BERG. We sail.\nToday.\n  The SPEAKER pro tempore. Order.\n  Mr. BERG. I thank the Chair.\n"
    assert heard(tmp_path, "record.txt", record)[:2] == [
        "Mr. BERG | We sail. Today.",
        "The SPEAKER pro tempore | Order.",
    ]


def test_numbered_lines_of_a_hearing_go_on(tmp_path: Path) -> None:
    record = " 1   THE COURT:  Next.\n 2   MR. FOX:  We call\n 3   Ida Lind.\n 4   THE COURT:  Good.\n"
    assert heard(tmp_path, "hearing.txt", record)[1] == "MR. FOX | We call Ida Lind."


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"%PDF-1.4\n", "not a PDF document that can be read"),
        (b"ID3\x03\0\0", "a sound recording, not a transcript"),
        (b"\0\0\0\x18ftypmp42" + bytes(40), "a recording or a picture, not a transcript"),
        (b"\xd0\xcf\x11\xe0" + bytes(40), "a document of an older office program"),
        (b"PK\x03\x04" + bytes(30) + b"xl/workbook.xml", r"a spreadsheet \(to be saved as .csv\), not a transcript"),
        (b"7z\xbc\xaf" + bytes(40), "a packed file, not a transcript"),
        (bytes(range(256)) * 20, "not text; what is read: "),
        (
            b'<?xml version="1.0"?>\n<!-- Ida: drawn -->\n<svg><text>Ida: No.</text></svg>',
            "a picture, not a transcript",
        ),
        (b"<html><p>Nothing here.</p></html>", "no transcript was recognized in it; what is read: "),
    ],
)
def test_what_is_no_transcript_is_refused_in_a_line(content: bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match=said) as refused:
        transcript(tmp_path, "talk.txt", content)
    assert "\n" not in str(refused.value)


def test_models_chats_are_read_without_what_nobody_says(tmp_path: Path) -> None:
    lines = [
        '{"messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Sail?"}]}',
        '{"conversations": [{"from": "human", "value": "Why?"}, {"from": "gpt", "value": "Wind."}]}',
        '{"type": "assistant", "message": {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, '
        '{"type": "text", "text": "No."}]}, "timestamp": "2023-05-03T09:00:03Z"}',
    ]
    assert heard(tmp_path, "chat.jsonl", "\n".join(lines)) == [
        "user | Sail?",
        "human | Why?",
        "gpt | Wind.",
        "assistant | No.",
    ]
    parts = [{"content_type": "audio_transcription", "text": "Sail?"}]
    node = {"author": {"role": "user"}, "create_time": 1683104401.0, "content": {"parts": parts}}
    assert heard(tmp_path, "conversations.json", [{"mapping": {"a": {"message": node}}}]) == ["user | Sail?"]


def test_a_stream_that_was_saved_is_heard_as_it_would_be_live(tmp_path: Path) -> None:
    result = (
        '{"type": "Results", "is_final": %s, "speech_final": true, "start": 0, "channel": '
        '{"alternatives": [{"transcript": "%s"}]}}'
    )
    lines = [result % ("false", "we"), result % ("true", "We sail."), '{"type": "Metadata"}']
    assert heard(tmp_path, "stream.jsonl", "\n".join(lines)) == ["Unknown | We sail."]


def test_several_conversations_are_read_one_after_the_other(tmp_path: Path) -> None:
    calls = {"calls": [{"transcript": named(who="speaker", text="text", at="start")} for _ in range(2)]}
    found = transcript(tmp_path, "calls.json", calls)
    assert len(found.utterances) == 4
    assert "2 lists of turns" in found.notes[0]


def test_a_channel_ends_its_turn_where_another_speaks_also_behind_punctuation(tmp_path: Path) -> None:
    items = [
        {
            "type": "pronunciation",
            "channel_label": channel,
            "start_time": start,
            "end_time": start,
            "alternatives": [{"content": word}],
        }
        for channel, start, word in (("ch_0", "1", "Sail"), ("ch_1", "2", "No"), ("ch_0", "3", "Why"))
    ]
    items.insert(1, {"type": "punctuation", "channel_label": "ch_0", "alternatives": [{"content": "?"}]})
    said = heard(tmp_path, "call.json", {"results": {"transcripts": [{"transcript": "x"}], "items": items}})
    assert said == ["Channel 0 | Sail?", "Channel 1 | No", "Channel 0 | Why"]


def test_subviewer_with_its_heading(tmp_path: Path) -> None:
    heading = "".join(f"[{name}]\n" for name in ("INFORMATION", "TITLE", "AUTHOR", "SOURCE", "PRG", "DELAY", "COMMENT"))
    cues = "00:00:01.00,00:00:03.00\nYou came[br]after all.\n\n00:01:04.50,00:01:06.00\nMaybe.\n"
    text = f"{heading}[END INFORMATION]\n[SUBTITLE]\n[COLF]&HFFFFFF,[SIZE]18\n{cues}"
    assert heard(tmp_path, "film.sub", text) == ["Unknown | You came after all.", "Unknown | Maybe."]


def test_drawings_and_what_is_in_braces_are_no_words(tmp_path: Path) -> None:
    lines = ["{\\p1}m 0 0 l 9 9{\\p0}Come {soft}in", "{\\an8\\p2}m 0 0", "{\\pos(1,2)}Thanks"]
    events = "\n".join(f"Dialogue: 0,0:00:0{n}.00,0:00:09.00,Default,Ida,0,0,0,,{one}" for n, one in enumerate(lines))
    assert heard(tmp_path, "film.ass", f"[Script Info]\n[Events]\n{events}\n") == ["Ida | Come in", "Ida | Thanks"]


def test_speeches_of_the_european_parliament(tmp_path: Path) -> None:
    text = """<CHAPTER ID=1>
Resumption of the session
<SPEAKER ID=1 NAME="President">
I declare it resumed.
<P>
<SPEAKER ID=2 LANGUAGE="DE" NAME="Lind, Ida" AFFILIATION="PPE">
Madam President!
"""
    found = transcript(tmp_path, "ep-00-01-17.txt", text)
    assert [(one.speaker, one.text) for one in found.utterances] == [
        ("President", "I declare it resumed."),
        ("Lind, Ida", "Madam President!"),
    ]
    assert found.notes == ("1 line of headings not read",)
    turn = '<Turn speaker="a" startTime="0"><Sync time="0"/>Good day.</Turn>'
    other = f'<?xml version="1.0"?>\n<Trans><Speakers>\n<Speaker id="a" name="Ida"/>\n</Speakers>{turn}</Trans>'
    assert heard(tmp_path, "talk.trs", other) == ["Ida | Good day."]


def test_speeches_of_the_bundestag(tmp_path: Path) -> None:
    name = "<titel>Dr.</titel><vorname>Ida</vorname><nachname>Lind</nachname><fraktion>SPD</fraktion>"
    text = (
        "<dbtplenarprotokoll><vorspann><p>Inhalt</p></vorspann><sitzungsverlauf><tagesordnungspunkt>"
        f'<p klasse="T_fett">Antrag</p><rede><p klasse="redner"><redner><name>{name}</name></redner>Dr. Ida Lind:</p>'
        '<p klasse="J_1">Guten Tag.</p><kommentar>(Beifall)</kommentar><p klasse="O">Ja.</p>'
        "<name>Präsidentin Bo Berg:</name><p>Danke.</p></rede></tagesordnungspunkt>"
        "</sitzungsverlauf></dbtplenarprotokoll>"
    )
    found = transcript(tmp_path, "20155.xml", text)
    assert [f"{one.speaker} | {one.text}" for one in found.utterances] == [
        "Dr. Ida Lind | Guten Tag.",
        "Dr. Ida Lind | Ja.",
        "Präsidentin Bo Berg | Danke.",
    ]
    assert found.notes == ("2 remarks beside the speeches not read",)


QUOTED = "Time\tSpeaker\tText\n00:00:02\tida\tThe pump came.\n00:00:06\tbo\t{}\n"


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ('"Which ""one""?"', 'Which "one"?'),
        ('"Which\none, then?"', "Which one, then?"),
        ('"Which one?"', '"Which one?"'),
        ('"Which one', '"Which one'),
        ('"Which" or "what"', '"Which" or "what"'),
    ],
)
def test_quotation_marks_of_spreadsheets_are_not_those_of_what_is_said(tmp_path: Path, cell: str, text: str) -> None:
    for name in ("a.txt", "a.tsv"):
        assert heard(tmp_path, name, QUOTED.format(cell).encode("utf-16")) == ["ida | The pump came.", f"bo | {text}"]


def test_quotation_marks_behind_backslashes_within_cells(tmp_path: Path) -> None:
    rows = 'speaker,text\nida,"The \\"pump\\", then."\nbo,"In C:\\"\n'
    assert heard(tmp_path, "a.csv", rows) == ['ida | The "pump", then.', "bo | In C:\\"]
    assert heard(tmp_path, "a.csv", 'speaker,text\nida,5\\" pipe\nbo,ok\n') == ['ida | 5\\" pipe', "bo | ok"]


def test_xml_that_is_cut_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    text = '<tt xmlns="http://www.w3.org/ns/ttml"><body><div><p begin="1s" end="2s">The pump came.</p>'
    for rest in ('<p begin="3s', '<p begin="3s" end="4s">Which', "</div></bo"):
        found = transcript(tmp_path, "a.ttml", text + rest)
        assert [one.text for one in found.utterances] == ["The pump came."]
        assert len(found.problems) == 1
    with pytest.raises(TranscriptError, match="not XML"):
        transcript(tmp_path, "a.ttml", text + "</tt></div>")
