"""Redaction beside the event loop: in time, or withheld, and what took too long takes no time again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from context_builder.analysis.processes import Helpers, TookTooLong
from context_builder.knowledge.govern import LONG, MUCH, BoundedRedaction
from context_builder.redaction.redactor import NoopRedactor, RedactorProtocol


class Impatient:
    """Runs what is asked here, and ends what is about a text with a word that it does not like."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    async def __call__(self, function: Callable[..., Any], /, make: Callable[[], RedactorProtocol], texts: Any) -> Any:
        self.asked.append(list(texts))
        if any("slow" in text for text in texts):
            raise TookTooLong("ended")
        return function(make, texts)


async def test_a_text_that_took_too_long_is_withheld_and_not_tried_again() -> None:
    run = Impatient()
    redaction = BoundedRedaction(NoopRedactor, Helpers(run, run))
    slow, quick = "slow " * LONG, "quick " * LONG
    assert await redaction.redact(["short", slow, quick]) == ["short", None, None]
    assert await redaction.redact(["short", slow, quick]) == ["short", None, quick]
    assert run.asked.count([slow]) == 1


async def test_what_is_short_does_not_wait_for_what_is_long() -> None:
    usual, long = Impatient(), Impatient()
    redaction = BoundedRedaction(NoopRedactor, Helpers(usual, long))
    short, whole = ["x" * LONG], "quick " * LONG
    await redaction.redact([*short, whole])
    many = ["y" * LONG] * (MUCH // LONG + 1)
    await redaction.redact(many)
    assert (usual.asked, long.asked) == ([short], [[whole], many])
