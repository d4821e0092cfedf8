"""What transcribers send while people talk: final text alone, each once, and nothing that is said is in an error."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_builder.transcript.live_speech import LONGEST_HELD, LiveSpeech
from context_builder.transcript.utterance import CorrectedUtterance, Utterance, corrected
from context_builder.transcript.written_dates import WrittenDate, moment_of


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
    assert speech.rest() == [Utterance("Unknown", "Held again", 3.0)]
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


def test_a_turn_that_went_without_its_punctuation_is_not_said_again_but_corrected() -> None:
    speech = LiveSpeech()
    assert heard(speech, turn("we count", 0, formatted=False)) == []
    assert [one.text for one in speech.rest()] == ["we count"]
    assert heard(speech, turn("We count.", 0), turn("We count.", 0)) == [("corrects", "We count.", None)]


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


def test_deepgrams_speakers_on_two_channels_are_different_people() -> None:
    def one(word: str, channel: int, **more: Any) -> dict[str, Any]:
        return deepgram(
            word, 0.0, channel_index=[channel, 2], words=[{"word": word, "start": 0.0, "speaker": 0}], **more
        )

    assert said(LiveSpeech(), one("hello", 0), one("hi", 1)) == [
        ("Channel 0 Speaker 0", "hello"),
        ("Channel 1 Speaker 0", "hi"),
    ]


def segment(text: str, start: str, end: str, **more: Any) -> dict[str, Any]:
    return {"start": start, "end": end, "text": text, "completed": True, **more}


def test_a_segment_that_shifts_is_said_once_and_the_same_words_later_again() -> None:
    speech = LiveSpeech()
    messages = [
        {"uid": "u", "segments": [segment(" The pump is here.", "0.400", "1.800")]},
        {"uid": "u", "segments": [segment(" The pump is here.", "0.000", "1.800"), segment(" And the", "1.8", "2.4")]},
        {
            "uid": "u",
            "segments": [segment(" And the crane.", "2.200", "3.4"), segment(" And the crane.", "9.0", "9.6")],
        },
        {"uid": "other", "segments": [segment(" And the crane.", "2.200", "3.4")]},
    ]
    assert [text for _, text in said(speech, *messages)] == [
        "The pump is here.",
        "And the",
        "crane.",
        "And the crane.",
        "And the crane.",
    ]


def test_two_speakers_may_say_the_same_at_once_in_segments() -> None:
    both = [segment("Yes.", "0.0", "1.0", speaker="SPEAKER_00"), segment("Yes.", "0.2", "1.0", speaker="SPEAKER_01")]
    assert len(said(LiveSpeech(), {"segments": both})) == 2


def heard_by_openai(item: str, text: str) -> dict[str, Any]:
    kind = "conversation.item.input_audio_transcription.completed"
    return {"type": kind, "event_id": "e", "item_id": item, "content_index": 0, "transcript": text}


def test_openais_realtime_in_the_order_in_which_it_was_spoken() -> None:
    answered = {
        "type": "response.output_audio_transcript.done",
        "item_id": "b",
        "content_index": 0,
        "transcript": "Since noon.",
    }
    speech = LiveSpeech()
    assert (
        said(
            speech,
            {"type": "session.created", "session": {"id": "s"}},
            {"type": "input_audio_buffer.speech_started", "item_id": "a"},
            {"type": "input_audio_buffer.committed", "item_id": "a", "previous_item_id": None},
            {"type": "conversation.item.input_audio_transcription.delta", "item_id": "a", "delta": "Is"},
            answered,
        )
        == []
    )
    assert speech.holds
    assert said(speech, heard_by_openai("a", "Is it here?"), heard_by_openai("a", "Is it here?"), answered) == [
        ("Unknown", "Is it here?"),
        ("Consilience", "Since noon."),
    ]
    typed = {
        "type": "conversation.item.created",
        "item": {"id": "c", "type": "message", "role": "user", "content": [{"type": "input_text", "text": "Good."}]},
    }
    assert said(speech, typed, {**typed, "type": "conversation.item.done"}) == [("Unknown", "Good.")]
    assert said(speech, {"type": "response.text.done", "item_id": "d", "text": "Bye."}) == [("Consilience", "Bye.")]


def test_openais_answer_does_not_wait_for_a_transcription_that_fails() -> None:
    speech = LiveSpeech()
    committed = {"type": "input_audio_buffer.committed", "item_id": "a"}
    answer = {"type": "response.audio_transcript.done", "item_id": "b", "transcript": "Pardon?"}
    failed = {"type": "conversation.item.input_audio_transcription.failed", "item_id": "a", "error": {"message": "x"}}
    assert said(speech, committed, answer, failed) == [("Consilience", "Pardon?")]
    assert said(speech, committed, {**answer, "item_id": "c"}) == []
    assert [(one.text, one.contribution) for one in speech.rest()] == [("Pardon?", {})]
    assert said(speech, {**answer, "item_id": "d", "transcript": "Well?"}) == [("Consilience", "Well?")]
    with pytest.raises(ValueError, match="the transcriber reports an error: no such model"):
        said(speech, {"type": "error", "error": {"type": "invalid_request_error", "message": "no such model"}})


def test_openais_transcriptions_come_in_the_order_in_which_it_was_spoken() -> None:
    speech = LiveSpeech()
    committed = [{"type": "input_audio_buffer.committed", "item_id": item} for item in "abc"]
    assert said(speech, *committed, heard_by_openai("b", "Second."), heard_by_openai("c", "Third.")) == []
    assert [text for _, text in said(speech, heard_by_openai("a", "First."))] == ["First.", "Second.", "Third."]
    assert said(speech, committed[0], heard_by_openai("d", "Fourth.")) == []
    assert [one.text for one in speech.rest()] == ["Fourth."]


def test_openais_segments_tell_speakers_apart() -> None:
    part = {
        "type": "conversation.item.input_audio_transcription.segment",
        "item_id": "a",
        "id": "s1",
        "speaker": "A",
        "text": "Is it?",
    }
    assert said(LiveSpeech(), part, part, heard_by_openai("a", "Is it?")) == [("Speaker A", "Is it?")]
    text = {"type": "transcript.text.segment", "id": "s1", "speaker": "B", "text": "Yes."}
    assert said(LiveSpeech(), text, {"type": "transcript.text.done", "text": "Yes."}) == [("Speaker B", "Yes.")]
    assert said(
        LiveSpeech(), {"type": "transcript.text.delta", "delta": "Y"}, {"type": "transcript.text.done", "text": "Yes."}
    ) == [("Unknown", "Yes.")]


def speechmatics(*results: tuple[str, str], start: float, ends: bool = False, **more: Any) -> dict[str, Any]:
    """Return a transcript of words, and of punctuation, with their speakers."""
    found = [
        {
            "type": "word" if text.isalnum() else "punctuation",
            "start_time": start + place,
            "end_time": start + place + 0.5,
            "alternatives": [{"content": text, "speaker": speaker}],
            **({} if text.isalnum() else {"attaches_to": "previous"}),
            **more,
        }
        for place, (text, speaker) in enumerate(results)
    ]
    if found:
        found[-1]["is_eos"] = ends
    return {
        "message": "AddTranscript",
        "format": "2.9",
        "metadata": {"start_time": start, "end_time": start + 1, "transcript": "x"},
        "results": found,
    }


def test_speechmatics_words_are_joined_until_an_utterance_ends() -> None:
    speech = LiveSpeech()
    first = speechmatics(("Is", "S1"), ("it", "S1"), start=0.0)
    assert said(speech, {"message": "RecognitionStarted", "id": "r"}, {"message": "AudioAdded", "seq_no": 1}) == []
    assert said(speech, {**first, "message": "AddPartialTranscript"}, first, first) == []
    assert said(speech, speechmatics(("here", "S1"), ("?", "S1"), start=2.0, ends=True)) == [("S1", "Is it here?")]
    assert (
        said(speech, speechmatics(("Yes", "S2"), start=4.0), speechmatics((".", "S2"), ("No", "S1"), start=5.0)) == []
    )
    assert said(speech, {"message": "EndOfUtterance", "metadata": {}}) == [("S2", "Yes."), ("S1", "No")]
    assert said(speech, speechmatics(("so", "UU"), start=9.0), {"message": "EndOfTranscript"}) == [("Unknown", "so")]
    with pytest.raises(ValueError, match="the transcriber reports an error: quota"):
        said(speech, {"message": "Error", "type": "quota_exceeded", "reason": "quota"})


def test_speechmatics_channels_do_not_mix() -> None:
    speech = LiveSpeech()
    left, right = (
        speechmatics(("Left", "UU"), start=0.0, channel="Agent"),
        speechmatics(("Right", "UU"), start=0.0, channel="Caller"),
    )
    assert said(speech, left, right, {"message": "EndOfTranscript"}) == [("Agent", "Left"), ("Caller", "Right")]


def test_gladias_utterances_and_assemblyais_older_ones() -> None:
    def gladia(*, final: bool) -> dict[str, Any]:
        return {
            "type": "transcript",
            "session_id": "s",
            "data": {"id": "1", "is_final": final, "utterance": {"text": "Hi", "speaker": 1}},
        }

    assert said(LiveSpeech(), gladia(final=False), gladia(final=True), gladia(final=True)) == [("Speaker 1", "Hi")]
    older = {"message_type": "FinalTranscript", "audio_start": 0, "text": "Hi"}
    assert said(LiveSpeech(), {**older, "message_type": "PartialTranscript"}, older, older) == [("Unknown", "Hi")]


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
KEYS = (
    "message item_id transcript item content results segments data utterance is_final speech_final channel "
    "channel_index metadata alternatives words start turn_order end_of_turn message_type tokens op event lines content "
    "Transcript RecognitionStatus elements update_id message fields params envelope data transcriptionData kind"
)
FIELDS = st.sampled_from([*KEYS.split(), "segments", "text", "speaker", "completed", "uid", "id", "event", "error"])


@given(
    st.lists(
        st.builds(
            lambda fields, kind: {**fields, "type": kind},
            st.dictionaries(FIELDS, JSON, max_size=6),
            st.sampled_from(
                [
                    "Results",
                    "Turn",
                    "TurnInfo",
                    "Begin",
                    "UtteranceEnd",
                    None,
                    "transcript",
                    "response.text.done",
                    "conversation.item.created",
                    "conversation.item.input_audio_transcription.completed",
                ]
            ),
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


def heard(speech: LiveSpeech, *messages: Any) -> list[tuple[Any, ...]]:
    """What the messages say, and of corrections what is said instead, and by whom."""
    found: list[tuple[Any, ...]] = []
    for message in messages:
        for one in speech.read(json.dumps(message)):
            correction = isinstance(one, CorrectedUtterance)
            found.append(("corrects", one.text, one.speaker) if correction else (one.speaker, one.text))
    return found


def test_assemblyais_turn_that_comes_again_corrects_what_it_said() -> None:
    first, again = turn("We count fifteen clips.", 0, speaker_label="A"), turn("We count fifty clips.", 0)
    assert heard(LiveSpeech(), first, again, again, first) == [
        ("Speaker A", "We count fifteen clips."),
        ("corrects", "We count fifty clips.", None),
        ("corrects", "We count fifteen clips.", None),
    ]


def test_assemblyais_speaker_revision_corrects_who_said_turns() -> None:
    turns = [turn("Hello.", 0, speaker_label="A"), turn("Well.", 1, speaker_label="A")]
    revisions = [{"turn_order": 1, "speaker_label": "B", "words": []}, {"turn_order": 0, "speaker_label": "A"}]
    revision = {"type": "SpeakerRevision", "revisions": [*revisions, {"turn_order": 9, "speaker_label": "C"}, {}]}
    assert heard(LiveSpeech(), *turns, revision, revision) == [
        ("Speaker A", "Hello."),
        ("Speaker A", "Well."),
        ("corrects", None, "Speaker B"),
    ]
    odd = {"type": "SpeakerRevision", "revisions": [{"turn_order": [], "speaker_label": "B"}]}
    with pytest.raises(ValueError, match="turn_order"):
        LiveSpeech().read(json.dumps(odd))
    held = turn("Well.", 0, formatted=False, speaker_label="A")
    revised = {"type": "SpeakerRevision", "revisions": [{"turn_order": 0, "speaker_label": "B"}]}
    assert heard(LiveSpeech(), held, revised, turn("Next.", 1)) == [("Speaker B", "Well."), ("Unknown", "Next.")]


def test_deepgrams_late_final_corrects_the_part_that_it_takes_the_place_of() -> None:
    speech = LiveSpeech()
    parts = (deepgram("We count fifteen", 0.0, ends=False), deepgram("clips today.", 1.0))
    assert heard(speech, *parts, deepgram("We count fifty", 0.0, ends=False)) == [
        ("Unknown", "We count fifteen clips today."),
        ("corrects", "We count fifty clips today.", None),
    ]
    held = (deepgram("We count fifteen", 5.0, ends=False), deepgram("We count fifty", 5.0, ends=False))
    assert heard(speech, *held, deepgram("clips.", 6.0)) == [("Unknown", "We count fifty clips.")]


def test_speechmatics_segment_that_comes_again_corrects_what_it_said() -> None:
    def segment(text: str, speaker: str = "S1") -> dict[str, Any]:
        said = {"text": text, "speaker_id": speaker, "metadata": {"start_time": 1.5}}
        return {"message": "AddSegment", "segments": [said]}

    assert heard(LiveSpeech(), segment("fifteen"), segment("fifty", "S2"), segment("fifty", "S2")) == [
        ("S1", "fifteen"),
        ("corrects", "fifty", "S2"),
    ]


def test_edits_of_signal_name_the_moment_of_what_they_edit() -> None:
    def told(at: int, text: str, edits: int | None = None, who: str = "Ida") -> dict[str, Any]:
        data = {"timestamp": at, "message": text}
        message = {"targetSentTimestamp": edits, "dataMessage": data} if edits else data
        return {"envelope": {"sourceName": who, "timestamp": at, "editMessage" if edits else "dataMessage": message}}

    sent = [told(1, "fifteen"), told(2, "fifty", 1), told(3, "five hundred", 2), told(3, "five hundred", 2)]
    assert heard(LiveSpeech(), *sent, told(4, "five", 1, "Bo")) == [
        ("Ida", "fifteen"),
        ("corrects", "fifty", None),
        ("corrects", "five hundred", None),
        ("Bo", "five"),
    ]


def test_edits_of_chats_are_corrections() -> None:
    hello = {"type": "message", "channel": "C1", "user": "U1", "text": "fifteen", "ts": "1355517523.000005"}
    changed = {**hello, "subtype": "message_changed", "ts": "1355517529.1", "message": {**hello, "text": "fifty"}}
    enveloped = {"type": "events_api", "payload": {"event": changed}}
    assert heard(LiveSpeech(), hello, hello, enveloped, {"type": "event_callback", "event": changed}) == [
        ("U1", "fifteen"),
        ("corrects", "fifty", None),
    ]
    content = {"msgtype": "m.text", "body": "fifteen"}
    event = {"type": "m.room.message", "sender": "@ida:hs", "event_id": "$1", "content": content}
    relation = {"rel_type": "m.replace", "event_id": "$1"}
    new = {"msgtype": "m.text", "body": "fifty"}
    edit = {**event, "event_id": "$2", "content": {**content, "m.new_content": new, "m.relates_to": relation}}
    assert heard(LiveSpeech(), event, edit, edit) == [("ida", "fifteen"), ("corrects", "fifty", None)]
    other = {**edit, "sender": "@bo:hs", "event_id": "$3"}
    assert heard(LiveSpeech(), event, other) == [("ida", "fifteen")]


def test_lines_of_events_with_their_ends_and_without_words() -> None:
    speech = LiveSpeech()
    assert speech.read(b"event: transcript.text.delta\n") == []
    assert [one.text for one in speech.read(b"Ida: Yes.\n") if isinstance(one, Utterance)] == ["Yes."]
    with pytest.raises(ValueError, match="not JSON"):
        speech.read(b"\xff\xfe\xff\n")


def test_an_edit_of_mattermost_that_names_nobody() -> None:
    speech = LiveSpeech()
    post = {"id": "p", "create_at": 1683104401000, "edit_at": 0, "user_id": "u", "channel_id": "c", "message": "Nien"}
    posted = {"event": "posted", "data": {"post": json.dumps(post), "sender_name": "@ida"}}
    assert said(speech, posted) == [("ida", "Nien")]
    edited = json.dumps({**post, "edit_at": 1683104409000, "message": "Nine"})
    [heard] = speech.read(json.dumps({"event": "post_edited", "data": {"post": edited}}))
    assert isinstance(heard, CorrectedUtterance)
    assert heard.text == "Nine"


def test_lines_of_a_stream_of_whisper_cpp_and_of_windows() -> None:
    lines = [
        "### Transcription 0 START | t0 = 0 ms | t1 = 4712 ms",
        "[00:00:00.000 --> 00:00:02.500]   The valve is open.",
        "### Transcription 0 END",
        "[Start speaking]",
        f"\x1b[2K\r{' ' * 9}\x1b[2K\r Close\x1b[2K\r{' ' * 9}\x1b[2K\r Close it.",
        "\x1b[2K\r",
    ]
    speech = LiveSpeech()
    told = [one for line in lines for one in speech.read(line)]
    assert told == [Utterance("Unknown", "The valve is open."), Utterance("Unknown", "Close it.")]
    windows = [b"\xef\xbb\xbfIda: Go.\r\n", "\ufeff[00:03] Bo: Stay: here."]
    assert [(one.speaker, one.text) for line in windows for one in LiveSpeech().read(line)] == [  # type: ignore[union-attr]
        ("Ida", "Go."), ("Bo", "Stay: here."),
    ]  # fmt: skip


def test_gladia_tells_a_session_once_more_after_it() -> None:
    final = {"id": "0", "is_final": True, "utterance": {"text": "Is it here?", "channel": 0, "start": 0.2}}
    whole = {"full_transcript": "Is it here?", "utterances": [final["utterance"]]}
    live = {"type": "transcript", "session_id": "g", "data": final}
    after = [
        {"type": "post_transcript", "session_id": "g", "data": whole},
        {"type": "post_final_transcript", "session_id": "g", "data": {"metadata": {}, "transcription": whole}},
        {"type": "post_summarization", "session_id": "g", "data": {"results": "A question about a thing."}},
    ]
    assert said(LiveSpeech(), live, *after) == [("Channel 0", "Is it here?")]
    assert said(LiveSpeech(), *after) == [("Channel 0", "Is it here?")]


def test_changes_of_the_lines_of_whisperlivekit() -> None:
    def line(start: int, text: str) -> dict[str, Any]:
        return {"speaker": start, "text": text, "start": f"0:00:0{start}", "end": f"0:00:0{start + 1}"}

    messages = [
        {"type": "snapshot", "seq": 1, "lines": [line(1, "We need a permit.")]},
        {"type": "diff", "seq": 2, "n_lines": 2, "new_lines": [line(2, "From")]},
        {"type": "diff", "seq": 3, "n_lines": 2, "new_lines": [line(2, "From whom?")]},
        {"type": "diff", "seq": 4, "n_lines": 2, "lines_pruned": 1, "new_lines": [line(3, "The harbour.")]},
        {"type": "diff", "seq": 5, "n_lines": 2, "new_lines": []},
        {"type": "ready_to_stop"},
    ]
    assert [text for _, text in said(LiveSpeech(), *messages)] == ["We need a permit.", "From whom?", "The harbour."]


def _said(speech: LiveSpeech, *messages: dict[str, object]) -> list[str]:
    heard = [one for message in messages for one in speech.read(json.dumps(message))]
    return [f"{one.speaker} | {one.text}" for one in corrected([*heard, *speech.rest()])]


def test_an_utterance_that_comes_as_deltas_or_whole_is_heard_once_it_is_final() -> None:
    def part(role: str, ordinal: int, *, final: bool, **text: str) -> dict[str, object]:
        told = {"type": "transcript", "role": role, "medium": "voice", "text": None, "delta": None}
        return {**told, "ordinal": ordinal, "final": final, **text}

    assert _said(
        LiveSpeech(),
        part("agent", 0, final=False, delta="The pump"),
        part("agent", 0, final=False, delta=" came"),
        part("agent", 0, final=True, delta="."),
        part("user", 1, final=False, text="Which"),
        part("user", 1, final=True, text="Which one?"),
    ) == ["agent | The pump came.", "user | Which one?"]
    speech = LiveSpeech()
    paused = [*speech.read(json.dumps(part("user", 3, final=False, text="Which"))), *speech.rest()]
    paused += speech.read(json.dumps(part("user", 3, final=True, text="Which one?")))
    assert [one.text for one in corrected(paused)] == ["Which one?"]
    assert not speech.holds


def test_what_a_service_passes_on_as_interim_is_not_heard() -> None:
    def told(text: str, *, final: bool) -> dict[str, object]:
        raw = {"type": "Results", "is_final": final, "channel": {"alternatives": [{"transcript": text}]}}
        return {"action": "transcription-message", "participantId": "ida", "text": text, "rawResponse": raw}

    begin = {"action": "transcription-started", "transcriptId": "t", "language": "en", "startedBy": "ida"}
    assert _said(LiveSpeech(), begin, told("The pump", final=False), told("The pump came.", final=True)) == [
        "ida | The pump came."
    ]


def test_captions_with_ids_are_corrected_as_they_grow() -> None:
    states = [("1", "The pump"), ("1", "The pump came."), ("2", "Which one?"), ("1", "The pump came. Today.")]
    messages = [{"id": key, "speaker": "ida", "text": text} for key, text in states]
    assert _said(LiveSpeech(), *messages) == ["ida | The pump came. Today.", "ida | Which one?"]
    spoken = ["The pump came.", "Which one?", "The big one.", "The big one came today."]
    of_speaker: list[dict[str, object]] = [{"id": 7, "speaker": "ida", "text": text} for text in spoken]
    assert _said(LiveSpeech(), *of_speaker) == [f"ida | {text}" for text in spoken]


@pytest.mark.parametrize(
    "message",
    [
        {**deepgram("hello", 0), "start": 10**400},
        {"envelope": {"sourceName": "Bo", "timestamp": 4, "dataMessage": {"timestamp": 10**400, "message": "hello"}}},
    ],
)
def test_a_number_that_is_too_large_does_not_end_the_stream(message: dict[str, Any]) -> None:
    speech = LiveSpeech()
    for raw in (json.dumps(message), json.dumps(message).replace('"', "'")):
        with suppress(ValueError):
            speech.read(raw)
    assert said(speech, {"type": "Turn", **turn("And on it goes.", 1)}) == [("Unknown", "And on it goes.")]


def test_a_long_text_in_place_of_a_moment_is_no_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dateparser.parse", None)
    at = "a1 " * 5_000
    sent = {"timestamp": at, "message": "hello"}
    edited = {"targetSentTimestamp": 1, "dataMessage": sent}
    for envelope in ({"dataMessage": sent}, {"editMessage": edited}):
        with suppress(ValueError):
            LiveSpeech().read(json.dumps({"envelope": {"sourceName": "Bo", "timestamp": at, **envelope}}))
    with pytest.raises(ValueError, match="is not a date"):
        moment_of(WrittenDate(at), "ymd")
