"""What one process knows of a session's history, and what it may write over."""

from __future__ import annotations

import pytest

from context_builder.session.store.commit import Held
from context_builder.session.store.lineage import ANCESTORS, Lineage

NOTHING = Held()
LOADED = Held(7, b"ann")


@pytest.fixture
def bob() -> Lineage:
    """Continued from Ann's seventh commit, who had continued from Zoe's third, and has written two."""
    return Lineage(b"bob").loaded(LOADED, b'[["zoe",3]]').committed(8).committed(9)


@pytest.mark.parametrize(
    "held", [NOTHING, Held(2, b"zoe"), Held(3, b"zoe"), LOADED, Held(5, b"ann"), Held(8, b"bob"), Held(9, b"bob")]
)
def test_what_it_wrote_or_continued_from_it_knows(bob: Lineage, held: Held) -> None:
    assert bob.knows(held)
    assert bob.is_behind(held) is (held != bob.latest)


@pytest.mark.parametrize("held", [Held(4, b"zoe"), Held(8, b"ann"), Held(9, b"cid"), Held(1, b"cid")])
def test_what_was_written_since_redis_fell_back_it_does_not(bob: Lineage, held: Held) -> None:
    assert not bob.knows(held)


def test_a_commit_whose_answer_was_lost_is_no_fall_back(bob: Lineage) -> None:
    assert bob.knows(Held(10, b"bob"))
    assert not bob.is_behind(Held(10, b"bob"))
    begun = Lineage(b"bob").loaded(LOADED, None)
    assert not begun.is_behind(Held(8, b"bob"))


def test_a_session_that_was_forgotten_since_is_not_restored(bob: Lineage) -> None:
    assert bob.was_forgotten(Held(mark=b"m"))
    assert not bob.knows(Held(mark=b"m"))


def test_one_that_was_forgotten_before_is_also_where_the_mark_is_lost() -> None:
    bob = Lineage(b"bob").loaded(Held(mark=b"m"), None).committed(1)
    assert bob.latest == Held(1, b"bob", b"m")
    assert bob.knows(NOTHING)
    assert not bob.knows(Held(mark=b"n"))
    assert not bob.knows(Held(5, b"ann"))  # the session that was forgotten


def test_who_continues_knows_the_same(bob: Lineage) -> None:
    cid = Lineage(b"cid").loaded(bob.latest, bob.encode())
    assert cid.ancestors == {b"zoe": 3, b"ann": 7, b"bob": 9}


def test_only_so_many_ancestors_are_named() -> None:
    lineage = Lineage(b"0").loaded(Held(1, b"first"), None).committed(2)
    for number in range(1, 2 * ANCESTORS):
        lineage = Lineage(str(number).encode()).loaded(lineage.latest, lineage.encode()).committed(number + 2)
    assert len(lineage.ancestors) == ANCESTORS
    assert not lineage.knows(Held(1, b"first"))
    assert lineage.knows(Held(2 * ANCESTORS, str(2 * ANCESTORS - 2).encode()))


def test_what_an_earlier_version_wrote_is_a_writer_too() -> None:
    lease = '{"token":3,"host":"büro"}'.encode()
    bob = Lineage(b"bob").loaded(Held(7, lease), None)
    assert Lineage(b"cid").loaded(Held(8, b"bob"), bob.encode()).knows(Held(6, lease))
