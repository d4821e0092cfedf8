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
from context_builder.transcript.formats.documents import read_document
from context_builder.transcript.source import Source
from tests.transcript.reading import heard, transcript

HELLO, REPLY = Utterance("Speaker 0", "Good morning.", 0.5), Utterance("Speaker 1", "We count the clips.", 2.0)


def read(tmp_path: Path, document: object) -> list[Utterance]:
    file = tmp_path / "talk.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return read_transcript(file).utterances


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


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"anything": 1}, "not a document as Deepgram"),
        (3, "not a document as Deepgram"),
        ({"segments": {}}, "segments is not a list"),
        ({"segments": [3]}, r"nothing that anybody said; .*segments\[0\] is not an object"),
        ({"segments": [{"start": 1}]}, r'nothing that anybody said; .*segments\[0\] has no "text"'),
        ({"results": {"channels": [{}]}}, r"results.channels\[0\].alternatives is not a list"),
        ([{"type": "message", "text": "x"}], r'messages\[0\] has no "ts"'),
        ({"segments": []}, "holds nothing that anybody said"),
        ({"status": "error", "error": "no speech", "utterances": None}, "an error instead of a transcript: no speech"),
        ({"status": "queued", "utterances": None}, "status is 'queued'"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, document: object, told: str) -> None:
    with pytest.raises(TranscriptError, match=told):
        read(tmp_path, document)


def test_one_bad_entry_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    segments = [{"text": "one", "start": "soon"}, 3, {"start": 2.0}, {"text": "two", "start": 3.0}]
    found = transcript(tmp_path, "talk.json", {"segments": segments})
    assert [(one.text, one.at) for one in found.utterances] == [("one", None), ("two", 3.0)]
    file = tmp_path / "talk.json"
    assert sorted(found.problems) == [
        f'{file}: "start" of segments[0] is not a number',
        f"{file}: segments[1] is not an object",
        f'{file}: segments[2] has no "text"',
    ]
    with pytest.raises(TranscriptError, match="and 2 more"):
        read_transcript(file, strict=True)


@pytest.mark.parametrize("figure", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 5000])
def test_figures_that_are_none_in_json(tmp_path: Path, figure: str) -> None:
    bad = f'{{"text": "one", "start": {figure}, "avg_logprob": {figure}}}'
    text = f'{{"segments": [{bad}, {{"text": "two", "start": 2}}]}}'
    found = transcript(tmp_path, "talk.json", text)
    assert [(one.text, one.at) for one in found.utterances] == [("one", None), ("two", 2.0)]


def test_deepgram_with_a_person_on_each_channel(tmp_path: Path) -> None:
    def alternative(*words: tuple[str, float], **more: int) -> dict[str, Any]:
        return {
            "alternatives": [{"words": [{"word": word, "start": at, "end": at + 0.3, **more} for word, at in words]}]
        }

    first = alternative(("hello", 0.0), ("there", 0.4), ("goodbye", 5.0))
    second = alternative(("my", 1.0), ("router", 1.4), ("died", 1.8))
    assert heard(tmp_path, "call.json", {"results": {"channels": [first, second]}}) == [
        "Channel 0 | hello there",
        "Channel 1 | my router died",
        "Channel 0 | goodbye",
    ]
    both = {"results": {"channels": [alternative(("hello", 0.0), speaker=0), alternative(("hi", 1.0), speaker=0)]}}
    assert heard(tmp_path, "call.json", both) == ["Channel 0 Speaker 0 | hello", "Channel 1 Speaker 0 | hi"]
    without = {"results": {"channels": [{"alternatives": [{"transcript": "hello there"}]}], "utterances": None}}
    assert heard(tmp_path, "call.json", without) == ["Unknown | hello there"]


def test_a_long_monologue_is_several_messages(tmp_path: Path) -> None:
    words = [
        {"text": f"word{place}." if place % 10 == 9 else f"word{place}", "start": place, "end": place + 1}
        for place in range(500)
    ]
    said = heard(tmp_path, "talk.json", {"utterances": None, "text": "…", "words": words, "status": "completed"})
    assert 10 < len(said) < 20
    assert all(one.endswith(".") for one in said)


def test_assemblyai_without_labels_with_text_alone_and_by_channel(tmp_path: Path) -> None:
    assert heard(
        tmp_path,
        "a.json",
        {"id": "x", "status": "completed", "text": "It is here. Good.", "utterances": None, "words": None},
    ) == ["Unknown | It is here. Good."]
    utterances = [
        {"text": "Hello", "start": 0, "end": 500, "speaker": "1A", "channel": "1"},
        {"text": "Hi", "speaker": None, "channel": "2"},
    ]
    assert heard(tmp_path, "a.json", {"utterances": utterances}) == ["Speaker 1A | Hello", "Channel 2 | Hi"]


def test_other_descendants_of_whisper(tmp_path: Path) -> None:
    chunks = {
        "text": "…",
        "speakers": [],
        "chunks": [{"timestamp": [0.5, 1.5], "text": " Good morning."}, {"timestamp": [2.0, None], "text": " Yes."}],
    }
    assert read(tmp_path, chunks) == [Utterance("Unknown", "Good morning.", 0.5), Utterance("Unknown", "Yes.", 2.0)]
    speakers = {**chunks, "speakers": [{"speaker": "SPEAKER_00", "timestamp": [0.5, 1.5], "text": "Good morning."}]}
    assert read(tmp_path, speakers) == [Utterance("SPEAKER_00", "Good morning.", 0.5)]
    diarized = {
        "task": "transcribe",
        "text": "…",
        "segments": [
            {"id": "seg_0", "type": "transcript.text.segment", "speaker": "A", "start": 0.5, "end": 1.0, "text": "Hi"}
        ],
    }
    assert read(tmp_path, diarized) == [Utterance("Speaker A", "Hi", 0.5)]
    assert heard(tmp_path, "a.json", [{"start": 0.0, "end": 1.0, "text": " Hi"}]) == ["Unknown | Hi"]
    assert heard(tmp_path, "a.json", {"text": "Hello there."}) == ["Unknown | Hello there."]
    by_words = {
        "segments": [
            {
                "text": "yes no",
                "start": 0,
                "end": 2,
                "words": [{"word": "yes", "speaker": "SPEAKER_00"}, {"word": "no", "speaker": "SPEAKER_01"}],
            }
        ]
    }
    assert heard(tmp_path, "a.json", by_words) == ["SPEAKER_00 | yes", "SPEAKER_01 | no"]
    labelled = {"segments": [{"text": "[SPEAKER_00]: yes"}, {"text": "[SPEAKER_01]: no"}]}
    assert heard(tmp_path, "a.json", labelled) == ["SPEAKER_00 | yes", "SPEAKER_01 | no"]
    cpp = {
        "transcription": [
            {"offsets": {"from": 0, "to": 900}, "text": " Hi", "speaker": "0"},
            {"text": " Ho", "speaker": "?"},
        ]
    }
    assert heard(tmp_path, "a.json", cpp) == ["Speaker 0 | Hi", "Unknown | Ho"]


def test_youtubes_captions_in_json3(tmp_path: Path) -> None:
    events = [
        {"tStartMs": 0, "dDurationMs": 9000, "id": 1, "wpWinPosId": 1},
        {
            "tStartMs": 160,
            "dDurationMs": 4640,
            "wWinId": 1,
            "segs": [{"utf8": "the"}, {"utf8": " pump", "tOffsetMs": 320}, {"utf8": " failed"}],
        },
        {"tStartMs": 2400, "dDurationMs": 2400, "wWinId": 1, "aAppend": 1, "segs": [{"utf8": "\n"}]},
        {"tStartMs": 2410, "dDurationMs": 4590, "wWinId": 1, "segs": [{"utf8": "on its"}, {"utf8": " second day"}]},
    ]
    found = transcript(tmp_path, "auto.en.json3", {"wireMagic": "pb3", "events": events})
    assert [(one.text, one.at) for one in found.utterances] == [("the pump failed", 0.16), ("on its second day", 2.41)]


TTML = """<?xml version="1.0" encoding="UTF-8"?>
<tt xmlns="http://www.w3.org/ns/ttml" xmlns:ttm="http://www.w3.org/ns/ttml#metadata" xmlns:ttp="http://www.w3.org/ns/ttml#parameter"
    ttp:tickRate="10000000" ttp:frameRate="25" xml:lang="en">
  <head><metadata>
    <ttm:agent xml:id="a1" type="person"><ttm:name type="full">Ida Lind</ttm:name></ttm:agent>
  </metadata></head>
  <body><div begin="10s">
    <p begin="00:00:01.500" end="00:00:03.000" ttm:agent="a1">Is it<br/>here? &amp; now?</p>
    <p begin="30000000t" dur="1500ms">Bo: Since <span tts:color="red" xmlns:tts="http://www.w3.org/ns/ttml#styling">noon</span>.</p>
    <p begin="00:00:04:05" end="00:00:05:00">Bo: By truck.</p>
    <p begin="soon">Ida Lind: Good.</p>
  </div></body>
</tt>"""


def test_ttml_with_agents_ticks_frames_and_offsets(tmp_path: Path) -> None:
    found = transcript(tmp_path, "talk.ttml", TTML)
    assert [(one.speaker, one.text, one.at) for one in found.utterances] == [
        ("Ida Lind", "Good.", 10.0),
        ("Ida Lind", "Is it here? & now?", 11.5),
        ("Bo", "Since noon.", 13.0),
        ("Bo", "By truck.", 14.2),
    ]
    assert len(found.problems) == 1
    assert (
        heard(tmp_path, "talk.xml", TTML.replace("UTF-8", "UTF-16").encode("utf-16"))[1]
        == "Ida Lind | Is it here? & now?"
    )


def test_youtubes_captions_in_xml(tmp_path: Path) -> None:
    text = '<text start="0.16" dur="2.2">the pump &amp;#39;failed&amp;#39;</text>'
    first = f'<?xml version="1.0"?><transcript>{text}</transcript>'
    assert heard(tmp_path, "a.srv1", first) == ["Unknown | the pump 'failed'"]
    lines = '<p t="160" d="2200"><s>the</s><s t="300"> pump</s></p><p t="2400" d="5" a="1">\n</p>'
    third = f'<timedtext format="3"><body>{lines}</body></timedtext>'
    assert heard(tmp_path, "a.srv3", third) == ["Unknown | the pump"]


def test_xml_that_declares_entities_is_refused(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE tt [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><tt><body><p begin="1s">&b;</p></body></tt>'
    with pytest.raises(TranscriptError, match="declares entities"):
        transcript(tmp_path, "talk.ttml", bomb)
    deep = "<tt><body>" + "<div>" * 3000 + '<p begin="1s">Hi</p>' + "</div>" * 3000 + "</body></tt>"
    with pytest.raises(TranscriptError, match="nested too deeply"):
        transcript(tmp_path, "talk.ttml", deep)


def test_speechmatics_words_and_punctuation(tmp_path: Path) -> None:
    def result(content: str, start: float, speaker: str, kind: str = "word", **more: Any) -> dict[str, Any]:
        found = {"type": kind, "start_time": start, "end_time": start + 0.2, **more}
        return {**found, "alternatives": [{"content": content, "confidence": 1.0, "speaker": speaker}]}

    results = [
        result("Hello", 0.0, "S1"),
        result(",", 0.2, "S1", "punctuation", attaches_to="previous"),
        result("Ida", 0.3, "S1"),
        result(".", 0.5, "S1", "punctuation", attaches_to="previous"),
        result("Hi", 1.0, "S2"),
        result("so", 2.0, "UU"),
    ]
    assert heard(tmp_path, "a.json", {"format": "2.9", "results": results}) == [
        "S1 | Hello, Ida.",
        "S2 | Hi",
        "Unknown | so",
    ]
    channels = [result("Hello", 0.0, "UU", channel="Agent"), result("Hi", 1.0, "UU", channel="channel_2")]
    assert heard(tmp_path, "a.json", {"format": "2.9", "results": channels}) == ["Agent | Hello", "Channel 2 | Hi"]


def test_turns_as_meeting_tools_call_them(tmp_path: Path) -> None:
    fireflies = {
        "data": {
            "transcript": {
                "title": "x",
                "date": 1_683_104_400_000,
                "sentences": [
                    {
                        "index": 0,
                        "speaker_name": "Ida Lind",
                        "speaker_id": 0,
                        "text": "Hello",
                        "start_time": 3.5,
                        "end_time": 4.0,
                    },
                    {
                        "index": 1,
                        "speaker_name": None,
                        "speaker_id": 1,
                        "text": "Hi",
                        "start_time": 5.0,
                        "end_time": 6.0,
                    },
                ],
            }
        }
    }
    found = transcript(tmp_path, "a.json", fireflies)
    assert [(one.speaker, one.text, one.at) for one in found.utterances] == [
        ("Ida Lind", "Hello", 3.5),
        ("Speaker 1", "Hi", 5.0),
    ]
    assert found.started is not None
    assert found.started.timestamp() == 1_683_104_400
    downloaded = [
        {"sentence": "Hello", "startTime": "00:03", "endTime": "00:05", "speaker_name": "Ida Lind", "speaker_id": 0}
    ]
    assert read(tmp_path, downloaded) == [Utterance("Ida Lind", "Hello", 3.0)]
    teams = {
        "entries": [{"id": "1", "text": "Hello", "speakerDisplayName": "Ida Lind", "startOffset": "00:00:03.2500000"}]
    }
    assert read(tmp_path, teams) == [Utterance("Ida Lind", "Hello", 3.25)]
    meet = {
        "transcriptEntries": [
            {"participant": "conferenceRecords/1/participants/2", "text": "Hello", "startTime": "2023-05-03T09:00:03Z"},
            {"participant": "conferenceRecords/1/participants/3", "text": "Hi", "startTime": "2023-05-03T09:00:05Z"},
        ]
    }
    found = transcript(tmp_path, "a.json", meet)
    assert [one.at for one in found.utterances] == [0.0, 2.0]
    assert found.started is not None
    assert found.started.isoformat() == "2023-05-03T09:00:03+00:00"


FIELDS = (
    "results utterances channels alternatives words word segments transcription text start speaker offsets from "
    "messages type ts content body user_profile events tStartMs segs utf8 chunks speakers timestamp sentences "
    "origin_server_ts sender m.relates_to m.new_content author attachments blocks elements status"
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
    source, said = Source("talk.json", json.dumps(document)), []
    try:
        said = read_document(source).utterances
    except ValueError as error:
        source.problem(error)
    assert not any("\n" in told for told in source.problems)
    assert all(one.text and one.speaker for one in said)


def test_a_speaker_is_named_within_a_turn_of_several_blocks(tmp_path: Path) -> None:
    turns = [
        {"start": at, "speaker": {"ID": 1, "name": who}, "text_blocks": [{"start": at, "text": one} for one in said]}
        for at, who, said in ((0.5, "Ida Lind", ["First.", "Then."]), (4.0, "Bo", ["Yes."]))
    ]
    document = {"transcript": {"sections": [{"turns": turns}]}}
    assert heard(tmp_path, "argument.json", document) == ["Ida Lind | First. Then.", "Bo | Yes."]
