"""WebVTT and SubRip, as meeting tools write them."""

from __future__ import annotations

import pytest

from context_builder.errors import TranscriptError
from context_builder.transcript.cues import parse_cues
from context_builder.transcript.utterance import Utterance
from tests.growth import is_linear


def said(text: str) -> list[tuple[str, str, float | None]]:
    return [(u.speaker, u.text, u.at) for u in parse_cues(text, "meeting.vtt")]


def test_webvtt_with_voices_settings_notes_and_styles() -> None:
    assert said(
        """WEBVTT - Monday
Kind: captions

STYLE
::cue { color: lime }

NOTE two microphones --> one room

intro
00:00:01.000 --> 00:00:04.000 align:start position:10%
<v.loud Mary Ann>So, <i>urchins</i> &amp; kelp</v>

01:02:03.5 --> 01:02:05.000
<v Kai>Fourteen a <00:00:06.000><c.num>square</c> metre
"""
    ) == [("Mary Ann", "So, urchins & kelp", 1.0), ("Kai", "Fourteen a square metre", 3723.5)]


def test_subrip_with_windows_line_ends() -> None:
    lines = ["1", "00:00:01,250 --> 00:00:02,000", "Ida: Hello", "there", ""]
    lines += ["2", "00:00:03,000 --> 00:00:04,000", r"{\an8}<b>42</b>", ""]
    assert said("\r\n".join(lines)) == [("Ida", "Hello there", 1.25), ("Unknown", "42", 3.0)]


def test_a_cue_with_two_voices_is_two_utterances() -> None:
    cue = "00:01.000 --> 00:02.000\n"
    expected = [("A", "Yes", 1.0), ("B", "no", 1.0)]
    assert said(f"{cue}<v A>Yes</v>\n<v B>no</v>") == expected
    assert said(f"{cue}<v A>Yes</v> <v B>no</v>") == expected
    assert said(f"{cue}- A: Yes\n- B: no") == expected


@pytest.mark.parametrize(
    ("line", "speaker", "text"),
    [
        ("Dr. O'Neil (host): Hi", "Dr. O'Neil (host)", "Hi"),
        ("Zoë Müller-Łuk: ja", "Zoë Müller-Łuk", "ja"),
        ("At 10:30 we begin", "Unknown", "At 10:30 we begin"),
        ("What I mean by that is: no", "Unknown", "What I mean by that is: no"),
        ("see https://example.org", "Unknown", "see https://example.org"),
        ("a < b and b > a", "Unknown", "a < b and b > a"),
    ],
)
def test_a_short_name_before_a_colon_is_the_speaker(line: str, speaker: str, text: str) -> None:
    assert said(f"00:01.000 --> 00:02.000\n{line}") == [(speaker, text, 1.0)]


def test_text_after_an_empty_line_goes_on_with_its_cue() -> None:
    assert said("1\n00:00:01,000 --> 00:00:02,000\nA: first\n\nsecond\n") == [
        ("A", "first", 1.0),
        ("Unknown", "second", 1.0),
    ]


def test_what_is_wrong_is_named_with_its_line() -> None:
    with pytest.raises(TranscriptError, match=r"meeting.vtt:3: not a line of times"):
        said("WEBVTT\n\nsoon --> later\nHello")
    with pytest.raises(TranscriptError, match=r"meeting.vtt:3: text without a line of times"):
        said("WEBVTT\n\nHello")


def test_nothing_said_is_nothing() -> None:
    assert parse_cues("WEBVTT\n\n00:01.000 --> 00:02.000\n \n", "x") == []
    assert Utterance("A", "b").at is None


@pytest.mark.parametrize(
    "unclosed", ["<v ", "<v.", "<v.a", "<v.a ", "<v\t", "<c", "</c", "<00:", "{\\", "&#9", "- ", "A: "]
)
def test_what_is_never_closed_takes_time_in_proportion_to_its_length(unclosed: str) -> None:
    assert is_linear(lambda text: parse_cues(text, "x"), unclosed, before="00:01.000 --> 00:02.000\n", most=32_000)


def test_numbers_of_thousands_of_digits_are_no_times_and_no_characters() -> None:
    digits = "9" * 5000
    assert said(f"00:01.000 --> 00:02.000\nA: it is &#{digits}; &#65; {digits}") == [
        ("A", f"it is \ufffd A {digits}", 1.0)
    ]
    for hours in (digits, "9" * 400):
        with pytest.raises(TranscriptError, match=r"meeting.vtt:1: not a line of times"):
            said(f"{hours}:00:01.000 --> 00:00:02.000\nHello")


def test_a_voice_without_an_end_is_taken_for_text() -> None:
    assert said("00:01.000 --> 00:02.000\n<v Ann <v Bob>Hello</v>") == [
        ("Unknown", "<v Ann", 1.0),
        ("Bob", "Hello", 1.0),
    ]
