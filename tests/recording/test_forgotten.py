"""A forgotten session's recording is deleted by who runs it, wherever that is; where others are is known."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from redis.asyncio import Redis

from context_builder.errors import LeaseLost
from context_builder.recording.file import FileRecorder, RecordingWriter, file_name, place_of, recordings_in
from context_builder.session.config import SessionConfig
from context_builder.session.session import Session
from context_builder.session.store.registry import SessionRegistry
from tests.services.running import parts_of, push
from tests.services.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.engines


async def test_its_owner_deletes_it(redis: Redis, tmp_path: Path) -> None:
    path, writer, registry = tmp_path / file_name("monday"), RecordingWriter(), SessionRegistry(redis)
    recorder = FileRecorder(writer, path, "words")
    session = Session(redis, "monday", SessionConfig(tick=0.05), parts_of(), recorder)
    task = asyncio.create_task(session.serve())
    await push(redis, {"text": "Hello.", "speaker": "Ann", "message_number": 1})
    await wait_until(path.exists, "it is recorded")
    assert await registry.recordings("monday") == {place_of(path)}
    await registry.forget("monday")
    with pytest.raises(LeaseLost, match="forgotten"):
        await asyncio.wait_for(task, PATIENCE)
    await wait_until(lambda: not path.exists(), "the recording is gone")
    assert await registry.recordings("monday") == set()
    await writer.close()
    assert not path.exists()


@pytest.mark.parametrize("session_id", ["monday", "room:42", "ann@acme", "café", "वर्ग"])
def test_a_recording_is_found_by_any_id_that_a_session_can_have(tmp_path: Path, session_id: str) -> None:
    path = tmp_path / file_name(session_id)
    path.touch()
    assert path.name.isascii()
    assert [one.session_id for one in recordings_in(tmp_path)] == [session_id]


def test_a_file_that_is_not_named_as_we_do_is_left_out(tmp_path: Path) -> None:
    for name in ("room:42", "a%2Fb", "caf%C3%A9 ", "%6Donday", "%FF"):
        (tmp_path / f"{name}.jsonl").touch()
    assert recordings_in(tmp_path) == []
