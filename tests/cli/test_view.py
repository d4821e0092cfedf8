"""What the live view shows of fixed snapshots."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from context_builder.cli.view.conversation import Scrollback
from context_builder.cli.view.screen import View, export_svg, render
from context_builder.cli.view.status import counted, duration
from context_builder.session.client import Ended, Snapshot
from tests.cli.samples import NOW, entries, sample, sample_conversation, sample_state

SIZES = [(132, 36), (100, 16), (80, 24), (60, 16), (40, 10), (20, 5)]


def shown(snapshot: Snapshot, now: float = NOW, size: tuple[int, int] = (132, 36), view: View | None = None) -> str:
    width, height = size
    console = Console(file=io.StringIO(), record=True, width=width, height=height, force_terminal=True)
    console.print(render(snapshot, now, size, view))
    return console.export_text()


@pytest.mark.parametrize("size", SIZES)
def test_it_fits_every_terminal(size: tuple[int, int]) -> None:
    lines = shown(sample(), size=size).rstrip("\n").split("\n")
    assert len(lines) <= size[1]
    assert max(len(line) for line in lines) <= size[0]


def test_a_wide_terminal_shows_everything() -> None:
    text = shown(sample(waiting=3), view=View(per_minute=41.6))
    for expected in (
        "point-arlen", "field-station:4123", "speaking", "1.6 s ago", "Barnacle", "10:36:10", "Jonas",
        "✦ Consilience", "● Machine Learning", "domain shift", "88%", "Ecology", "46%",
        "training data · recall", "✓ decision", "→ action",
        "? question", "≠ disagreement", "29 messages in 7 points", "messages 43", "per minute 42", "queued 3",
        "summaries 3", "dead letters 0", "published 0.3 s ago", "analyst text",
    ):  # fmt: skip
        assert expected in text


@pytest.mark.parametrize("size", [(60, 16), (60, 20), (80, 24)])
def test_a_small_terminal_shows_the_newest_and_what_it_is_about(size: tuple[int, int]) -> None:
    text = shown(sample(), size=size)
    for expected in (
        "point-arlen",
        "speaking",
        "Jonas",
        "Machine Learning 88%",
        "messages 43",
        "29 messages in 7 points",
    ):
        assert expected in text


@pytest.mark.parametrize("size", [(60, 20), (110, 12), (40, 10)])
def test_where_there_is_no_room_for_the_memory_a_line_of_it_is_left(size: tuple[int, int]) -> None:
    [line] = [line for line in shown(sample(), size=size).splitlines() if "memory" in line]
    assert line.startswith(" memory 29 messages in 7 points")
    assert "memory: nothing summarized yet" in shown(sample(state=sample_state(rolling_summary={})), size=size)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_where_there_is_room_the_memory_has_a_frame(size: tuple[int, int]) -> None:
    assert "─ memory ─" in shown(sample(), size=size)


def test_what_has_left_the_buffer_stays_on_the_screen_while_there_is_room() -> None:
    scrollback = Scrollback()
    scrollback.look(entries(30, 43))
    scrollback.look(entries(42, 44))
    view = View(earlier=tuple(scrollback.earlier))
    text = shown(sample(state=sample_state(raw_recent_buffer=entries(42, 44))), view=view)
    assert text.count("my turn?") == 1
    assert "evaluation protocol" in text
    assert "2 in the buffer, dimmed ones are summarized" in text


def test_an_empty_buffer_is_told() -> None:
    assert "nothing in the buffer" in shown(sample(state=sample_state(raw_recent_buffer=[])))


def test_silence_is_told_from_speech() -> None:
    silent = sample(conversation=sample_conversation(silence=True))
    assert "silent for 9.6 s" in shown(silent, NOW + 8)
    assert "silent for 10:01" in shown(silent, NOW + 600)


def test_a_session_that_nobody_runs_is_told_with_the_age_of_its_state() -> None:
    text = shown(sample(owner=None, conversation=None), NOW + 500)
    assert "no daemon runs it; state is 8:20 old" in text
    assert "last heard 8:21 ago" in text


@pytest.mark.parametrize(("text", "named"), [("Forty metres.", 1), ("Ida: How deep? – Kai: Forty metres.", 0)])
def test_who_speaks_in_an_exchange_is_named_once(text: str, named: int) -> None:
    summary = {"points": [{"id": 1, "text": text, "kind": "claim", "speakers": ["Ida", "Kai"]}]}
    assert shown(sample(state=sample_state(rolling_summary=summary))).count("Ida, Kai") == named


def test_a_summary_that_fails_is_told_with_the_reason() -> None:
    failing = {"summary": {"since": NOW, "tries": 3, "reason": "Incorrect API key provided", "tokens": 0}}
    assert "summary fails: Incorrect API key provided" in shown(
        sample(state=sample_state(failing=failing)), size=(80, 24)
    )


def test_a_session_that_has_ended_is_told_with_what_is_archived() -> None:
    over: dict[str, Any] = {"owner": None, "conversation": None, "ended": Ended(NOW, 43, 3, 0)}
    for size in ((60, 16), (100, 24), (132, 36)):
        text = shown(sample(**over), NOW + 500, size)
        assert "■ ended 10:36, 3 summaries archived" in text
        assert "no daemon" not in text
    assert "■ ended 2025-10-02 10:36" in shown(sample(**over), NOW + 86_400)
    assert "2 summaries archived, 1 to be" in shown(sample(**over | {"ended": Ended(NOW, 43, 3, 1)}), NOW)


def test_a_session_that_has_ended_is_told_when_its_state_has_expired() -> None:
    text = " ".join(shown(Snapshot("monday", ended=Ended(NOW, 43, 3, 0)), NOW + 86_400).split())
    assert "It ended 2025-10-02 10:36: 43 messages, 3 summaries archived. Open it again with" in text


def test_an_owner_that_stopped_publishing_is_told() -> None:
    assert "field-station:4123 does not answer" in shown(sample(conversation=None))


def test_an_unknown_session_says_how_to_start_it() -> None:
    text = shown(Snapshot("monday", waiting=2), size=(60, 16))
    assert "publishes nothing" in text
    assert "context-builder run monday" in text
    assert "2 messages wait" in text
    starting = shown(Snapshot("monday", owner={"host": "here", "pid": 7}))
    assert "It starts: ● here:7" in starting


def test_a_notice_takes_the_place_of_the_owner() -> None:
    view = View(notice="Redis: connection refused")
    assert "Redis: connection refused" in shown(sample(), view=view)
    assert "Redis: connection refused" in shown(Snapshot("monday"), view=view)


@pytest.mark.parametrize("size", SIZES)
def test_a_huge_message_leaves_room_for_the_others(size: tuple[int, int]) -> None:
    buffer = entries(30, 43)
    buffer[-1]["text"] = "word " * 200_000
    text = shown(sample(state=sample_state(raw_recent_buffer=buffer)), size=size)
    assert text.count("word") < 150
    if size[1] >= 16:
        assert "…" in text
        assert "repository" in text


def test_text_is_never_markup_nor_an_escape() -> None:
    buffer = entries(42, 43)
    buffer[0] |= {"speaker": "[red]Eve", "text": "[bold]x[/bold] \x1b[2J\x07 [/]", "keywords": ["[link=x]k"]}
    text = shown(sample(state=sample_state(raw_recent_buffer=buffer, current_keywords=["[/oops]"])))
    for expected in ("[red]Eve", "[bold]x[/bold] [/]", "[link=x]k", "[/oops]"):
        assert expected in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"raw_recent_buffer": [None, {}, {"timestamp": 7, "text": None, "keywords": "x", "domains": {"a": 1}}]},
        {
            "rolling_summary": "none",
            "current_domains": ["Alchemy / Magic"],
            "domain_confidence": {"Alchemy / Magic": 9},
        },
        {"rolling_summary": {"text": "old\nform"}, "analyst": {"keywords": None}, "last_message_time": "noon"},
        {"raw_recent_buffer": [{"text": "t", "timestamp": "", "buffer_entry_time": 1e300}], "updated_at": True},
    ],
)
@pytest.mark.parametrize("size", SIZES)
def test_whatever_is_published_can_be_drawn(state: dict[str, Any], size: tuple[int, int]) -> None:
    assert shown(Snapshot("x", state=state, conversation={}, owner={}), size=size)


def test_speakers_keep_their_colours_and_differ() -> None:
    colours = View().colours
    first = {name: colours[name] for name in ("Ines", "Kai", "Tomasz", "Jonas", "Amara")}
    assert len(set(first.values())) == 5
    assert {name: colours[name] for name in reversed(first)} == first


def test_a_picture_can_be_made(tmp_path: Path) -> None:
    export_svg(sample(), NOW, tmp_path / "watch.svg")
    picture = (tmp_path / "watch.svg").read_text(encoding="utf-8")
    assert picture.startswith("<svg")
    assert "Barnacle" in picture


@pytest.mark.parametrize(
    ("seconds", "told"), [(0.44, "0.4 s"), (12.3, "12 s"), (185, "3:05"), (3723, "1:02:03"), (200_000, "2 days")]
)
def test_durations_read_naturally(seconds: float, told: str) -> None:
    assert duration(seconds) == told


@pytest.mark.parametrize(
    ("count", "noun", "told"),
    [
        (0, "message", "0 messages"),
        (1, "summary", "1 summary"),
        (1200, "summary", "1,200 summaries"),
        (4, "key", "4 keys"),
    ],
)
def test_what_is_counted_reads_naturally(count: int, noun: str, told: str) -> None:
    assert counted(count, noun) == told
