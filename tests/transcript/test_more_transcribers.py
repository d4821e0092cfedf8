"""What further transcribers and tools write is read with who said what, and when."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from context_builder.errors import TranscriptError
from tests.transcript.reading import heard, transcript


def timed(tmp_path: Path, name: str, content: object) -> list[str]:
    return [f"{one.at} {one.speaker} | {one.text}" for one in transcript(tmp_path, name, content).utterances]


def test_revs_monologues_with_the_names_of_their_speakers(tmp_path: Path) -> None:
    def element(value: str, at: float) -> dict[str, Any]:
        return {"type": "text", "value": value, "ts": at, "end_ts": at + 0.2}

    def sign(value: str) -> dict[str, str]:
        return {"type": "punct", "value": value}

    document = {
        "speakers": [{"id": 0, "name": "Ida"}, {"id": 1, "name": ""}],
        "monologues": [
            {
                "speaker": 0,
                "elements": [element("The", 0.5), sign(" "), element("pump", 0.8), sign(", "), element("no", 1)],
            },
            {"speaker": 1, "elements": [element("Right", 2.0), sign("."), {"type": "unknown", "value": "<noise>"}]},
            {"speaker": 2, "elements": None},
        ],
    }
    found = transcript(tmp_path, "rev.json", document)
    told = [f"{one.at} {one.speaker} | {one.text}" for one in found.utterances]
    assert told == ["0.5 Ida | The pump, no", "2.0 Speaker 1 | Right.<noise>"]
    assert [problem.partition(": ")[2] for problem in found.problems] == ["monologues[2].elements is not a list"]


def test_revs_text_with_who_when_and_what_on_a_line(tmp_path: Path) -> None:
    text = "Speaker 0    00:00:00    The pump came.\nSpeaker 1    00:01:05    At 10:30, right?\n"
    assert timed(tmp_path, "rev.txt", text) == ["0.0 Speaker 0 | The pump came.", "65.0 Speaker 1 | At 10:30, right?"]


def item(content: str, start: float | None = None, **more: str) -> dict[str, Any]:
    times = {} if start is None else {"start_time": f"{start}", "end_time": f"{start + 0.3}"}
    kind = "punctuation" if start is None else "pronunciation"
    return {"type": kind, "alternatives": [{"content": content, "confidence": "0.9"}], **times, **more}


def aws(items: list[dict[str, Any]], **more: object) -> dict[str, Any]:
    return {"jobName": "talk", "results": {"transcripts": [{"transcript": "All of it."}], "items": items, **more}}


def test_amazon_transcribes_items_by_speakers_and_by_channels(tmp_path: Path) -> None:
    first, second = {"speaker_label": "spk_0"}, {"speaker_label": "spk_1"}
    by_item = aws([item("Morning", 0.1, **first), item("."), item("Hi", 2.0, **second)])
    assert timed(tmp_path, "a.json", by_item) == ["0.1 spk_0 | Morning.", "2.0 spk_1 | Hi"]
    segments = [{"items": [{"start_time": "0.1", **first}]}, {"items": [{"start_time": "2.0", **second}]}]
    by_segment = aws([item("Morning", 0.1), item("."), item("Hi", 2.0)], speaker_labels={"segments": segments})
    assert timed(tmp_path, "b.json", by_segment) == ["0.1 spk_0 | Morning.", "2.0 spk_1 | Hi"]
    channels = aws([item("Bye", 3.0, channel_label="ch_0"), item("Hi", 2.0, channel_label="ch_1")])
    assert timed(tmp_path, "c.json", channels) == ["2.0 Channel 1 | Hi", "3.0 Channel 0 | Bye"]
    assert timed(tmp_path, "d.json", aws([])) == ["None Unknown | All of it."]


def test_elevenlabs_words_are_turns(tmp_path: Path) -> None:
    def one(text: str, start: float, speaker: int, kind: str = "word") -> dict[str, Any]:
        return {"text": text, "start": start, "end": start + 0.1, "type": kind, "speaker_id": f"speaker_{speaker}"}

    words = [one("Hi", 0.1, 0), one(" ", 0.2, 0, "spacing"), one("there.", 0.3, 0), one("Yes.", 1.0, 1)]
    document = {"language_code": "en", "text": "Hi there. Yes.", "words": words}
    assert timed(tmp_path, "a.json", document) == ["0.1 speaker_0 | Hi there.", "1.0 speaker_1 | Yes."]


def test_a_mark_that_is_attached_to_the_next_word_stands_before_it(tmp_path: Path) -> None:
    def result(content: str, kind: str = "word", **more: str) -> dict[str, Any]:
        return {"type": kind, "alternatives": [{"content": content, "speaker": "S1"}], "start_time": 1.0, **more}

    opening = result("¿", "punctuation", attaches_to="next")
    closing = result("?", "punctuation", attaches_to="previous")
    document = {"results": [result("Pues"), opening, result("qué"), result("tal"), closing]}
    assert heard(tmp_path, "a.json", document) == ["S1 | Pues ¿qué tal?"]


def test_a_table_of_discord_has_dates_line_ends_and_further_columns(tmp_path: Path) -> None:
    written = io.StringIO()
    rows = csv.writer(written, quoting=csv.QUOTE_ALL)
    rows.writerow(["AuthorID", "Author", "Date", "Content", "Attachments", "Reactions"])
    rows.writerow(["5", "ida", "2023-05-03T09:00:00.0000000+02:00", "Hello, all", "", ""])
    rows.writerow(["6", "bo", "2023-05-03T09:00:05.0000000+02:00", "two\nlines", "", "x (1)"])
    found = transcript(tmp_path, "channel.csv", written.getvalue())
    assert [(one.at, one.speaker, one.text) for one in found.utterances] == [
        (0.0, "ida", "Hello, all"),
        (5.0, "bo", "two lines"),
    ]
    assert found.started == datetime(2023, 5, 3, 7, tzinfo=UTC)


def test_encrypted_messages_are_counted(tmp_path: Path) -> None:
    def event(kind: str, **content: str) -> dict[str, Any]:
        return {"type": kind, "sender": "@ida:x.org", "origin_server_ts": 1_683_097_200_000, "content": content}

    secret = event("m.room.encrypted", ciphertext="x")
    found = transcript(tmp_path, "room.json", {"messages": [secret, event("m.room.message", body="Hi"), secret]})
    assert [one.text for one in found.utterances] == ["Hi"]
    assert (found.problems, found.notes) == ((), ("2 encrypted messages not read",))
    with pytest.raises(TranscriptError, match="1 encrypted message not read"):
        transcript(tmp_path, "secret.json", {"messages": [secret]})


def test_a_group_whose_name_has_a_colon_is_nobody(tmp_path: Path) -> None:
    text = '5/3/23, 9:00 AM - Ida created group "Bees: all"\n5/3/23, 9:01 AM - Ida "Bee" Lind: Hi\n'
    assert heard(tmp_path, "chat.txt", text) == ['Ida "Bee" Lind | Hi']


def test_names_in_a_meeting_that_come_once_each(tmp_path: Path) -> None:
    lines = ["Ida Lind (she/her): Morning.", "Bo | Acme: The plan: nine.", "+1 415-***-**12: Here.", "nobody's words"]
    text = "WEBVTT\n\n" + "".join(f"00:0{n}.000 --> 00:0{n}.900\n{line}\n\n" for n, line in enumerate(lines))
    assert heard(tmp_path, "zoom.vtt", text) == [
        "Ida Lind (she/her) | Morning.",
        "Bo | Acme | The plan: nine.",
        "+1 415-***-**12 | Here.",
        "Unknown | nobody's words",
    ]


def test_a_short_word_document_of_teams_in_which_nobody_speaks_twice(tmp_path: Path) -> None:
    text = "0:0:0.0 --> 0:0:2.350\nIda Lind\nHello everybody.\n\n0:0:2.350 --> 0:0:5.10\nBo Roe\nHi.\n"
    assert timed(tmp_path, "teams.txt", text) == ["0.0 Ida Lind | Hello everybody.", "2.35 Bo Roe | Hi."]


def test_bold_labels_of_markdown(tmp_path: Path) -> None:
    text = "**Ida:** Morning.\n\n**Bo**: Hi, **now**: go.\n\n**Ida:** Fine: ok.\n"
    assert heard(tmp_path, "a.md", text) == ["Ida | Morning.", "Bo | Hi, **now**: go.", "Ida | Fine: ok."]


def test_breaks_of_subviewer_are_blanks(tmp_path: Path) -> None:
    assert heard(tmp_path, "a.sbv", "0:00:01.000,0:00:02.000\nHello.[br]All of you.\n") == [
        "Unknown | Hello. All of you."
    ]


def test_a_short_western_text_is_not_read_as_an_eastern_one(tmp_path: Path) -> None:
    text = "1\n00:00:01,000 --> 00:00:02,000\nAndré: déjà vu – “oui”\n"
    assert heard(tmp_path, "a.srt", text.encode("cp1252")) == ["André | déjà vu – “oui”"]


def test_json_lines_with_the_seconds_as_start(tmp_path: Path) -> None:
    lines = (
        '{"speaker": "Ida", "text": "Hi", "start": 0.5}\n{"text": "Yes", "start": 2}\n{"text": "No", "start": "x"}\n'
    )
    assert timed(tmp_path, "a.jsonl", lines) == ["0.5 Ida | Hi", "2.0 Unknown | Yes", "None Unknown | No"]


@pytest.mark.parametrize(
    "text",
    [
        "11:59 PM Ida: Hi\n12:01 AM Bo: Yes\n",
        "[11:59 pm] Ida: Hi\n[12:01 am] Bo: Yes\n",
        "Ida (11:59:00 p.m.)\nHi\n\nBo (11:59:30 p.m.)\nWait\n\nIda (12:01:00 a.m.)\nYes\n",
    ],
)
def test_times_of_the_day_count_from_the_first(tmp_path: Path, text: str) -> None:
    told = timed(tmp_path, "a.txt", text)
    assert told[0] == "0.0 Ida | Hi"
    assert told[-1].partition(" ")[0] == "120.0"


def test_a_time_of_the_day_in_a_line_moves_no_other_time(tmp_path: Path) -> None:
    told = timed(tmp_path, "a.txt", "[00:05] Ida: When?\n[00:08] Bo: Lunch (9:00 AM)\n[00:12] Ida: Fine.\n")
    assert told == ["5.0 Ida | When?", "8.0 Bo | Lunch (9:00 AM)", "12.0 Ida | Fine."]


def test_whatsapp_of_a_korean_phone(tmp_path: Path) -> None:
    text = "2023년 5월 3일 오전 9:00 - 민수: 안녕\n2023년 5월 3일 오후 9:05 - 지우: 네\n"
    assert timed(tmp_path, "a.txt", text) == ["0.0 민수 | 안녕", "43500.0 지우 | 네"]


def test_audacitys_labels_in_a_text(tmp_path: Path) -> None:
    text = "0.500000\t2.000000\tIda: Hello\n2.500000\t3.000000\tBo: Hi\n"
    assert timed(tmp_path, "labels.txt", text) == ["0.5 Ida | Hello", "2.5 Bo | Hi"]


def test_words_as_other_services_write_them_are_refused_by_name(tmp_path: Path) -> None:
    other = {"results": [{"guesses": [{"spelling": "hello there", "letters": []}]}]}
    with pytest.raises(TranscriptError, match="not a document as Deepgram"):
        transcript(tmp_path, "a.json", other)


def test_a_row_of_a_table_whose_date_cannot_be_read_is_said(tmp_path: Path) -> None:
    rows = "Author,Date,Content\nida,2023-05-03T09:00:00Z,Hello\nbo,last May,Yes\nida,2023-05-03T09:00:07Z,Good\n"
    found = transcript(tmp_path, "a.csv", rows)
    assert [(one.at, one.text) for one in found.utterances] == [(0.0, "Hello"), (None, "Yes"), (7.0, "Good")]
    assert [problem.rpartition(":3: ")[2] for problem in found.problems] == ["'last May' is not a date"]


def test_words_with_times_in_place_of_segments_have_the_punctuation_of_the_text(tmp_path: Path) -> None:
    words = [{"word": "Hi", "start": 0.5, "end": 1.0}, {"word": "there", "start": 1.0, "end": 1.5}]
    document = {"task": "transcribe", "duration": 2.0, "text": "Hi, there.", "words": words}
    assert timed(tmp_path, "a.json", document) == ["0.5 Unknown | Hi, there."]
    assert timed(tmp_path, "b.json", {**document, "text": "Hi-there."}) == ["0.5 Unknown | Hi there"]


def test_what_is_said_at_times_that_are_no_numbers_is_kept(tmp_path: Path) -> None:
    text = (
        "1\nNaN --> NaN\nIda: One.\n\n2\n00:00:01,000 --> 00:00:02,000\nBo: Two.\n\n3\nNaN:NaN --> NaN\nIda: Three.\n"
    )
    found = transcript(tmp_path, "a.srt", text)
    assert [(one.at, one.speaker, one.text) for one in found.utterances] == [
        (None, "Ida", "One."),
        (1.0, "Bo", "Two."),
        (None, "Ida", "Three."),
    ]
    assert len(found.problems) == 2


def test_blocks_below_a_beginning_and_an_end(tmp_path: Path) -> None:
    text = "0:00:00 - 0:00:03 Ida\nHello\n\n0:00:03 - 0:00:05 Bo\nHi\n\n0:00:05 - 0:00:08 Ida\nOk\n"
    assert timed(tmp_path, "a.txt", text) == ["0.0 Ida | Hello", "3.0 Bo | Hi", "5.0 Ida | Ok"]
