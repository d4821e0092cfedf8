"""What was talked about over time, from messages with their domains."""

from __future__ import annotations

import orjson

from context_builder.server.page.domain_history import MOST_COLUMNS, DomainHistory

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
    assert chart.domains == (BIOLOGY, PHYSICS)
    (column,) = chart.columns
    assert (column.begin, column.end, column.messages, column.shares) == (1000.0, 1005.0, 4, (0.5, 0.5))


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
    assert len(chart.columns) <= MOST_COLUMNS


def test_a_part_of_the_time_has_finer_steps() -> None:
    history = DomainHistory()
    for number in range(100):
        history.note(number, 60.0 * number, (BIOLOGY if number < 50 else PHYSICS,), {})
    whole, part = history.chart(), history.chart(0.0, 600.0)
    assert whole is not None
    assert part is not None
    assert part.columns[0].end - part.columns[0].begin < whole.columns[0].end - whole.columns[0].begin
    assert (part.begin, part.end, part.domains) == (0.0, 605.0, (BIOLOGY,))
    assert history.chart(7000.0, 8000.0) is None


def test_pauses_are_compressed_and_marked() -> None:
    history = DomainHistory()
    for number in range(40):
        at = 1000.0 + 10 * number + (86_400 if number >= 20 else 0)  # 200 s of talk, and as much a day later
        history.note(number, at, (BIOLOGY if number < 20 else PHYSICS,), {})
    chart = history.chart()
    assert chart is not None
    (pause,) = [one for one in chart.columns if one.pause]
    assert pause.minutes == "1 d"
    assert (pause.messages, pause.shares, chart.pauses) == (0, (0.0, 0.0), 1)
    assert all(one.end - one.begin == 10 for one in chart.columns if not one.pause)
    assert chart.columns.index(pause) == 20
    assert sum(one.messages for one in chart.columns) == 40
    (change,) = chart.changes
    assert chart.columns[int(change * len(chart.columns))].begin > pause.begin


def test_any_moments_make_a_chart_that_can_be_sent() -> None:
    history = DomainHistory()
    for number, at in enumerate((-1e300, 0.0, 1e9, 1e300)):
        history.note(number, at, (BIOLOGY,), {})
    chart = history.chart()
    assert chart is not None
    assert (len(chart.columns), chart.pauses) == (7, 3)
    assert orjson.dumps(chart.as_json())


def test_a_short_silence_is_no_pause() -> None:
    history = DomainHistory()
    for at in (1000.0, 1010.0, 1011.0):
        history.note(int(at), at, (BIOLOGY,), {})
    chart = history.chart()
    assert chart is not None
    assert [(one.messages, one.pause) for one in chart.columns] == [(1, False), (0, False), (2, False)]


def test_what_was_noted_before_is_no_news() -> None:
    history = DomainHistory()
    assert history.note(1, 1.0, (BIOLOGY,), {})
    assert not history.note(1, 1.0, (BIOLOGY,), {})
    assert history.note(1, 1.0, (PHYSICS,), {})
    assert not history.note(2, float("nan"), (PHYSICS,), {})
    assert history.note(3, 1.0, ("made up",), {})
