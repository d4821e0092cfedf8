"""What further services and programs send while people talk: what is final is heard, once, by whom it was said."""

from __future__ import annotations

import json

import pytest

from context_builder.transcript.live.plain_lines import PlainLines
from context_builder.transcript.live_speech import LiveSpeech
from context_builder.transcript.utterance import corrected
from tests.growth import is_linear


def _kaldi(text: str, *, final: bool) -> dict[str, object]:
    return {"status": 0, "segment": 0, "result": {"final": final, "hypotheses": [{"transcript": text}]}}


def _tencent(text: str, kind: int) -> dict[str, object]:
    return {"code": 0, "message": "success", "result": {"slice_type": kind, "index": 0, "voice_text_str": text}}


def _dashscope(text: str, *, final: bool) -> dict[str, object]:
    sentence = {"begin_time": 0, "text": text, "sentence_end": final}
    return {"header": {"event": "result-generated"}, "payload": {"output": {"sentence": sentence}}}


def _alibaba(text: str, name: str) -> dict[str, object]:
    return {"header": {"namespace": "SpeechTranscriber", "name": name}, "payload": {"index": 1, "result": text}}


def _iflytek(text: str, kind: str) -> dict[str, object]:
    words = {"bg": "0", "type": kind, "rt": [{"ws": [{"cw": [{"w": text}]}]}]}
    return {"action": "result", "data": json.dumps({"cn": {"st": words}})}


STREAMS: dict[str, list[object]] = {
    "Kaldi": [_kaldi("Shall", final=False), _kaldi("Shall we sail?", final=True)],
    "Tencent": [_tencent("Shall", 1), _tencent("Shall we sail?", 2)],
    "DashScope": [
        {"header": {"event": "task-started"}, "payload": {}},
        _dashscope("Shall", final=False),
        _dashscope("Shall we sail?", final=True),
    ],
    "Alibaba": [_alibaba("Shall", "TranscriptionResultChanged"), _alibaba("Shall we sail?", "SentenceEnd")],
    "iFlytek": [{"action": "started", "data": ""}, _iflytek("Shall", "1"), _iflytek("Shall we sail?", "0")],
    "FunASR": [{"mode": "2pass-online", "text": "Shall"}, {"mode": "2pass-offline", "text": "Shall we sail?"}],
    "RealtimeSTT": [{"type": "realtime", "text": "Shall"}, {"type": "fullSentence", "text": "Shall we sail?"}],
    "whisper_streaming": ["2691.4399 300 1380 Shall we", "6914.5501 1940 4940 sail?"],
    "whisper_streaming's server": ["300 1380 Shall we", "1940 4940 sail?"],
    "SubRip": ["00:00:00,000 --> 00:00:02,000", "Shall we", "2", "00:00:02,000 --> 00:00:03,000", "sail?"],
}


def listened(lines: list[object]) -> list[tuple[str, str]]:
    speech = LiveSpeech()
    said = [one for line in lines for one in speech.read(line if isinstance(line, str) else json.dumps(line))]
    return [(one.speaker, one.text) for one in corrected([*said, *speech.rest()])]


@pytest.mark.parametrize("service", STREAMS)
def test_what_is_final_deep_in_a_message_or_on_a_line(service: str) -> None:
    said = listened(STREAMS[service])
    assert {who for who, _ in said} == {"Unknown"}
    assert " ".join(text for _, text in said) == "Shall we sail?"


SPOKEN: dict[str, list[object]] = {
    "pyannote-whisper": ["0.00 2.44 Ida_0  Shall we sail?", "3.44 4.84 Bo_1  No."],
    "RTTM is silent": ["SPEAKER a 1 0.00 2.44 <NA> <NA> Ida <NA> <NA>", "Ida: Shall we sail?", "Bo: No."],
    "WebVTT": [
        "WEBVTT",
        "00:00.000 --> 00:02.000",
        "<v Ida>Shall we sail?</v>",
        "00:02.000 --> 00:03.000",
        "<v Bo>No.",
    ],
    "a log of IRC": [
        "[09:00] *** Joins: Ida (~i@h)",
        "[09:01] <Ida> Shall we sail?",
        "09:02 -!- Eva [~e@h] has joined #p",
        "09:03 <@Bo> No.",
    ],
    "seconds in brackets": ["[000.50s] Ida: Shall we sail?", "(4 s) Bo: No."],
    "a time behind the name": ["Ida [00:00]: Shall we sail?", "Bo (00:04) No."],
    "IRC": [":ida!~i@h JOIN #p", ":Ida!~i@h PRIVMSG #p :Shall we sail?", "PING :srv", ":Bo!~b@h PRIVMSG #p :No."],
    "Retell": [
        {"interaction_type": "update_only", "transcript": [{"role": "Ida", "content": "Shall"}]},
        {
            "interaction_type": "response_required",
            "transcript": [{"role": "Ida", "content": "Shall we sail?"}, {"role": "Bo", "content": "No."}],
        },
    ],
}


@pytest.mark.parametrize("program", SPOKEN)
def test_who_says_what_in_lines_of_further_programs(program: str) -> None:
    lines = [
        one.replace("Ida_", "SPEAKER_").replace("Bo_", "SPEAKER_") if isinstance(one, str) else one
        for one in SPOKEN[program]
    ]
    names = {"SPEAKER_0": "Ida", "SPEAKER_1": "Bo"}
    assert [(names.get(who, who), text) for who, text in listened(lines)] == [("Ida", "Shall we sail?"), ("Bo", "No.")]


def test_yandex_refines_what_was_final() -> None:
    final = {"audio_cursors": {"final_index": "0"}, "final": {"alternatives": [{"text": "shall we"}]}}
    refined = {"final_index": "0", "normalized_text": {"alternatives": [{"text": "Shall we?"}]}}
    assert listened([{"partial": {"alternatives": []}}, final, {"final_refinement": refined}]) == [
        ("Unknown", "Shall we?")
    ]


def test_yandex_counts_by_channel_or_not_at_all() -> None:
    finals = [{"alternatives": [{"text": text}], "channel_tag": text} for text in ("1", "2")]
    assert len(listened([{"audio_cursors": {}, "final": one} for one in finals])) == 2
    assert len(listened([{"final": {"alternatives": [{"text": text}]}} for text in ("Shall we?", "No.")])) == 2


@pytest.mark.parametrize(
    "message",
    [
        {"mode": "offline", "speaker": "Ida", "text": "We sail."},
        {"action": "result", "data": {"speaker": "Ida", "text": "We sail."}},
        {"Text": "We sail.", "Offset": 1, "speaker": "Ida"},
        ":Ida!~i@h PRIVMSG #p :\x01ACTION We sail.\x01",
    ],
)
def test_what_looks_like_a_service_is_said_by_whom_it_names(message: object) -> None:
    assert listened([message]) == [("Ida", "We sail.")]


@pytest.mark.parametrize("name", ["partial", "partialTranscript", "interim_result"])
def test_what_is_named_as_not_final_is_not_said(name: str) -> None:
    assert listened(
        [{name: {"text": "We"}}, {"event": {name: {"text": "We sail"}}}, {"result": {"text": "We sail."}}]
    ) == [("Unknown", "We sail.")]


@pytest.mark.parametrize(
    "header",
    [
        {"namespace": "Default", "name": "TaskFailed", "status_text": "no quota"},
        {"event": "task-failed", "error_message": "no quota"},
    ],
)
def test_a_task_that_failed_is_an_error(header: object) -> None:
    with pytest.raises(ValueError, match="reports an error: no quota"):
        listened([{"header": header, "payload": {}}])


@pytest.mark.parametrize("name", ["error", "warning"])
def test_what_a_program_tells_of_itself_is_not_said(name: str) -> None:
    with pytest.raises(ValueError, match="not a message"):
        listened([{name: {"text": "slow down please"}}])


def test_messages_with_the_same_number_are_each_said() -> None:
    lines: list[object] = [{"type": "message", "id": 1, "speaker": who, "text": "Aye."} for who in ("Ida", "Bo")]
    assert listened(lines) == [("Ida", "Aye."), ("Bo", "Aye.")]


def test_numbers_in_cues_are_said_and_those_above_them_are_not() -> None:
    cues = ["1", "00:01.000 --> 00:02.000", "42", "2", "00:02.000 --> 00:03.000", "in", "2023"]
    assert [text for _, text in listened(["WEBVTT", *cues])] == ["42", "in", "2023"]


def test_numbers_and_words_that_look_like_a_program_s_are_said() -> None:
    lines: list[object] = ["\x1b[2K\x1b[0K10 15 minutes", "Ida: So", "PING me later"]
    assert [text for _, text in listened(lines)] == ["10 15 minutes", "So", "PING me later"]


def test_numbers_that_somebody_goes_on_with_are_said() -> None:
    assert listened(["Ida: We need", "3 4 inch screws", "12 of them"])[:2] == [
        ("Ida", "We need"),
        ("Ida", "3 4 inch screws"),
    ]


EDITED: dict[str, list[object]] = {
    "Zulip": [
        {"type": "message", "message": {"id": 7, "sender_full_name": "Ida", "content": "We sail.", "timestamp": 1}},
        {"type": "update_message", "message_id": 7, "content": "We stay."},
    ],
    "Bot Framework": [
        {"type": "message", "id": "a", "from": {"name": "Ida"}, "text": "We sail."},
        {"type": "messageUpdate", "id": "a", "from": {"name": "Ida"}, "text": "We stay."},
    ],
    "Nova Sonic": [
        {"event": {"contentStart": {"role": "USER", "type": "TEXT"}}},
        {"event": {"textOutput": {"content": "We stay.", "role": "Ida"}}},
    ],
    "LiveKit": [
        {"type": "transcription", "participantIdentity": "Ida", "segments": [{"text": "We", "final": False}]},
        {"type": "transcription", "participantIdentity": "Ida", "segments": [{"text": "We stay.", "final": True}]},
    ],
    "Symbl": [
        {"type": "message", "message": {"isFinal": False, "payload": {"transcript": "We"}, "user": {"name": "Ida"}}},
        {"type": "message_response", "messages": [{"from": {"name": "Ida"}, "payload": {"content": "We stay."}}]},
    ],
    "LINE": [
        {"events": [{"type": "message", "source": {"userId": "Ida"}, "message": {"type": "text", "text": "We stay."}}]}
    ],
}


@pytest.mark.parametrize("program", EDITED)
def test_the_last_words_of_a_message_count(program: str) -> None:
    assert listened(EDITED[program]) == [("Ida", "We stay.")]


def test_a_meeting_of_recall_with_its_chat_and_times() -> None:
    """Words and messages of the chat are said at their seconds from the beginning; who joins says nothing."""
    ida, bo = {"id": 1, "name": "Ida"}, {"id": 2, "name": "Bo"}
    words = [{"text": "Good", "start_timestamp": {"relative": 3.5}}, {"text": "morning."}]
    events = [
        ("transcript.data", {"words": words, "participant": ida}),
        ("participant_events.join", {"participant": bo, "timestamp": {"relative": 4.0}}),
        (
            "participant_events.chat_message",
            {"participant": bo, "timestamp": {"relative": 5.0}, "data": {"text": "I am late.", "to": "everyone"}},
        ),
    ]
    speech = LiveSpeech()
    said = [one for kind, data in events for one in speech.read(json.dumps({"event": kind, "data": {"data": data}}))]
    assert [(one.speaker, one.text, one.at) for one in corrected(said)] == [
        ("Ida", "Good morning.", 3.5),
        ("Bo", "I am late.", 5.0),
    ]


def test_hypotheses_of_azure_are_not_said() -> None:
    phrases = [{"Text": "we", "Offset": 1}, {"RecognitionStatus": "Success", "DisplayText": "We stay.", "Offset": 1}]
    assert listened([*phrases]) == [("Unknown", "We stay.")]


def test_a_line_of_blanks_is_read_at_once() -> None:
    with pytest.raises(ValueError, match="not JSON"):
        LiveSpeech().read("\u3000" * 100_000)


@pytest.mark.parametrize("sentence", ["Der Termin (14:30) passt mir nicht.", "The Board [10:30] decided it."])
def test_a_time_in_a_sentence_makes_no_name_of_what_stands_before_it(sentence: str) -> None:
    assert listened(["Ida: Hear this.", sentence]) == [("Ida", "Hear this."), ("Ida", sentence)]


@pytest.mark.parametrize("blank", [" ", "\t"])
def test_a_line_of_blanks_takes_no_time_by_their_square(blank: str) -> None:
    assert is_linear(PlainLines().read, blank, most=16_000)
