"""Messages of bots in meetings, agents, call centres and chats, and lines that are no JSON, while people talk."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from context_builder.transcript.live_speech import LiveSpeech
from context_builder.transcript.utterance import corrected

TALK = ["Ida Lind | Shall we sail?", "Bo Berg | Not in this wind."]
TURNS = [("Ida Lind", "Shall we sail?"), ("Bo Berg", "Not in this wind.")]


def heard(lines: Sequence[object]) -> list[str]:
    """Return what is heard of lines, or of objects as lines."""
    speech = LiveSpeech()
    said = [one for line in lines for one in speech.read(line if isinstance(line, str) else json.dumps(line))]
    return [f"{one.speaker} | {one.text}" for one in corrected([*said, *speech.rest()])]


def _vexa(who: str, text: str, second: int, **more: object) -> dict[str, object]:
    segment = {"text": text, "speaker": who, "absolute_start_time": f"2023-05-03T09:00:0{second}Z", **more}
    return {"type": "transcript.mutable", "payload": {"segments": [segment]}}


STREAMS: dict[str, list[object]] = {
    "Vexa": [
        _vexa("Ida Lind", "Shall we", 1),
        _vexa("Ida Lind", "Shall we sail?", 1),
        _vexa("Bo Berg", "Not in this wind.", 3, completed=True),
        {"type": "meeting.status", "payload": {"status": "completed"}},
    ],
    "Meeting BaaS": [
        {
            "event": "complete",
            "data": {
                "transcript": [
                    {"speaker": who, "words": [{"word": word} for word in text.split()]} for who, text in TURNS
                ]
            },
        }
    ],
    "Attendee": [
        {"trigger": "transcript.update", "data": {"speaker_name": who, "transcription": {"transcript": text}}}
        for who, text in TURNS
    ],
    "Fireflies": [
        {"chunk_id": "1", "speaker_name": "Ida Lind", "text": "Shall"},
        {"chunk_id": "1", "speaker_name": "Ida Lind", "text": "Shall we sail?"},
        {"chunk_id": "2", "speaker_name": "Bo Berg", "text": "Not in this wind."},
    ],
    "Symbl": [
        {"type": "message", "isFinal": False, "message": {"punctuated": {"transcript": "Shall we"}}},
        {
            "type": "message_response",
            "messages": [{"from": {"name": who}, "payload": {"content": text}} for who, text in TURNS],
        },
    ],
    "Vapi": [
        {"message": {"type": "transcript", "role": "Ida Lind", "transcriptType": "partial", "transcript": "Shall we"}},
        *(
            {"message": {"type": "transcript", "role": who, "transcriptType": "final", "transcript": text}}
            for who, text in TURNS
        ),
        {
            "message": {
                "type": "conversation-update",
                "conversation": [{"role": "Ida Lind", "content": "Shall we sail?"}],
            }
        },
    ],
    "Amazon Connect": [
        {"EventType": "SEGMENTS", "Segments": [{"Transcript": {"ParticipantRole": who, "Content": text}}]}
        for who, text in TURNS
    ],
    "LiveKit": [
        {"segments": [{"id": text, "text": text, "final": final}], "participant_identity": who}
        for who, text in TURNS
        for final in (False, True)
    ],
    "RTVI": [
        {"label": "rtvi-ai", "type": "bot-ready"},
        *({"type": "user-transcription", "data": {"text": text, "user_id": who, "final": True}} for who, text in TURNS),
    ],
    "WhatsApp's cloud": [
        {
            "entry": [
                {
                    "changes": [
                        {
                            "value": {
                                "contacts": [{"profile": {"name": who}, "wa_id": "47"}],
                                "messages": [{"from": "47", "type": "text", "text": {"body": text}}],
                            }
                        }
                    ]
                }
            ]
        }
        for who, text in TURNS
    ],
    "Google Chat": [
        {"type": "MESSAGE", "message": {"sender": {"displayName": who}, "text": text}} for who, text in TURNS
    ],
    "Teams": [{"type": "message", "from": {"id": "1", "name": who}, "text": text} for who, text in TURNS],
    "Twilio": [{"EventType": "onMessageAdded", "Author": who, "Body": text} for who, text in TURNS],
    "Jitsi": [
        {"participant": {"name": who}, "transcript": [{"text": text}], "is_interim": interim}
        for who, text in TURNS
        for interim in (True, False)
    ],
    "a list": [[{"speaker": who, "text": text} for who, text in TURNS]],
    "server-sent events": [
        ": a comment",
        *(f"data: {json.dumps({'speaker': who, 'text': text})}" for who, text in TURNS),
        "data: [DONE]",
    ],
    "Socket.IO": [f"42{json.dumps(['transcript', {'speaker': who, 'text': text}])}" for who, text in TURNS],
    "lines with names": [f"{who}: {text}" for who, text in TURNS],
    "lines with times": ["[00:00:01] Ida Lind: Shall we", "[00:00:02] sail?", "[00:00:03] Bo Berg: Not in this wind."],
}


@pytest.mark.parametrize("kind", STREAMS)
def test_who_says_what(kind: str) -> None:
    said = heard(STREAMS[kind])
    if kind == "lines with times":
        said[:2] = [f"{said[0]} {said[1].partition(' | ')[2]}"]
    assert said == TALK


def _ends(text: str, second: int, until: str, who: str = "Ida") -> dict[str, object]:
    return _vexa(who, text, second, absolute_end_time=until, completed=True)


def test_a_complete_segment_of_vexa_that_comes_again_with_another_beginning_is_one() -> None:
    assert heard(
        [
            _ends("The crane is broken now.", 2, "3.0"),
            _ends("The crane is broken now.", 1, "3.0"),
            _ends("The crane is broken, now!", 1, "3.0"),
            _ends("Since when?", 4, "5.0", "Bo"),
            _ends("the cranes is broken now", 2, "3.0"),
        ]
    ) == ["Ida | the cranes is broken now", "Bo | Since when?"]


def test_segments_of_vexa_with_other_words_ends_or_speakers_are_several() -> None:
    said = [
        ("Yes.", 1, "3.0", "Ida"),
        ("Yes.", 2, "3.0", "Bo"),
        ("Yes.", 4, "5.0", "Ida"),
        ("No way.", 5, "5.0", "Ida"),
    ]
    assert heard([_ends(*one) for one in said]) == ["Ida | Yes.", "Bo | Yes.", "Ida | Yes.", "Ida | No way."]


def test_an_agent_and_its_user_are_told_apart() -> None:
    assert heard(
        [
            {"type": "user_transcript", "user_transcription_event": {"user_transcript": "Shall we sail?"}},
            {"type": "agent_response", "agent_response_event": {"agent_response": "Not now."}},
            {"type": "ConversationText", "role": "user", "content": "Why?"},
            {"type": "ping", "ping_event": {"event_id": 1}},
        ]
    ) == ["user | Shall we sail?", "agent | Not now.", "user | Why?"]


def test_fragments_of_gemini_are_a_turn() -> None:
    contents: list[dict[str, object]] = [
        {"inputTranscription": {"text": "Shall we "}},
        {"inputTranscription": {"text": "sail?"}},
        {"outputTranscription": {"text": "Not now."}},
        {"turnComplete": True},
    ]
    assert heard([{"serverContent": content} for content in contents]) == ["user | Shall we sail?", "model | Not now."]


def test_names_of_irc_begin_lines() -> None:
    assert heard([":ida!i@x PRIVMSG #sea :Shall we sail?"]) == ["ida | Shall we sail?"]
    assert heard(["<ida> Shall we sail?", "bo: No."]) == ["ida | Shall we sail?", "bo | No."]


@pytest.mark.parametrize(
    "line", ["Connected to the server", '{"text": "cut', '{"type": "note", "note": "of several words"}']
)
def test_what_says_nothing_that_can_be_told_is_named(line: str) -> None:
    with pytest.raises(ValueError, match=r"not JSON|not a message"):
        LiveSpeech().read(line)
