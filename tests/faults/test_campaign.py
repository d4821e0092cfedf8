"""The campaign proves the real daemon right in a short run, and each mutant wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from scripts.campaign.daemon import ROOT

pytestmark = [pytest.mark.engines, pytest.mark.slow]


def campaign(*options: str) -> tuple[int, dict[str, Any]]:
    """Its exit status and its result."""
    command = [sys.executable, "-m", "scripts.campaign", "--json", "--lanes", "2", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=110)
    return done.returncode, json.loads(done.stdout or "{}") or {"failed": done.stderr}


def test_a_short_campaign_finds_nothing_lost_and_nothing_doubled() -> None:
    status, result = campaign("--kills", "24", "--messages-per-kill", "60", "--seed", "3")
    assert (result["lost"], result["doubled"], result["wrong"], status) == ([], [], [], 0)
    assert result["kills"] >= 24
    assert result["acknowledged"] >= 24 * 60


@pytest.mark.parametrize(
    ("mutation", "fault", "found"),
    [
        ("acknowledge-before-commit", "kill while Redis stalls", "lost"),
        ("skip-the-fence", "taken over", "lost"),
        ("forget-identities", "kill", "doubled"),
        ("ask-about-nothing", "kill", "doubled"),
    ],
)
def test_a_mutant_is_found_out(mutation: str, fault: str, found: str) -> None:
    status, result = campaign("--mutation", mutation, "--only", fault, "--minutes", "0.7", "--seed", "2")
    assert status == 1
    assert result[found]
