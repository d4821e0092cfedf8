"""The hourly budget: kept whatever happens, given up in an order, and recovered by waiting."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_builder.analysis.analyst import AnalystMessage, SummaryRequest
from context_builder.analysis.fallback import FallbackAnalyst
from context_builder.breaker import CircuitBreaker
from context_builder.costs import HOUR, SHARES, Budget
from context_builder.errors import OverBudget
from context_builder.testing import StubAnalyst

MESSAGES = [AnalystMessage(1, "Alice", "How does DNA replication work?")]


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def budget(clock: Clock) -> Budget:
    return Budget(1.0, clock)


def spend(budget: Budget, task: str, worst: float, cost: float | None = None) -> None:
    with budget.hold(task, worst) as held:
        held.dollars = worst if cost is None else cost


def allowed(budget: Budget, worst: float = 0.01) -> set[str]:
    """The tasks that may ask a model now."""
    tasks = set()
    for task in SHARES:
        with suppress(OverBudget), budget.hold(task, worst) as held:
            held.dollars = 0.0
            tasks.add(task)
    return tasks


def test_it_degrades_in_order_domains_then_keywords_then_summaries(budget: Budget) -> None:
    seen = []
    for _ in range(5):
        seen.append(allowed(budget))
        spend(budget, "summary", 0.2)
    assert seen[:3] == [set(SHARES)] * 3
    binding = {"summary", "verification", "compaction"}
    assert seen[3:] == [binding | {"embeddings", "keywords"}, binding]
    assert allowed(budget) == set()


def test_it_recovers_as_the_hour_slides(budget: Budget, clock: Clock) -> None:
    for minute in (0, 10):
        clock.seconds = 60.0 * minute
        spend(budget, "summary", 0.5)
    clock.seconds = HOUR
    assert allowed(budget) == set()
    clock.seconds = HOUR + 1
    assert allowed(budget) == {
        "compaction",
        "verification",
        "preferences",
        "domains",
        "embeddings",
        "keywords",
        "summary",
    }
    assert budget.used == 0.5


def test_a_worst_case_is_set_aside_while_the_call_is_under_way(budget: Budget) -> None:
    with budget.hold("summary", 0.9) as held:
        with pytest.raises(OverBudget, match="LLM_BUDGET_PER_HOUR"), budget.hold("summary", 0.2):
            raise AssertionError("must not be made")
        held.dollars = 0.1
    assert budget.used == 0.1


def test_what_nobody_knows_better_counts_in_full(budget: Budget) -> None:
    with pytest.raises(TimeoutError), budget.hold("keywords", 0.3):
        raise TimeoutError
    assert budget.used == 0.3


def test_a_call_that_costs_nothing_is_never_refused(budget: Budget) -> None:
    spend(budget, "summary", 1.0)
    spend(budget, "domains", 0.0)


@dataclass
class Ledger:
    """What was really spent, and when."""

    spent: list[tuple[float, float]] = field(default_factory=list)

    def within_the_hour(self, now: float) -> float:
        return sum(dollars for at, dollars in self.spent if at >= now - HOUR)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.floats(0, 2 * HOUR)),
        st.tuples(st.sampled_from(sorted(SHARES)), st.floats(0, 1.5), st.floats(0, 1)),
        st.tuples(st.just("end"), st.integers(0, 5)),
    ),
    max_size=60,
)


@given(STEPS)
def test_no_sequence_of_calls_spends_more_in_any_hour(steps: list[tuple[str, float, float]]) -> None:
    clock, ledger = Clock(), Ledger()
    budget = Budget(1.0, clock)
    under_way: list[tuple[ExitStack, float]] = []
    for what, *numbers in steps:
        if what == "wait":
            clock.seconds += numbers[0]
        elif what != "end":
            call, cost = ExitStack(), numbers[0] * numbers[1]
            with suppress(OverBudget):
                call.enter_context(budget.hold(what, numbers[0])).dollars = cost
                under_way.append((call, cost))
        elif under_way:
            call, cost = under_way.pop(int(numbers[0]) % len(under_way))
            call.close()
            ledger.spent.append((clock.seconds, cost))
        assert budget.used <= 1.0
        assert ledger.within_the_hour(clock.seconds) <= budget.used + 1e-12


async def test_refusals_do_not_open_the_breaker() -> None:
    model, text = StubAnalyst("model"), StubAnalyst("text")
    analyst = FallbackAnalyst(model, text, CircuitBreaker(failures=1))
    model.failure = OverBudget("used up")
    assert (await analyst.extract_keywords(MESSAGES)).analyst == "text"
    assert (await analyst.infer_domains(MESSAGES)).analyst == "text"
    with pytest.raises(OverBudget):
        await analyst.summarize(SummaryRequest(MESSAGES))
    model.failure = None
    assert (await analyst.extract_keywords(MESSAGES)).analyst == "model"
