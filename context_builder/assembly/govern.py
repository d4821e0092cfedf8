"""Governing: how candidates may be seen, by an access policy, and as the redactor lets them be shown."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from threading import Lock
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

import structlog

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.section import ChatMessage
from context_builder.quoting import label_of, visible
from context_builder.redaction.redactor import NoopRedactor, RedactorProtocol, redact_nested
from context_builder.tracing import span

log = structlog.get_logger(__name__)

T = TypeVar("T")


class Access(StrEnum):
    """How a source may be seen."""

    READ = "read"
    REDACTED = "redacted"
    DENIED = "denied"


class Redacted(NamedTuple, Generic[T]):
    """A value as it may be shown, what was done to it, and whether a mark stands for some of it."""

    value: T
    altered: str = ""
    withheld: bool = False


class Ruling(NamedTuple):
    """How one candidate may be seen, and why; the reason quotes nothing of it.

    ``redacted`` is the candidate as it may be shown, where the policy redacts it itself; ``similarity`` that to the
    query, where only what is shown may tell it.
    """

    access: Access
    reason: str = ""
    redacted: Redacted[Candidate] | None = None
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class AccessQuestion:
    """For whom and for what candidates are wanted."""

    query: str
    now: datetime
    tenant_id: str | None = None
    user_id: str | None = None


class AccessPolicy(Protocol):
    """Decides for a prompt how its candidates may be seen."""

    async def decide(self, candidates: Sequence[Candidate], question: AccessQuestion) -> Mapping[str, Ruling]:
        """Return a ruling for each candidate by its id; a candidate without one is denied."""
        ...


@dataclass(frozen=True, slots=True)
class Governed:
    """What sources offer as an access policy lets it be seen: lists in the order given, without what is ``denied``."""

    lists: Sequence[Sequence[Candidate]]
    rulings: Mapping[str, Ruling] = field(default_factory=dict)
    denied: Sequence[Candidate] = ()
    redacted: frozenset[str] = frozenset()
    """Ids of those that may be seen redacted only."""


def govern(lists: Sequence[Sequence[Candidate]], rulings: Mapping[str, Ruling]) -> Governed:
    """Return the candidates as ``rulings`` let them be seen; one without a ruling is denied."""
    denied: dict[str, Candidate] = {}

    def allowed(candidates: Sequence[Candidate]) -> list[Candidate]:
        kept = []
        for one in candidates:
            if (ruling := rulings.get(one.id)) is None or ruling.access is Access.DENIED:
                denied.setdefault(one.id, one)
            else:
                kept.append(_as_ruled(one, ruling))
        return kept

    redacted = frozenset(name for name, ruling in rulings.items() if ruling.access is Access.REDACTED)
    return Governed([allowed(candidates) for candidates in lists], rulings, tuple(denied.values()), redacted)


def each_once(lists: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """Return the candidates that a policy decides about: the last of each id."""
    return list({one.id: one for candidates in lists for one in candidates}.values())


async def decided(decisions: Awaitable[T], nothing: T) -> T:
    """Return the decisions of an access policy; whatever stops it, ``nothing``, so that all is denied."""
    with span("context.access"):
        try:
            return await decisions
        except Exception:  # a policy of any kind
            log.exception("access.failed")
            return nothing


def _as_ruled(candidate: Candidate, ruling: Ruling) -> Candidate:
    """Return the candidate as its ruling shows it; how it was found stays, but for what redaction took out."""
    if ruling.redacted is None or ruling.redacted.withheld:
        return candidate
    score = candidate.base_score
    if ruling.similarity is not None and score:
        score = ruling.similarity
    shown = ruling.redacted.value
    return replace(shown, base_score=score, score=score, origins=candidate.origins, evidence=candidate.evidence)


WITHHELD: Final = "[withheld: it could not be redacted]"

REDACTION_SECONDS: Final = 5.0
"""Seconds in which a prompt for others has to be redacted. What is not done then is withheld; what is done is
remembered for the next prompt."""

_CACHED_CHARS: Final = 4_000_000
"""Characters of texts whose redaction is remembered, and of what became of them."""

_LONGEST_CACHED: Final = 1_000_000
_OWN_CHARS: Final = 200
"""What a remembered text takes beside its characters."""


_HAS_TIME: Final[ContextVar[Callable[[], bool]]] = ContextVar("has_time", default=lambda: True)


async def redacting_beside(make: Callable[[], T], monotonic: Callable[[], float]) -> T:
    """Return what ``make`` makes in a thread, because other tenants' callers wait on the same loop.

    Policies redact for :data:`REDACTION_SECONDS` on the clock ``monotonic``; after that they withhold texts that they
    have not seen before.
    """
    until = monotonic() + REDACTION_SECONDS
    token = _HAS_TIME.set(lambda: monotonic() <= until)
    try:
        return await asyncio.to_thread(make)  # not one of two threads: others' answers would wait for its seconds
    finally:
        _HAS_TIME.reset(token)


@dataclass(frozen=True, slots=True)
class RedactedText:
    """A text as it may be shown, None when it may not be; ``altered`` tells what was done to it, if anything."""

    text: str | None
    altered: str = ""

    @property
    def shown(self) -> str:
        """Return the text, or the mark that stands in its place."""
        return WITHHELD if self.text is None else self.text


def _size(text: str, redacted: RedactedText) -> int:
    return _OWN_CHARS + len(text) + len(redacted.shown)


class RedactionPolicy:
    """Sends every text through a redactor, once; a text that the redactor fails at is withheld.

    It ``is_free`` where the redactor is one that changes nothing.
    """

    def __init__(self, redactor: RedactorProtocol) -> None:
        self.is_free = isinstance(redactor, NoopRedactor)
        self._redactor = redactor
        self._known: OrderedDict[str, RedactedText] = OrderedDict()
        self._known_chars = 0
        self._lock = Lock()

    def text(self, text: str) -> RedactedText:
        """Return one text as it may be shown."""
        if self.is_free:
            return RedactedText(text)
        with self._lock:
            if (known := self._known.get(text)) is not None:
                self._known.move_to_end(text)
                return known
        redacted = self._ask(text)
        if redacted.text is not None:  # else the next turn asks again: the failure may have passed
            self._remember(text, redacted)
        return redacted

    def _remember(self, text: str, redacted: RedactedText) -> None:
        if len(text) > _LONGEST_CACHED:
            return
        with self._lock:
            if text not in self._known:
                self._known[text] = redacted
                self._known_chars += _size(text, redacted)
            while self._known_chars > _CACHED_CHARS:
                self._known_chars -= _size(*self._known.popitem(last=False))

    def message(self, message: ChatMessage) -> Redacted[ChatMessage]:
        """Return a chat message as it may be shown: all texts but its role are redacted."""
        if self.is_free:
            return Redacted(message)
        redacted = self.mapping(message)
        return redacted._replace(value={**redacted.value, "role": message["role"]}) if "role" in message else redacted

    def mapping(self, values: Mapping[str, Any]) -> Redacted[dict[str, Any]]:
        """Return values as they may be shown, the texts inside them redacted at any depth."""
        if self.is_free:
            return Redacted(dict(values))
        redactions: list[RedactedText] = []

        def shown_text(text: str) -> str:
            redactions.append(redacted := self.text(text))
            return redacted.shown

        shown = redact_nested(values, shown_text)
        notes = dict.fromkeys(one.altered for one in redactions if one.altered)
        return Redacted(shown, ", ".join(notes), any(one.text is None for one in redactions))

    def candidate(self, candidate: Candidate) -> Redacted[Candidate]:
        """Return a candidate as it may be shown: its texts, label, speaker and metadata are redacted."""
        if self.is_free:
            return Redacted(candidate)
        redacted = self.mapping({name: getattr(candidate, name) for name in ("text", "label", "speaker", "metadata")})
        shown = replace(candidate, **redacted.value)
        if candidate.label == label_of(candidate.metadata, candidate.speaker, candidate.time):
            shown = replace(shown, label=label_of(shown.metadata, shown.speaker, shown.time))  # it may have been cut
        if redacted.altered:
            shown = replace(shown, projections=())  # they were cut out of the text as it was
        return Redacted(shown, redacted.altered, redacted.withheld)

    def _ask(self, text: str) -> RedactedText:
        if not _HAS_TIME.get()():
            return RedactedText(None, "withheld: there was no time left to redact it")
        try:
            text = visible(text)  # as it will be shown: what hides a secret from the redactor is gone there, too
            redacted = self._redactor.redact(text)
        except Exception as error:  # noqa: BLE001 a redactor of any kind; whatever stops it, the text stays here
            return RedactedText(None, f"withheld: the redactor failed with {type(error).__name__}")
        if not isinstance(redacted, str):
            return RedactedText(None, f"withheld: the redactor returned {type(redacted).__name__}")
        return RedactedText(redacted, "" if redacted == text else "redacted")
