"""Of a recording into which somebody else wrote, what can be followed is shown, and of the rest it is said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from context_builder.errors import RecordingError
from context_builder.recording.library import RecordingLibrary
from context_builder.recording.recording import Recording
from context_builder.recording.replay import rebuild
from context_builder.server.page.views import recordings
from tests.damage import damaged
from tests.recording.written import WrittenRecording

WRONG: Final = (None, 1e300, "x", [], {"x": {}})
KINDS: Final = ("begin", "received", "published", "task_started", "task_finished")


def damages(lines: list[dict[str, Any]], event: str) -> Iterator[tuple[str, bytes]]:
    """Yield recordings whose first line of a kind is damaged, each with what is."""
    at = next(place for place, line in enumerate(lines) if line["event"] == event)
    for place, other in damaged(lines[at], WRONG):
        yield place, b"".join(orjson.dumps(line) + b"\n" for line in (*lines[:at], other, *lines[at + 1 :]))


async def look(folder: Path) -> None:
    """Look at a recording as the page and ``replay`` do."""
    moment = await RecordingLibrary(folder).moment("monday", 10)
    assert moment is not None
    recordings.SeenState.of(moment.state)
    recordings.strip(moment)
    recordings.silence(moment)
    recordings.in_utc(moment.at)


@pytest.mark.parametrize("event", KINDS)
async def test_every_field_of_every_line(tmp_path: Path, event: str) -> None:
    made = WrittenRecording(tmp_path / "monday.jsonl", "monday", buffer_max=4)
    made.say(["The kelp grows.", "The urchins graze.", "The otter sleeps."])
    lines = [orjson.loads(line) for line in made.write().read_bytes().splitlines()]
    failed = []
    for place, content in damages(lines, event):
        made.path.unlink()  # or it would be read on, as one that grew
        made.path.write_bytes(content)
        try:
            await look(tmp_path)
        except RecordingError:
            pass
        except Exception as error:  # noqa: BLE001 of any kind
            failed.append((place, "page", repr(error)))
        try:
            rebuild(Recording(made.path))
        except RecordingError:
            pass
        except Exception as error:  # noqa: BLE001 likewise
            failed.append((place, "replay", repr(error)))
    assert failed == []
