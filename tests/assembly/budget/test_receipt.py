"""What receipts say of the items of a section, and what a larger limit would add."""

from __future__ import annotations

from context_builder.assembly.budget import Allocation, Outcome, Receipt, added, receipts_of
from context_builder.assembly.section import Block, Dialogue, Item, MessageTokenCounter, plain_texts
from tests.assembly.budget.sections import fit

COUNTER = MessageTokenCounter(lambda text: len(text.split()))


def block(*items: Item) -> Block:
    return Block("memory", "Memory:", items, COUNTER, bodies=plain_texts)


def in_section(part: Allocation) -> list[tuple[Outcome, str, str]]:
    return [(one.outcome, one.reason, one.text) for one in receipts_of(part)]


def test_what_does_not_fit_says_by_how_much_and_how_it_begins():
    long = "long " * 40
    parts = fit([block(Item("a", "short"), Item("b", long))], required=0, limit=20)
    assert in_section(parts["memory"]) == [
        (Outcome.INCLUDED, "", "short"),
        (Outcome.DROPPED, "does not fit: 41 tokens where 7 are left", long[:200]),
    ]


def test_a_history_says_of_the_first_message_that_does_not_fit_how_much_was_left_for_it():
    items = [Item(text, text, message={"role": "user", "content": text}) for text in ("new", "long " * 50, "old")]
    part = fit([Dialogue("history", items, COUNTER)], required=0, limit=40)["history"]
    assert [(one.outcome, one.reason) for one in receipts_of(part)] == [
        (Outcome.INCLUDED, ""),
        (Outcome.DROPPED, "does not fit: 54 tokens where 35 are left"),
    ]


def test_what_redaction_did_is_told_also_of_what_was_clipped():
    masked, withheld = Item("a", "an [email]", altered="email"), Item("b", "[withheld]", altered="it failed")
    withheld.withheld = True
    long = Item("c", "long [email] " * 40, altered="email")
    assert in_section(fit([block(masked, withheld)], required=0, limit=100)["memory"]) == [
        (Outcome.REDACTED, "email", "an [email]"),
        (Outcome.WITHHELD, "it failed", "[withheld]"),
    ]
    [(outcome, reason, _)] = in_section(fit([block(long)], required=0, limit=40)["memory"])
    assert (outcome, reason) == (Outcome.CLIPPED, "email, too large for what was left")


def test_what_is_clipped_costs_what_is_shown_of_it():
    for section in (
        block(Item("a", "long " * 80)),
        Dialogue("history", [Item("a", "long " * 80, message={"role": "user", "content": "long " * 80})], COUNTER),
    ):
        [part] = fit([section], required=0, limit=30).values()
        [told] = receipts_of(part)
        assert (told.outcome, 10 < told.tokens <= part.tokens) == (Outcome.CLIPPED, True)
        assert part.taken[0].text.endswith("long…")


def kept(name: str, tokens: int, section: str = "memory") -> Receipt:
    return Receipt(name, section, Outcome.INCLUDED if tokens else Outcome.DROPPED, tokens=tokens)


def test_a_larger_limit_adds_what_was_not_there_or_not_as_a_whole():
    before = [kept("whole", 9), kept("clipped", 4), kept("dropped", 0), kept("recent", 3, "history")]
    after = [kept("whole", 9), kept("clipped", 7), kept("dropped", 1), kept("recent", 3), kept("new", 1)]
    assert [one.id for one in added(before, after)] == ["clipped", "dropped", "recent", "new"]


def test_what_was_found_twice_and_kept_once_is_not_added_again():
    twice = [kept("a", 9), kept("a", 0)]
    assert added(twice, twice) == []
    assert added(twice[::-1], twice) == []
