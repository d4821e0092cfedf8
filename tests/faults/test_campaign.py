"""The campaign proves the real daemon right in a short run, and each mutant wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import date
from typing import Any

import pytest

from scripts.campaign.daemon import ROOT
from scripts.campaign.mutant import MUTATIONS

pytestmark = [pytest.mark.engines, pytest.mark.slow, pytest.mark.long]


def campaign(*options: str) -> tuple[int, dict[str, Any]]:
    """Its exit status and its result."""
    command = [sys.executable, "-m", "scripts.campaign", "--json", "--lanes", "2", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=220)
    return done.returncode, json.loads(done.stdout or "{}") or {"failed": done.stderr}


@pytest.mark.timeout(240)
def test_a_short_campaign_finds_nothing_lost_and_nothing_doubled() -> None:
    status, result = campaign("--kills", "12", "--messages-per-kill", "60", "--seed", "3")
    assert [result[kind] for kind in ("lost", "doubled", "returned", "wrong")] == [[], [], [], []]
    assert status == 0
    assert result["kills"] >= 12
    assert result["acknowledged"] >= 12 * 60


@pytest.mark.timeout(240)
def test_a_short_campaign_against_a_fleet_finds_nothing_lost_and_nothing_doubled() -> None:
    fleet = ("--fleet", "--sessions", "12", "--kills", "4", "--messages-per-kill", "60", "--seed", "3")
    status, result = campaign(*fleet)
    assert [result[kind] for kind in ("lost", "doubled", "returned", "wrong")] == [[], [], [], []]
    assert status == 0
    assert result["kills"] >= 4
    assert result["sessions"] == 12


def mutations() -> list[str]:
    """Those that ``CAMPAIGN_MUTATIONS`` names, or all; else another one with each commit, which takes its time."""
    names = sorted(MUTATIONS)
    match os.environ.get("CAMPAIGN_MUTATIONS"):
        case None:
            commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
            number = int(commit.stdout.strip() or "0", 16) or date.today().toordinal()
            return [names[number % len(names)]]
        case "all":
            return names
        case chosen:
            return chosen.split(",")


@pytest.mark.timeout(180)
@pytest.mark.parametrize("mutation", mutations())
def test_a_mutant_is_found_out_within_two_minutes(mutation: str) -> None:
    print(f"the daemon's mutation in this run: {mutation}")
    status, result = campaign("--mutation", mutation, "--minutes", "2", "--seed", "2")
    assert status == 1
    assert result[MUTATIONS[mutation].found_as]
