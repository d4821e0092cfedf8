"""A recording is private, and nothing that becomes of it touches the session."""

from __future__ import annotations

import threading
from pathlib import Path

import orjson
import pytest
from structlog.testing import capture_logs

from context_builder.clock import Instant
from context_builder.errors import RecordingError
from context_builder.recording import file as writing
from context_builder.recording.file import FileRecorder, RecordingWriter
from context_builder.recording.recording import Recording
from context_builder.session.config import SessionConfig
from context_builder.session.events import DeliveriesRejected
from context_builder.session.store.recovery import StoredSession
from tests.recording.witness import Recorded
from tests.services.waiting import wait_until

NOW = Instant(1_700_000_000.0, 1_000.0)


def begun(writer: RecordingWriter, path: Path, session_id: str = "monday") -> FileRecorder:
    recorder = FileRecorder(writer, path, "estimate")
    recorder.begin(session_id, SessionConfig(), StoredSession(0, {}, 0), NOW)
    return recorder


async def told(path: Path, session_id: str = "monday") -> str:
    """Record into ``path``; the warning about it."""
    writer = RecordingWriter()
    with capture_logs() as logs:
        recorder = begun(writer, path, session_id)
        for _ in range(3):
            recorder.happened(DeliveriesRejected(1), NOW)
        recorder.end()
        await writer.close()
    [warning] = [entry for entry in logs if entry["event"] == "recording.stopped"]
    assert warning["log_level"] == "warning"
    assert warning["file"] == str(path)
    return str(warning["reason"])


async def test_only_its_owner_can_read_a_recording(tmp_path: Path) -> None:
    writer = RecordingWriter()
    begun(writer, tmp_path / "new" / "monday.jsonl").end()
    await writer.close()
    assert (tmp_path / "new" / "monday.jsonl").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


async def test_what_happened_is_in_the_file_within_a_second(tmp_path: Path) -> None:
    writer, path = RecordingWriter(), tmp_path / "monday.jsonl"
    begun(writer, path).happened(DeliveriesRejected(2), NOW)
    await wait_until(
        lambda: path.exists() and b'"deliveries_rejected"' in path.read_bytes(), "it is flushed", timeout=3
    )
    await writer.close()


async def test_what_cannot_be_written_to_is_told_once(tmp_path: Path) -> None:
    assert await told(tmp_path) == "Is a directory"
    assert await told(Path("/dev/full")) == "No space left on device"
    (tmp_path / "file").touch()
    assert await told(tmp_path / "file" / "monday.jsonl") in ("Not a directory", "File exists")


async def test_another_file_is_never_appended_to(tmp_path: Path) -> None:
    notes, tuesday = tmp_path / "notes.txt", tmp_path / "tuesday.jsonl"
    notes.write_text("Do not forget the milk\n")
    assert await told(notes) == "already exists, and is not a recording of a session"
    assert notes.read_text() == "Do not forget the milk\n"
    writer = RecordingWriter()
    begun(writer, tuesday, "tuesday").end()
    await writer.close()
    assert await told(tuesday) == "already exists, as a recording of session tuesday"


async def test_a_disk_that_is_too_slow_ends_the_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "MOST_WAITING", 2)
    writer, disk = RecordingWriter(), threading.Event()

    def stalled() -> bytes:
        disk.wait(5)
        return b""

    with capture_logs() as logs:
        recorder = begun(writer, tmp_path / "monday.jsonl")
        assert recorder._file is not None
        writer.put(recorder._file, stalled)
        for _ in range(6):
            recorder.happened(DeliveriesRejected(1), NOW)
        disk.set()
        await writer.close()
    assert [entry["reason"] for entry in logs] == ["the disk is too slow: 2 lines wait"]


async def test_why_a_line_cannot_be_written_down_is_logged_without_what_was_said(tmp_path: Path) -> None:
    def failing() -> bytes:
        raise ValueError("the patient is called Ida")

    writer = RecordingWriter()
    with capture_logs() as logs:
        recorder = begun(writer, tmp_path / "monday.jsonl")
        assert recorder._file is not None
        writer.put(recorder._file, failing)
        await writer.close()
    (logged,) = logs
    assert logged["reason"].startswith("cannot be written down: ValueError in test_file.py")


@pytest.mark.engines
async def test_a_session_goes_on_although_its_recording_cannot(live: Recorded) -> None:
    live.path = Path("/dev/full")
    with capture_logs() as logs:
        session = await live.start()
        await wait_until(lambda: any(e["event"] == "recording.stopped" for e in logs), "it is told")
    await live.say(1, 2, 3)
    await live.shows(1, 2, 3)
    await live.stop(session)


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "monday.jsonl"
    with pytest.raises(RecordingError, match="cannot be read: No such file"):
        list(Recording(path).lines())
    path.write_bytes(b'{"speaker": "Ida", "text": "Hello"}\n\xff\n[]\n')
    with pytest.raises(RecordingError, match="is not a recording"):
        list(Recording(path).lines())
    begin = {"event": "begin", "run": "1", "at": [1, 2], "schema": 2, "version": "9.0"}
    path.write_bytes(orjson.dumps(begin))
    with pytest.raises(RecordingError, match=r"newer version, 9\.0; upgrade"):
        list(Recording(path).lines())
