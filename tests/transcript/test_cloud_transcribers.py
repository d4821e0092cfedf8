"""What the clouds' transcribers and players' formats hold is heard with who said it, and when."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_builder.transcript.live_speech import LiveSpeech
from tests.transcript.reading import heard, transcript

JSON = dict[str, Any]


def phrase(text: str, at: int, **more: object) -> JSON:
    return {"offsetInTicks": at, "durationInTicks": 5000000, "nBest": [{"display": text}, {"display": "-"}], **more}


def word(text: str, at: str, **more: object) -> JSON:
    return {"word": text, "startTime": at, "endTime": at, **more}


def guess(*words: JSON, **more: object) -> JSON:
    return {"alternatives": [{"transcript": " ".join(one["word"] for one in words), "words": [*words]}], **more}


DOCUMENTS: dict[str, tuple[object, list[str]]] = {
    "Azure": (
        {
            "recognizedPhrases": [
                phrase("One.", 5000000, channel=0, speaker=1),
                phrase("Two.", 20000000, channel=0, speaker=2),
            ]
        },
        ["0.5 Speaker 1 | One.", "2.0 Speaker 2 | Two."],
    ),
    "Azure's channels": (
        {"recognizedPhrases": [phrase("Two.", 20000000, channel=1), phrase("One.", 5000000, channel=0)]},
        ["0.5 Channel 0 | One.", "2.0 Channel 1 | Two."],
    ),
    "Azure's fast one": (
        {"combinedPhrases": [], "phrases": [{"offsetMilliseconds": 500, "text": "One.", "speaker": 1}]},
        ["0.5 Speaker 1 | One."],
    ),
    "Azure's whole text": ({"combinedRecognizedPhrases": [{"display": "One."}]}, ["None Unknown | One."]),
    "Google's speakers, who come last": (
        {
            "results": [
                guess(word("one", "0.500s"), word("two", "2s")),
                {"alternatives": [{"words": [word("one", "0.500s", speakerTag=1), word("two", "2s", speakerTag=2)]}]},
            ]
        },
        ["0.5 Speaker 1 | one", "2.0 Speaker 2 | two"],
    ),
    "Google's channels": (
        {
            "results": [
                guess(word("one", "0s"), channelTag=1),
                {"alternatives": [{"transcript": "Two."}], "channelTag": 2},
            ]
        },
        ["0.0 Channel 1 | one", "None Channel 2 | Two."],
    ),
    "Watson": (
        {
            "results": [{"final": True, "alternatives": [{"timestamps": [["one", 0.5, 1], ["two", 2.0, 3], "?"]}]}],
            "speaker_labels": [{"from": 0.5, "to": 1, "speaker": 0}, {"from": 2.0, "to": 3, "speaker": 1}],
        },
        ["0.5 Speaker 0 | one", "2.0 Speaker 1 | two"],
    ),
    "Gong": (
        {
            "callTranscripts": [
                {"transcript": [{"speakerId": "64", "sentences": [{"start": 500, "text": "One."}, {"text": "Two."}]}]}
            ]
        },
        ["0.5 Speaker 64 | One. Two."],
    ),
    "Azure's video indexer": (
        {
            "videos": [
                {"insights": {"transcript": [{"text": "One.", "speakerId": 1, "instances": [{"start": "0:00:00.5"}]}]}}
            ]
        },
        ["0.5 Speaker 1 | One."],
    ),
    "messages to a model": (
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "One."}, {"type": "image_url"}]}]},
        ["None user | One."],
    ),
    "Amazon's call analytics": (
        {"Transcript": [{"ParticipantRole": "AGENT", "Content": "One.", "BeginOffsetMillis": 500}]},
        ["0.5 AGENT | One."],
    ),
    "AssemblyAI's sentences": (
        {"audio_duration": 3, "sentences": [{"text": "One.", "start": 500, "end": 900, "speaker": "A"}]},
        ["0.5 Speaker A | One."],
    ),
    "ElevenLabs' channels": (
        {
            "transcripts": [
                {
                    "channel_index": place,
                    "words": [{"text": text, "type": "word", "start": at, "speaker_id": f"speaker_{place}"}],
                }
                for place, text, at in ((0, "One.", 0.5), (1, "Two.", 2.0))
            ]
        },
        ["0.5 speaker_0 | One.", "2.0 speaker_1 | Two."],
    ),
    "Voxtral": (
        {"text": "One.", "segments": [{"text": "One.", "start": 0.5, "speaker_id": "speaker_1"}]},
        ["0.5 speaker_1 | One."],
    ),
    "Vosk": ({"result": [{"word": "one", "start": 0.5, "end": 1}], "text": "one"}, ["0.5 Unknown | one"]),
    "a text and what it cost": ({"text": "One.", "usage": {"type": "tokens"}}, ["None Unknown | One."]),
    "DOTe": (
        {"lines": [{"startTime": "00:00:00,500", "speakerDesignation": "Ida", "text": "One."}]},
        ["0.5 Ida | One."],
    ),
    "an answer within another": (
        {"status": "COMPLETED", "output": {"segments": [{"start": 0.5, "text": "One.", "speaker": "SPEAKER_00"}]}},
        ["0.5 SPEAKER_00 | One."],
    ),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_who_said_what_in_a_document(tmp_path: Path, name: str) -> None:
    document, lines = DOCUMENTS[name]
    found = transcript(tmp_path, "a.json", document)
    assert [f"{one.at} {one.speaker} | {one.text}" for one in found.utterances] == lines


def test_substation_alphas_dialogue(tmp_path: Path) -> None:
    text = (
        "[Script Info]\n\n[Events]\nFormat: Layer, Start, End, Style, Name, Effect, Text\n"
        "Comment: 0,0:00:00.00,0:00:01.00,Default,,,not said\n"
        "Dialogue: 0,0:00:02.00,0:00:03.00,Default,Ida,,{\\i1}Here,{\\i0}\\Nat last.\n"
        "Dialogue: 0,0:00:01.00,0:00:02.00,Default,Bo,,Where?\n"
    )
    assert heard(tmp_path, "a.ass", text) == ["Bo | Where?", "Ida | Here, at last."]


def test_lyrics_at_each_of_their_times(tmp_path: Path) -> None:
    found = transcript(tmp_path, "a.lrc", "[00:12.00]<00:12.00> Here <00:12.50> we are\n[00:10.00][00:20.00]Oh\n")
    assert [(one.at, one.text) for one in found.utterances] == [(10, "Oh"), (12, "Here we are"), (20, "Oh")]


CUE = "00:00:0{at}.000 --> 00:00:0{until}.000\n{text}\n\n"


def cues(*texts: str) -> str:
    return "WEBVTT\n\n" + "".join(CUE.format(at=at, until=at + 1, text=text) for at, text in enumerate(texts, start=1))


def test_somebody_else_speaks_after_chevrons_named_or_not(tmp_path: Path) -> None:
    lines = ["Unknown | The pump came.", "Unknown | At last.", "Unknown | Which one?", "Unknown | Both."]
    assert heard(tmp_path, "a.vtt", cues("&gt;&gt; The pump came.", "At last. >> Which one?", ">> Both.")) == lines
    named = cues(">> IDA: The pump came.", "At last.", ">> BO: Which one?", ">> Both.")
    assert heard(tmp_path, "b.vtt", named) == [
        "IDA | The pump came.",
        "IDA | At last.",
        "BO | Which one?",
        "Unknown | Both.",
    ]
    assert heard(tmp_path, "c.vtt", cues("a >> b holds", "and c > d")) == [
        "Unknown | a >> b holds",
        "Unknown | and c > d",
    ]


def test_a_label_on_a_line_of_its_own_counts_until_the_next(tmp_path: Path) -> None:
    found = heard(tmp_path, "a.vtt", cues("[speaker 0]\nThe pump came.", "At last.", "[speaker 1]\nWhich one?"))
    assert found == ["Speaker 0 | The pump came.", "Speaker 0 | At last.", "Speaker 1 | Which one?"]


def test_who_speaks_stands_in_a_cues_name_or_in_an_object(tmp_path: Path) -> None:
    webex = 'WEBVTT\n\n1 "Ida Lind" (28)\n00:01.000 --> 00:02.000\nHere.\n\n2 "Bo" (9)\n00:02.000 --> 00:03.000\nWho?\n'
    assert heard(tmp_path, "a.vtt", webex) == ["Ida Lind | Here.", "Bo | Who?"]
    teams = cues(
        '{"speakerName":"Ida <b>","spokenText":"Here & there.","spokenLanguage":"en-us"}', '{"speakerName": broken'
    )
    assert heard(tmp_path, "b.vtt", teams) == ["Ida <b> | Here & there.", 'Unknown | {"speakerName": broken']


def token(text: str, speaker: str = "1", *, final: bool = True) -> JSON:
    return {"text": text, "speaker": speaker, "is_final": final}


IDA: JSON = {"participant": {"id": 1, "name": "Ida"}}
SAID = {"text": "One.", "participantRawID": "4:+15550100", "offset": 1}
LINES = [{"speaker": 1, "text": "One.", "start": "0:00:00"}, {"speaker": 2, "text": "Two.", "start": "0:00:03"}]
ITEM = {"Type": "pronunciation"}
LIVE: dict[str, tuple[list[JSON], list[str]]] = {
    "Google": (
        [
            {"results": [{"alternatives": [{"transcript": "one"}]}]},
            {"results": [{"alternatives": [{"transcript": "One."}], "isFinal": True, "resultEndTime": "2s"}]},
        ],
        ["Unknown | One."],
    ),
    "Amazon": (
        [
            {"Transcript": {"Results": [{"ResultId": "r", "IsPartial": partial, "Alternatives": [
                {"Transcript": "One. Two", "Items": [{**ITEM, "Content": "One", "Speaker": "0"},
                 {"Type": "punctuation", "Content": "."}, {**ITEM, "Content": "Two", "Speaker": "1"}]}]}]}}
            for partial in (True, False)
        ],
        ["Speaker 0 | One.", "Speaker 1 | Two"],
    ),
    "Watson": (
        [{"state": "listening"}, *({"results": [{"final": one, **guess(word("one", "0s"))}]} for one in (False, True))],
        ["Unknown | one"],
    ),
    "Azure's calls": (
        [
            {"kind": "TranscriptionMetadata"},
            *(
                {"kind": "TranscriptionData", "transcriptionData": {**SAID, "resultStatus": status}}
                for status in ("Intermediate", "Final")
            ),
        ],
        ["4:+15550100 | One."],
    ),
    "Twilio": (
        [
            {"TranscriptionEvent": "transcription-started"},
            {
                "TranscriptionEvent": "transcription-content",
                "TranscriptionData": '{"transcript": "One."}',
                "Track": "inbound_track",
                "Final": "true",
            },
        ],
        ["inbound | One."],
    ),
    "Zoom": ([{"msg_type": 17, "content": {"user_name": "Ida", "data": "One."}}], ["Ida | One."]),
    "Gladia's channels": (
        [
            {"type": "transcript", "data": {"id": at, "is_final": True, "utterance": {"text": "One.", "channel": at}}}
            for at in (0, 1)
        ],
        ["Channel 0 | One.", "Channel 1 | One."],
    ),
    "WhisperLiveKit": (
        [{"lines": LINES[:1]}, {"lines": LINES}, {"lines": LINES}, {"type": "ready_to_stop"}],
        ["Speaker 1 | One.", "Speaker 2 | Two."],
    ),
    "Azure": (
        [
            {"Offset": 1, "Text": "one", "RecognitionStatus": "NoMatch"},
            {"Offset": 2, "RecognitionStatus": "Success", "DisplayText": "One.", "SpeakerId": "Guest-1"},
        ],
        ["Guest-1 | One."],
    ),
    "Rev": (
        [
            {"type": "connected", "id": "x"},
            {"type": "partial", "elements": [{"type": "text", "value": "one"}]},
            {"type": "final", "ts": 0, "elements": [{"value": "One"}, {"value": "."}], "speaker_id": 2},
        ],
        ["Speaker 2 | One."],
    ),
    "ElevenLabs": (
        [
            {"message_type": "partial_transcript", "text": "one"},
            {"message_type": "committed_transcript", "text": "One."},
            {"message_type": "committed_transcript_with_timestamps", "text": "One."},
            {"message_type": "committed_transcript", "text": "One."},
        ],
        ["Unknown | One.", "Unknown | One."],
    ),
    "Soniox": (
        [
            {"tokens": [token("One"), token(" do", final=False)]},
            {"tokens": [token(" day"), token("."), token("<end>"), token(" Two", "2")]},
            {"tokens": [token(" days.", "2")], "finished": True},
        ],
        ["Speaker 1 | One day.", "Speaker 2 | Two days."],
    ),
    "Recall.ai": (
        [
            {"event": kind, "data": {"data": {"words": [{"text": "One"}, {"text": "day."}], **IDA}}}
            for kind in ("transcript.partial_data", "transcript.data")
        ],
        ["Ida | One day."],
    ),
    "a program of one's own": (
        [{"speaker_name": "Ida", "message": "One."}, {"user": "Bo", "transcript": "Two.", "isFinal": False}],
        ["Ida | One."],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LIVE)
def test_only_what_is_final_is_heard_and_once(name: str) -> None:
    messages, lines = LIVE[name]
    speech = LiveSpeech()
    said = [one for message in messages for one in speech.read(json.dumps(message))]
    assert [f"{one.speaker} | {one.text}" for one in [*said, *speech.rest()]] == lines
