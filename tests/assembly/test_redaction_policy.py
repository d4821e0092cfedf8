"""Redaction comes before tokens are counted and before anything is kept."""

from __future__ import annotations

from context_builder.assembly import AssemblyConfig, SemanticSearchStrategy
from context_builder.testing import InMemoryStore
from tests.assembly.turns import Brain

SECRET = "hunter2"
ANSWER = {
    "candidates": [{"id": "m", "text": f"the password is {SECRET}", "score": 0.9, "metadata": {"source": SECRET}}]
}
TURN = {
    "session_id": "s",
    "user_message": f"is it {SECRET}",
    "history": [
        {"role": "user", "content": f"I said {SECRET}", "name": "Ann"},
        {"role": "assistant", "content": "x", "tool_calls": [{"function": {"arguments": f'{{"pass": "{SECRET}"}}'}}]},
    ],
}


class Masking:
    def redact(self, text: str) -> str:
        return text.replace(SECRET, "§§secret(PASSWORD)")


class Failing:
    def redact(self, text: str) -> str:
        if SECRET in text:
            raise ValueError(text)
        return text


async def test_memories_and_history_are_redacted_and_say_so(builder):
    context = await builder(somabrain=Brain(ANSWER), redactor=Masking()).build_for_turn(TURN)
    assert SECRET not in str(context.messages[:-1])
    assert "[1] (§§secret(PASSWORD))\n the password is §§secret(PASSWORD)" in str(context.messages[-2]["content"])
    assert {one.outcome for one in context.receipts} == {"redacted"}


async def test_the_turns_own_message_is_redacted_when_set(builder):
    rules = AssemblyConfig(redact_user_message=True)
    brain = Brain(ANSWER)
    context = await builder(somabrain=brain, redactor=Masking(), config=rules).build_for_turn(TURN)
    assert SECRET not in str(context.messages)
    assert [payload["query"] for payload in brain.asked] == ["is it §§secret(PASSWORD)"]
    assert ("user", "redacted") in [(one.section, one.outcome) for one in context.receipts]


async def test_the_query_of_strategies_is_redacted_when_set(builder):
    store = InMemoryStore()
    made = builder(store=store, redactor=Masking(), config=AssemblyConfig(redact_user_message=True))
    asking = made.with_system_message("Be kind.").with_strategy(SemanticSearchStrategy())
    await asking.with_query(f"is it {SECRET}").build()
    assert [search.text for search in store.searches] == ["is it §§secret(PASSWORD)"]


async def test_the_turns_own_message_goes_out_as_it_is_unless_set(builder):
    brain = Brain(ANSWER)
    context = await builder(somabrain=brain, redactor=Masking()).build_for_turn(TURN)
    assert context.messages[-1]["content"] == brain.asked[0]["query"] == f"is it {SECRET}"


async def test_a_message_that_is_withheld_asks_no_memory_and_counts(builder):
    brain = Brain(ANSWER)
    rules = AssemblyConfig(redact_user_message=True)
    context = await builder(somabrain=brain, redactor=Failing(), config=rules).build_for_turn(TURN | {"history": []})
    assert brain.asked == []
    assert context.messages[-1]["content"] == "[withheld: it could not be redacted]"
    assert context.debug["withheld"] == 1
    assert [(one.id, one.outcome) for one in context.receipts] == [("user", "withheld")]


async def test_the_system_prompt_is_the_applications_own_and_stays(builder):
    context = await builder(redactor=Masking()).build_for_turn(TURN | {"system_prompt": f"Ask for {SECRET}."})
    assert context.messages[0]["content"] == f"Ask for {SECRET}."


async def test_what_the_metadata_of_a_memory_tells_is_redacted_however_deep(builder):
    metadata = {"source": SECRET, "more": {"said": [f"it is {SECRET}", 7]}}
    answer = {"candidates": [{"id": "m", "text": "harmless", "score": 0.9, "metadata": metadata}]}
    context = await builder(somabrain=Brain(answer), redactor=Masking()).build_for_turn(TURN)
    masked = "§§secret(PASSWORD)"
    assert context.snippets[0]["metadata"] == {"source": masked, "more": {"said": [f"it is {masked}", 7]}}
    withheld = await builder(somabrain=Brain(answer), redactor=Failing()).build_for_turn(TURN)
    assert SECRET not in str(withheld.snippets)


async def test_what_another_programs_error_says_is_not_repeated(builder):
    brain = Brain()
    brain.failure = ConnectionError(f"https://user:{SECRET}@brain/")
    context = await builder(somabrain=brain).build_for_turn(TURN)
    assert context.debug["memory"] == "somabrain: ConnectionError"


async def test_a_failing_redactor_withholds_the_text_and_says_so(builder):
    context = await builder(somabrain=Brain(ANSWER), redactor=Failing()).build_for_turn(TURN)
    assert SECRET not in str(context.messages[:-1])
    assert context.snippets == []
    assert context.history[0]["content"] == "[withheld: it could not be redacted]"
    assert context.debug["withheld"] == 3
    reasons = [one.reason for one in context.receipts if one.outcome == "withheld"]
    assert reasons == ["withheld: the redactor failed with ValueError"] * 3


async def test_what_a_redactor_returns_must_be_text(builder):
    class Broken:
        def redact(self, text):
            return None

    context = await builder(somabrain=Brain(ANSWER), redactor=Broken()).build_for_turn(TURN)
    assert SECRET not in str(context.messages[:-1])


async def test_tokens_are_those_of_the_redacted_text(builder):
    class Growing:
        def redact(self, text: str) -> str:
            return text + " and more" * 20

    context = await builder(somabrain=Brain(ANSWER), redactor=Growing()).build_for_turn(TURN, max_prompt_tokens=120)
    assert context.token_counts["total"] <= 120


async def test_the_summary_of_what_was_trimmed_is_redacted(builder):
    brain = Brain()
    made = builder(somabrain=brain, redactor=Masking())
    await made.build_for_turn(TURN | {"history": TURN["history"] * 20}, max_prompt_tokens=60)
    await made.drain()
    assert "§§secret(PASSWORD)" in str(brain.remembered)
    assert SECRET not in str(brain.remembered)
