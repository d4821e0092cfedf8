"""Times of the day, in words, and in names of files; names where the speaker changes; captions that grow."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from context_builder.transcript.moments import in_file_name
from tests.transcript.reading import heard, transcript

TALK = [("Ida Lind", "Shall we sail?", 0), ("Bo Berg", "Not in this wind.", 180), ("Ida Lind", "Tomorrow, then.", 4380)]


@pytest.mark.parametrize(
    ("form", "times"),
    [
        ("{} Uhr {}: {}", ("09.02", "09.05", "10.15")),
        ("Um {} Uhr: {}: {}", ("9:02", "9:05", "10:15")),
        ("{} – {} : {}", ("9 h 02", "9 h 05", "10 h 15")),
        ("{} {}: {}", ("9h02min", "9h05min", "10h15min")),
        ("{}h {}: {}", ("09:02", "09:05", "10:15")),
        ("kl. {} {}: {}", ("9.02", "9.05", "10.15")),
        ("klo {} {}: {}", ("9.02", "9.05", "10.15")),
        ("{} {}: {}", ("9.02", "9.05", "10.15")),
        ("A las {} {}: {}", ("9:02", "9:05", "10:15")),
        ("{} hrs {}: {}", ("0902", "0905", "1015")),
        ("{} {}：{}", ("9時02分", "9時05分", "10時15分")),
        ("[{}] {}: {}", ("23:58", "00:01", "01:11")),
        ("{} {}: {}", ("23:58:00", "0:01:00", "1:11:00")),
    ],
)
def test_times_of_the_day(tmp_path: Path, form: str, times: tuple[str, ...]) -> None:
    text = "\n".join(form.format(time, who, said) for time, (who, said, _) in zip(times, TALK, strict=True))
    assert [(one.speaker, one.text, one.at) for one in transcript(tmp_path, "minutes.txt", text).utterances] == TALK


@pytest.mark.parametrize(
    "form", ["{who} ({time} Uhr): {said}", "{who}, {time} Uhr\n{said}\n", "{time} Uhr\n{who}: {said}"]
)
def test_times_of_the_day_behind_a_name_or_above(tmp_path: Path, form: str) -> None:
    times = zip(("9.02", "9.05", "10.15"), TALK, strict=True)
    text = "\n".join(form.format(time=time, who=who, said=said) for time, (who, said, _) in times)
    assert [(one.speaker, one.text, one.at) for one in transcript(tmp_path, "minutes.txt", text).utterances] == TALK


def test_a_time_within_what_somebody_says_is_text(tmp_path: Path) -> None:
    said = "Ida: We met.\n9.30 Uhr is too early.\nBo: 9.30 Uhr is fine.\nIda: Good.\n"
    assert heard(tmp_path, "a.txt", said) == [
        "Ida | We met. 9.30 Uhr is too early.",
        "Bo | 9.30 Uhr is fine.",
        "Ida | Good.",
    ]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "a.txt",
            "Ida: The meeting is\nat 9:30 tomorrow\nBo: And the next one\nat 10:15 on Friday\nIda: Good.\n",
            ["Ida | The meeting is at 9:30 tomorrow", "Bo | And the next one at 10:15 on Friday", "Ida | Good."],
        ),
        (
            "a.txt",
            "Ida: Wir treffen uns\num 9.30 Uhr am Bahnhof\nBo: Und dann\num 10.15 Uhr im Haus\nIda: Gut.\n",
            ["Ida | Wir treffen uns um 9.30 Uhr am Bahnhof", "Bo | Und dann um 10.15 Uhr im Haus", "Ida | Gut."],
        ),
        (
            "a.txt",
            "Ida: How much?\nBo: in euros\n4.50 coffee\n9.05 cake\nIda: Thanks.\n",
            ["Ida | How much?", "Bo | in euros 4.50 coffee 9.05 cake", "Ida | Thanks."],
        ),
        (
            "a.txt",
            "Ida: Agenda\n1.01 Budget\n1.02 Boat\n1.03 Ropes\nBo: Good.\nIda: So.\nBo: Yes.\n",
            ["Ida | Agenda 1.01 Budget 1.02 Boat 1.03 Ropes", "Bo | Good.", "Ida | So.", "Bo | Yes."],
        ),
        (
            "a.txt",
            "[00:00:01] Ida: We begin\nat 9:30 sharp\n[00:00:05] Bo: and end\nat 10:30 sharp\n",
            ["Ida | We begin at 9:30 sharp", "Bo | and end at 10:30 sharp"],
        ),
        (
            "a.txt",
            "Ida 9:02\nWe meet\nat 9:30 Bo: No.\nBo 9:05\nYes.\nat 10:30 Ida: So.\nBo 9:06\nGood.\n",
            ["Ida | We meet at 9:30 Bo: No.", "Bo | Yes. at 10:30 Ida: So.", "Bo | Good."],
        ),
        (
            "a.txt",
            "The plan is\nat 9:30 Bo\nthen at noon\nat 10:30 Bo\nthen all\n",
            ["Unknown | " + one for one in ("The plan is", "at 9:30 Bo", "then at noon", "at 10:30 Bo", "then all")],
        ),
        ("a.txt", "at 9:30 tea\nat 10:30 cake\n", ["Unknown | at 9:30 tea", "Unknown | at 10:30 cake"]),
        (
            "chat.txt",
            "[03/05/23, 09:00:00] Ida: Shall we meet\nat 9:30 in the hall\n"
            "[03/05/23, 09:01:00] Bo: No, later\nat 10:15 maybe\n",
            ["Ida | Shall we meet at 9:30 in the hall", "Bo | No, later at 10:15 maybe"],
        ),
        (
            "m.eml",
            "From: ida@x.org\nTo: bo@x.org\nDate: Wed, 3 May 2023 09:00:00 +0000\nSubject: plan\n\n"
            "We meet\nat 9:30 in the hall\nat 10:15 in the bar\n",
            ["ida@x.org | We meet at 9:30 in the hall at 10:15 in the bar"],
        ),
        (
            "captions",
            "WEBVTT\n\n00:01.000 --> 00:02.000\nat 9:30 tea\n\n00:03.000 --> 00:04.000\nat 10:30 cake\n",
            ["Unknown | at 9:30 tea", "Unknown | at 10:30 cake"],
        ),
    ],
)  # fmt: skip
def test_lines_that_begin_with_a_time_are_as_they_were_said(
    tmp_path: Path, name: str, text: str, expected: list[str]
) -> None:
    assert heard(tmp_path, name, text) == expected


def test_minutes_with_a_heading_of_labels(tmp_path: Path) -> None:
    text = "Datum: 3. Mai 2023\nAnwesend: Ida, Bo\n\n9.02 Uhr Ida: Guten Tag.\n9.05 Uhr Bo: Hallo.\n"
    assert heard(tmp_path, "minutes.txt", text) == ["Ida | Guten Tag.", "Bo | Hallo."]


def test_minutes_with_labels_of_their_own_between_what_is_said(tmp_path: Path) -> None:
    text = "9.02 Uhr Ida: Guten Tag.\n9.05 Uhr Bo: Zu teuer.\nBeschluss: Keine Pumpe.\n9.10 Uhr Ida: Danke.\n"
    told = transcript(tmp_path, "minutes.txt", text).utterances
    assert [(one.speaker, one.text, one.at) for one in told] == [
        ("Ida", "Guten Tag.", 0),
        ("Bo", "Zu teuer. Beschluss: Keine Pumpe.", 180),
        ("Ida", "Danke.", 480),
    ]


def test_a_program_of_a_day_within_what_somebody_says_is_text(tmp_path: Path) -> None:
    text = "Ida: Es gibt\nwas folgt\n9.30 Uhr Film: Wale\n10.15 Uhr Pause: Tee\n11.00 Uhr Film: Robben\n"
    text += "Bo: Gut.\nIda: Ja.\nBo: So.\n"
    told = "Es gibt was folgt 9.30 Uhr Film: Wale 10.15 Uhr Pause: Tee 11.00 Uhr Film: Robben"
    assert heard(tmp_path, "a.txt", text) == [f"Ida | {told}", "Bo | Gut.", "Ida | Ja.", "Bo | So."]


def test_a_recording_that_begins_again_is_no_night(tmp_path: Path) -> None:
    told = transcript(tmp_path, "a.txt", "10:58 Ida: Stop.\n0:03 Bo: Go on.\n0:10 Ida: Now.\n").utterances
    assert [one.at for one in told] == [658, 3, 10]


@pytest.mark.parametrize(
    "text",
    [
        "Ida Lind\n0 minutes 3 seconds0:03\nIda Lind 0 minutes 3 seconds\nShall we sail?\n"
        "Bo Berg\n1 hour 1 minute 8 seconds1:01:08\nBo Berg 1 hour 1 minute 8 seconds\nNo.\n",
        "Ida Lind\n\n0 Minuten 3 Sekunden\n0:03\n\nIda Lind 0 Minuten 3 Sekunden\n\nShall we sail?\n\n"
        "Bo Berg\n\n1 Stunde 1 Minute 8 Sekunden\n1:01:08\n\nBo Berg 1 Stunde 1 Minute 8 Sekunden\n\nNo.\n",
        "Ida Lind 3 seconds\nShall we sail?\nBo Berg 1 hour 1 minute 8 seconds\nNo.\n",
        "Ida Lind: (00:03)\nShall we sail?\n\nBo Berg: (01:01:08)\nNo.\n",
        "00:00:03:00\tIda Lind\tShall we sail?\n01:01:08:12\tBo Berg\tNo.\n",
        "00:00:03;00 Ida Lind: Shall we sail?\n01:01:08;12 Bo Berg: No.\n",
        "**[00:00:03]** Ida Lind: Shall we sail?\n\n**[01:01:08]** Bo Berg: No.\n",
        "**[00:00:03] Ida Lind** Shall we sail?\n\n**[01:01:08] Bo Berg** No.\n",
        "`00:00:03` **Ida Lind:** Shall we sail?\n\n`01:01:08` **Bo Berg:** No.\n",
        "[00:03](https://example.org/?t=3) Ida Lind: Shall we sail?\n"
        "[1:01:08](https://example.org/?t=3668) Bo Berg: No.\n",
        "Name: Ida Lind\nText: Shall we sail?\nTime: 00:00:03\n----\nName: Bo Berg\nText: No.\nTime: 01:01:08\n----\n",
        "**Speaker:** Ida Lind\n**Start:** 0:03\n**Text:** Shall we\nsail?\n\n"
        "**Speaker:** Bo Berg\n**Start:** 1:01:08\n**Text:** No.",
    ],
)
def test_who_and_when_however_they_are_written(tmp_path: Path, text: str) -> None:
    told = transcript(tmp_path, "talk.md", text).utterances
    assert [(one.speaker, one.text, one.at) for one in told] == [
        ("Ida Lind", "Shall we sail?", 3),
        ("Bo Berg", "No.", 3668),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Ida  0:03\nWe rest for\n5 minutes\nthen run\nBo  0:10\nI say\n10 minutes\nis fine\n",
            ["Ida | We rest for 5 minutes then run", "Bo | I say 10 minutes is fine"],
        ),
        (
            "We rest for\n5 minutes\nthen run\n10 minutes\n",
            ["Unknown | " + one for one in ("We rest for", "5 minutes", "then run", "10 minutes")],
        ),
        (
            "Ida: How long?\nBo: Not now.\nAbout 5 minutes\nIda: So?\nAbout 10 minutes\nBo: Good.\n",
            ["Ida | How long?", "Bo | Not now. About 5 minutes", "Ida | So? About 10 minutes", "Bo | Good."],
        ),
        (
            "Ida 999 hours 99 minutes 99 seconds\nHello.\nBo 3 hours\nYes.\nBo 4 hours\nNo.\n",
            [
                "Unknown | " + one
                for one in (
                    "Ida 999 hours 99 minutes 99 seconds", "Hello.", "Bo 3 hours", "Yes.", "Bo 4 hours", "No.",
                )
            ],
        ),
    ],
)  # fmt: skip
def test_times_in_words_that_people_say_are_text(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert heard(tmp_path, "a.txt", text) == expected


def test_times_in_words_between_those_of_a_page_are_text(tmp_path: Path) -> None:
    text = (
        "Ida Lind\n1 minute 3 seconds1:03\nIda Lind 1 minute 3 seconds\nWe rest for\n5 minutes\nthen run.\n"
        "Bo Berg\n1 minute 8 seconds1:08\nBo Berg 1 minute 8 seconds\nAbout 90 seconds\nNote: fine.\nCall (10:30)\n"
    )
    for page in (text, re.sub(r"(?<=seconds)1:0\d", "", text)):
        assert heard(tmp_path, "talk.txt", page) == [
            "Ida Lind | We rest for 5 minutes then run.", "Bo Berg | About 90 seconds Note: fine. Call (10:30)",
        ]  # fmt: skip


def test_each_number_counts_in_its_own_unit(tmp_path: Path) -> None:
    text = (
        "Ida 59 Minuten 5 Sekunden\nHallo.\nBo 1 Stunde\nJa.\nIda 1 hour 5 seconds\nNein.\nBo 2 timmar 3 minuter\nSå.\n"
    )
    assert [(one.speaker, one.at) for one in transcript(tmp_path, "a.txt", text).utterances] == [
        ("Ida", 3545), ("Bo", 3600), ("Ida", 3605), ("Bo", 7380),
    ]  # fmt: skip


def test_times_in_bold_without_names(tmp_path: Path) -> None:
    told = transcript(tmp_path, "a.md", "**[00:04]** Welcome.\n\n**[00:09 - 00:12]** That is all.\n").utterances
    assert [(one.speaker, one.text, one.at) for one in told] == [
        ("Unknown", "Welcome.", 4),
        ("Unknown", "That is all.", 9),
    ]


def test_captions_that_grow_are_said_once(tmp_path: Path) -> None:
    states = ["The boiler", "The boiler was inspected", "The boiler was inspected in March."]
    records = [("Ida", state, f"21:55:5{place}") for place, state in enumerate(states)] + [("Bo", "And?", "21:56:04")]
    text = "".join("Name: {}\nText: {}\nTime: {}\n----\n".format(*one) for one in records)
    document = [dict(zip(("Name", "Text", "Time"), one, strict=True)) for one in records]
    for name, content in (("captions.txt", text), ("captions.json", document)):
        assert heard(tmp_path, name, content) == [f"Ida | {states[-1]}", "Bo | And?"]
    assert [one.at for one in transcript(tmp_path, "captions.txt", text).utterances] == [0, 14]
    assert heard(tmp_path, "a.txt", "Ida: Yes.\nIda: Yes, I do.\nBo: Fine.\n")[:2] == ["Ida | Yes.", "Ida | Yes, I do."]


@pytest.mark.parametrize(
    "said",
    [
        ["Ida: No.", "Ida: No, wait, stop.", "Bo: What is it?", "Ida: Yes.", "Ida: Yes, now go.", "Bo: Good."],
        ["Ida: No", "Ida: No wait stop", "Bo: What?", "Ida: Yes", "Ida: Yes now go", "Bo: Good", "Ida: So", "Bo: Yes"],
    ],
)
def test_who_begins_again_with_the_same_word_is_heard_twice(tmp_path: Path, said: list[str]) -> None:
    assert heard(tmp_path, "a.txt", "\n".join(said)) == [one.replace(": ", " | ") for one in said]


def test_a_line_in_a_record_that_looks_like_a_field_is_text(tmp_path: Path) -> None:
    records = (
        "Name: Ida\nText: First point.\nNote: the boat is late.\nFrom: me.\nTime: 09:02:03\n----\n"
        "Name: Bo\nText: My list:\nMessage: none\nTime: 09:02:09\nPS: so it is.\n----\n"
        "Name: Cy\nText: So.\nTime: 09:02:12\nDate: 3 May.\n"
    )
    told = transcript(tmp_path, "a.txt", records).utterances
    assert [(one.speaker, one.text, one.at) for one in told] == [
        ("Ida", "First point. Note: the boat is late. From: me.", 0),
        ("Bo", "My list: Message: none PS: so it is.", 6),
        ("Cy", "So. Date: 3 May.", 9),
    ]


@pytest.mark.parametrize("form", ["Name: {}\n{}Today: {}\nBlockers: {}\n", "{}:\n{}Today: {}\nBlockers: {}\n"])
@pytest.mark.parametrize("text", ["Yesterday: The mast.\n", ""])
def test_fields_of_a_stand_up_are_said(tmp_path: Path, form: str, text: str) -> None:
    said = [("Ida", "Sail to the isle.", "None"), ("Bo", "Mend the net.", "The needle broke."), ("Ida", "Rest.", "No")]
    told = "\n".join(form.format(who, text, today, blockers) for who, today, blockers in said)
    assert heard(tmp_path, "a.txt", told) == [
        f"{who} | {text.strip()} Today: {today} Blockers: {blockers}".replace("|  ", "| ")
        for who, today, blockers in said
    ]


def test_fields_beside_a_text_are_said_unless_they_tell_of_the_recording(tmp_path: Path) -> None:
    form = "Name: {}\nText: {}\nLanguage: en\nDevice: Phone of the hall\nBlockers: {}\n----\n"
    said = [("Ida", "I sail.", "None"), ("Bo", "I mend.", "The needle broke.")]
    assert heard(tmp_path, "a.txt", "".join(form.format(*one) for one in said)) == [
        "Ida | I sail. Blockers: None",
        "Bo | I mend. Blockers: The needle broke.",
    ]


def test_questions_to_a_model_are_no_records(tmp_path: Path) -> None:
    text = "User: Hi\nAssistant: How can I help you?\n\nUser: Bye\nAssistant: It was a pleasure.\n"
    assert heard(tmp_path, "a.txt", text) == [
        "User | Hi",
        "Assistant | How can I help you?",
        "User | Bye",
        "Assistant | It was a pleasure.",
    ]


@pytest.mark.parametrize(
    ("first", "second"), [("05/23/2023, 09:02 AM", "05/23/2023, 09:03 AM"), ("23.5.2023, 9:02", "23.5.2023, 9:03")]
)
def test_a_call_with_dates_in_brackets_and_headings_between_rules(tmp_path: Path, first: str, second: str) -> None:
    rule = "-" * 15
    text = (
        f"Ida Lind ({first})\nShall we sail?\n\nBo Berg ({second})\nNo.\n\n{rule}\nCHAT MESSAGES\n{rule}\n\n"
        f"Bo Berg ({second})\nhttps://example.org\n\n"
        f"{rule}\nTranscript saved using TranscripTonic Chrome extension\n{rule}"
    )
    found = transcript(tmp_path, "call.txt", text)
    assert [f"{one.speaker} | {one.text}" for one in found.utterances] == [
        "Ida Lind | Shall we sail?", "Bo Berg | No.", "Bo Berg | https://example.org",
    ]  # fmt: skip
    assert found.started is not None
    assert found.started.isoformat()[:16] == "2023-05-23T09:02"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("2023-05-03 09-30-00.srt", "2023-05-03T09:30:00"),
        ("2023-05-03_09-30-00.mkv.srt", "2023-05-03T09:30:00"),
        ("Recording 2023-05-03 at 9.30.00 PM.srt", "2023-05-03T21:30:00"),
        ("20230503T093000Z.json", "2023-05-03T09:30:00"),
        ("VID_20230503_093000123.srt", "2023-05-03T09:30:00"),
        ("Call 2023-05-03 0930.txt", "2023-05-03T09:30:00"),
        ("Weekly at 05-23-2023, 09-02 AM on.txt", "2023-05-23T09:02:00"),
        ("Protokoll 03.05.2023.txt", "2023-05-03T00:00:00"),
        ("2023-05-03 Weekly.md", "2023-05-03T00:00:00"),
        ("report-2019-2023.txt", ""),
        ("invoice 20231399.txt", ""),
    ],
)
def test_a_name_of_a_file_tells_when_its_recording_began(name: str, expected: str) -> None:
    found = in_file_name(name)
    assert (found.isoformat()[:19] if found else "") == expected


def srt(*cues: str) -> str:
    return "".join(
        f"{place}\n00:00:{place:02},000 --> 00:00:{place:02},900\n{cue}\n\n" for place, cue in enumerate(cues)
    )


def test_names_where_the_speaker_changes_go_on(tmp_path: Path) -> None:
    said = srt("Sarah: In this episode,", "we ask why.", "Gillian: Hello.", "Do we need it?", "Sarah: You do.")
    assert [one.partition(" |")[0] for one in heard(tmp_path, "a.srt", said)] == [
        "Sarah",
        "Sarah",
        "Gillian",
        "Gillian",
        "Sarah",
    ]
    odd = srt("IDA: Where?", "On the shelf.", "- Which?\n- This.", "BO: Here.", "Fine.", "IDA: So.")
    assert [one.partition(" |")[0] for one in heard(tmp_path, "a.srt", odd)][1] == "Unknown"


def test_two_named_speakers_in_a_cue(tmp_path: Path) -> None:
    said = srt("-[Ida] Where is it?\n-[Bo] There.", "[Ida] Thanks.", "- (Bo) Lock it.\n- (Ida) I will.")
    assert heard(tmp_path, "a.srt", said) == [
        "Ida | Where is it?", "Bo | There.", "Ida | Thanks.", "Bo | Lock it.", "Ida | I will.",
    ]  # fmt: skip


def test_functions_and_parties_beside_names_on_lines_of_their_own(tmp_path: Path) -> None:
    chair, member = "Przewodniczący poseł Jan Kowalski (KO)", "Poseł Anna Maria Nowak-Wiśniewska (PiS) – spoza komisji"
    said = [(chair, "Otwieram posiedzenie."), (member, "Ile?"), (chair, "Czterdzieści."), (member, "Dziękuję.")]
    text = "\n\n".join(f"{who}:\n{words}" for who, words in said)
    assert heard(tmp_path, "a.txt", text) == [f"{who} | {words}" for who, words in said]


def test_who_speaks_once_has_a_heading_too_where_others_have(tmp_path: Path) -> None:
    text = "Ida Lind\n\n0 minutes 3 seconds\n\nGood.\n\nBo Ek\n\n0 minutes 15 seconds\n\nNo.\n\n"
    assert heard(tmp_path, "t.txt", f"{text}Ida Lind\n\n0 minutes 20 seconds\n\nWhy?\n") == [
        "Ida Lind | Good.",
        "Bo Ek | No.",
        "Ida Lind | Why?",
    ]


def test_wrapped_lines_between_times_name_nobody(tmp_path: Path) -> None:
    text = "[00:00:01] - Ida: Hello and welcome\nto the show today\n[00:00:05] - Bo: Two guests\nfrom the harbour\n"
    assert heard(tmp_path, "t.txt", f"{text}[00:00:09] - Ida: Let us begin.\n") == [
        "Ida | Hello and welcome to the show today",
        "Bo | Two guests from the harbour",
        "Ida | Let us begin.",
    ]


def test_sentences_that_begin_alike_are_all_said(tmp_path: Path) -> None:
    said = ["Ida: I will call the bank", "Ida: I will call the port", "Ida: I will call the yard", "Bo: thanks"]
    assert heard(tmp_path, "t.txt", "\n".join(said)) == [line.replace(": ", " | ") for line in said]


def test_captions_that_roll_and_mark_speakers_keep_the_names_of_a_second_line(tmp_path: Path) -> None:
    cues = ["IDA: good morning\nBO: hello there", "BO: hello there\nCY: how are you", "CY: how are you\n>> IDA: fine"]
    cues.append(">> IDA: fine\nBO: and CY")
    times = [f"00:0{place}.000 --> 00:0{place + 1}.000" for place in range(len(cues))]
    text = "\n\n".join(["WEBVTT", *(f"{time}\n{cue}" for time, cue in zip(times, cues, strict=True))])
    assert heard(tmp_path, "t.vtt", text) == [
        "IDA | good morning",
        "BO | hello there",
        "CY | how are you",
        "IDA | fine",
        "BO | and CY",
    ]
