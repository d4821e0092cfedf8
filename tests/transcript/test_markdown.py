"""Notes in Markdown, as meeting tools, scripts and pages of models write them around what was said."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from context_builder.transcript.formats.markdown import transcript_in, unmarked
from tests.growth import is_linear
from tests.transcript.reading import heard, transcript


@pytest.mark.parametrize(
    "text",
    [
        "**Ida Lind | 00:13**\nShall we\nsail?\n\n**Bo Berg | 01:11**\nNo.\n",
        "**Ida Lind** _[00:00:13]_\n\nShall we sail?\n\n**Bo Berg** _[00:01:11]_\n\nNo.\n",
        "**Ida Lind** · [00:13 – 00:15]\n\nShall we sail?\n\n**Bo Berg** · [01:11 – 01:13]\n\nNo.\n",
        "- [00:13 – 00:15] **Ida Lind**: Shall we sail?\n- [01:11 – 01:13] **Bo Berg**: No.\n",
        "**Ida Lind** *(00:13)*: Shall we sail?\n**Bo Berg** *(01:11)*: No.\n",
        "**Ida Lind:** [00:00:13] Shall we sail?\n\n**Bo Berg:** [00:01:11] No.\n",
        "### Ida Lind (00:13)\n\nShall we sail?\n\n### Bo Berg (01:11)\n\nNo.\n",
        "[00:13](javascript:show(13);) Ida Lind: Shall we sail?\n\n[01:11](javascript:show(71);) Bo Berg: No.\n",
        "Ida Lind | 00:13 - 00:15\nShall we sail?\n\nBo Berg | 01:11 - 01:13\nNo.\n",
        "[Ida Lind] (00:13)\nShall we sail?\n\n[Bo Berg] (01:11)\nNo.\n",
        "[Ida Lind] 00:00:13 → 00:00:15\nShall we sail?\n\n[Bo Berg] 00:01:11 → 00:01:13\nNo.\n",
        "[Ida Lind] 00:13 - Shall we sail?\n[Bo Berg] 01:11 - No.\n",
        "[00:00:13 - Ida Lind] Shall we sail?\n[00:01:11 - Bo Berg] No.\n",
        "**[00:00:13 - Ida Lind]** Shall we sail?\n\n**[00:01:11 - Bo Berg]** No.\n",
        "### Ida Lind — 00:13\nShall we sail?\n\n### Bo Berg — 01:11\nNo.\n",
        "*Ida Lind* (00:13): Shall we sail?\n\n*Bo Berg* (01:11): No.\n",
        "Ida Lind 00:13: Shall we sail?\nBo Berg 01:11: No.\n",
        "Ida Lind at 00:13: Shall we sail?\nBo Berg at 01:11: No.\n",
        "Ida Lind @ 00:13\nShall we sail?\n\nBo Berg @ 01:11\nNo.\n",
        "Ida Lind|00:13|Shall we sail?\nBo Berg|01:11|No.\n",
        "00:13 - 00:15\nIda Lind: Shall we sail?\n\n01:11 - 01:13\nBo Berg: No.\n",
        "Ida Lind:\n[00:13] Shall we sail?\n\nBo Berg:\n[01:11] No.\n",
        "**Ida Lind**\n*00:13*\n\nShall we sail?\n\n**Bo Berg**\n*01:11*\n\nNo.\n",
        "__Ida Lind__ (00:13): Shall we sail?\n\n__Bo Berg__ (01:11): No.\n",
        "🗣️ **Ida Lind** [00:13]: Shall we sail?\n🗣️ **Bo Berg** [01:11]: No.\n",
    ],
)
def test_who_and_when_in_marks_of_any_kind(tmp_path: Path, text: str) -> None:
    told = transcript(tmp_path, "talk.md", text).utterances
    assert [(one.speaker, one.text, one.at) for one in told] == [
        ("Ida Lind", "Shall we sail?", 13), ("Bo Berg", "No.", 71),
    ]  # fmt: skip


def test_a_transcript_within_a_note(tmp_path: Path) -> None:
    text = (
        "---\ntitle: Crossing\ndate: 2026-05-14\nspeakers:\n- name: Ida\n---\n\n# Crossing\n\n## Summary\n\n"
        "- Bo's idea: sail on Monday\n\n## Full transcript\n\nIda: Shall we sail?\n\nBo: No.\n\n---\n\n"
        "## Metadata\n\n- **meeting_time**: 15:01\n- **owner**: Ida\n"
    )
    told = transcript(tmp_path, "note.md", text)
    assert [(one.speaker, one.text) for one in told.utterances] == [("Ida", "Shall we sail?"), ("Bo", "No.")]
    assert told.started is not None
    assert told.started.astimezone(UTC).date() in {datetime(2026, 5, 13).date(), datetime(2026, 5, 14).date()}
    assert told.notes == ("13 lines around the transcript not read",)


def test_headings_below_that_of_a_transcript_are_part_of_it(tmp_path: Path) -> None:
    text = (
        "# **📝 Notes**\n\n* **Sails**: Ida has them ([00:00:50](#00:00:50)).\n\n# **📖 Transcript**\n\nMay 14, 2026\n"
        "\n## **Crossing \\- Transcript**\n\n### **00:00:50**\n\n**Ida:** Shall we sail?\n\n**Bo:** No.\n\n"
        "### **Transcription ended after 01:27:23**\n\n*This editable transcript was computer generated.*\n"
    )
    assert heard(tmp_path, "note.md", text) == ["Ida | Shall we sail?", "Bo | No."]


@pytest.mark.parametrize("marks", ["", "### ", "###### "])
def test_what_is_copied_of_a_model_s_page(tmp_path: Path, marks: str) -> None:
    text = "".join(
        f"{marks}{who} said:\n\n{said}\n\n" for who, said in (("You", "When is high tide?"), ("ChatGPT", "At nine."))
    )
    assert heard(tmp_path, "page.md", text) == ["You | When is high tide?", "ChatGPT | At nine."]


def test_a_chat_with_an_agent_is_read_without_what_it_thinks(tmp_path: Path) -> None:
    text = (
        "# Tides (2025-12-02 12:49Z)\n\n_**User (2025-12-02 12:49Z)**_\n\nWhen is high tide?\n\n---\n\n"
        "_**Agent (model m, mode Agent)**_\n\n<think><details><summary>Thought Process</summary>\nLook it up.\n"
        "</details></think>\n\n---\n\nAt nine.\n\n---\n\n_**User (2025-12-02 12:50Z)**_\n\nThanks.\n"
    )
    assert heard(tmp_path, "chat.md", text) == ["User | When is high tide?", "Agent | At nine.", "User | Thanks."]


@pytest.mark.parametrize(
    "text",
    [
        "# Crossing\n\n| Time | Speaker | Text |\n|---|---|---|\n"
        "| 0:13 | Ida | Shall we \\| sail? |\n| 1:11 | Bo | No. |\n",
        "- Model: `large`\n\n| Time | Turn | Role | Speaker | Transcript |\n| --- | --- | --- | --- | --- |\n"
        "| 00:00:13 → 00:00:15 | 1 | guest | Ida | Shall we \\| sail? |\n"
        "| 00:01:11 → 00:01:13 | 2 | host | Bo | No. |\n\nEnd.\n",
        "Time | Speaker | Transcription\n00:00:13 | Ida | Shall we \\| sail?\n00:01:11 | Bo | No.\n",
    ],
)
def test_a_table_within_a_note_and_one_with_bars(tmp_path: Path, text: str) -> None:
    told = transcript(tmp_path, "talk.md", text).utterances
    assert [(one.speaker, one.text, one.at) for one in told] == [("Ida", "Shall we | sail?", 13), ("Bo", "No.", 71)]


@pytest.mark.parametrize("heading", ["# Crossing, 2026-04-03 10:00", "---\ncreated_at: 2026-04-03T10:00:00\n---"])
def test_times_of_the_day_are_not_counted_from_when_it_began(tmp_path: Path, heading: str) -> None:
    text = f"{heading}\n\n**Ida** `10:00:05`\nShall we sail?\n\n**Bo** `10:00:09`\nNo.\n"
    found = transcript(tmp_path, "talk.md", text)
    moments = [moment for one in found.utterances if (moment := found.said_at(one)) is not None]
    assert [moment.strftime("%Y-%m-%d %H:%M:%S") for moment in moments] == [
        "2026-04-03 10:00:05", "2026-04-03 10:00:09",
    ]  # fmt: skip


def test_headings_with_times_are_names_where_some_comes_again(tmp_path: Path) -> None:
    text = "### 0:03 - Ida\nShall we sail?\n\n### 0:09 - Bo\nNo.\n\n### 0:12 - Ida\nFine.\n"
    assert heard(tmp_path, "talk.md", text) == ["Ida | Shall we sail?", "Bo | No.", "Ida | Fine."]
    chapters = "### 0:03 - Tides\nIda: They rise.\n\n### 0:09 - Seals\nBo: They sleep.\nIda: Where?\n"
    assert heard(tmp_path, "talk.md", chapters) == ["Ida | They rise.", "Bo | They sleep.", "Ida | Where?"]


def test_what_has_no_label_below_a_heading_is_not_said_by_who_spoke_before(tmp_path: Path) -> None:
    text = (
        "# Tides\n\nIda: Shall we sail?\n\nBo: No.\n\n### Conclusion\n\nThey stay.\n\n### Next\n\nIda: So?\n\nBo: Go.\n"
    )
    found = transcript(tmp_path, "minutes.md", text)
    assert [f"{one.speaker} | {one.text}" for one in found.utterances] == [
        "Ida | Shall we sail?", "Bo | No.", "Unknown | They stay.", "Ida | So?", "Bo | Go.",
    ]  # fmt: skip
    assert found.notes == ("1 line above the first speaker not read", "2 headings between what was said not read")


def test_headings_that_a_model_writes_are_part_of_its_answer(tmp_path: Path) -> None:
    text = "User: Why?\n\nAssistant: For two reasons.\n\n## First\n\nIt rains.\n\nUser: And?\n\nAssistant: It blows.\n"
    assert heard(tmp_path, "chat.md", text) == [
        "User | Why?", "Assistant | For two reasons. ## First It rains.", "User | And?", "Assistant | It blows.",
    ]  # fmt: skip


def test_a_transcript_that_a_model_writes_is_part_of_its_answer(tmp_path: Path) -> None:
    text = "User: What did they say?\n\nAssistant: This.\n\n## Transcript\n\nShall we sail?\nNo.\n\nUser: Thanks.\n"
    text += "\nAssistant: Good.\n"
    assert heard(tmp_path, "chat.md", text) == [
        "User | What did they say?", "Assistant | This. ## Transcript Shall we sail? No.", "User | Thanks.",
        "Assistant | Good.",
    ]  # fmt: skip


def test_the_first_of_records_between_rules_is_no_yaml_above_a_note(tmp_path: Path) -> None:
    text = "---\nName: Ida\nText: Shall we sail?\n---\nName: Bo\nText: No.\n---\nName: Ida\nText: Fine.\n"
    assert heard(tmp_path, "talk.md", text) == ["Ida | Shall we sail?", "Bo | No.", "Ida | Fine."]


@pytest.mark.parametrize("bullet", ["-", "*", "•"])
def test_labels_in_a_list(tmp_path: Path, bullet: str) -> None:
    text = f"{bullet} Ida: Shall we sail?\n{bullet} Bo: No.\n"
    assert heard(tmp_path, "talk.md", text) == ["Ida | Shall we sail?", "Bo | No."]


def test_where_nobody_was_named_in_a_call_it_is_said_all_the_same(tmp_path: Path) -> None:
    text = "@0:00 -\nShall we sail?\n\n@0:13 - Bo Berg\nNo.\n\n@0:15 - Ida Lind\nFine.\n"
    assert heard(tmp_path, "call.txt", text) == ["Unknown | Shall we sail?", "Bo Berg | No.", "Ida Lind | Fine."]


@pytest.mark.parametrize("repeated", ["a ", "**a ", "_**", "[0:13](", "# transcript ", "**a** 0:13 - ", "\n# a"])
@pytest.mark.parametrize("before", ["", "---\n"])
def test_what_is_never_closed_takes_time_in_proportion_to_its_length(before: str, repeated: str) -> None:
    assert is_linear(lambda text: unmarked(transcript_in(text)[1]), repeated, before=before, most=16_000)


def test_one_who_speaks_once_does_not_end_the_transcript_of_a_note() -> None:
    said = ("## Transcript", "## Ida", "Hello there.", "## Bo", "Hi.", "## Cy", "One thing.", "## Ida", "Bye.", "## Bo")
    around, text = transcript_in("\n\n".join((*said, "Bye.", "## Tasks", "None.")))
    assert "One thing." in text
    assert around == ["## Transcript", "## Tasks", "None."]


def test_what_is_said_between_two_rules_is_no_yaml() -> None:
    text = "---\nIda: We need paint.\nBo: Two cans.\n---\nIda: Three.\nBo: Four.\n"
    assert transcript_in(text) == ([], text)
    assert transcript_in("---\ntitle: Paint\n---\nIda: Three.\nBo: Four.\n")[0] == ["---", "title: Paint", "---"]


def test_a_transcript_of_several_parts(tmp_path: Path) -> None:
    text = (
        "# Transcript\n\nIda: Shall we sail?\nBo: Not in this wind.\n\n# Part two\n\nIda: Then at noon.\nBo: Yes.\n\n"
        "# Tasks\n\n- Ida: call the port\n- Bo: buy ropes\n"
    )
    assert heard(tmp_path, "a.md", text) == [
        "Ida | Shall we sail?",
        "Bo | Not in this wind.",
        "Ida | Then at noon.",
        "Bo | Yes.",
    ]
