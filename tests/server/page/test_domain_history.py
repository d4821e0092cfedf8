"""What was talked about over time, from messages with their domains."""

from __future__ import annotations

from context_builder.server.page.domain_history import MOST_STEPS, DomainHistory

BIOLOGY, PHYSICS = "Biology / Life Sciences", "Physics / Astronomy"


def test_without_domains_there_is_no_chart() -> None:
    history = DomainHistory()
    history.note(1, 100.0, (), {})
    assert history.chart() is None


def test_each_step_is_shared_among_its_domains() -> None:
    history = DomainHistory()
    for number, name in enumerate((BIOLOGY, BIOLOGY, PHYSICS, PHYSICS)):
        history.note(number, 1000.0 + number, (name,), {name: 0.9})
    chart = history.chart()
    assert chart is not None
    assert (chart.domains, chart.shares) == ((BIOLOGY, PHYSICS), ((0.5, 0.5),))
    assert chart.areas() == [(BIOLOGY, [(0.0, 0.5, 1.0, 0.5)]), (PHYSICS, [(0.0, 0.0, 1.0, 0.5)])]


def test_a_change_of_topic_is_marked_where_it_began() -> None:
    history = DomainHistory()
    for number in range(20):
        name = BIOLOGY if number < 10 else PHYSICS
        history.note(number, 1000.0 + 5 * number, (name,), {name: 0.9})
    chart = history.chart()
    assert chart is not None
    (change,) = chart.changes
    assert round(chart.begin + change * (chart.end - chart.begin)) == 1050


def test_however_long_it_takes_there_are_few_steps() -> None:
    history = DomainHistory()
    for number in range(1000):
        history.note(number, number * 7200.0, (BIOLOGY,), {})
    chart = history.chart()
    assert chart is not None
    assert len(chart.shares) <= MOST_STEPS + 1


def test_what_was_noted_before_is_no_news() -> None:
    history = DomainHistory()
    assert history.note(1, 1.0, (BIOLOGY,), {})
    assert not history.note(1, 1.0, (BIOLOGY,), {})
    assert history.note(1, 1.0, (PHYSICS,), {})
    assert not history.note(2, float("nan"), (PHYSICS,), {})
    assert history.note(3, 1.0, ("made up",), {})
