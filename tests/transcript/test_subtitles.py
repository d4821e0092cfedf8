"""WebVTT and SubRip, as meeting tools write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from context_builder.transcript.formats.subtitles import read_subtitles, read_subtitles_in_text
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Utterance
from tests.growth import is_linear
from tests.transcript.reading import heard, transcript


def read(text: str) -> tuple[list[Utterance], list[str]]:
    source = Source("meeting.vtt", text)
    return read_subtitles(source).utterances, source.problems


def said(text: str) -> list[tuple[str, str, float | None]]:
    return [(u.speaker, u.text, u.at) for u in read(text)[0]]


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
        ("write to <ida@example.org>", "Unknown", "write to <ida@example.org>"),
        ("see https://example.org", "Unknown", "see https://example.org"),
        ("a < b and b > a", "Unknown", "a < b and b > a"),
    ],
)
def test_a_short_name_before_a_colon_is_the_speaker(line: str, speaker: str, text: str) -> None:
    assert said(f"00:01.000 --> 00:02.000\n{line}") == [(speaker, text, 1.0)]


def test_text_after_an_empty_line_goes_on_with_its_cue() -> None:
    assert said("1\n00:00:01,000 --> 00:00:02,000\nA: first\n\nsecond\n") == [("A", "first second", 1.0)]
    assert said("1\n00:00:01,000 --> 00:00:02,000\nPress\n\n--> then enter\n") == [
        ("Unknown", "Press --> then enter", 1.0)
    ]


@pytest.mark.parametrize(
    "times",
    [
        "0:0:4,8 --> 0:0:7,4",
        "00:00:04.800000 --> 00:00:07.4",
        "00:00:04,800-->00:00:07,400",
        "00:00:04,800 -> 00:00:07,400",
        "00:04.800 --> 00:07.400 align:start position:0%",
        "00: 00: 04, 800 --> 00: 00: 07, 400",
        "0:00:04.800,0:00:07.400",
        "00:00:04:800 --> 00:00:07:400",
        "  00:00:04,800  -->  00:00:07,400  X1:1 X2:2",
        "00:00:04,800 —> 00:00:07,400",
        "00:00:04.8 --> 00:00:07.400",
        "-00:00:04,800 --> 00:00:07,400",
    ],
)
def test_lines_of_times_as_players_read_them(times: str) -> None:
    [(_, text, at)] = said(f"1\n{times}\nIs it here?\n")
    assert (text, at) in [("Is it here?", 4.8), ("Is it here?", 4.0)]


def test_cues_without_empty_lines_between() -> None:
    cues = "1\n00:00:01,000 --> 00:00:02,000\nfirst\n2\n00:00:03,000 --> 00:00:04,000\nsecond 2\n"
    cues += "3\n00:00:05,000 --> 00:00:06,000\n1984\n"
    assert said(cues) == [("Unknown", "first", 1.0), ("Unknown", "second 2", 3.0), ("Unknown", "1984", 5.0)]
    assert said("WEBVTT\n00:01.000 --> 00:02.000\nfirst\n00:03.000 --> 00:04.000\nsecond") == [
        ("Unknown", "first", 1.0), ("Unknown", "second", 3.0),
    ]  # fmt: skip
    assert said("1\n00:00:01,000 --> 00:00:02,000\n\n2\n00:00:03,000 --> 00:00:04,000\nsecond") == [
        ("Unknown", "second", 3.0)
    ]


def test_what_cannot_be_read_is_named_by_line_and_the_rest_is_read() -> None:
    utterances, problems = read(
        "1\n00:00:01,000 --> 00:00:02,000\nfirst\n\n2\n00:0a:03,000 --> 00:00:04,000\nsecond\n\n"
        "3\n00:00:05,000 --> 00:00:06,000\nthird"
    )
    assert [(one.text, one.at) for one in utterances] == [("first", 1.0), ("second", None), ("third", 5.0)]
    assert problems == ["meeting.vtt:6: not a line of times such as 00:01:02.500 --> 00:01:04.000"]
    utterances, problems = read("WEBVTT\n\nHello\n\n00:01.000 --> 00:02.000\nfirst")
    assert [one.text for one in utterances] == ["first"]
    assert problems == ["meeting.vtt:3: text without a line of times above it"]


def test_captions_of_google_meet_and_youtube_in_sbv() -> None:
    first = "0:00:01.000,0:00:03.000\nIda Lind: Is it here?\n\n"
    assert said(f"{first}0:00:03.000,0:00:04.000\nBo: Since noon,\nby truck.\n") == [
        ("Ida Lind", "Is it here?", 1.0),
        ("Bo", "Since noon, by truck.", 3.0),
    ]


def test_nothing_said_is_nothing() -> None:
    assert said("WEBVTT\n\n00:01.000 --> 00:02.000\n \n") == []
    assert Utterance("A", "b").at is None


@pytest.mark.parametrize(
    "unclosed", ["<v ", "<v.", "<v.a", "<v.a ", "<v\t", "<c", "</c", "<00:", "{\\", "&#9", "- ", "A: "]
)
def test_what_is_never_closed_takes_time_in_proportion_to_its_length(unclosed: str) -> None:
    assert is_linear(lambda text: read(text)[0], unclosed, before="00:01.000 --> 00:02.000\n", most=32_000)


def test_empty_lines_below_a_header_take_time_in_proportion_to_their_number() -> None:
    assert is_linear(lambda text: read_subtitles_in_text(Source("notes.txt", text)), "\n", before="WEBVTT", most=16_000)


def test_numbers_of_thousands_of_digits_are_no_times_and_no_characters() -> None:
    digits = "9" * 5000
    assert said(f"00:01.000 --> 00:02.000\nA: it is &#{digits}; &#65; {digits}") == [
        ("A", f"it is \ufffd A {digits}", 1.0)
    ]
    for hours in (digits, "9" * 400):
        utterances, problems = read(f"{hours}:00:01.000 --> 00:00:02.000\nHello")
        assert len(problems) == 1
        assert all(one.at is None for one in utterances)


def test_a_voice_without_an_end_is_taken_for_text() -> None:
    assert said("00:01.000 --> 00:02.000\n<v Ann <v Bob>Hello</v>") == [
        ("Unknown", "<v Ann", 1.0),
        ("Bob", "Hello", 1.0),
    ]


@pytest.mark.parametrize(
    ("good", "broken", "index"),
    [
        ("00:00:01,000 --> 00:00:03,000", "??:??:??,??? --> 00:00:05,000", "2\n"),
        ("0:00:01.000,0:00:03.000", "0:00:0z.000,0:00:05.500", ""),
    ],
)
def test_a_broken_line_of_times_is_named_and_its_words_are_kept(good: str, broken: str, index: str) -> None:
    said_, problems = read(f"{good}\nOpen it.\n\n{index}{broken}\nRead it: 1,2.\n")
    assert [one.text for one in said_] == ["Open it.", "Read it: 1,2."]
    assert problems == [f"meeting.vtt:{5 if index else 4}: not a line of times such as 00:01:02.500 --> 00:01:04.000"]


def test_cues_that_mark_each_word_of_a_sentence_are_said_once() -> None:
    marked = ["<u>No</u> no", "No <u>no</u>", "No no"]
    cues = "\n".join(f"00:00:0{n}.000 --> 00:00:0{n + 1}.000\n{text}\n" for n, text in enumerate(marked))
    assert said(cues) == [("Unknown", "No no", 0.0)]
    again = ["<v A>No</v>", "<v B>No</v>", "<i>No</i>", "<i>No</i>", "No"]
    cues = "\n".join(f"00:00:0{n}.000 --> 00:00:0{n + 1}.000\n{text}\n" for n, text in enumerate(again))
    assert len(said(cues)) == 5


def test_milliseconds_may_have_a_fraction_of_their_own() -> None:
    assert said("00:00:08,249.0999 --> 00:00:09,251.79\nYes\n") == [("Unknown", "Yes", 8.249)]


def test_captions_that_roll_may_mark_another_speaker() -> None:
    cues = [
        ("00.160", "03.429", "&gt;&gt; Is<00:00:00.960><c> the</c><00:00:01.520><c> pump</c>"),
        ("03.429", "03.439", "&gt;&gt; Is the pump"),
        (
            "03.439",
            "05.749",
            "&gt;&gt; Is the pump\nhere?<00:00:04.160><c> &gt;&gt;</c><00:00:04.400><c> Yes. &gt;&gt;</c>",
        ),
        ("05.749", "05.759", "here? &gt;&gt; Yes. &gt;&gt;"),
        ("05.759", "07.990", "here? &gt;&gt; Yes. &gt;&gt;\nI<00:00:06.000><c> see.</c>"),
    ]
    rolling = "\n\n".join(f"00:00:{start} --> 00:00:{end}\n \n{text}" for start, end, text in cues)
    said = read_subtitles(Source("a.vtt", f"WEBVTT\n\n{rolling}\n")).utterances
    assert [one.text for one in said] == ["Is the pump", "here?", "Yes.", "I see."]


@pytest.mark.parametrize("rest", ["2\n00:00:05,2", "2\n00:00:05,200 --", "2\n00:00:05,200 --> 00:00:0", "00:00:05"])
def test_a_cue_that_is_cut_off_in_its_times_is_named_and_left_out(tmp_path: Path, rest: str) -> None:
    found = transcript(tmp_path, "a.srt", f"1\n00:00:01,000 --> 00:00:03,000\nThe pump came.\n\n{rest}")
    assert [one.text for one in found.utterances] == ["The pump came."]
    assert len(found.problems) == 1
    webvtt = "WEBVTT\n\n00:01.000 --> 00:03.000\nThe pump came.\n\n00:05.2"
    assert heard(tmp_path, "a.vtt", webvtt) == ["Unknown | The pump came."]


def test_a_time_that_somebody_says_at_the_end_stays(tmp_path: Path) -> None:
    cue = "1\n00:00:01,000 --> 00:00:03,000\nIt stopped at\n"
    for end in ("00:00:05", "\n10:30", "\n00:00:05\n"):
        assert heard(tmp_path, "a.srt", cue + end) == [f"Unknown | It stopped at {end.strip()}"]


def test_a_voice_goes_on_where_cues_have_one_at_changes_alone() -> None:
    cues = ("<v Ida>Shall we", "sail to the", "island?", "<v Bo>Not now,", "it rains.", "<v Ida>Then", "tomorrow.")
    text = "".join(f"00:0{n}.000 --> 00:0{n + 1}.000\n{line}\n\n" for n, line in enumerate(cues))
    assert [one.speaker for one in read(f"WEBVTT\n\n{text}")[0]] == ["Ida", "Ida", "Ida", "Bo", "Bo", "Ida", "Ida"]
    again = text.replace("sail to the", "<v Ida>sail to the")
    assert [one.speaker for one in read(f"WEBVTT\n\n{again}")[0]][2] == "Unknown"


def test_a_voice_does_not_go_on_with_what_several_say() -> None:
    cues = ("<v Ida>Shall we sail?", "- Yes.\n- No.", "<v Bo>Not now.", "It rains.")
    text = "".join(f"00:0{n}.000 --> 00:0{n + 1}.000\n{line}\n\n" for n, line in enumerate(cues))
    speakers = [one.speaker for one in read(f"WEBVTT\n\n{text}")[0]]
    assert "Ida" not in speakers[1:]
    assert speakers[-2:] == ["Bo", "Bo"]


def test_a_cue_without_a_voice_among_others_that_have_one_is_nobodys(tmp_path: Path) -> None:
    cues = ["<v Ida>Shall we sail?", "<v Bo>Not in this wind.", "[Applause]", "<v Ida>Then at noon."]
    text = "WEBVTT\n\n" + "\n\n".join(f"00:0{at}.000 --> 00:0{at}.900\n{cue}" for at, cue in enumerate(cues)) + "\n"
    assert heard(tmp_path, "a.vtt", text) == [
        "Ida | Shall we sail?",
        "Bo | Not in this wind.",
        "Unknown | [Applause]",
        "Ida | Then at noon.",
    ]


def test_a_voice_goes_on_in_a_cue_without_one_also_where_most_have_one(tmp_path: Path) -> None:
    cues = ["<v Ida>Shall we sail", "at noon?", "<v Bo>Not in this", "[Thunder]", "wind.", "<v Ida>No?", "<v Bo>No."]
    text = "WEBVTT\n\n" + "\n\n".join(f"00:0{at}.000 --> 00:0{at}.900\n{cue}" for at, cue in enumerate(cues)) + "\n"
    assert [one.speaker for one in transcript(tmp_path, "a.vtt", text).utterances] == [
        "Ida", "Ida", "Bo", "Unknown", "Bo", "Ida", "Bo",
    ]  # fmt: skip
