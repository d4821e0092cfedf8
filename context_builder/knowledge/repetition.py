"""A message that a point of a summary repeats is left out of a package; the point stands for it."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from context_builder.assembly.candidate import Candidate
from context_builder.knowledge.signals import node_of

REPEATED: Final = 0.75
"""Share of a message's different words that a point has to have, so that it stands for the message."""

_MESSAGE: Final = "message:"
_WORD: Final = re.compile(r"\w+")


class Unrepeated(NamedTuple):
    """Holds candidates, among which a point stands for a message that it repeats, found as the message was; and the
    messages, each with the ref of the point."""

    candidates: list[list[Candidate]]
    repeated: dict[str, tuple[Candidate, str]]


def unrepeated(candidates: Sequence[Sequence[Candidate]], kept: Collection[str]) -> Unrepeated:
    """Return the candidates without messages that a point among them repeats, but for those that are ``kept``."""
    by_ref = {one.id: one for found in candidates for one in found}
    repeated: dict[str, tuple[Candidate, str]] = {}
    for point in by_ref.values():
        for ref in node_of(point).cites if point.text else ():
            message = by_ref.get(ref)
            if message is not None and ref.startswith(_MESSAGE) and ref not in kept and _repeats(point, message):
                repeated.setdefault(ref, (message, point.id))

    def standing_for(one: Candidate) -> Candidate:
        if one.id not in repeated:
            return one
        point = by_ref[repeated[one.id][1]]
        return replace(point, base_score=one.base_score, origins=one.origins, evidence=one.evidence)

    return Unrepeated([[standing_for(one) for one in found] for found in candidates], repeated)


def _repeats(point: Candidate, message: Candidate) -> bool:
    said = _words(message.text)
    return len(said & _words(point.text)) >= REPEATED * len(said)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))
