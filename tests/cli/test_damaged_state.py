"""The terminal shows a session whatever somebody wrote into what it publishes."""

from __future__ import annotations

import io
from typing import Any, Final

import orjson
import pytest
from rich.console import Console

from context_builder.cli.sessions import _print, concerns
from context_builder.cli.view.screen import render
from context_builder.session.conversation.state import write_head
from context_builder.session.servers import SessionsFound
from context_builder.session.store.registry import _registered
from context_builder.session.stored import CONVERSATION, OWNER, STATE
from context_builder.testing import ManualClock
from tests.cli.samples import NOW, sample, sample_conversation, sample_state
from tests.damage import damaged
from tests.session.conversation.test_state import lively

WRONG: Final = ("x\x00", 1e300, [[]])
OWNED: Final = {"token": 7, "host": "field-station", "pid": 4123, "since": NOW - 252}


@pytest.mark.parametrize(
    ("part", "shape", "whole"),
    [("state", STATE, sample_state()), ("conversation", CONVERSATION, sample_conversation()), ("owner", OWNER, OWNED)],
    ids=["state", "conversation", "owner"],
)
def test_the_live_view_shows_what_is_damaged(part: str, shape: Any, whole: dict[str, Any]) -> None:
    console = Console(file=io.StringIO(), width=100, height=20)
    failed = []
    for place, broken in damaged(whole, WRONG):
        try:
            console.print(render(sample(**{part: shape.read(orjson.dumps(broken))}), NOW, (100, 20)))
        except Exception as error:  # noqa: BLE001 which is what must not be
            failed.append((place, repr(error)))
    assert failed == []


def test_the_list_of_sessions_shows_damaged_ones() -> None:
    clock = ManualClock()
    head = orjson.loads(write_head(lively(clock)))
    listed = []
    for _, broken in damaged(head):
        look = (orjson.dumps(OWNED), [orjson.dumps(broken), b"x", b"\xff"], 0, 0, 0, 0)
        listed.append(_registered("monday", NOW, look))
    assert len(listed) > 500
    _print(listed)
    assert not [line for line in concerns(SessionsFound(listed, [], {})) if "stands still" in line]
