"""An access policy decides what of the memories a prompt may hold, before anything is redacted or counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from context_builder.assembly import SemanticSearchStrategy
from context_builder.assembly.candidate import Candidate
from context_builder.assembly.govern import Access, AccessQuestion, Ruling
from context_builder.memory.memory import Memory
from context_builder.testing import InMemoryStore, ManualClock
from tests.assembly.turns import Brain

ANSWER = {
    "candidates": [
        {"id": "open", "text": "kelp grows", "score": 0.9},
        {"id": "closed", "text": "the salary of Ann", "score": 0.8},
        {"id": "unruled", "text": "the address of Bob", "score": 0.7},
    ]
}


class Policy:
    def __init__(self) -> None:
        self.asked: list[AccessQuestion] = []

    async def decide(self, candidates: Sequence[Candidate], question: AccessQuestion) -> Mapping[str, Ruling]:
        self.asked.append(question)
        denied = Ruling(Access.DENIED, "policy salaries forbids read")
        return {
            one.id: denied if "salary" in one.text else Ruling(Access.READ) for one in candidates if one.id != "unruled"
        }


class Failing(Policy):
    async def decide(self, candidates: Sequence[Candidate], question: AccessQuestion) -> Mapping[str, Ruling]:
        raise RuntimeError("out of order")


async def test_a_turn_holds_only_what_the_policy_allows_and_says_why(builder):
    policy = Policy()
    turn = {"user_message": "kelp?", "tenant_id": "lab", "user_id": "ann"}
    context = await builder(somabrain=Brain(ANSWER), access_policy=policy).build_for_turn(turn)
    assert context.debug["snippet_ids"] == ["open"]
    assert "salary" not in str(context.messages)
    denied = {one.id: (one.reason, one.text, one.tokens) for one in context.receipts if one.outcome == "denied"}
    assert denied == {"closed": ("policy salaries forbids read", "", 0), "unruled": ("no ruling", "", 0)}
    assert [(one.query, one.tenant_id, one.user_id) for one in policy.asked] == [("kelp?", "lab", "ann")]


async def test_what_strategies_find_is_decided_too(builder):
    store = InMemoryStore()
    await store.remember("lab", [Memory("1", "kelp grows"), Memory("2", "kelp and the salary of Ann")])
    asking = builder(store=store, access_policy=Policy()).for_tenant("lab").with_strategy(SemanticSearchStrategy())
    context = await asking.with_query("kelp").build()
    assert context.relevant == ["kelp grows"]


async def test_a_policy_that_fails_denies_everything(builder):
    context = await builder(somabrain=Brain(ANSWER), access_policy=Failing()).build_for_turn({"user_message": "kelp?"})
    assert context.snippets == []
    assert {one.outcome for one in context.receipts} == {"denied"}


class Slow:
    """Takes two seconds for each text."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock

    def redact(self, text: str) -> str:
        self.clock.advance(2)
        return text


async def test_what_there_is_no_time_left_to_redact_is_withheld_the_oldest_first(builder):
    clock = ManualClock()
    build = builder(access_policy=Policy(), redactor=Slow(clock), clock=clock).build_for_turn
    history = [{"role": "user", "content": f"message {number}"} for number in range(9)]
    turn = {"user_message": "kelp?", "history": history, "tenant_id": "lab"}
    context = await build(turn, max_prompt_tokens=4_000)
    shown = [one["content"] for one in context.messages if "message" in one["content"]]
    assert shown == ["message 7", "message 8"], "the newest"
    assert "withheld: there was no time left to redact it" in {one.reason for one in context.receipts}
