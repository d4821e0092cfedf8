"""What one process knows of a session's history, and what it may write over."""

from __future__ import annotations

import pytest

from context_builder.session.store.commit import HeldRevision
from context_builder.session.store.lineage import ANCESTORS, Lineage

NOTHING = HeldRevision()
LOADED = HeldRevision(7, b"ann")


@pytest.fixture
def bob() -> Lineage:
    """Continued from Ann's seventh commit, who had continued from Zoe's third, and has written two."""
    return Lineage(b"bob").loaded(LOADED, b'[["zoe",3]]').committed(8).committed(9)


@pytest.mark.parametrize(
    "held",
    [
        NOTHING,
        HeldRevision(2, b"zoe"),
        HeldRevision(3, b"zoe"),
        LOADED,
        HeldRevision(5, b"ann"),
        HeldRevision(8, b"bob"),
        HeldRevision(9, b"bob"),
    ],
)
def test_what_it_wrote_or_continued_from_it_knows(bob: Lineage, held: HeldRevision) -> None:
    assert bob.knows(held)
    assert bob.is_behind(held) is (held != bob.latest)


@pytest.mark.parametrize(
    "held", [HeldRevision(4, b"zoe"), HeldRevision(8, b"ann"), HeldRevision(9, b"cid"), HeldRevision(1, b"cid")]
)
def test_what_was_written_since_redis_fell_back_it_does_not(bob: Lineage, held: HeldRevision) -> None:
    assert not bob.knows(held)


def test_a_commit_whose_answer_was_lost_is_no_fall_back(bob: Lineage) -> None:
    assert bob.knows(HeldRevision(10, b"bob"))
    assert not bob.is_behind(HeldRevision(10, b"bob"))
    begun = Lineage(b"bob").loaded(LOADED, None)
    assert not begun.is_behind(HeldRevision(8, b"bob"))


def test_a_session_that_was_forgotten_since_is_not_restored(bob: Lineage) -> None:
    assert bob.was_forgotten(HeldRevision(mark=b"m"))
    assert not bob.knows(HeldRevision(mark=b"m"))


def test_one_that_was_forgotten_before_is_also_where_the_mark_is_lost() -> None:
    bob = Lineage(b"bob").loaded(HeldRevision(mark=b"m"), None).committed(1)
    assert bob.latest == HeldRevision(1, b"bob", b"m")
    assert bob.knows(NOTHING)
    assert not bob.knows(HeldRevision(mark=b"n"))
    assert not bob.knows(HeldRevision(5, b"ann"))  # the session that was forgotten


def test_who_continues_knows_the_same(bob: Lineage) -> None:
    cid = Lineage(b"cid").loaded(bob.latest, bob.encode())
    assert cid.ancestors == {b"zoe": 3, b"ann": 7, b"bob": 9}


def test_only_so_many_ancestors_are_named() -> None:
    lineage = Lineage(b"0").loaded(HeldRevision(1, b"first"), None).committed(2)
    for number in range(1, 2 * ANCESTORS):
        lineage = Lineage(str(number).encode()).loaded(lineage.latest, lineage.encode()).committed(number + 2)
    assert len(lineage.ancestors) == ANCESTORS
    assert not lineage.knows(HeldRevision(1, b"first"))
    assert lineage.knows(HeldRevision(2 * ANCESTORS, str(2 * ANCESTORS - 2).encode()))


def test_what_an_earlier_version_wrote_is_a_writer_too() -> None:
    lease = '{"token":3,"host":"büro"}'.encode()
    bob = Lineage(b"bob").loaded(HeldRevision(7, lease), None)
    assert Lineage(b"cid").loaded(HeldRevision(8, b"bob"), bob.encode()).knows(HeldRevision(6, lease))
