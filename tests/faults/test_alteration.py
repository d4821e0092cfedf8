"""What a bench or a mutant leaves out of the daemon is left out, or it does not start."""

from __future__ import annotations

import subprocess
import sys

import pytest
from redis.asyncio import Redis

from context_builder.session.store import store
from scripts.alteration import alter_commit, replace
from scripts.benches.programs.unprotected import PARTS
from scripts.campaign.daemon import ROOT

UNPROTECTED = """
from context_builder.clock import Instant
from context_builder.session.messages.message import from_fields
from context_builder.session.store.store import SessionStore
from scripts.benches.programs.unprotected import pop_instead_of_reading, recognize_nothing

pop_instead_of_reading()
recognize_nothing()
print(from_fields({"text": "Yes.", "message_number": 1}, Instant(0.0, 0.0)).identity, SessionStore.next_input.__name__)
"""


def test_what_is_not_there_any_more_cannot_be_replaced() -> None:
    with pytest.raises(AttributeError, match="no_such_thing"):
        replace(sys, "no_such_thing", None)


def test_a_commit_that_lacks_what_is_to_be_altered_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "script", store.script)  # which puts it back afterwards
    alter_commit(PARTS)
    assert "SADD" not in store.script(Redis(), "commit").source
    alter_commit({"no such part": ""})
    with pytest.raises(ValueError, match="no such part"):
        store.script(Redis(), "commit")


@pytest.mark.engines
def test_the_unprotected_daemon_computes_no_identities_and_pops() -> None:
    done = subprocess.run([sys.executable, "-c", UNPROTECTED], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["b'?'", "pop_next"]
