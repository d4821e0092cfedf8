"""What speech-to-text programs and chats write is read with who said what, and when."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_builder.errors import TranscriptError
from context_builder.transcript import Utterance, read_transcript
from context_builder.transcript.json_document import parse_json_document

HELLO, REPLY = Utterance("Speaker 0", "Good morning.", 0.5), Utterance("Speaker 1", "We count the clips.", 2.0)


def read(tmp_path: Path, document: object) -> list[Utterance]:
    file = tmp_path / "talk.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return read_transcript(file)


def word(text: str, start: float, speaker: int) -> dict[str, Any]:
    return {"word": text.lower(), "punctuated_word": text, "start": start, "speaker": speaker}


def test_deepgram_by_utterances_or_by_words(tmp_path: Path) -> None:
    utterances = [
        {"start": 0.5, "end": 1.5, "speaker": 0, "transcript": "Good morning."},
        {"start": 2.0, "end": 3.0, "speaker": 1, "transcript": "We count the clips."},
    ]
    assert read(tmp_path, {"results": {"utterances": utterances}}) == [HELLO, REPLY]
    words = [word("Good", 0.5, 0), word("morning.", 0.8, 0)]
    words += [word(one, 2.0 + place / 10, 1) for place, one in enumerate("We count the clips.".split())]
    channels = [{"alternatives": [{"transcript": "…", "words": words}]}]
    assert read(tmp_path, {"metadata": {}, "results": {"channels": channels}}) == [HELLO, REPLY]


def test_channels_are_told_in_the_order_of_time(tmp_path: Path) -> None:
    later = [{"alternatives": [{"words": [word("Later.", 5.0, 0)]}]}]
    earlier = [{"alternatives": [{"words": [word("Earlier.", 1.0, 1)]}]}]
    said = read(tmp_path, {"results": {"channels": [*later, *earlier]}})
    assert [one.text for one in said] == ["Earlier.", "Later."]


def test_assemblyai_in_milliseconds(tmp_path: Path) -> None:
    said = [
        {"speaker": "A", "text": "Good morning.", "start": 500, "end": 1500},
        {"speaker": "B", "text": "We count the clips.", "start": 2000, "end": 3000},
    ]
    assert read(tmp_path, {"id": "x", "status": "completed", "text": "…", "utterances": said}) == [
        Utterance("Speaker A", "Good morning.", 0.5),
        Utterance("Speaker B", "We count the clips.", 2.0),
    ]


def test_whisper_its_descendants_and_whisper_cpp(tmp_path: Path) -> None:
    segments = [
        {"id": 0, "start": 0.5, "end": 1.5, "text": " Good morning."},
        {"start": 2.0, "end": 3.0, "text": "We count  the clips.", "speaker": "SPEAKER_01"},
        {"start": 3.0, "end": 3.1, "text": " "},
    ]
    assert read(tmp_path, {"text": "…", "segments": segments, "language": "en"}) == [
        Utterance("Unknown", "Good morning.", 0.5),
        Utterance("SPEAKER_01", "We count the clips.", 2.0),
    ]
    cues = [{"timestamps": {"from": "00:00:00,500"}, "offsets": {"from": 500, "to": 900}, "text": " Good morning."}]
    assert read(tmp_path, {"transcription": cues}) == [Utterance("Unknown", "Good morning.", 0.5)]


def test_a_channel_of_a_slack_export(tmp_path: Path) -> None:
    users = [{"id": "U1", "name": "ann", "profile": {"display_name": "Ann"}}, {"id": "U2", "real_name": "Bob B."}]
    (tmp_path / "users.json").write_text(json.dumps(users))
    channel = tmp_path / "general"
    channel.mkdir()
    later = [
        {"type": "message", "user": "U2", "ts": "1700000010.5", "text": "See <https://x.org|the page> &amp; <@U1>"},
        {"type": "message", "subtype": "channel_join", "user": "U1", "ts": "1700000011", "text": "joined"},
    ]
    first = [
        {"type": "message", "user": "U1", "ts": "1700000000.5", "text": "Hello in <#C1|general>"},
        {"type": "message", "user": "U9", "user_profile": {"real_name": "Guest"}, "ts": "1700000001", "text": "Hi"},
    ]
    (channel / "2025-02-01.json").write_text(json.dumps(later))
    (channel / "2025-01-31.json").write_text(json.dumps(first))
    assert read_transcript(channel) == [
        Utterance("Ann", "Hello in #general", 0.0),
        Utterance("Guest", "Hi", 0.5),
        Utterance("Bob B.", "See the page & @Ann", 10.0),
    ]
    assert [one.speaker for one in read_transcript(channel / "2025-01-31.json")] == ["U1", "Guest"]


def test_an_export_of_a_matrix_room(tmp_path: Path) -> None:
    messages = [
        {"type": "m.room.member", "sender": "@ann:x.org", "origin_server_ts": 1, "content": {"membership": "join"}},
        {
            "type": "m.room.message",
            "sender": "@ann:x.org",
            "origin_server_ts": 1_700_000_000_000,
            "content": {"msgtype": "m.text", "body": "Hello"},
        },
        {
            "type": "m.room.message",
            "sender": "@bob:x.org",
            "origin_server_ts": 1_700_000_002_500,
            "content": {"msgtype": "m.text", "body": "Hi"},
        },
    ]
    said = read(tmp_path, {"room_name": "Lab", "messages": messages})
    assert said == [Utterance("ann", "Hello", 0.0), Utterance("bob", "Hi", 2.5)]


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"anything": 1}, "not a document as Deepgram"),
        (3, "not a document as Deepgram"),
        ({"segments": {}}, "segments is not a list"),
        ({"segments": [3]}, r"segments\[0\] is not an object"),
        ({"segments": [{"start": 1}]}, r'segments\[0\] has no "text"'),
        ({"segments": [{"text": "x", "start": "soon"}]}, r'"start" of segments\[0\] is not a number'),
        ({"results": {"channels": [{}]}}, "alternatives is not a list"),
        ([{"type": "message", "text": "x"}], r'messages\[0\] has no "ts"'),
        ({"segments": []}, "holds nothing that anybody said"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, document: object, told: str) -> None:
    with pytest.raises(TranscriptError, match=told):
        read(tmp_path, document)


def test_folders_and_files_that_are_no_export_are_named(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="holds no file of a Slack export"):
        read_transcript(tmp_path)
    (tmp_path / "2025-01-31.json").write_text("[")
    with pytest.raises(TranscriptError, match=r"2025-01-31.json: not JSON"):
        read_transcript(tmp_path)


FIELDS = (
    "results utterances channels alternatives words word segments transcription text start speaker offsets from "
    "messages type ts content body user_profile"
).split()
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(FIELDS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_whatever_the_document_is_it_is_read_or_refused_in_one_line(document: object) -> None:
    said, told = [], ""
    try:
        said = parse_json_document(json.dumps(document), "talk.json")
    except TranscriptError as error:
        told = str(error)
    assert "\n" not in told
    assert all(one.text and one.speaker for one in said)
