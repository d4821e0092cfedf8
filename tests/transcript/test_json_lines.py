"""Transcripts with one JSON object a line, and the choice between the formats."""

from __future__ import annotations

from pathlib import Path

import pytest

from context_builder.errors import TranscriptError
from context_builder.transcript import Utterance, read_transcript
from context_builder.transcript.json_lines import parse_json_lines


def test_seconds_are_taken_as_they_are_and_other_fields_ignored() -> None:
    text = '{"speaker": "A", "text": "one", "t_est": 2, "turn": 7}\n\n{"text": "two", "t_est": 4.5}\n'
    assert parse_json_lines(text, "x") == [Utterance("A", "one", 2.0), Utterance("Unknown", "two", 4.5)]


def test_timestamps_count_from_the_first() -> None:
    text = (
        '{"text": "a", "timestamp": "2025-10-02T10:30:45"}\n'
        '{"text": "b"}\n'
        '{"text": "c", "timestamp": "2025-10-02T10:31:00.5"}'
    )
    assert [u.at for u in parse_json_lines(text, "x")] == [0.0, None, 15.5]


def test_the_assistants_contributions_are_told_apart() -> None:
    text = (
        '{"speaker": "Consilience", "text": "a"}\n'
        '{"speaker": "Bot", "text": "b", "type": "consilience", "metadata": {"priority": "P0"}}\n'
        '{"speaker": "Ann", "text": "c", "metadata": {"priority": "P0"}}'
    )
    assert [u.contribution for u in parse_json_lines(text, "x")] == [{}, {"priority": "P0"}, None]


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"speaker": "A"}', 'no "text"'),
        ('{"text": 3}', 'no "text"'),
        ('{"text": "a", "t_est": "2"}', '"t_est" is not a number'),
        ('{"text": "a", "timestamp": "noon"}', '"timestamp" is not ISO 8601'),
        ('{"text": "a", "timestamp": 12}', '"timestamp" is not ISO 8601'),
    ],
)
def test_what_is_wrong_is_named_with_its_line(line: str, wrong: str) -> None:
    with pytest.raises(TranscriptError, match=f"x.jsonl:2: .*{wrong}"):
        parse_json_lines(f'{{"text": "fine", "timestamp": "2025-10-02T10:30:45"}}\n{line}', "x.jsonl")


def test_the_ending_tells_the_format(tmp_path: Path) -> None:
    cue = "1\n00:00:01,000 --> 00:00:02,000\nA: hi\n"
    for name, content in (("a.srt", "\ufeff" + cue), ("a.VTT", "WEBVTT\n\n" + cue), ("a.jsonl", '{"text": "hi"}')):
        (tmp_path / name).write_text(content, encoding="utf-8")
        assert [u.text for u in read_transcript(tmp_path / name)] == ["hi"]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match=r"talk.docx: unknown format; use .jsonl"):
        read_transcript(tmp_path / "talk.docx")
    with pytest.raises(TranscriptError, match=r"none.srt: No such file"):
        read_transcript(tmp_path / "none.srt")
    (tmp_path / "latin.srt").write_bytes(b"1\nok\n\xe9")
    with pytest.raises(TranscriptError, match=r"latin.srt:3: not UTF-8"):
        read_transcript(tmp_path / "latin.srt")
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(TranscriptError, match="holds nothing"):
        read_transcript(tmp_path / "empty.jsonl")
