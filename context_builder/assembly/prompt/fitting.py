"""The fitting puts a prompt's items into its token limit so that nothing is said twice. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from context_builder.assembly.budget.allocation import Allocation, TokenBudget
from context_builder.assembly.budget.message_tokens import Message, MessageTokenCounter
from context_builder.assembly.budget.receipt import Outcome, Receipt, receipt, receipts_of
from context_builder.assembly.budget.section import Item, name_of, section_of
from context_builder.assembly.candidate import Candidate, ContextType
from context_builder.assembly.config import AssemblyConfig
from context_builder.assembly.prompt.history import History
from context_builder.assembly.ranking.signals import RankingSignal
from context_builder.assembly.redaction_policy import RedactionPolicy
from context_builder.quoting import quoted_message

_IN_HISTORY: Final = "already in the history"


@dataclass(frozen=True, slots=True)
class Draft:
    """Holds what one prompt may be made of, as given and as retrieved.

    ``required`` are the messages that are always there. ``candidates`` are lists, one a source; of the memories among
    them the ``top_k`` best of at least ``threshold`` similarity are taken, all without these. ``history`` are chat
    messages, oldest first. ``order`` says which section is kept first. ``present_texts`` are texts that
    ``required`` holds already, each with where; ``keeps_duplicates`` is a section that keeps its items although
    another has them. ``refused`` and ``masked`` are what redaction did to ``required``. ``signals`` rank the memories;
    without any, those of ``config``. With ``unique_texts``, candidates of one text are one; without, only those of one
    id. Unless it ``redacts_all``, only what an access policy says is redacted.
    """

    query: str
    required: tuple[Message, ...]
    candidates: Sequence[Sequence[Candidate]]
    order: Sequence[ContextType]
    config: AssemblyConfig
    history: Sequence[Message] = ()
    top_k: int | None = None
    threshold: float | None = None
    present_texts: Mapping[str, str] = field(default_factory=dict)
    keeps_duplicates: ContextType | None = None
    refused: Sequence[Receipt] = ()
    masked: Sequence[tuple[str, str]] = ()
    signals: Sequence[RankingSignal] = ()
    unique_texts: bool = True
    redacts_all: bool = True


@dataclass(frozen=True, slots=True)
class Selection:
    """Holds what competes for a prompt as it may be shown: ranked, deduplicated and redacted.

    ``refused`` are the receipts of what is out already, ``masked`` the texts that redaction changed, before and after.
    """

    draft: Draft
    items: Mapping[ContextType, Sequence[Item]]
    refused: Sequence[Receipt]
    masked: Sequence[tuple[str, str]]


@dataclass(slots=True)
class Fitted:
    """Holds the allocation of a selection's sections, in the order in which they were filled."""

    selection: Selection
    limit: int
    history: History
    allocations: dict[ContextType, Allocation] = field(default_factory=dict)
    duplicates: list[Receipt] = field(default_factory=list)
    """Receipts of what another section tells already."""

    def taken(self, kind: ContextType) -> Sequence[Item]:
        """Return the items of a section that are in the prompt, in order of precedence."""
        return self.allocations[kind].taken if kind in self.allocations else ()

    @property
    def memories(self) -> int:
        """Return how many memories are in the prompt."""
        return len(self.taken(ContextType.SEMANTIC))

    @property
    def tokens(self) -> int:
        """Return the tokens of all sections together."""
        return sum(part.tokens for part in self.allocations.values())

    @property
    def refused(self) -> Iterator[Receipt]:
        """Return receipts of candidates that never competed: withheld, too dissimilar, or present elsewhere."""
        yield from self.selection.refused
        yield from self.duplicates

    def receipts(self) -> Iterator[Receipt]:
        """Return the receipt of every candidate and every message of the history."""
        for kind, part in self.allocations.items():
            yield from receipts_of(part)
            if kind is not ContextType.RECENT or not self.selection.draft.history:
                seen = len(part.taken) + len(part.left)
                past = self.selection.items.get(kind, ())[seen:] if part.section.contiguous else ()
                yield from (_receipt(item, kind, "older than what fits") for item in past)
        yield from self.refused
        yield from self.history.receipts()

    def offered_tokens(self, counter: MessageTokenCounter, total: int) -> tuple[int, int]:
        """Return the tokens of all that competed for a prompt of ``total`` tokens, as given and as redacted.

        Messages that are long past are counted as they were given: nobody redacted them. Takes as long as counting
        the whole history does, so it is not for where a turn waits.
        """
        left = sum(part.section.cost(item) for part in self.allocations.values() for item, _ in part.left)
        redacted = total + left + sum(map(counter.message, self.history.unseen))
        masked = sum(counter.text(before) - counter.text(after) for before, after in self.selection.masked)
        spoken = sum(counter.message(before) - counter.message(after) for before, after in self.history.masked)
        return redacted + masked + spoken, redacted

    def without_duplicates(self, kind: ContextType, present_texts: Mapping[str, str]) -> list[Item]:
        """Return a section's items that neither an earlier section nor ``present_texts`` contains wholly.

        The others get a receipt in ``duplicates`` that says where they are.
        """
        items = self.selection.items.get(kind, ())
        if kind is self.selection.draft.keeps_duplicates:
            return list(items)
        present = {
            name: f"already in the {part.section.name}"
            for other, part in self.allocations.items()
            if other is not ContextType.RECENT
            for item in part.taken
            if not (item.clipped or item.summarised)
            for name in (item.id, item.text)
        }
        left = []
        for item in items:
            words = present_texts if kind is ContextType.SEMANTIC else {}
            why = (
                present.get(item.id)
                or present.get(item.text)
                or next(filter(None, map(words.get, _wordings(item))), None)
            )
            if why is None:
                left.append(item)
            else:
                self.duplicates.append(_receipt(item, kind, why))
        return left

    def history_texts(self) -> set[str]:
        """Return the texts of the history's items, and the contents of their messages."""
        kept = [item for item in self.taken(ContextType.RECENT) if not item.clipped]
        spoken = [message for item in kept if item.answers for message in (item.message or {}, *item.answers)]
        contents = [message.get("content") for message in spoken]
        contents += [item.candidate.text for item in kept if item.candidate]
        return {item.text.strip() for item in kept} | {content.strip() for content in contents if type(content) is str}


def fit(selection: Selection, limit: int, counter: MessageTokenCounter, redaction: RedactionPolicy) -> Fitted:
    """Return the selection within ``limit`` tokens, filled section by section in the draft's order.

    The history goes through ``redaction`` as far as it is looked at. What an earlier section tells is left out of a
    later one, once it is known to be there. A memory that the history tells too makes room; should the history then
    have no room for it after all, the memory comes back for good. Raises
    :class:`~context_builder.errors.TokenLimitExceeded` when the required messages are over.
    """
    present_texts = dict(selection.draft.present_texts)
    lost: set[str] = set()
    while True:
        fitted = _once(selection, limit, present_texts, counter, redaction)
        memories = fitted.taken(ContextType.SEMANTIC)
        spoken = (
            fitted.history_texts() if memories or len(present_texts) > len(selection.draft.present_texts) else set()
        )
        if gone := {words for words, why in present_texts.items() if why == _IN_HISTORY and words not in spoken}:
            lost |= gone
            present_texts = {words: why for words, why in present_texts.items() if words not in gone}
        elif twice := {words for item in memories for words in _wordings(item) if words in spoken} - lost:
            present_texts |= dict.fromkeys(twice, _IN_HISTORY)
        else:
            return fitted


def _once(
    selection: Selection,
    limit: int,
    present_texts: Mapping[str, str],
    counter: MessageTokenCounter,
    redaction: RedactionPolicy,
) -> Fitted:
    draft = selection.draft
    budget = TokenBudget(counter.prompt(draft.required), limit, draft.config.choose)
    fitted = Fitted(selection, limit, History(draft.history, redaction))
    for kind in draft.order:
        dialogue = kind is ContextType.RECENT and draft.history
        items = fitted.history if dialogue else fitted.without_duplicates(kind, present_texts)
        fitted.allocations[kind] = budget.fill(section_of(kind, items, counter))
    return fitted


def _receipt(item: Item, kind: ContextType, reason: str) -> Receipt:
    return receipt(item.id, item.candidate, name_of(kind), Outcome.DROPPED, reason)


def _wordings(item: Item) -> Iterator[str]:
    """Yield the ways a history may word an item: with its speaker before it, or without."""
    candidate = item.candidate or Candidate(item.id, item.text)
    yield item.text.strip()
    if candidate.speaker:
        yield f"{candidate.speaker}: {item.text.strip()}"
        yield quoted_message(candidate.speaker, item.text).strip()
