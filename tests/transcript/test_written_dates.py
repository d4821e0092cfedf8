"""Dates in words, which take long to read in every language."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import dateparser
import pytest

from context_builder.transcript.written_dates import named_date


def test_texts_that_are_no_dates_but_for_their_numbers_are_tried_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def parse(text: str, **_: Any) -> None:
        tried.append(text)

    monkeypatch.setattr(dateparser, "parse", parse)
    assert all(named_date(f"{day} of Smarch {year}") is None for day in range(1, 29) for year in (2001, 2002, 2003))
    assert len(tried) == 21, "once with the numbers of a usual date"


def test_dates_beside_texts_that_are_none_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dateparser, "parse", lambda text, **_: None if text.startswith("3") else text)
    found = [named_date(f"{day} of Thaw 2001") for day in (1, *range(30, 40), *range(300, 330), 2)]
    assert [one for one in found if one is not None] == ["1 of Thaw 2001", "2 of Thaw 2001"]


def test_impossible_days_keep_no_other_from_being_read() -> None:
    assert not any(named_date(f"{day}. März 2024") for day in range(40, 65))
    assert named_date("5. März 2024") == datetime(2024, 3, 5)
