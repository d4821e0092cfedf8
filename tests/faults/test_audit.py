"""The campaign's audit finds whatever is wrong, and excuses what a fault took, no more."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from scripts.campaign.audit import Excused, Places, judge, judge_archive, judge_memory
from scripts.campaign.listener import Sent

A, B, C, D = (f"m00000{number}" for number in range(1, 5))
EVERY = {A, B, C, D}


def places(*summarized: str, waiting: str = "", seq: int = 2) -> Places:
    """Of a session that has summarized these messages in ``seq`` summaries."""
    nothing: Counter[str] = Counter()
    summary = {"seq": seq, "message_count": len(summarized), "points": [{}]}
    head = {"counters": {"received_messages": len(summarized), "dead_letters": 0}}
    return Places(
        waiting=Counter(waiting.split()),
        buffer=nothing,
        pending=nothing,
        summarized=Counter(summarized),
        dead=nothing,
        published=nothing,
        head=head,
        summary=summary,
        undelivered=0,
        unarchived=frozenset(),
        unremembered=frozenset(),
        to_remember=frozenset(),
    )


def row(seq: int, *tokens: str) -> tuple[int, int, str, None]:
    return seq, len(tokens), " ".join(tokens), None


def test_what_was_acknowledged_and_is_nowhere_is_lost() -> None:
    findings = judge(places(A, B, waiting=C), EVERY, Sent(attempted=EVERY))
    assert findings.lost == {D}
    assert not findings.disagreements


def test_what_is_there_twice_is_doubled() -> None:
    assert judge(places(A, A), {A}, Sent(attempted={A})).doubled == {A}


def test_what_was_forgotten_and_is_there_has_come_back() -> None:
    sent = Sent(attempted={A}, forgotten={B, C})
    assert judge(places(A, B, waiting=C), {A}, sent).returned == {B, C}
    assert judge(places(A, B), {A}, Sent(attempted={A, B}, forgotten={B})).returned == set()


def test_what_nobody_sent_is_wrong() -> None:
    assert judge(places(A, B), {A}, Sent(attempted={A})).disagreements


def test_a_cost_that_no_calls_can_have_is_wrong() -> None:
    absurd = places(A)
    for figure in (-1, 10**20, float("nan"), float("inf")):
        absurd.head["counters"]["cost"] = {"dollars": 0.1, "tasks": {"summary": {"prompt_tokens": figure}}}
        assert judge(absurd, {A}, Sent(attempted={A})).disagreements
    absurd.head["counters"]["cost"] = {"dollars": 0.1, "tasks": {"summary": {"prompt_tokens": 12}}}
    assert not judge(absurd, {A}, Sent(attempted={A}))


ABANDONED = [row(1, A), row(2, A, B), row(3, A, C), row(4, A, B, C, D)]
"""The third was archived, and then Redis fell back to before it."""


def test_summaries_go_on_from_one_another() -> None:
    assert not judge_archive(places(*EVERY), [row(1, A), row(2, *EVERY)], Sent())
    assert judge_archive(places(*EVERY), [row(1, A), row(2, B, C, D)], Sent())
    assert judge_archive(places(*EVERY, seq=3), [row(1, A), row(3, *EVERY)], Sent())
    assert judge_archive(places(*EVERY), [row(1, A, A), row(2, *EVERY)], Sent()).doubled == {A}


def test_a_summary_that_redis_fell_back_to_before_is_excused_but_no_other() -> None:
    present = places(*EVERY, seq=3)
    assert not judge_archive(present, ABANDONED, Sent(), excused=Excused(summaries=1))
    assert judge_archive(present, ABANDONED, Sent())
    assert judge_archive(present, ABANDONED[:3], Sent(), excused=Excused(summaries=1))
    assert judge_archive(present, [*ABANDONED[:3], row(4, B, D), row(5, *EVERY)], Sent(), excused=Excused(summaries=1))


@pytest.mark.parametrize("excused", [Excused(), Excused(summaries=1)])
def test_what_is_summarized_is_remembered_once(excused: Excused) -> None:
    sent = Sent(attempted=EVERY, acknowledged=EVERY)
    sound = [*(("message", token) for token in (A, B)), ("point", f"{A} {B}")]
    assert not judge_memory(places(A, B), sound, sent, excused=excused)
    assert judge_memory(places(A, B), sound[1:], sent, excused=excused).lost == {A}
    assert judge_memory(places(A, B), [*sound, sound[0]], sent, excused=excused).doubled == {A}
    assert judge_memory(places(A), sound, sent, excused=excused).disagreements


def test_what_was_remembered_before_redis_fell_back_is_excused_if_it_could_not_be_sent_again() -> None:
    memories = [("message", A), ("message", B), ("message", B), ("point", f"{A} {B}")]
    excused = Excused(summaries=1, taken_in={A, B}, remembered_again={B})
    assert not judge_memory(places(A), memories, Sent(attempted={A, B}, acknowledged={A}), excused=excused)
    assert judge_memory(places(A), memories, Sent(attempted={A, B}, acknowledged={A, B}), excused=excused)
    assert judge_memory(places(A), memories, Sent(attempted={A, B}), excused=replace(excused, taken_in=set()))
    assert judge_memory(
        places(A, B), memories, Sent(attempted={A, B}), excused=replace(excused, remembered_again=set())
    )


def test_what_was_remembered_as_it_was_said_is_excused_if_redis_lost_it_before_it_was_summarized() -> None:
    memories, sent = [("message", A), ("message", B), ("point", A)], Sent(attempted={A, B}, acknowledged={A})
    assert not judge_memory(places(A), memories, sent, excused=Excused(taken_in={A, B}))
    assert judge_memory(places(A), memories, sent, excused=Excused(taken_in={A}))
    assert judge_memory(places(A), memories[1:], sent, excused=Excused(taken_in={A, B})).lost == {A}
    assert judge_memory(places(A), [*memories, ("point", C)], sent, excused=Excused(taken_in={A, B}))


def test_what_a_summary_does_not_name_is_in_the_memory_and_nowhere_before_it() -> None:
    memories = [("message", token) for token in (A, B, C, D)]
    vague = replace(places(waiting=A), buffer=Counter({B: 1}), pending=Counter({C: 1}))  # A was sent again
    assert vague.with_memories(memories, gone={D}).summarized == Counter({A: 1})
    fell_back = Excused(fell_back={A, B}).not_in_redis(Sent(), vague)  # and A waits to be taken in again
    assert not vague.with_memories(memories, fell_back | {D}).summarized


def test_a_corrected_message_is_one_and_its_old_words_are_found() -> None:
    sent = Sent(attempted={A, B}, acknowledged={A, B}, roots={B: A}, outdated={A}, corrected=1)
    corrected = replace(places(B), shown=frozenset({B})).of_messages(sent)
    assert not judge(corrected, {A, B}, sent)
    assert judge(replace(corrected, shown=frozenset({A})), {A, B}, sent).disagreements
    assert not judge(replace(corrected, shown=frozenset({A}), queued=1), {A, B}, sent)
    assert judge(places(A, B).of_messages(sent), {A, B}, sent).doubled == {A}
    assert not judge_memory(corrected, [("message", B), ("point", B)], sent)
    assert judge_memory(corrected, [("message", A), ("point", B)], sent).disagreements
    assert judge_archive(corrected, [row(1, A), row(2, A)], sent).disagreements


def test_a_message_that_waits_to_be_summarized_again_is_told_in_the_end() -> None:
    counted = replace(places(*EVERY), struck=0)
    sent = Sent(attempted=EVERY, acknowledged=EVERY, corrected=1)
    assert not judge_archive(counted, [(1, 3, A, None), row(2, *EVERY)], sent)
    assert judge_archive(counted, [(1, 9, A, None), row(2, *EVERY)], sent).disagreements
    assert judge_archive(counted, [row(1, A), (2, 5, " ".join(sorted(EVERY)), None)], sent).disagreements


def test_a_struck_message_may_be_nowhere() -> None:
    sent = Sent(attempted={A, B}, acknowledged={A, B}, struck={A}, strikes={A})
    assert not judge(
        replace(places(B), struck=1, head={"counters": {"received_messages": 2, "dead_letters": 0}}), {A, B}, sent
    )
    assert judge(places(A, B), {A, B}, sent).returned == {A}
    assert not judge(replace(places(A, B), queued=1), {A, B}, sent)
    assert judge_memory(places(B), [("message", A), ("message", B), ("point", B)], sent).returned == {A}
    assert judge_archive(places(B), [row(1, A), row(2, B)], sent).returned == {A}


def test_a_struck_message_may_still_have_to_leave_the_memory() -> None:
    sent = Sent(attempted={A, B}, acknowledged={A, B}, struck={A}, strikes={A})
    head = {"counters": {"received_messages": 2, "dead_letters": 0}}
    memories = [("message", A), ("message", B)]
    struck = replace(places(B), head=head, struck=1, undelivered=1).with_memories(memories, set())
    assert not judge(struck, {A, B}, sent)
    assert judge(replace(struck, struck=0), {A, B}, sent).returned == set()
    assert judge(replace(struck, undelivered=0), {A, B}, sent).returned == {A}
    assert judge(replace(struck, recalled=frozenset()), {A, B}, sent).disagreements
