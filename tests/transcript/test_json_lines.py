"""Transcripts with one JSON object a line, and the choice between the formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from context_builder.errors import TranscriptError
from context_builder.transcript import Transcript, Utterance, read_transcript
from context_builder.transcript.formats.json_lines import read_json_lines
from context_builder.transcript.source import Source
from tests.transcript.reading import transcript


def parsed(text: str) -> Transcript:
    return read_json_lines(Source("x", text))


def test_seconds_are_taken_as_they_are_and_other_fields_ignored() -> None:
    text = '{"speaker": "A", "text": "one", "t_est": 2, "turn": 7}\n\n{"text": "two", "t_est": 4.5}\n'
    assert parsed(text).utterances == [Utterance("A", "one", 2.0), Utterance("Unknown", "two", 4.5)]


def test_timestamps_count_from_the_first() -> None:
    text = (
        '{"text": "a", "timestamp": "2025-10-02T10:30:45"}\n'
        '{"text": "b"}\n'
        '{"text": "c", "timestamp": "2025-10-02T10:31:00.5"}'
    )
    assert [u.at for u in parsed(text).utterances] == [0.0, None, 15.5]


def test_the_assistants_contributions_are_told_apart() -> None:
    text = (
        '{"speaker": "Consilience", "text": "a"}\n'
        '{"speaker": "Bot", "text": "b", "type": "consilience", "metadata": {"priority": "P0"}}\n'
        '{"speaker": "Ann", "text": "c", "metadata": {"priority": "P0"}}'
    )
    assert [u.contribution for u in parsed(text).utterances] == [{}, {"priority": "P0"}, None]


def test_times_are_those_of_the_file() -> None:
    lines = (
        '{"text": "a", "timestamp": "2023-05-03T09:00:00+02:00"}\n{"text": "b", "timestamp": "2023-05-03T07:00:10Z"}'
    )
    found = parsed(lines)
    moments = [found.said_at(one) for one in found.utterances]
    assert [moment and moment.isoformat() for moment in moments] == [
        "2023-05-03T09:00:00+02:00",
        "2023-05-03T09:00:10+02:00",
    ]
    assert parsed('{"text": "a", "t_est": 2}').started is None


@pytest.mark.parametrize(
    ("line", "wrong", "is_read"),
    [
        ("{", "not JSON", False),
        ("[]", "not a JSON object", False),
        ('{"speaker": "A"}', 'no "text"', False),
        ('{"text": 3}', 'no "text"', False),
        ('{"text": "a", "t_est": "2"}', '"t_est" is not a number', True),
        ('{"text": "a", "t_est": NaN}', '"t_est" is not a number', True),
        ('{"text": "a", "timestamp": "noon"}', '"timestamp" is not ISO 8601', True),
        ('{"text": "a", "timestamp": 12}', '"timestamp" is not ISO 8601', True),
    ],
)
def test_what_is_wrong_is_named_with_its_line_and_the_rest_is_read(line: str, wrong: str, *, is_read: bool) -> None:
    source = Source("x.jsonl", f'{{"text": "fine", "timestamp": "2025-10-02T10:30:45"}}\n{line}\n{{"text": "too"}}')
    assert [one.text for one in read_json_lines(source).utterances] == ["fine", *(["a"] if is_read else []), "too"]
    assert len(source.problems) == 1
    assert source.problems[0].startswith(f"x.jsonl:2: {wrong}")


def test_the_ending_tells_the_format(tmp_path: Path) -> None:
    cue = "1\n00:00:01,000 --> 00:00:02,000\nA: hi\n"
    for name, content in (("a.srt", "\ufeff" + cue), ("a.VTT", "WEBVTT\n\n" + cue), ("a.jsonl", '{"text": "hi"}')):
        (tmp_path / name).write_text(content, encoding="utf-8")
        assert [u.text for u in read_transcript(tmp_path / name).utterances] == ["hi"]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "talk.mp3").touch()
    with pytest.raises(TranscriptError, match=r"talk.mp3: no transcript was recognized in it; what is read: "):
        read_transcript(tmp_path / "talk.mp3")
    with pytest.raises(TranscriptError, match=r"none.srt: there is no such file"):
        read_transcript(tmp_path / "none.srt")
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(TranscriptError, match="holds nothing"):
        read_transcript(tmp_path / "empty.jsonl")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8"])
def test_the_encoding_is_told_by_the_mark_or_by_the_zeros(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.srt").write_bytes("1\r\n00:00:01,000 --> 00:00:02,000\r\nZoë: voilà 🌊\r\n".encode(encoding))
    found = read_transcript(tmp_path / "a.srt")
    assert [(one.speaker, one.text) for one in found.utterances] == [("Zoë", "voilà 🌊")]
    assert not found.problems


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Насос приехал вчера, и мы его поставили.", "cp1251"),
        ("Der Käse wäre über Nacht größer geworden, fürchte ich.", "cp1252"),
        ("ポンプは昨日届きました。今日は設置します。よろしくお願いします。", "shift_jis"),
        ("水泵昨天到了，我们今天安装。请大家准备好工具。", "gb18030"),
    ],
)
def test_what_is_not_utf8_is_read_as_what_it_looks_like_and_noted(tmp_path: Path, text: str, encoding: str) -> None:
    cue = f"1\n00:00:01,000 --> 00:00:02,000\n{text}\n".encode(encoding)
    (tmp_path / "a.srt").write_bytes(cue + "\n2\n00:00:03,000 --> 00:00:04,000\nvoilà\n".encode())
    found = read_transcript(tmp_path / "a.srt")
    assert [one.text for one in found.utterances] == [text, "voilà"]
    assert "a.srt:3: not UTF-8; read as" in found.problems[0]


def _deepgram(text: str, start: float, channel: int = 0) -> dict[str, object]:
    heard = {"alternatives": [{"transcript": text, "words": [{"word": text, "start": start}]}]}
    ends = {"is_final": True, "speech_final": True}
    return {"type": "Results", "channel_index": [channel, 2], "start": start - 0.5, "channel": heard, **ends}


def _amazon(text: str, start: float, *, partial: bool = False) -> dict[str, object]:
    one = {"ResultId": text, "IsPartial": partial, "StartTime": start, "Alternatives": [{"Transcript": text}]}
    return {"Transcript": {"Results": [one]}}


def _assembly(text: str, order: int, start: int) -> dict[str, object]:
    words = [{"text": text, "start": start}]
    return {"type": "Turn", "turn_order": order, "end_of_turn": True, "transcript": text, "words": words}


def _soniox(*tokens: tuple[str, int | None, bool]) -> dict[str, object]:
    return {
        "tokens": [{"text": text, "start_ms": at, "is_final": final, "speaker": "1"} for text, at, final in tokens],
        "final_audio_proc_ms": 0,
    }


@pytest.mark.parametrize(
    "messages",
    [
        [_deepgram("Hello", 1.5), _deepgram("Yes", 4.0, 1)],
        [_amazon("Hell", 1.5, partial=True), _amazon("Hello", 1.5), _amazon("Yes", 4.0)],
        [_assembly("Hello", 0, 1500), _assembly("Yes", 1, 4000)],
        [
            _soniox(("Hel", 1500, False)),
            _soniox(("Hel", 1500, True), ("lo", 1600, True), ("<end>", None, True), ("Y", 4000, False)),
            _soniox(("Yes", 4000, True), ("<end>", None, True)),
            {"tokens": [], "final_audio_proc_ms": 4200, "finished": True},
        ],
    ],
    ids=["deepgram", "amazon", "assemblyai", "soniox"],
)
def test_a_saved_stream_keeps_its_times(messages: list[dict[str, object]]) -> None:
    found = parsed("\n".join(json.dumps(one) for one in messages)).utterances
    assert [(one.text, one.at) for one in found] == [("Hello", 1.5), ("Yes", 4.0)]


def test_times_of_several_connections_each_from_zero_are_none() -> None:
    lines = [_amazon("One", 5.0), _amazon("Two", 0.5)]
    assert [one.at for one in parsed("\n".join(map(json.dumps, lines))).utterances] == [None, None]


def test_what_tools_did_is_not_said_and_is_counted() -> None:
    contents: list[tuple[str, object]] = [
        ("user", "Why?"),
        ("assistant", [{"type": "tool_use", "name": "Read", "input": {}}]),
        ("user", [{"type": "tool_result", "content": "import x"}]),
        ("assistant", [{"type": "text", "text": "So."}, {"type": "tool_use", "name": "Read"}]),
    ]
    lines = [json.dumps({"type": role, "message": {"role": role, "content": said}}) for role, said in contents]
    source = Source("x", "\n".join(lines))
    assert [(one.speaker, one.text) for one in read_json_lines(source).utterances] == [
        ("user", "Why?"),
        ("assistant", "So."),
    ]
    assert source.notes == ["2 lines of tools and settings, not said, not read"]


def test_what_an_agent_tells_once_more_is_said_once() -> None:
    lines = [
        {"type": "Welcome", "request_id": "x"},
        {"type": "ConversationText", "role": "user", "content": "Why?"},
        {"type": "History", "role": "user", "content": "Why?"},
        {"type": "ConversationText", "role": "assistant", "content": "So."},
        {"type": "History", "role": "assistant", "content": "So."},
        {"type": "AgentAudioDone"},
    ]
    source = Source("x", "\n".join(map(json.dumps, lines)))
    assert [(one.speaker, one.text) for one in read_json_lines(source).utterances] == [
        ("user", "Why?"), ("assistant", "So."),
    ]  # fmt: skip
    assert source.problems == []


def test_commands_and_thoughts_of_programs_that_write_code_are_not_said() -> None:
    lines = [
        {"type": "mode", "mode": "normal"},
        {"type": "user", "message": {"role": "user", "content": "Why?"}},
        {"type": "user", "isMeta": True, "message": {"role": "user", "content": "<command-name>/clear</command-name>"}},
    ]
    rollout = [
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": [{"text": "Why?"}]}},
        {"type": "response_item", "payload": {"type": "reasoning", "encrypted_content": "x"}},
        {"type": "response_item", "payload": {"type": "function_call", "name": "shell", "arguments": "{}"}},
    ]
    for kind in (lines, rollout):
        source = Source("x", "\n".join(map(json.dumps, kind)))
        assert [one.text for one in read_json_lines(source).utterances] == ["Why?"]
        assert source.problems == []
        assert source.notes == ["2 lines of tools and settings, not said, not read"]


@pytest.mark.parametrize("times", [("1683104400.25", "1683104410"), ("1683104400250", "1683104410000")])
def test_epoch_seconds_as_text_are_moments(tmp_path: Path, times: tuple[str, str]) -> None:
    entries = [{"speaker": "ida", "text": "The pump came.", "timestamp": time} for time in times]
    found = transcript(tmp_path, "a.jsonl", "".join(json.dumps(one) + "\n" for one in entries))
    assert [one.at for one in found.utterances] == [0.0, 9.75]
    assert found.started is not None
    assert found.started.timestamp() == 1683104400.25
    assert found.problems == ()
