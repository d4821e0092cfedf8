"""A timeline seeks in a recording of any length, and gives what a replay from its beginning does."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from context_builder.errors import RecordingError
from context_builder.recording import library as module
from context_builder.recording.file import find_recording, recordings_in
from context_builder.recording.library import RecordingLibrary, Timeline
from context_builder.recording.recording import Recording
from context_builder.recording.replay import rebuild
from tests.recording.written import START, WrittenRecording

TEXTS = [f"Urchin survey {number} of the northern cove" for number in range(1, 61)]


@pytest.fixture
def written(tmp_path: Path) -> WrittenRecording:
    made = WrittenRecording(tmp_path / "monday.jsonl", "monday", buffer_max=100)
    made.say(TEXTS)
    made.write()
    return made


@pytest.fixture(params=[5, 40, 10_000])
def spacing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(module, "FIRST_SPACING", request.param)
    monkeypatch.setattr(module, "MOST_COPIES", 6)
    return int(request.param)


def test_each_instant_is_what_a_replay_from_the_beginning_gives(written: WrittenRecording, spacing: int) -> None:
    timeline = Timeline(written.path)
    timeline.refresh()
    recording = Recording(written.path)
    for second in (240, 4, 90.5, 91, 200, 8, 239.9, 4):  # there and back again
        found = timeline.seek(START + second)
        assert found.exact
        assert found == rebuild(recording, START + second)


def test_every_state_is_sought_as_it_was_published(written: WrittenRecording, spacing: int) -> None:
    timeline = Timeline(written.path)
    timeline.refresh()
    last = dict(written.states)
    assert {wall: timeline.seek(wall).state for wall in last} == last


def test_before_the_first_state_the_first_one_is_given(written: WrittenRecording) -> None:
    timeline = Timeline(written.path)
    timeline.refresh()
    assert timeline.seek(START - 100).revision == 1


def test_what_is_appended_is_there_when_it_is_asked_for_again(written: WrittenRecording) -> None:
    timeline = Timeline(written.path)
    timeline.refresh()
    assert timeline.span.seconds == 240
    written.say(["One more thing"])
    written.write()
    timeline.refresh()
    assert timeline.span.seconds == 244
    assert b"One more thing" in timeline.seek(START + 244).state
    with written.path.open("ab") as file:
        file.write(b'{"event":"received","run":"')
    timeline.refresh()
    assert timeline.seek(START + 999).exact


def test_another_file_of_the_name_is_read_anew(written: WrittenRecording) -> None:
    timeline = Timeline(written.path)
    timeline.refresh()
    written.path.unlink()  # the next file may well get its number
    other = WrittenRecording(written.path, "monday")
    other.say(["Something else"])
    other.write()
    timeline.refresh()
    assert b"Something else" in timeline.seek(START + 4).state
    assert timeline.span.seconds == 4


def test_what_cannot_be_followed_is_shown_up_to_there(written: WrittenRecording) -> None:
    lines = written.path.read_bytes().splitlines(keepends=True)
    broken = orjson.loads(lines[40]) | {"event": "task_finished", "task": 999, "result": None}
    written.path.write_bytes(b"".join([*lines[:40], orjson.dumps(broken), b"\n", *lines[40:]]))
    timeline = Timeline(written.path)
    timeline.refresh()
    assert timeline.stopped.startswith("line 41 does not follow")
    assert timeline.seek(START + 999).exact


def test_a_file_that_is_no_recording_is_said_to_be_none(tmp_path: Path) -> None:
    path = tmp_path / "monday.jsonl"
    path.write_text("hello\n")
    with pytest.raises(RecordingError, match=r"^monday\.jsonl: is not a recording"):
        Timeline(path).refresh()


def test_a_folder_lists_files_of_sessions_and_no_links(tmp_path: Path, written: WrittenRecording) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.jsonl").write_text("secret\n")
    folder = tmp_path / "recordings"
    folder.mkdir()
    written.path.rename(folder / "monday.jsonl")
    (folder / "linked.jsonl").symlink_to(outside / "secret.jsonl")
    (folder / "no session.jsonl").write_text("x")
    (folder / "sub.jsonl").mkdir()
    assert [one.session_id for one in recordings_in(folder)] == ["monday"]
    for name in ("linked", "../outside/secret", "..", "", "monday.jsonl", "/etc/passwd"):
        assert find_recording(folder, name) is None
    assert recordings_in(tmp_path / "none") == []


def test_a_recording_that_became_a_link_is_not_followed(tmp_path: Path, written: WrittenRecording) -> None:
    timeline = Timeline(written.path)
    elsewhere = written.path.rename(tmp_path / "elsewhere.jsonl")
    written.path.symlink_to(elsewhere)
    with pytest.raises(RecordingError, match="cannot be read"):
        timeline.refresh()


async def test_a_library_steps_from_message_to_message(written: WrittenRecording) -> None:
    library = RecordingLibrary(written.path.parent)
    moment = await library.moment("monday", 0)
    assert moment is not None
    seen = []
    while moment is not None and moment.after is not None:
        moment = await library.moment("monday", moment.after / 10)
        assert moment is not None
        seen.append(moment.state["received_messages"])
    assert seen == list(range(1, 61))
    while moment.before is not None:
        moment = await library.moment("monday", moment.before / 10)
        assert moment is not None
    assert moment.state["received_messages"] == 1
    assert sum(moment.talk) == 60
    assert moment.summaries


async def test_a_recording_that_is_deleted_is_gone(written: WrittenRecording) -> None:
    library = RecordingLibrary(written.path.parent)
    assert await library.moment("monday", 10) is not None
    written.path.unlink()
    assert await library.moment("monday", 10) is None
