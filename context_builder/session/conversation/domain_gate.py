"""Spares model calls for domains while plain text analysis is sure that nothing has changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final

from context_builder.analysis.analyst import Analyst, DomainResult, Usage
from context_builder.errors import AnalystError
from context_builder.session.conversation.tasks import DomainTask

MOST_IN_A_ROW: Final = 6
"""Readings taken again before the model is asked all the same."""

Confidence = Mapping[str, float]
"""Of domains, highest first; empty when nothing points to one."""


def is_unchanged(names: Collection[str], recent: Confidence, newest: Confidence) -> bool:
    """Whether plain text analysis hears no domain but those of ``names``: none leads in the ``recent`` messages, and
    the ``newest`` among them, by themselves, speak for one of the names or for nothing."""
    leading = _leading(recent)
    return (leading is None or leading in names) and (not newest or any(name in newest for name in names))


class DomainGate:
    """Lets the model's last reading stand while the plain reading agrees with it, :data:`MOST_IN_A_ROW` times at most.

    The two agree on the leading domain, or they differ as they did both of the last two times the model was asked: it
    may well call biology what the vocabularies call ecology. Agreement also ends a doubt about what the model said
    once; silence about every domain does not. ``plain`` is the plain text analysis, which works off the loop.
    """

    def __init__(self, plain: Analyst) -> None:
        self._plain = plain
        self._heard: str | None = None
        self._judged: tuple[str | None, str | None] | None = None
        self._other_name: str | None = None
        self._in_a_row = 0

    async def repeated(self, work: DomainTask) -> DomainResult | None:
        """The last reading again; ``None`` when the model is to be asked."""
        self._heard = None
        with suppress(AnalystError):
            recent = (await self._plain.infer_domains(work.messages)).confidence
            newest = (await self._plain.infer_domains(work.messages[-work.new :])).confidence
            self._heard = _leading(recent)
            if work.standing is not None and self._stands(work.standing, recent, newest, in_doubt=work.in_doubt):
                self._in_a_row += 1
                return replace(work.standing, usage=Usage(), repeated=True)
        return None

    def judged(self, reading: DomainResult) -> None:
        """The messages of the last :meth:`repeated` were read after all."""
        judgement = _leading(reading.confidence), self._heard
        self._other_name = self._heard if judgement == self._judged else None
        self._judged = judgement
        self._in_a_row = 0

    def _stands(self, reading: DomainResult, recent: Confidence, newest: Confidence, *, in_doubt: bool) -> bool:
        if reading.analyst == self._plain.name or self._in_a_row >= MOST_IN_A_ROW or (in_doubt and not recent):
            return False
        names = reading.domains[:1]
        if self._other_name is not None and not in_doubt:
            names.append(self._other_name)
        return is_unchanged(names, recent, newest)


def _leading(confidence: Confidence) -> str | None:
    return next(iter(confidence), None)
