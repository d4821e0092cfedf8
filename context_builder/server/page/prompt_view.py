"""The prompt view shows a prompt's parts, each candidate's verdict, and the effect of another budget. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from context_builder.assembly.budget import Outcome, Receipt
from context_builder.assembly.build_turn import BuiltContext

PARTS: Final = {
    "system": "System prompt",
    "preferences": "Preferences",
    "summary": "Summary",
    "history": "Conversation",
    "snippets": "Memories",
    "user": "Message",
    "overhead": "Chat format",
}
"""What a prompt's tokens go to, in the order of its messages, as people are told."""

SECTIONS: Final = {"memory": "Memories", "summary": "Summary", "preferences": "Preferences", "history": "Conversation"}
"""Sections of receipts, as people are told, in the order in which they are shown."""

LEFT_OUT: Final = frozenset({Outcome.DROPPED, Outcome.WITHHELD, Outcome.DENIED})
_ALIKE: Final = 3
"""From this many equal unread receipts on, one row stands for all."""

_RATED: Final = "memory"
_NOT_RATED: Final = frozenset({"session", "knowledge"})
"""Origins of what no memory store could learn about."""


@dataclass(frozen=True, slots=True)
class BudgetPart:
    """What a part of the prompt takes; ``begin`` and ``share`` are shares of the budget, 0 to 1."""

    name: str
    label: str
    tokens: int
    begin: float
    share: float


@dataclass(frozen=True, slots=True)
class Change:
    """Tells what another budget did to a candidate: it came ``in``, went ``out``, or takes ``more`` or ``less``."""

    kind: str
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class ReceiptGroup:
    """The receipts of one section; only those of ranked candidates have scores and signals to show."""

    label: str
    receipts: Sequence[Receipt]

    @property
    def is_ranked(self) -> bool:
        return any(one.signals for one in self.receipts)

    @property
    def can_be_rated(self) -> bool:
        return any(map(is_rated, self.receipts))

    @property
    def tokens(self) -> int:
        return sum(one.tokens for one in self.receipts)


@dataclass(frozen=True, slots=True)
class PromptView:
    """A prompt within ``budget`` tokens, and what changed since it had ``before`` tokens."""

    budget: int
    before: int
    tokens: int
    messages: Sequence[Mapping[str, Any]]
    parts: Sequence[BudgetPart]
    taken: Sequence[ReceiptGroup]
    left: Sequence[ReceiptGroup]
    changes: Sequence[Change]
    memory: str

    @property
    def can_be_rated(self) -> bool:
        return any(one.can_be_rated for one in self.taken)


def prompt_view(built: BuiltContext, shown: Sequence[Receipt], before: Sequence[Receipt], was: int) -> PromptView:
    """Return the view of a prompt whose receipts are ``shown``, which were ``before`` in a budget of ``was`` tokens."""
    budget, counts = int(built.debug["max_prompt_tokens"]), built.token_counts
    return PromptView(
        budget=budget,
        before=was,
        tokens=counts["total"],
        messages=[one for one in built.messages if one["content"]],
        parts=_parts(counts, budget),
        taken=grouped([one for one in shown if one.outcome not in LEFT_OUT]),
        left=grouped(_gathered([one for one in shown if one.outcome in LEFT_OUT])),
        changes=changes(before, shown),
        memory=str(built.debug["memory"]),
    )


def changes(before: Sequence[Receipt], after: Sequence[Receipt]) -> list[Change]:
    """Return what differs between two fits of the same candidates, in the order in which they are told after."""
    had, has = _tokens(before), _tokens(after)
    told: dict[tuple[str, str], Change] = {}
    texts = {(one.section, one.id): one for one in (*after, *before) if one.text}
    for one in (*after, *before):
        name = (one.section, one.id)
        earlier, now = had.get(name, 0), has.get(name, 0)
        if name not in told and earlier != now:
            kind = "in" if not earlier else "out" if not now else "more" if now > earlier else "less"
            told[name] = Change(kind, texts.get(name, one))
    return list(told.values())


def is_rated(receipt: Receipt) -> bool:
    """Return whether it is a memory in the prompt, of which somebody can say whether it helped."""
    return (
        receipt.section == _RATED
        and receipt.outcome not in LEFT_OUT
        and bool(receipt.origins)
        and not _NOT_RATED & {*receipt.origins}
    )


def grouped(receipts: Sequence[Receipt]) -> list[ReceiptGroup]:
    """Return the receipts by section."""
    sections = dict.fromkeys((*SECTIONS, *(one.section for one in receipts)))
    found = {name: [one for one in receipts if one.section == name] for name in sections}
    return [ReceiptGroup(SECTIONS.get(name, name.capitalize()), rows) for name, rows in found.items() if rows]


def _gathered(receipts: Sequence[Receipt]) -> list[Receipt]:
    """Return the receipts, of those in a row that nobody looked at, and are left out for the same reason, one."""
    gathered: list[Receipt] = []
    for _, group in groupby(receipts, key=lambda one: (bool(one.text), one.section, one.reason)):
        alike = list(group)
        if alike[0].text or len(alike) < _ALIKE:
            gathered += alike
        else:
            gathered.append(Receipt(f"{len(alike)} of them", alike[0].section, alike[0].outcome, alike[0].reason))
    return gathered


def _tokens(receipts: Sequence[Receipt]) -> dict[tuple[str, str], int]:
    held: dict[tuple[str, str], int] = {}
    for one in receipts:
        name = (one.section, one.id)
        held[name] = max(one.tokens, held.get(name, 0))
    return held


def _parts(counts: Mapping[str, int], budget: int) -> list[BudgetPart]:
    parts, begin = [], 0
    for name, label in PARTS.items():
        if tokens := counts.get(name, 0):
            parts.append(BudgetPart(name, label, tokens, begin / budget, tokens / budget))
            begin += tokens
    return parts
