"""What transcribers send while people talk: final text alone, each once, and nothing that is said is in an error."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_builder.transcript.live_speech import LONGEST_HELD, LiveSpeech
from context_builder.transcript.utterance import Utterance


def said(speech: LiveSpeech, *messages: Any) -> list[tuple[str, str]]:
    """Who said what, as the messages tell it."""
    return [(one.speaker, one.text) for message in messages for one in speech.read(json.dumps(message))]


def deepgram(text: str, start: float, *, final: bool = True, ends: bool = True, **changed: Any) -> dict[str, Any]:
    words = changed.pop("words", [])
    return {
        "type": "Results",
        "channel_index": [0, 1],
        "start": start,
        "is_final": final,
        "speech_final": ends,
        "channel": {"alternatives": [{"transcript": text, "confidence": 0.99, "words": words}]},
        "metadata": {"request_id": "one"},
        **changed,
    }


def turn(text: str, order: int, *, ends: bool = True, formatted: bool = True, **more: Any) -> dict[str, Any]:
    return {
        "type": "Turn",
        "turn_order": order,
        "end_of_turn": ends,
        "turn_is_formatted": formatted,
        "transcript": text,
        "words": [],
        **more,
    }


def test_deepgrams_parts_are_one_utterance_when_speech_ends() -> None:
    speech = LiveSpeech()
    parts = (
        deepgram("We count", 0.0, final=False, ends=False),
        deepgram("We count", 0.0, ends=False),
        deepgram("the clips.", 1.0),
    )
    assert said(speech, *parts) == [("Unknown", "We count the clips.")]
    assert said(speech, *parts) == []  # as a relay that connects again sends it


def test_deepgrams_speakers_are_told_apart_by_their_words() -> None:
    words = [
        {"word": word.lower(), "punctuated_word": word, "start": place, "speaker": int(place > 1)}
        for place, word in enumerate("Good morning. We count.".split())
    ]
    assert said(LiveSpeech(), deepgram("Good morning. We count.", 0.0, words=words)) == [
        ("Speaker 0", "Good morning."),
        ("Speaker 1", "We count."),
    ]


def test_deepgrams_channels_do_not_mix() -> None:
    speech = LiveSpeech()
    assert said(
        speech,
        deepgram("Left begins", 0.0, ends=False, channel_index=[0, 2]),
        deepgram("Right says it all.", 0.0, channel_index=[1, 2]),
        deepgram("and ends.", 1.0, channel_index=[0, 2]),
    ) == [("Channel 1", "Right says it all."), ("Channel 0", "Left begins and ends.")]


def test_a_new_connection_counts_from_zero_again() -> None:
    again = deepgram("Hello.", 0.0, metadata={"request_id": "two"})
    assert said(LiveSpeech(), deepgram("Hello.", 0.0), again) == [("Unknown", "Hello.")] * 2


def test_what_is_held_back_goes_at_the_end_of_an_utterance_or_when_it_grows_long() -> None:
    speech = LiveSpeech()
    assert said(speech, deepgram("Held", 0.0, ends=False)) == []
    assert speech.holds
    assert said(speech, {"type": "UtteranceEnd", "last_word_end": 2.0}) == [("Unknown", "Held")]
    assert said(speech, deepgram("Held again", 3.0, ends=False)) == []
    assert speech.rest() == [Utterance("Unknown", "Held again")]
    assert not speech.holds
    ((_, long),) = said(speech, deepgram("x" * (LONGEST_HELD + 1), 4.0, ends=False))
    assert len(long) > LONGEST_HELD


def test_fluxs_turns_are_said_when_they_end() -> None:
    flux = {"type": "TurnInfo", "request_id": "r", "turn_index": 0, "event": "Update", "transcript": "We"}
    ended = {**flux, "event": "EndOfTurn", "transcript": "We count."}
    assert said(LiveSpeech(), flux, ended, ended) == [("Unknown", "We count.")]


def test_assemblyais_turn_is_said_once_with_its_punctuation() -> None:
    speech = LiveSpeech()
    begin = {"type": "Begin", "id": "session", "expires_at": 1}
    plain = turn("we count the clips", 0, formatted=False)
    full = turn("We count the clips.", 0, speaker_label="A")
    assert said(speech, begin, turn("we", 0, ends=False, formatted=False), plain) == []
    assert said(speech, full, full) == [("Speaker A", "We count the clips.")]
    assert said(speech, turn("no punctuation", 1, formatted=False)) == []
    assert said(speech, turn("next", 2, ends=False, formatted=False)) == [("Unknown", "no punctuation")]
    assert said(speech, {"type": "Begin", "id": "another"}, turn("We begin again.", 0)) == [
        ("Unknown", "We begin again.")
    ]


def test_a_turn_that_went_without_its_punctuation_is_not_said_again() -> None:
    speech = LiveSpeech()
    assert said(speech, turn("we count", 0, formatted=False)) == []
    assert [one.text for one in speech.rest()] == ["we count"]
    assert said(speech, turn("We count.", 0)) == []


def test_whisperlives_segments_come_again_and_again() -> None:
    first = {"start": "0.000", "end": "2.0", "text": " We count.", "completed": True}
    grows = {"start": "2.000", "end": "3.0", "text": " And th", "completed": False}
    done = {**grows, "text": " And then we stop.", "completed": True}
    speech = LiveSpeech()
    assert said(speech, {"uid": "u", "message": "SERVER_READY", "backend": "faster_whisper"}) == []
    assert said(speech, {"uid": "u", "segments": [first, grows]}, {"uid": "u", "segments": [first, done]}) == [
        ("Unknown", "We count."),
        ("Unknown", "And then we stop."),
    ]


def test_of_segments_that_do_not_tell_the_last_is_not_final() -> None:
    old = [{"start": 0.0, "text": "One."}, {"start": 1.0, "text": "Two.", "speaker": "SPEAKER_01"}]
    speech = LiveSpeech()
    assert said(speech, {"segments": old}) == [("Unknown", "One.")]
    assert said(speech, {"segments": [*old, {"start": 2.0, "text": "Thr"}]}) == [("SPEAKER_01", "Two.")]


def test_plain_objects() -> None:
    lines = ({"text": "Hi", "speaker": "Al"}, {"text": "Hi", "speaker": "Al"}, {"text": "H", "is_final": False})
    assert said(LiveSpeech(), *lines) == [("Al", "Hi"), ("Al", "Hi")]
    assert said(LiveSpeech(), {"type": "partial", "text": "He"}, {"type": "final", "text": "Hello", "speaker": 2}) == [
        ("Speaker 2", "Hello")
    ]
    assert said(LiveSpeech(), {"text": " \n "}) == []


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"\xff\xfe", "not JSON"),
        ("", "not JSON"),
        ("[1]", "not a JSON object"),
        ('{"hello": 1}', "not a message as"),
        ('{"type": "Results", "is_final": true}', "channel is not an object"),
        (
            '{"type": "Results", "is_final": true, "channel": {"alternatives": {}}}',
            "channel.alternatives is not a list",
        ),
        ('{"type": "Turn", "transcript": "secret"}', 'a turn has no "turn_order"'),
        ('{"segments": ["secret"]}', "segments[0] is not an object"),
        ('{"segments": [{"completed": true}]}', 'the segment has no "text"'),
        ('{"error": "Not authorized"}', "the transcriber reports an error: Not authorized"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_cannot_be_read_is_named_without_what_it_holds(raw: str | bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        LiveSpeech().read(raw)
    assert str(caught.value).startswith(reason)
    assert "secret" not in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
KEYS = "is_final speech_final channel channel_index metadata alternatives transcript words start turn_order end_of_turn"
FIELDS = st.sampled_from([*KEYS.split(), "segments", "text", "speaker", "completed", "uid", "id", "event", "error"])


@given(
    st.lists(
        st.builds(
            lambda fields, kind: {**fields, "type": kind},
            st.dictionaries(FIELDS, JSON, max_size=6),
            st.sampled_from(["Results", "Turn", "TurnInfo", "Begin", "UtteranceEnd", None]),
        ),
        max_size=4,
    )
)
def test_whatever_comes_is_read_or_refused(messages: list[dict[str, Any]]) -> None:
    speech = LiveSpeech()
    for message in messages:
        try:
            utterances = speech.read(json.dumps(message))
        except ValueError:
            continue
        assert all(one.text.strip() and one.speaker for one in utterances)
    assert all(one.text.strip() for one in speech.rest())
