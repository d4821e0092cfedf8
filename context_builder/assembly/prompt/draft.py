"""What competes for one prompt: as its request drafts it, and as the pipeline selects it to be fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from context_builder.assembly.budget.message_tokens import Message
from context_builder.assembly.budget.receipt import Receipt
from context_builder.assembly.budget.section import Item
from context_builder.assembly.candidate import Candidate, ContextType
from context_builder.assembly.config import AssemblyConfig


@dataclass(frozen=True, slots=True)
class Draft:
    """Holds what one prompt may be made of, as given and as retrieved.

    ``required`` are the messages that are always there. ``candidates`` are lists, one a source; of the memories among
    them the ``top_k`` best of at least ``threshold`` similarity are taken, all without these. ``history`` are chat
    messages, oldest first. ``order`` says which section is kept first. ``said`` are texts that ``required`` tells
    already, each with where; ``told_anyway`` is a section that tells its items although another one does.
    ``refused`` and ``masked`` are what redaction did to ``required``.
    """

    query: str
    required: tuple[Message, ...]
    candidates: Sequence[Sequence[Candidate]]
    order: Sequence[ContextType]
    config: AssemblyConfig
    history: Sequence[Message] = ()
    top_k: int | None = None
    threshold: float | None = None
    said: Mapping[str, str] = field(default_factory=dict)
    told_anyway: ContextType | None = None
    refused: Sequence[Receipt] = ()
    masked: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Selection:
    """Holds what competes for a prompt as it may be shown: ranked, deduplicated and redacted.

    ``refused`` are the receipts of what is out already, ``masked`` the texts that redaction changed, before and after.
    """

    draft: Draft
    items: Mapping[ContextType, Sequence[Item]]
    refused: Sequence[Receipt]
    masked: Sequence[tuple[str, str]]
