"""A context from what strategies offered: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from context_builder.assembly.budget.allocation import Allocation, TokenBudget
from context_builder.assembly.budget.message_tokens import REPLY_PRIMING, MessageTokenCounter
from context_builder.assembly.budget.receipt import Outcome, Receipt, receipt, receipts_of
from context_builder.assembly.budget.section import Item
from context_builder.assembly.candidate import Candidate, ContextType
from context_builder.assembly.config import AssemblyConfig
from context_builder.assembly.prompt.context import Context, ContextMetadata, ModelType
from context_builder.assembly.prompt.formatter import PRIORITY, ContextFormatter, name_of
from context_builder.assembly.redaction_policy import RedactionPolicy
from context_builder.assembly.turn import spoken
from context_builder.errors import EmptyContext, TokenLimitExceeded

DEFAULT_TOKEN_LIMIT: Final = 4096


@dataclass(frozen=True, slots=True)
class Ingredients:
    """What a context is made of: the system message, what strategies offered, and what it is for."""

    system_message: str | None
    candidates: Sequence[Candidate]
    token_limit: int
    now: datetime
    user_id: str | None = None
    conversation_id: str | None = None
    skipped: tuple[str, ...] = ()


class Composer:
    """govern → fit → assemble, with the system message always there and the rest by priority."""

    def __init__(self, rules: AssemblyConfig, tally: MessageTokenCounter, governor: RedactionPolicy) -> None:
        self._rules = rules
        self._tally = tally
        self._governor = governor
        self._formatter = ContextFormatter(tally)

    def compose(self, given: Ingredients) -> Context:
        """Raises :class:`~context_builder.errors.EmptyContext` when there is nothing that may be shown and fits, and
        :class:`~context_builder.errors.TokenLimitExceeded` when the system message alone is over the limit."""
        refused: list[Receipt] = []
        items = self._items(given.candidates, refused)
        system = self._system(given, refused)
        if system is None and not any(items.values()):
            raise EmptyContext(_why_empty(refused))
        plain = self._within(given, system, items, refused, ModelType.PLAIN)

        def fit_for(model: ModelType) -> Context:
            return plain if model is ModelType.PLAIN else self._within(given, system, items, refused, model)

        return replace(plain, fit_for=fit_for)

    def _within(
        self,
        given: Ingredients,
        system: str | None,
        items: Mapping[ContextType, Sequence[Item]],
        refused: Sequence[Receipt],
        model: ModelType,
    ) -> Context:
        """The context within the limit, as messages and as ``model`` takes them in one text."""
        required = REPLY_PRIMING
        if system is not None:
            required += self._tally.message({"role": "system", "content": system})
        limit = given.token_limit
        while True:
            parts, told = self._parts(items, TokenBudget(required, limit, self._rules.choose))
            context = self._context(given, system, parts, [*refused, *told])
            over = self._tally.text(context.written(model)) - given.token_limit
            if not any(part.taken for part in parts.values()):
                if system is None:
                    raise EmptyContext(f"nothing fits into {given.token_limit} tokens")
                if over > 0:
                    raise TokenLimitExceeded(given.token_limit + over, given.token_limit)
            if over <= 0:
                return context
            limit = max(required, context.metadata.total_tokens - over)

    def _parts(
        self, items: Mapping[ContextType, Sequence[Item]], room: TokenBudget
    ) -> tuple[dict[str, Allocation], list[Receipt]]:
        """What fits, section by section; and receipts of the memories that the messages taken tell already."""
        parts: dict[str, Allocation] = {}
        told: list[Receipt] = []
        for kind in PRIORITY:
            offered = list(items.get(kind, ()))
            if kind is ContextType.SEMANTIC and (recent := parts.get(name_of(ContextType.RECENT))):
                said = {item.candidate.text for item in recent.taken if item.candidate and not item.clipped}
                twice = [item.candidate for item in offered if item.candidate and item.text in said]
                told += (_receipt(one, Outcome.DROPPED, "among the recent messages") for one in twice)
                offered = [item for item in offered if item.text not in said]
            for section in self._formatter.sections({kind: offered}):
                parts[section.name] = room.fill(section)
        return parts, told

    def _items(self, candidates: Sequence[Candidate], refused: list[Receipt]) -> dict[ContextType, list[Item]]:
        items: dict[ContextType, list[Item]] = {kind: [] for kind in ContextType}
        seen: set[tuple[ContextType, str]] = set()
        for candidate in candidates:
            if candidate.type is ContextType.SYSTEM:
                continue
            if (candidate.type, candidate.text) in seen:
                refused.append(_receipt(candidate, Outcome.DROPPED, "found twice"))
            elif item := self._item(candidate, refused):
                items[candidate.type].append(item)
            if candidate.type is not ContextType.RECENT:
                seen.add((candidate.type, candidate.text))
        return items

    def _item(self, candidate: Candidate, refused: list[Receipt]) -> Item | None:
        rulings = [self._governor.text(text) for text in (candidate.text, candidate.label, candidate.speaker or "")]
        altered = next((ruling.altered for ruling in rulings if ruling.altered), "")
        text, label, speaker = (ruling.text for ruling in rulings)
        if text is None or label is None or speaker is None:
            refused.append(_receipt(candidate, Outcome.WITHHELD, altered))
            return None
        shown = replace(candidate, text=text, label=label, speaker=speaker or None)
        if candidate.type is not ContextType.RECENT:
            return Item(candidate.id, text, candidate.score, candidate=shown, altered=altered)
        message = spoken(shown)
        return Item(candidate.id, message["content"], message=message, candidate=shown, altered=altered)

    def _system(self, given: Ingredients, refused: list[Receipt]) -> str | None:
        texts = [given.system_message] if given.system_message else []
        for candidate in given.candidates:
            if candidate.type is ContextType.SYSTEM:
                ruling = self._governor.text(candidate.text)
                if ruling.text is None:
                    refused.append(_receipt(candidate, Outcome.WITHHELD, ruling.altered))
                else:
                    texts.append(ruling.text)
        return "\n\n".join(texts) or None

    def _context(
        self, given: Ingredients, system: str | None, parts: Mapping[str, Allocation], refused: Sequence[Receipt]
    ) -> Context:
        messages = self._formatter.messages(system, parts)
        relevant = parts.get(name_of(ContextType.SEMANTIC))
        return Context(
            system_message=system,
            conversation_history=self._formatter.history(parts),
            user_preferences=self._formatter.block(ContextType.USER_PREFERENCES, parts),
            summary=self._formatter.block(ContextType.SUMMARY, parts),
            relevant=[item.text for item in relevant.taken] if relevant else [],
            messages=messages,
            metadata=ContextMetadata(
                user_id=given.user_id,
                conversation_id=given.conversation_id,
                total_tokens=self._tally.prompt(messages),
                message_count=len(messages),
                created_at=given.now,
            ),
            receipts=[*(one for part in parts.values() for one in _all_receipts(part)), *refused],
            skipped=given.skipped,
        )


def _why_empty(refused: Sequence[Receipt]) -> str:
    withheld = [one for one in refused if one.outcome is Outcome.WITHHELD]
    if not withheld:
        return "no system message, and no strategy found anything"
    return f"no system message, and all {len(withheld)} that strategies found was {withheld[0].reason}"


def _all_receipts(part: Allocation) -> list[Receipt]:
    past = (
        receipt(item.id, item.candidate, part.section.name, Outcome.DROPPED, "older than what fits")
        for item in part.rest
    )
    return [*receipts_of(part), *past]


def _receipt(candidate: Candidate, outcome: Outcome, reason: str) -> Receipt:
    return receipt(candidate.id, candidate, name_of(candidate.type), outcome, reason)
