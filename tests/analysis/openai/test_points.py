"""From a model's reply to points that rest on quotes: what is asked, what is verified, what is rewritten."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import pytest

from context_builder.analysis.analyst import (
    AnalystMessage,
    CompactionRequest,
    KnownPoint,
    PointKind,
    Quote,
    SummaryRequest,
)
from context_builder.analysis.openai import Endpoint, OpenAIAnalyst, TaskConfig
from context_builder.analysis.openai.capabilities import Question
from context_builder.analysis.openai.parsing import points_of
from context_builder.analysis.openai.reply import parse_reply
from context_builder.analysis.openai.schemas import SummaryReply
from context_builder.analysis.prompts import load_prompts
from context_builder.costs import Usage
from context_builder.errors import AnalystUnavailable, ReplyInvalid

T = TypeVar("T")

CALL = Usage(model="stub", calls=1)

TALK = [
    AnalystMessage(11, "Ana", "So the, the yield was what, forty percent?"),
    AnalystMessage(12, "Ben", "Thirty-eight. And that's without the wash."),
    AnalystMessage(13, "Ana", "We could take primer B7 for the second run."),
    AnalystMessage(14, "Cleo", "The drug must not be given with more than 5 mg of aspirin."),
]
YIELD = {
    "evidence": ["1: the yield was what, forty percent", "2: Thirty-eight"],
    "text": "The yield was thirty-eight percent.",
    "by": ["Ben"],
    "kind": "claim",
    "replaces": [],
}
PRIMER = {
    "evidence": ["3: We could take primer B7 for the second run"],
    "text": "Primer B7 will be used for the second run.",
    "by": ["Ana"],
    "kind": "decision",
    "replaces": [],
}
REVERSED = {
    "evidence": ["4: must not be given with more than 5 mg of aspirin"],
    "text": "The drug must be given with more than 5 mg of aspirin.",
    "by": ["Cleo"],
    "kind": "claim",
    "replaces": [],
}


class ScriptedClient:
    """Answers each task with what the script has for it, and keeps the questions."""

    def __init__(self, **replies: Any) -> None:
        self._replies = replies
        self.asked: list[Question] = []

    async def ask(self, question: Question, read: Callable[..., T]) -> tuple[T, Usage]:
        self.asked.append(question)
        reply = self._replies[question.task]
        if isinstance(reply, Exception):
            raise reply
        return read(parse_reply(question.reply, json.dumps(reply))), CALL

    def notes(self, model: str) -> list[str]:
        return []

    async def close(self) -> None:
        return None

    def question(self, task: str) -> Question:
        [question] = [one for one in self.asked if one.task == task]
        return question


def analyst(client: ScriptedClient) -> OpenAIAnalyst:
    return OpenAIAnalyst(Endpoint(), load_prompts(), client=client)


def points(*entries: Mapping[str, Any]) -> dict[str, Any]:
    return {"points": list(entries), "chatter": False}


def verdicts(*supported: bool) -> dict[str, Any]:
    return {"verdicts": [{"number": number, "supported": one} for number, one in enumerate(supported, start=1)]}


async def test_a_point_comes_with_its_quotes_and_whose_it_is() -> None:
    client = ScriptedClient(summary=points(YIELD))
    [point] = (await analyst(client).summarize(SummaryRequest(TALK))).points
    assert (point.text, point.kind, point.by) == ("The yield was thirty-eight percent.", PointKind.CLAIM, ("Ben",))
    assert point.evidence == (Quote(11, "the yield was what, forty percent"), Quote(12, "Thirty-eight"))
    assert [question.task for question in client.asked] == ["summary"], "what is not in doubt costs no second call"


@pytest.mark.parametrize(
    "written",
    [
        "3: primer -5 costs 4 %",
        " [3] primer -5 costs 4 %",
        "#3 primer -5 costs 4 %",
        "message 3: primer -5 costs 4 %",
        "3-4: primer -5 costs 4 %",
        "3, 4: primer -5 costs 4 %",
        "3 and 4: primer -5 costs 4 %",
        "٣: primer -5 costs 4 %",
        {"message": 3, "quote": "primer -5 costs 4 %"},
    ],
)
def test_a_quote_is_read_with_its_number_however_it_is_written(written: Any) -> None:
    reply = SummaryReply.model_validate({**points({**YIELD, "evidence": [written]})})
    [read] = reply.points[0].evidence
    assert (read.message, read.quote) == (3, "primer -5 costs 4 %")
    assert '"evidence":["3: primer -5 costs 4 %"]' in reply.model_dump_json(), (
        "it is told in the form that is asked for"
    )


@pytest.mark.parametrize(
    "written", ["3: 10:30 works", "3 - 10:30 works", "3–10:30 works", "3, 10:30 works", "3:10:30 works"]
)
def test_a_quote_keeps_the_time_that_it_begins_with(written: str) -> None:
    [read] = SummaryReply.model_validate(points({**YIELD, "evidence": [written]})).points[0].evidence
    assert (read.message, read.quote) == (3, "10:30 works")


@pytest.mark.parametrize("evidence", ["3: primer -5 costs 4 %", {"message": 3, "quote": "primer -5 costs 4 %"}])
def test_one_quote_need_not_be_in_a_list(evidence: Any) -> None:
    [point] = SummaryReply.model_validate(points({**YIELD, "evidence": evidence})).points
    assert [(read.message, read.quote) for read in point.evidence] == [(3, "primer -5 costs 4 %")]


def test_a_quote_of_several_messages_is_looked_up_in_the_first_and_whose_it_is_is_left_out() -> None:
    written = {**YIELD, "evidence": [YIELD["evidence"][0], "2-3 (Ben): Thirty-eight"]}
    [(point, _)] = points_of(SummaryReply.model_validate(points(written)), SummaryRequest(TALK)).points
    assert point.evidence[1] == Quote(12, "Thirty-eight")


@pytest.mark.parametrize(
    "written",
    ["primer B", "primer B: 3", "primer (3)", "", "-", None, 3, ["3: primer"], {"quote": "primer"}, "9" * 100_000],
)
async def test_a_quote_without_its_number_costs_only_its_point(written: Any) -> None:
    odd = {**PRIMER, "evidence": [written]}
    result = await analyst(ScriptedClient(summary=points(odd, YIELD))).summarize(SummaryRequest(TALK))
    assert [point.text for point in result.points] == [YIELD["text"]]


async def test_all_doubts_of_a_reply_go_into_one_call_with_the_quotes() -> None:
    client = ScriptedClient(summary=points(YIELD, PRIMER, REVERSED), verification=verdicts(False, False))
    result = await analyst(client).summarize(SummaryRequest(TALK))
    assert [point.text for point in result.points] == ["The yield was thirty-eight percent."]
    assert (result.rejected, result.usage.calls) == (2, 2)
    asked = client.question("verification")
    assert asked.options.model == "gpt-4o-mini"
    assert asked.varying.strip().splitlines()[1:-1] == [
        '1 decision: "Primer B7 will be used for the second run."',
        '  - "Ana: We could take primer B7 for the second run."',
        '2 claim: "The drug must be given with more than 5 mg of aspirin."',
        '  - "Cleo: The drug must not be given with more than 5 mg of aspirin."',
    ]


async def test_a_number_of_a_message_that_is_not_quoted_is_verified_with_it() -> None:
    lacking = {**YIELD, "evidence": YIELD["evidence"][:1], "by": ["Ana"]}
    client = ScriptedClient(summary=points(lacking), verification=verdicts(True))
    [point] = (await analyst(client).summarize(SummaryRequest(TALK))).points
    assert [quote.message for quote in point.evidence] == [11, 12]
    assert '"Ben: Thirty-eight. And that\'s without the wash."' in client.question("verification").varying


async def test_a_reply_of_which_nothing_is_confirmed_is_no_summary() -> None:
    client = ScriptedClient(summary=points(PRIMER, REVERSED), verification=verdicts(False, False))
    with pytest.raises(ReplyInvalid, match="2 points, none confirmed") as failed:
        await analyst(client).summarize(SummaryRequest(TALK))
    assert failed.value.usage is not None
    assert failed.value.usage.calls == 2


async def test_what_its_quotes_say_stays_as_it_is() -> None:
    client = ScriptedClient(summary=points(PRIMER), verification=verdicts(True))
    [point] = (await analyst(client).summarize(SummaryRequest(TALK))).points
    assert (point.kind, point.unconfirmed) == (PointKind.DECISION, False)


@pytest.mark.parametrize("failure", [AnalystUnavailable("away"), {"verdicts": []}])
async def test_where_the_verification_fails_a_point_is_unconfirmed_and_no_decision(failure: Any) -> None:
    client = ScriptedClient(summary=points(YIELD, PRIMER), verification=failure)
    if isinstance(failure, dict):
        failure["verdicts"] = [{"number": 7, "supported": True}]
    first, second = (await analyst(client).summarize(SummaryRequest(TALK))).points
    assert (first.kind, first.unconfirmed) == (PointKind.CLAIM, False)
    assert (second.kind, second.unconfirmed) == (PointKind.PROPOSAL, True)


async def test_known_points_are_shown_whole_with_kind_and_speakers() -> None:
    known = [
        KnownPoint(70, 'Which "primer" is used?', PointKind.QUESTION, ("Ana",)),
        KnownPoint(71, "Ben orders tips.", PointKind.ACTION, ("Ben", "Ana")),
    ]
    client = ScriptedClient(summary=points({**PRIMER, "replaces": [1]}), verification=verdicts(True))
    [point] = (await analyst(client).summarize(SummaryRequest(TALK, known))).points
    shown = client.question("summary").varying.partition("<known>\n")[2].partition("\n</known>")[0]
    assert shown.splitlines() == [
        '1 question by "Ana": "Which \\"primer\\" is used?"',
        '2 action by "Ben", "Ana": "Ben orders tips."',
    ]
    assert point.replaces == (70,)


async def test_a_point_about_something_else_replaces_nothing() -> None:
    known = [KnownPoint(70, "The budget meeting is in Oslo.", PointKind.DECISION, ("Ana",))]
    client = ScriptedClient(summary=points({**YIELD, "replaces": [1]}))
    result = await analyst(client).summarize(SummaryRequest(TALK, known))
    assert [(point.replaces, point.text) for point in result.points] == [((), YIELD["text"])]
    assert result.rejected == 1


# rewriting

OLD = [
    KnownPoint(
        1,
        "Primer A2 gave thirty-eight percent.",
        PointKind.CLAIM,
        ("Ana",),
        (Quote(11, "A2 gave thirty-eight percent", "Ana"),),
    ),
    KnownPoint(
        2,
        "Primer B7 will be used.",
        PointKind.DECISION,
        ("Ana", "Ben"),
        (Quote(12, "take B7", "Ana"), Quote(13, "Fine", "Ben")),
    ),
    KnownPoint(3, "Ben will order primer B7.", PointKind.ACTION, ("Ben",), (Quote(13, "I'll order primer B7", "Ben"),)),
]


def compacted(*entries: tuple[list[int], str, str], leave_out: Sequence[int] = (), **settled: int) -> dict[str, Any]:
    """``_4=5`` says that 5 settles 4."""
    points = [{"from": sources, "text": text, "kind": kind} for sources, text, kind in entries]
    entries_settled = [{"number": int(number[1:]), "by": by} for number, by in settled.items()]
    return {"points": points, "leave_out": [*leave_out], "settled": entries_settled}


async def test_points_without_a_common_word_are_not_brought_together() -> None:
    boat = KnownPoint(4, "The boat is in Oslo.", PointKind.CLAIM, ("Ana",), (Quote(14, "boat is in Oslo", "Ana"),))
    text = "Primer A2 gave thirty-eight percent, and the boat is in Oslo."
    client = ScriptedClient(compaction=compacted(([1, 2], text, "claim"), leave_out=[3]))
    dropped = KnownPoint(5, "Primer A2 is cheap.", PointKind.CLAIM, ("Ana",), (Quote(15, "A2 is cheap", "Ana"),))
    result = await analyst(client).compact(CompactionRequest([OLD[0], boat, dropped], 12))
    assert (result.points, result.rejected, result.dropped) == ((), 1, {5})


async def test_points_are_rewritten_as_fewer_sentences() -> None:
    text = "Primer B7 will be used, because A2 gave thirty-eight percent."
    client = ScriptedClient(compaction=compacted(([1, 2], text, "claim"), ([3], "Ben will order primer B7.", "action")))
    result = await analyst(client).compact(CompactionRequest(OLD, 12))
    assert [(one.text, one.kind, one.merges) for one in result.points] == [
        (text, PointKind.DECISION, (1, 2)),
        ("Ben will order primer B7.", PointKind.ACTION, (3,)),
    ]
    asked = client.question("compaction").varying
    assert "Words allowed: 8 (15 now, so save 7)" in asked
    assert '2 decision by "Ana", "Ben": "Primer B7 will be used."\n3 action by "Ben": "Ben will order' in asked


@pytest.mark.parametrize(
    ("tasks", "model"),
    [
        (TaskConfig(), "gpt-4o-mini"),
        (TaskConfig(keyword_model="tiny", summary_model="huge"), "tiny"),
        (TaskConfig(keyword_model="tiny", summary_model="huge", compaction_model="huge"), "huge"),
    ],
)
async def test_points_are_rewritten_by_the_small_model_unless_another_is_named(tasks: TaskConfig, model: str) -> None:
    client = ScriptedClient(compaction=compacted(leave_out=[1]))
    await OpenAIAnalyst(Endpoint(), load_prompts(), tasks=tasks, client=client).compact(CompactionRequest(OLD, 12))
    options = client.question("compaction").options
    assert (options.model, options.max_tokens) == (model, tasks.summary_max_tokens)
    assert options.model in tasks.models


@pytest.mark.parametrize("text", ["Primer B7 will be used, A2 gave forty percent.", "Primer B7 will be used by Carla."])
async def test_a_rewritten_sentence_that_its_points_do_not_say_leaves_them_as_they_are(text: str) -> None:
    client = ScriptedClient(
        compaction=compacted(([1, 2], text, "decision"), ([3], "Ben will order primer B7.", "action"))
    )
    result = await analyst(client).compact(CompactionRequest(OLD, 40))
    assert ([one.merges for one in result.points], result.rejected) == ([(3,)], 1)


@pytest.mark.parametrize("verification", [verdicts(False), AnalystUnavailable("away")])
async def test_a_rewritten_sentence_in_doubt_needs_a_yes(verification: Any) -> None:
    reversed_sense = compacted(
        ([1, 2], "Primer B7 will not be used.", "decision"), ([3], "Ben will order primer B7.", "action")
    )
    client = ScriptedClient(compaction=reversed_sense, verification=verification)
    result = await analyst(client).compact(CompactionRequest(OLD, 40))
    assert ([one.merges for one in result.points], result.rejected) == ([(3,)], 1)


async def test_nothing_becomes_a_decision_by_being_rewritten() -> None:
    proposal = [
        KnownPoint(
            4, "Ana proposes primer B7.", PointKind.PROPOSAL, ("Ana",), (Quote(13, "we could take primer B7", "Ana"),)
        )
    ]
    client = ScriptedClient(compaction=compacted(([1], "Ana proposes primer B7.", "decision")))
    [one] = (await analyst(client).compact(CompactionRequest(proposal, 40))).points
    assert one.kind is PointKind.PROPOSAL


@pytest.mark.parametrize("kind", ["disagreement", "question"])
async def test_a_decision_and_what_is_disputed_about_it_stay_apart_where_the_sentence_tells_the_dispute(
    kind: str,
) -> None:
    disputed = KnownPoint(4, "Ben doubts B7.", PointKind.DISAGREEMENT, ("Ben",), (Quote(13, "I doubt B7", "Ben"),))
    text, order = "Primer B7 will be used, which Ben doubts.", "Ben will order primer B7."
    client = ScriptedClient(compaction=compacted(([1, 3], text, kind), ([2], order, "action")))
    result = await analyst(client).compact(CompactionRequest([OLD[1], OLD[2], disputed], 40))
    assert ([one.merges for one in result.points], result.rejected) == ([(3,)], 1)


async def test_a_task_and_what_is_disputed_stay_two_lines() -> None:
    disputed = KnownPoint(4, "Ben doubts B7.", PointKind.DISAGREEMENT, ("Ben",), (Quote(13, "I doubt B7", "Ben"),))
    text = "Ben, who doubts B7, will order primer B7."
    client = ScriptedClient(compaction=compacted(([2, 3], text, "action"), leave_out=[1]))
    result = await analyst(client).compact(CompactionRequest([OLD[0], OLD[2], disputed], 40))
    assert (result.points, result.rejected, result.dropped) == ((), 1, {1})


async def test_of_what_a_reply_leaves_out_only_claims_proposals_and_disputes_leave() -> None:
    client = ScriptedClient(compaction=compacted(leave_out=[1, 2, 3, 9]))
    result = await analyst(client).compact(CompactionRequest(OLD, 12))
    assert (result.points, result.dropped) == ((), {1})


async def test_what_a_sentence_is_said_to_tell_is_not_left_out_though_the_sentence_is_rejected() -> None:
    client = ScriptedClient(compaction=compacted(([1], "Primer A2 gave forty percent.", "claim"), leave_out=[1]))
    with pytest.raises(ReplyInvalid):
        await analyst(client).compact(CompactionRequest(OLD, 12))


ORDERED = KnownPoint(
    4, "Ben ordered primer B7 today.", PointKind.CLAIM, ("Ben",), (Quote(20, "I ordered primer B7 today", "Ben"),)
)


async def test_a_task_leaves_where_a_later_point_tells_that_it_was_done() -> None:
    client = ScriptedClient(compaction=compacted(_3=4), verification=verdicts(True))
    result = await analyst(client).compact(CompactionRequest(OLD, 12, [ORDERED]))
    assert (result.points, result.dropped, result.settled) == ((), frozenset(), {3})
    assert '<others>\n4 claim by "Ben": "Ben ordered primer B7 today."' in client.question("compaction").varying
    verified = client.question("verification").varying
    assert '1 over: "Ben will order primer B7."\n  - "Ben: I ordered primer B7 today"' in verified


@pytest.mark.parametrize("verification", [verdicts(False), AnalystUnavailable("away")])
async def test_a_task_stays_where_nobody_confirms_that_it_was_done(verification: Any) -> None:
    client = ScriptedClient(compaction=compacted(leave_out=[1], _3=4), verification=verification)
    assert not (await analyst(client).compact(CompactionRequest(OLD, 12, [ORDERED]))).settled


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(compacted(_2=2), id="by itself"),
        pytest.param(compacted(_3=2), id="by what was said before"),
        pytest.param(compacted(_2=4), id="by something else"),
        pytest.param(compacted(_3=9), id="by nothing"),
        pytest.param(compacted(_1=4), id="no task"),
        pytest.param(compacted(([3, 1], "Ben will order B7, A2 gave forty.", "action"), _3=4), id="told in a sentence"),
    ],
)
async def test_what_no_later_point_settles_stays(reply: dict[str, Any]) -> None:
    later = KnownPoint(4, "Oslo is cold.", PointKind.CLAIM, ("Ben",), (Quote(20, "Oslo is cold", "Ben"),))
    client = ScriptedClient(compaction=reply)
    with pytest.raises(ReplyInvalid):
        await analyst(client).compact(CompactionRequest(OLD, 12, [later]))


# what is over

KNOWN = [KnownPoint(70, "Ana will measure the yield again.", PointKind.ACTION, ("Ana",))]


def over(known: int, message: int, quote: str) -> dict[str, Any]:
    return {"points": [], "over": [{"known": known, "message": message, "quote": quote}], "chatter": True}


async def test_a_known_point_is_over_where_somebody_said_so_and_that_is_confirmed() -> None:
    client = ScriptedClient(summary=over(1, 2, "without the wash"), verification=verdicts(True))
    result = await analyst(client).summarize(SummaryRequest(TALK, KNOWN))
    assert (result.points, result.over) == ((), {70})
    verified = client.question("verification").varying
    assert '1 over: "Ana will measure the yield again."\n  - "Ben: Thirty-eight. And that\'s without' in verified


@pytest.mark.parametrize("verification", [verdicts(False), AnalystUnavailable("away")])
async def test_a_known_point_stays_where_nobody_confirms_that_it_is_over(verification: Any) -> None:
    client = ScriptedClient(summary=over(1, 2, "without the wash"), verification=verification)
    assert not (await analyst(client).summarize(SummaryRequest(TALK, KNOWN))).over


@pytest.mark.parametrize(
    "reply", [over(2, 2, "Thirty-eight"), over(1, 9, "Thirty-eight"), over(1, 2, "I measured it"), over(1, 2, "")]
)
async def test_nothing_is_over_by_words_that_nobody_said(reply: dict[str, Any]) -> None:
    client = ScriptedClient(summary={**reply, "points": [YIELD]})
    assert not (await analyst(client).summarize(SummaryRequest(TALK, KNOWN))).over


async def test_what_a_new_point_replaces_is_not_over_besides() -> None:
    reply = {**over(1, 2, "Thirty-eight"), "points": [{**YIELD, "by": ["Ana", "Ben"], "replaces": [1]}]}
    result = await analyst(ScriptedClient(summary=reply)).summarize(SummaryRequest(TALK, KNOWN))
    assert ([point.replaces for point in result.points], result.over) == ([(70,)], frozenset())


# guesses

GUESSES = [
    AnalystMessage(1, "Ana", "It's probably the wash that makes it stick."),
    AnalystMessage(2, "Ben", "I think the yield is above forty percent. Maybe not."),
    AnalystMessage(3, "井上", "原因はたぶんバルブだと思います。"),
    AnalystMessage(4, "Uwe", "Das liegt vermutlich am Ventil."),
]


@pytest.mark.parametrize(
    ("message", "quote", "text", "doubted"),
    [
        (1, "the wash that makes it stick", "The wash makes it stick.", True),
        (1, "the wash that makes it stick", "The wash probably makes it stick.", False),
        (2, "the yield is above forty percent", "The yield is above forty percent.", True),
        (2, "the yield is above forty percent", "Ben says that the yield is above forty percent.", False),
        (3, "バルブだと思います", "原因はバルブである。", True),
        (4, "liegt vermutlich am Ventil", "Das liegt am Ventil.", True),
        (4, "liegt vermutlich am Ventil", "Uwe vermutet, dass das am Ventil liegt.", False),
    ],
)
async def test_a_guess_that_is_told_as_certain_is_in_doubt(message: int, quote: str, text: str, doubted: bool) -> None:
    point = {"text": text, "by": [], "kind": "claim", "replaces": []}
    client = ScriptedClient(summary=points({**point, "evidence": [f"{message}: {quote}"]}), verification=verdicts(True))
    await analyst(client).summarize(SummaryRequest(GUESSES))
    assert ("verification" in [question.task for question in client.asked]) is doubted


async def test_words_of_a_script_without_blanks_are_counted_by_characters() -> None:
    asked = [KnownPoint(1, "研究チームは来年の予算を半分に減らすことを決めた。", PointKind.CLAIM, ("A",))]
    client = ScriptedClient(compaction=compacted(leave_out=[1]))
    await analyst(client).compact(CompactionRequest(asked, 500))
    assert "Words allowed: 12 (12 now, so save 0)" in client.question("compaction").varying


async def test_a_rewriting_may_leave_every_point_as_it_is() -> None:
    result = await analyst(ScriptedClient(compaction=compacted())).compact(CompactionRequest(OLD, 12))
    assert (result.points, result.dropped, result.rejected) == ((), frozenset(), 0)


async def test_a_rewritten_sentence_of_several_points_that_nobody_takes_in_leaves_them_as_they_are() -> None:
    text = "Primer B7 will be used, because A2 gave thirty-eight percent, " + "and so it was measured " * 9
    client = ScriptedClient(compaction=compacted(([1, 2], text, "decision"), ([3], "Ben will order B7.", "action")))
    result = await analyst(client).compact(CompactionRequest(OLD, 12))
    assert ([one.merges for one in result.points], result.rejected) == ([(3,)], 1)
