"""All that is there for a turn's prompt, within the limit, and nothing told twice: pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from context_builder.assembly.budget.allocation import Allocation, Choose, TokenBudget
from context_builder.assembly.budget.message_tokens import Message, MessageTokenCounter
from context_builder.assembly.budget.receipt import Outcome, Receipt, receipt
from context_builder.assembly.budget.section import Block, Dialogue, Item, Section, listed, numbered
from context_builder.assembly.candidate import Candidate
from context_builder.assembly.prompt.history import HISTORY, History
from context_builder.assembly.redaction_policy import RedactionPolicy
from context_builder.assembly.turn import Turn
from context_builder.quoting import quoted_message

MEMORY: Final = "memory"
SUMMARY: Final = "summary"
HEADING: Final = "Relevant memory:"
SUMMARY_HEADING: Final = "Conversation so far:"

_IN_HISTORY: Final = "told by the history"
_BY_USER: Final = "told by the user's message"


@dataclass(frozen=True, slots=True)
class Offer:
    """A turn's first and last message, and the items of the sections between them, as they may be shown.

    ``order`` names the sections as they are kept; ``refused`` are the receipts of what is out already, ``masked`` the
    texts that redaction changed, before and after.
    """

    turn: Turn
    ends: tuple[Message, Message]
    shown: Mapping[str, Sequence[Item]]
    order: Sequence[str]
    refused: Sequence[Receipt]
    masked: Sequence[tuple[str, str]]


@dataclass(slots=True)
class Fitted:
    """What became of the sections; ``refused`` are the receipts of what others told already."""

    history: History
    parts: dict[str, Allocation] = field(default_factory=dict)
    refused: list[Receipt] = field(default_factory=list)

    def untold(self, section: str, items: Sequence[Item], said: Mapping[str, str]) -> list[Item]:
        """The items that no section before this one tells as a whole, nor what is ``said``, with where."""
        told = {
            name: f"told by the {part.section.name}"
            for part in self.parts.values()
            if part.section.name != HISTORY
            for item in part.taken
            if not item.clipped
            for name in (item.id, item.text)
        }
        left = []
        for item in items:
            words = said if section == MEMORY else {}
            why = told.get(item.id) or told.get(item.text) or next(filter(None, map(words.get, _wordings(item))), None)
            if why is None:
                left.append(item)
            else:
                self.refused.append(receipt(item.id, item.candidate, section, Outcome.DROPPED, why))
        return left

    def heard(self) -> set[str]:
        """What the history says, message by message."""
        kept = [item for item in self.parts[HISTORY].taken if not item.clipped]
        spoken = [message for item in kept if item.answers for message in (item.message or {}, *item.answers)]
        contents = (message.get("content") for message in spoken)
        return {item.text.strip() for item in kept} | {content.strip() for content in contents if type(content) is str}


class Fitting:
    """Fits offers."""

    def __init__(self, tally: MessageTokenCounter, governor: RedactionPolicy, choose: Choose) -> None:
        self._tally = tally
        self._governor = governor
        self._choose = choose

    def fitted(self, offer: Offer, limit: int) -> Fitted:
        """The offer within the limit, in its order.

        What an earlier section tells is left out of a later one, once it is known to be there. A memory that the
        history tells too makes room; should the history then have no room for it after all, the memory comes back for
        good. Raises :class:`~context_builder.errors.TokenLimitExceeded` when the first and last message are over.
        """
        said = {offer.turn.user_message.strip(): _BY_USER}
        lost: set[str] = set()
        while True:
            fitted = self._once(offer, limit, said)
            memories = fitted.parts[MEMORY].taken
            heard = fitted.heard() if memories or len(said) > 1 else set()
            if gone := {words for words, why in said.items() if why == _IN_HISTORY and words not in heard}:
                lost |= gone
                said = {words: why for words, why in said.items() if words not in gone}
            elif twice := {words for item in memories for words in _wordings(item) if words in heard} - lost:
                said |= dict.fromkeys(twice, _IN_HISTORY)
            else:
                return fitted

    def _once(self, offer: Offer, limit: int, said: Mapping[str, str]) -> Fitted:
        room = TokenBudget(self._tally.prompt(offer.ends), limit, self._choose)
        fitted = Fitted(History(offer.turn.history, self._governor))
        for name in offer.order:
            items = fitted.untold(name, offer.shown.get(name, ()), said)
            fitted.parts[name] = room.fill(self._section(name, items, fitted.history))
        return fitted

    def _section(self, name: str, items: Sequence[Item], history: History) -> Section:
        if name == HISTORY:
            return Dialogue(HISTORY, history, self._tally)
        if name == MEMORY:
            return Block(MEMORY, HEADING, items, self._tally, entry=numbered)
        return Block(SUMMARY, SUMMARY_HEADING, items, self._tally, entry=listed, backwards=True)


def _wordings(item: Item) -> Iterator[str]:
    """How a history may say what an item tells: with its speaker before it, or without."""
    candidate = item.candidate or Candidate(item.id, item.text)
    yield item.text.strip()
    if candidate.speaker:
        yield f"{candidate.speaker}: {item.text.strip()}"
        yield quoted_message(candidate.speaker, item.text).strip()
