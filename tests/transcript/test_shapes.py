"""The same talk in further shapes that programs write it in: each is heard by whom it was said, and nothing else is."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from context_builder.errors import TranscriptError
from context_builder.transcript import read_transcript
from tests.transcript.reading import heard, transcript

SAID = [("Ida", "Shall we sail?", 3), ("Bo", "Not in this wind.", 68), ("Ida", "Tomorrow, then.", 134)]
TALK = [f"{who} | {text}" for who, text, _ in SAID]
CLOCKS = ("0:00:03", "0:01:08", "0:02:14")

SHAPES = {
    "bars": "{time} | {who} | {text}\n",
    "bars, the name first": "{who} | {time} | {text}\n",
    "semicolons": "{time};{who};{text}\n",
    "dashes": "{time} - {who} - {text}\n",
    "dashes, the name first": "{who} - {time} - {text}\n",
    "both in brackets": "[{who} - {time}] {text}\n",
    "a range": "{time} - 0:05:00 {who}: {text}\n",
    "a range with an arrow": "{time} --> 0:05:00 {who}: {text}\n",
    "a word between": "{who} at {time}\n{text}\n\n",
}

CHATS = {
    "Zoom in German": "09:00:{second} Von {who} an Alle:\n\t{text}\n",
    "Zoom in Spanish": "09:00:{second} De {who} a Todos:\n\t{text}\n",
    "Zoom in French": "09:00:{second} De {who} à Tout le monde :\n\t{text}\n",
    "Zoom in Japanese": "09:00:{second} 開始 {who} 宛先 全員:\n\t{text}\n",
    "Zoom's captions": "[{who}] 09:00:{second}\n{text}\n\n",
    "Salesforce": "( 1m {second}s ) {who}: {text}\n",
    "Zendesk": "(09:00:{second} AM) *** Cy joined the chat ***\n(09:00:{second} AM) {who}: {text}\n",
    "Discord": "{who} — Today at 9:{second} AM\n{text}\n",
    "KakaoTalk": "May 3, 2023 at 09:{second}, {who} : {text}\n",
    "Telegram": "{who}, [03.05.2023 09:{second}]\n[In reply to Cy]\n{text}\n\n",
    "LINE": "09:{second} {who} {text}\n",
    "sherpa-onnx": "{second}.318 -- {second}.865 speaker_{number}: {text}\n",
}

ABOVE = {
    "Salesforce": "Chat Started: Wednesday, May 03, 2023, 09:00:00 (+0000)\nChat Origin: Support\nAgent Ida\n",
    "LINE": "2023.05.03 Wednesday\n",
    "KakaoTalk": "KakaoTalk Chats with Bo\nDate Saved : May 3, 2023 at 10:00\n\n\n",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_times_and_names_in_columns_and_ranges(tmp_path: Path, shape: str) -> None:
    lines = [
        SHAPES[shape].format(time=time, who=who, text=text) for time, (who, text, _) in zip(CLOCKS, SAID, strict=True)
    ]
    told = transcript(tmp_path, "a.txt", "".join(lines)).utterances
    assert [(one.speaker, one.text, one.at) for one in told] == SAID


@pytest.mark.parametrize("program", CHATS)
def test_chats_in_other_languages_and_of_other_programs(tmp_path: Path, program: str) -> None:
    lines = [
        CHATS[program].format(second=12 + place, who=who, text=text, number=place % 2)
        for place, (who, text, _) in enumerate(SAID)
    ]
    told = transcript(tmp_path, "a.txt", ABOVE.get(program, "") + "".join(lines)).utterances
    names = {"Ida": "speaker_0", "Bo": "speaker_1"} if program == "sherpa-onnx" else {}
    assert [(one.speaker, one.text) for one in told] == [(names.get(who, who), text) for who, text, _ in SAID]
    assert told[0].at is not None
    assert told[0].at < 100


@pytest.mark.parametrize(
    "text",
    [
        "Ida: We compared\na | b | c\nd | e | f\nBo: Good.\nIda: Yes.\n",
        "Ida: one; two; three.\nBo: four; five.\nIda: six; seven.\n",
        "Ida: From Paris to Rome: far.\nBo: From Rome to Oslo: farther.\nIda: Yes.\n",
        "Ida: [Berg - 2023] is a book.\nBo: [Lund - 2024] is one too.\nIda: So.\n",
        "Ida: Meet me\nOslo at 09:00\nBo: and me\nRome at 10:00\nIda: fine.\n",
        "Ida: *** is three stars\nBo: 9:00 - 10:00 is free: take it\nIda: So.\n",
        "Ida: De Oslo a Roma: lejos.\nBo: De Roma a Oslo: lejos.\nIda: Bien.\n",
        "Ida: The\nSession Time was too short.\nBo: Look at\nPage 12\nIda: It is\n*** very important ***\nBo: So.\n",
    ],
)
def test_what_people_say_with_signs_of_other_formats_is_text(tmp_path: Path, text: str) -> None:
    expected: list[str] = []
    for line in text.splitlines():
        if line.startswith(("Ida: ", "Bo: ")):
            expected.append(line.replace(": ", " | ", 1))
        else:
            expected[-1] += f" {line}"
    assert heard(tmp_path, "a.txt", text) == expected


def _thread(place: int) -> dict[str, object]:
    who, text, _ = SAID[place]
    below = [_thread(place + 1)] if place < len(SAID) - 1 else []
    return {"id": place, "author": who, "text": text, "created_at": f"2023-05-03T09:0{place}:00Z", "children": below}


DOCUMENTS: dict[str, object] = {
    "an issue with its comments": {
        "title": "Sail",
        "author": {"login": "Ida"},
        "body": SAID[0][1],
        "createdAt": "2023-05-03T09:00:00Z",
        "comments": [
            {"author": {"login": who}, "body": text, "createdAt": f"2023-05-03T09:0{place}:30Z"}
            for place, (who, text, _) in enumerate(SAID[1:])
        ],
    },
    "a thread": _thread(0),
    "Jira": {
        "comments": [
            {
                "author": {"displayName": who},
                "body": {
                    "type": "doc",
                    "content": [{"type": "paragraph", "content": [{"type": "text", "text": text}]}],
                },
            }
            for who, text, _ in SAID
        ]
    },
    "AutoGen": [{"source": who, "content": text, "type": "TextMessage"} for who, text, _ in SAID],
    "names beside roles": [{"role": "user", "name": who, "content": text} for who, text, _ in SAID],
    "Bot Framework": [
        {"type": "message", "timestamp": f"2023-05-03T09:0{place}:00Z", "from": {"name": who}, "text": text}
        for place, (who, text, _) in enumerate(SAID)
    ],
    "Mastodon": {
        "descendants": [
            {
                "created_at": f"2023-05-03T09:0{place}:00.000Z",
                "content": f"<p>{text}</p>",
                "account": {"username": who.lower(), "display_name": who},
            }
            for place, (who, text, _) in enumerate(SAID)
        ]
    },
    "LlamaIndex": [{"role": who, "blocks": [{"block_type": "text", "text": text}]} for who, text, _ in SAID],
    "Semantic Kernel": [
        {"Role": {"Label": who}, "Items": [{"$type": "TextContent", "Text": text}]} for who, text, _ in SAID
    ],
    "names in a list": [{"sentence": text, "startTime": at * 1000, "speakers": [who]} for who, text, at in SAID],
    "iFlytek": {
        "content": {
            "orderResult": json.dumps(
                {
                    "lattice": [
                        {
                            "json_1best": json.dumps(
                                {"st": {"bg": "0", "rl": who, "rt": [{"ws": [{"cw": [{"w": text}]}]}]}}
                            )
                        }
                        for who, text, _ in SAID
                    ]
                }
            )
        }
    },
}


@pytest.mark.parametrize("program", DOCUMENTS)
def test_documents_of_further_programs(tmp_path: Path, program: str) -> None:
    assert heard(tmp_path, "a.json", DOCUMENTS[program]) == TALK


def test_requests_and_responses_are_the_users_and_the_assistants(tmp_path: Path) -> None:
    document = [
        {
            "kind": "request",
            "parts": [
                {"part_kind": "system-prompt", "content": "Be brief."},
                {"part_kind": "user-prompt", "content": "Shall we sail?"},
            ],
        },
        {"kind": "response", "parts": [{"part_kind": "text", "content": "Not in this wind."}]},
    ]
    assert heard(tmp_path, "a.json", document) == ["user | Shall we sail?", "assistant | Not in this wind."]


def test_who_exports_messages_is_me_in_a_table(tmp_path: Path) -> None:
    table = "Date,Type,Sender Name,Text\n2023-05-03 09:00,Incoming,Ida,Shall we?\n2023-05-03 09:01,Outgoing,,No.\n"
    assert heard(tmp_path, "a.csv", table) == ["Ida | Shall we?", "Me | No."]


REPORTS = {
    "M. le président. – {}\n\nMme Ida Berg. – {}\n\nM. le président. – {}\n": ("M. le président", "Mme Ida Berg"),
    "O SR. PRESIDENTE (Bo Dahl. PT - SP) - {}\n\nA SRA. IDA BERG (PSDB - RJ) - {}\n\n"
    "O SR. PRESIDENTE (Bo Dahl. PT - SP) - {}\n": (
        "O SR. PRESIDENTE (Bo Dahl. PT - SP)",
        "A SRA. IDA BERG (PSDB - RJ)",
    ),
    "O Sr. Presidente: — {}\n\nA Sr.ª Ida Berg (PS): — {}\n\nO Sr. Presidente: — {}\n": (
        "O Sr. Presidente",
        "A Sr.ª Ida Berg (PS)",
    ),
    "President. – {}\n\nIda Berg, on behalf of the PPE Group. – (EN) {}\n\nPresident. – {}\n": (
        "President",
        "Ida Berg, on behalf of the PPE Group",
    ),
    "PRESIDENTE. {}\n\nIDA BERG (PD). {}\n\nPRESIDENTE. {}\n": ("PRESIDENTE", "IDA BERG (PD)"),
    "Председательствующий. {}\n\nИванов И. И. {}\n\nПредседательствующий. {}\n": (
        "Председательствующий",
        "Иванов И. И.",
    ),
    "○委員長（鈴木一郎君）\u3000{}\n○田中花子君\u3000{}\n○委員長（鈴木一郎君）\u3000{}\n": (
        "委員長（鈴木一郎君）",
        "田中花子君",
    ),
    "◯위원장 김철수 {}\n◯이영희 위원 {}\n◯위원장 김철수 {}\n": ("위원장 김철수", "이영희 위원"),
    "De voorzitter:\n{}\n\nMevrouw Berg (PvdA):\n{}\n\nDe voorzitter:\n{}\n": ("De voorzitter", "Mevrouw Berg (PvdA)"),
    "Ida Berg, Ministerin der Finanzen:\n{}\n\nPräsident Bo Dahl:\n{}\n\nIda Berg, Ministerin der Finanzen:\n{}\n": (
        "Ida Berg, Ministerin der Finanzen",
        "Präsident Bo Dahl",
    ),
    "Date: 3 May 2023\nPresent: Ida, Bo\n\nIda: {}\nBo: {}\nIda: {}\n": ("Ida", "Bo"),
    "1   Ida: {}\n2   Bo: {}\n3   Ida: {}\n": ("Ida", "Bo"),
}


@pytest.mark.parametrize("report", REPORTS)
def test_reports_of_parliaments_and_minutes(tmp_path: Path, report: str) -> None:
    one, other = REPORTS[report]
    text = report.format(*(said for _, said, _ in SAID))
    assert heard(tmp_path, "a.txt", text) == [
        f"{who} | {said}" for who, (_, said, _) in zip((one, other, one), SAID, strict=True)
    ]


def test_sentences_before_dashes_are_no_speakers(tmp_path: Path) -> None:
    text = "He left the harbour. – She stayed behind.\n\nHe left the harbour. – Nobody knew.\n"
    assert {one.speaker for one in transcript(tmp_path, "a.txt", text).utterances} == {"Unknown"}


@pytest.mark.parametrize(
    "deleted",
    [
        "Hai eliminato questo messaggio",
        "Данное сообщение удалено",
        "このメッセージは削除されました",
        "Bu mesaj silindi",
    ],
)
def test_deleted_messages_in_many_languages_are_not_said(tmp_path: Path, deleted: str) -> None:
    text = f"13.05.23, 09:00 - Ida: Null.\n13.05.23, 09:01 - Bo: {deleted}\n"
    assert heard(tmp_path, "a.txt", text) == ["Ida | Null."]


def test_a_zip_with_one_file_in_which_something_is_said(tmp_path: Path) -> None:
    file = tmp_path / "a.zip"
    chat = {"messages": [{"sender_name": "Ida", "timestamp_ms": 1683104400000, "content": "We sail."}]}
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("inbox/bo/message_1.json", json.dumps(chat))
        packed.writestr("comments/post_comments.json", "[]")
        packed.writestr("notes.txt", "Nobody says this.")
    assert [(one.speaker, one.text) for one in read_transcript(file).utterances] == [("Ida", "We sail.")]


def test_a_zip_of_one_recording_in_several_formats(tmp_path: Path) -> None:
    file = tmp_path / "a.zip"
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("talk.json", '{"settings": 1}')
        packed.writestr("talk.txt", "We sail.\n")
        packed.writestr("talk.srt", "1\n00:00:01,000 --> 00:00:02,000\nWe sail.\n")
    assert [(one.at, one.text) for one in read_transcript(file).utterances] == [(1.0, "We sail.")]


def test_a_short_western_text_is_no_baltic_one(tmp_path: Path) -> None:
    subtitles = "1\r\n00:00:01,000 --> 00:00:02,000\r\nÉté à Köln – “so”.\r\n".encode("cp1252")
    assert heard(tmp_path, "a.srt", subtitles) == ["Unknown | Été à Köln – “so”."]


def test_times_in_words_below_those_in_figures_are_not_said(tmp_path: Path) -> None:
    text = "0:03\n3 seconds\nWe sail.\n1:06\n1 minute, 6 seconds\nAt noon.\n"
    told = transcript(tmp_path, "a.txt", text).utterances
    assert [(one.text, one.at) for one in told] == [("We sail.", 3), ("At noon.", 66)]


def test_json_below_a_log_and_a_quotation_of_all_lines(tmp_path: Path) -> None:
    document = json.dumps({"segments": [{"start": 0.0, "end": 2.0, "text": "We sail."}]})
    assert heard(tmp_path, "a.log", f"2023-05-03 09:00 INFO done\n{document}\n") == ["Unknown | We sail."]
    quoted = "> [!quote] Ida 0:03\n> We sail.\n\n> [!quote] Bo 0:08\n> No.\n\n> [!quote] Ida 0:09\n> Yes.\n"
    assert heard(tmp_path, "a.md", quoted) == ["Ida | We sail.", "Bo | No.", "Ida | Yes."]


def test_speakers_of_a_document_do_not_make_it_a_turn(tmp_path: Path) -> None:
    said = [{"text": text, "speakerId": 1 + place % 2} for place, (_, text, _) in enumerate(SAID)]
    people = [{"id": 1, "name": "Ida"}, {"id": 2, "name": "Bo"}]
    assert heard(tmp_path, "a.json", {"videos": [{"insights": {"transcript": said, "speakers": people}}]}) == TALK


def test_a_page_that_is_no_transcript_is_refused(tmp_path: Path) -> None:
    page = (
        "<!DOCTYPE HTML>\n<html><body><p>Next: two.</p><p>Next: three.</p>"
        + "<p>One of many.</p>" * 20
        + "</body></html>"
    )
    with pytest.raises(TranscriptError, match="no transcript was recognized"):
        transcript(tmp_path, "a.html", page)
    hours = "<p>Monday: 9:00-17:00</p><p>Tuesday: 9:00-17:00</p><p>About: we bake.</p>"
    with pytest.raises(TranscriptError, match="no transcript was recognized"):
        transcript(tmp_path, "a.html", f"<!DOCTYPE html><html><body>{hours}</body></html>")
    talk = "".join(f"<p>{who}: {text}</p>" for who, text, _ in SAID)
    assert heard(tmp_path, "a.html", f"<!DOCTYPE HTML>\n<html><body><p>Interview</p>{talk}</body></html>") == TALK


def test_what_comes_again_above_lists_is_no_office(tmp_path: Path) -> None:
    text = "Some key elements of this include:\n* one\n\nSome key elements of this include:\n* two\n\nAnd so on.\n"
    assert {one.speaker for one in transcript(tmp_path, "a.txt", text).utterances} == {"Unknown"}


DATED = [
    "2023-05-03 09:0{place}:00 {who}: {text}",
    "03.05.2023 09:0{place}:00 {who}: {text}",
    "2023/05/03 09:0{place}:00 {who}: {text}",
    "2023-05-03 09:0{place}:00 | {who} | {text}",
    "2023-05-03 09:0{place}:00 - {who} - {text}",
    "2023-05-03 09:0{place}:00,{who},{text}",
    "2023-05-03 09:0{place}:00 [{who}] {text}",
    "Wed May 03 09:0{place}:00 2023 {who}: {text}",
    "2023-05-03T09:0{place}:00\t{who}\t{text}",
]


@pytest.mark.parametrize("form", DATED)
def test_lines_that_begin_with_a_date(tmp_path: Path, form: str) -> None:
    text = "\n".join(form.format(place=place, who=who, text=said) for place, (who, said, _) in enumerate(SAID))
    found = transcript(tmp_path, "a.txt", text)
    assert [(one.speaker, one.text, str(found.said_at(one))[:19]) for one in found.utterances] == [
        (who, said, f"2023-05-03 09:0{place}:00") for place, (who, said, _) in enumerate(SAID)
    ]


@pytest.mark.parametrize(
    "text",
    [
        "2023-05-03 09:00:00 INFO: it begins\n2023-05-03 09:00:01 INFO: it ends\n",
        "On 2023-05-03 we met.\n2023-05-04 09:00 was fine, too: sunny.\nThen it rained.\n",
        "May  3 09:00:03 a sshd[1]: up\nMay  3 09:00:04 a sshd[1]: down\nMay  3 09:00:05 a cron[2]: done\n",
        "2023-05-03 09:00:03,1 - MyApp - INFO - up\n2023-05-03 09:00:04,1 - MyApp - INFO - down\n",
        "2023-05-03 09:00:00,Kitchen,21.5\n2023-05-03 09:01:00,Kitchen,21.6\n",
        "M. Berg est venu. Il a vu le port.\n\nM. Berg est venu. Il pleuvait.\n",
        "09:00 | Welcome | Coffee\n09:30 | Keynote | Ida Berg\n10:15 | Panel | The future\n",
        "2023.05.03 Wednesday\n09:00 Meeting with Bo\n10:00 Meeting with Ida\n11:00 Meeting with Cy\n12:00 Lunch\n",
        "Nobody slept.\n\nIda. – She had been waiting.\n\nIda. – Nobody else came.\n",
        "1 Scope\n2 Term: two years.\n3 Price: 300 euros.\n4 Term: a year.\n",
    ],
)
def test_dates_in_logs_and_prose_name_nobody(tmp_path: Path, text: str) -> None:
    assert {one.speaker for one in transcript(tmp_path, "a.txt", text).utterances} == {"Unknown"}


@pytest.mark.parametrize(
    "heading",
    [
        "Meeting on 3 May 2023 at 09:00",
        "Datum: 03.05.2023, 09:00 Uhr",
        "Fecha: 3 de mayo de 2023, 9:00",
        "# Sync 2023-05-03 09:00",
    ],
)
def test_a_heading_tells_when_it_began_with_words_around(tmp_path: Path, heading: str) -> None:
    found = transcript(tmp_path, "a.txt", f"{heading}\n\n[00:00:03] Ida: We sail.\n[00:00:08] Bo: No.\n")
    assert str(found.started)[:19] == "2023-05-03 09:00:00"


@pytest.mark.parametrize(
    "moment",
    [
        {"$date": "2023-05-03T09:00:00Z"},
        {"$date": {"$numberLong": "1683104400000"}},
        {"_seconds": 1683104400, "_nanoseconds": 0},
        "/Date(1683104400000)/",
    ],
)
def test_moments_as_databases_wrap_them(tmp_path: Path, moment: object) -> None:
    found = transcript(tmp_path, "a.json", [{"speaker": "Ida", "text": "We sail.", "timestamp": moment}])
    assert found.started is not None
    assert found.started.timestamp() == 1683104400


@pytest.mark.parametrize("name", ["+49 151 1234567", "Prof. Bo O’Neil Jr.", "Speaker Q", "Ida | Acme", "Bo [Lab]"])
@pytest.mark.parametrize("form", ["{}  0:0{}\n{}\n\n", "{} (00:0{}):\n{}\n\n", "{}, 9:0{} AM\n{}\n\n"])
def test_unusual_names_above_what_they_say(tmp_path: Path, name: str, form: str) -> None:
    said = [(name, "We sail."), ("Ida", "No."), (name, "Tomorrow."), ("Ida", "Fine.")]
    written = [form.format(who.removeprefix("Speaker "), at, words) for at, (who, words) in enumerate(said, start=1)]
    assert heard(tmp_path, "a.txt", "".join(written)) == [f"{who} | {words}" for who, words in said]


def test_names_with_bars_and_brackets_behind_a_date(tmp_path: Path) -> None:
    said = [("Ida | Acme", "We sail."), ("Bo [Lab]", "No."), ("Ida | Acme", "Tomorrow.")]
    text = "".join(f"2023-05-03 09:00:0{place} {who}: {words}\n" for place, (who, words) in enumerate(said))
    assert heard(tmp_path, "a.txt", text) == [f"{who} | {words}" for who, words in said]


def test_lines_with_dates_are_read_where_those_further_below_have_another_form(tmp_path: Path) -> None:
    lines = [f"2023-05-03 09:00:{place:02} {'Ida' if place % 2 else 'Bo'}: Aye {place}\n" for place in range(60)]
    lines += [f"2023-05-03 10:{place:02}:00 the wind grew\n" for place in range(40)]
    said = heard(tmp_path, "a.txt", "".join(lines))
    assert [said[1], said[-1]] == ["Ida | Aye 1", "Unknown | the wind grew"]


def test_mentions_in_whatsapp_are_said(tmp_path: Path) -> None:
    text = "[03.05.23, 09:00:12] Ida: Tell <@bo:example.org> so\n[03.05.23, 09:01:12] Bo: <@U1> knows\n"
    assert heard(tmp_path, "a.txt", text) == ["Ida | Tell <@bo:example.org> so", "Bo | <@U1> knows"]


def test_a_question_that_begins_with_a_time_is_asked(tmp_path: Path) -> None:
    text = "Q 10:30 is too late?\nA It is.\nQ 9 then?\nA Fine.\n"
    assert heard(tmp_path, "a.txt", text) == ["Q | 10:30 is too late?", "A | It is.", "Q | 9 then?", "A | Fine."]


def test_numbers_of_pages_that_count_on_are_not_said(tmp_path: Path) -> None:
    text = "Ida: Shall we\nPage 1\nsail?\nBo: Not\nPage 2\nnow.\nIda: So.\n"
    assert heard(tmp_path, "a.txt", text) == ["Ida | Shall we sail?", "Bo | Not now.", "Ida | So."]


def test_what_is_said_above_json_is_said(tmp_path: Path) -> None:
    assert heard(tmp_path, "a.txt", 'Ida: Here is the file\n{"a": 1}\n') == ["Ida | Here is the file"]
    document = json.dumps([{"speaker": "Cy", "text": "We sail."}])
    said = heard(tmp_path, "a.txt", f"Ida: Look.\nBo: At what?\nIda: At this.\n{document}\n")
    assert said[:2] == ["Ida | Look.", "Bo | At what?"]


def test_a_chair_who_opens_is_no_heading_of_minutes(tmp_path: Path) -> None:
    text = "Chair: Welcome.\n\nIda: Thanks.\nBo: Hello.\nIda: So.\n"
    assert heard(tmp_path, "a.txt", text)[0] == "Chair | Welcome."


def test_replies_that_stand_in_the_list_as_well_are_said_once(tmp_path: Path) -> None:
    answer = {"id": 2, "author": "Bo", "text": "Aye."}
    thread = [{"id": 1, "author": "Ida", "text": "We sail.", "replies": [answer]}, answer]
    assert heard(tmp_path, "a.json", thread) == ["Ida | We sail.", "Bo | Aye."]


def test_a_zip_of_several_chats_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.zip"
    with zipfile.ZipFile(file, "w") as packed:
        for place in (1, 2):
            packed.writestr(f"chat{place}.txt", f"[03.05.23, 09:0{place}:12] Ida: We sail.\n")
    with pytest.raises(TranscriptError, match="holds 2 transcripts"):
        read_transcript(file)


def test_a_short_turkish_text_is_no_icelandic_one(tmp_path: Path) -> None:
    text = "Işık: Bıraktım işi.\nBora: Kırık kapı, ağır iş.\nIşık: Yarın bakarız.\n"
    assert heard(tmp_path, "a.txt", text.encode("cp1254"))[0] == "Işık | Bıraktım işi."


def test_what_sounds_like_a_notice_of_whatsapp_is_said(tmp_path: Path) -> None:
    text = "03.05.23, 09:00 - Ida: video call, at ten?\n03.05.23, 09:01 - Bo: Video call, 3 min\n"
    assert heard(tmp_path, "a.txt", text) == ["Ida | video call, at ten?"]


def test_quotations_of_quotations_stay_as_they_are(tmp_path: Path) -> None:
    (said,) = heard(tmp_path, "a.txt", "> Ida wrote: We sail.\n> > Bo wrote: Shall we?\n> Yes.\n")
    assert "We sail." in said


def test_a_message_that_the_bot_framework_edits_is_said_once(tmp_path: Path) -> None:
    first = {
        "type": "message",
        "id": "a",
        "from": {"name": "Ida"},
        "text": "We sale.",
        "timestamp": "2023-05-03T09:00Z",
    }
    other = {**first, "id": "b", "from": {"name": "Bo"}, "text": "Aye.", "timestamp": "2023-05-03T09:01Z"}
    edit = {**first, "type": "messageUpdate", "text": "We sail.", "timestamp": "2023-05-03T09:02Z"}
    assert heard(tmp_path, "a.transcript", [first, other, edit]) == ["Ida | We sail.", "Bo | Aye."]
