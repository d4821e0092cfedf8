"""Only a run that accounted for something counts as a success."""

from __future__ import annotations

from collections import Counter

import pytest

from scripts.campaign.tally import Tally


def tally(**changes: object) -> Tally:
    """Of a run that found nothing wrong."""
    proof = Tally("seed", sessions=1, faults=Counter({"kill": 3}))
    for name, value in changes.items():
        setattr(proof, name, value)
    return proof


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, 0),
        ({"lost": {"m000001"}}, 1),
        ({"wrong": ["stuck"]}, 1),
        ({"sessions": 0}, 1),
        ({"faults": Counter()}, 1),
        ({"interrupted": True}, 130),
        ({"interrupted": True, "doubled": {"m000001"}}, 1),
    ],
)
def test_its_status_is_0_for_a_proof_alone(changes: dict[str, object], status: int) -> None:
    assert tally(**changes).status == status
    assert tally(**changes).as_json()["passed"] == (status == 0)


def test_what_proves_nothing_says_so() -> None:
    assert not tally().unproven
    assert tally(interrupted=True).unproven.startswith("interrupted")
    assert tally(sessions=0).unproven.startswith("nothing is proven")
