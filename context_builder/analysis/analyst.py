"""An analyst reads messages and returns keywords, domains, summaries and preferences.

An analyst reads what people said and never decides what to do about it. Three things are asked of it: keywords of
single messages, the academic domains of a stretch of talk, and the points worth keeping of a stretch of talk. A model
also rewrites old points as fewer sentences. OpenAI, a local model and plain text analysis all stand behind this one
protocol, so the session does not know which of them answered; the result says so in ``analyst``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from context_builder.costs import NO_USAGE, Usage
from context_builder.values import value

MIN_KEYWORD_TEXT: Final = 10
"""Texts shorter than this many characters get no keywords."""

DOMAIN_TEXT: Final = 600
"""Characters of one message that domains are inferred from: of a longer one, its first and last half."""

MAX_KEYWORDS: Final = 10
"""Most keywords of one message."""

MAX_QUOTES: Final = 5
"""Most quotes that a new point may rest on."""


class PreferenceKind(StrEnum):
    """The kind of a preference."""

    PREFERS = "prefers"
    LIKES_WHEN = "likes when"
    DISLIKES = "dislikes"
    DISLIKES_WHEN = "dislikes when"
    ALWAYS = "always"
    NEVER = "never"
    NAME = "name"
    LANGUAGE = "language"

    def phrase(self, what: str) -> str:
        """Return the preference for ``what``, in the third person."""
        return _FORMS[self].format(what)


_FORMS: Final[Mapping[PreferenceKind, str]] = {
    PreferenceKind.PREFERS: "Prefers {}",
    PreferenceKind.LIKES_WHEN: "Likes it when {}",
    PreferenceKind.DISLIKES: "Dislikes {}",
    PreferenceKind.DISLIKES_WHEN: "Dislikes it when {}",
    PreferenceKind.ALWAYS: "Always {}",
    PreferenceKind.NEVER: "Never {}",
    PreferenceKind.NAME: "Wants to be called {}",
    PreferenceKind.LANGUAGE: "Wants replies in {}",
}


class PointKind(StrEnum):
    """What sort of thing a summary point records.

    A question was raised and not answered; a decision is settled: somebody accepted it; an action is what somebody is
    to do; a proposal was suggested and not accepted yet; a disagreement has two views, each with its holder;
    consilience was said by the assistant; everything else is a claim.
    """

    CLAIM = "claim"
    QUESTION = "question"
    DECISION = "decision"
    ACTION = "action"
    PROPOSAL = "proposal"
    DISAGREEMENT = "disagreement"
    CONSILIENCE = "consilience"


HEADINGS: Final[Mapping[PointKind, str]] = {
    PointKind.DECISION: "Decided",
    PointKind.ACTION: "To do",
    PointKind.QUESTION: "Open",
    PointKind.DISAGREEMENT: "Disputed",
    PointKind.PROPOSAL: "Proposed",
    PointKind.CLAIM: "Said",
    PointKind.CONSILIENCE: "Said",
}
"""The heading under which a summary has points of each kind, in the order of the headings."""


@value
class AnalystMessage:
    """One message as an analyst is given it.

    ``id`` is unique within the session (message numbers are not) and is what a point cites. ``recurring`` tells in how
    many earlier messages of the session a stem was part of a keyword; an analyst may prefer such terms, or ignore it.
    What was said just ``before`` may tell it what "it" is.
    """

    id: int
    speaker: str
    text: str
    timestamp: str = ""
    number: int | None = None
    consilience: bool = False
    recurring: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    before: Sequence[AnalystMessage] = field(default=(), compare=False, repr=False)


@value
class KeywordResult:
    """The keywords of each message, in the order in which the messages were given."""

    keywords: tuple[tuple[str, ...], ...]
    analyst: str
    usage: Usage = NO_USAGE


@value
class DomainResult:
    """Active domains with confidences in 0..1, most confident first, and the topic's keywords.

    Every key of ``confidence`` is one of :data:`context_builder.domains.DOMAINS`. ``repeated`` says that the
    last result stands again: plain text analysis was sure that nothing had changed, so no model was asked.
    """

    confidence: Mapping[str, float]
    keywords: tuple[str, ...]
    analyst: str
    usage: Usage = NO_USAGE
    repeated: bool = False

    @property
    def domains(self) -> list[str]:
        return list(self.confidence)


@dataclass(frozen=True, slots=True)
class Quote:
    """A few words of a message, verbatim except for stutter and filler words; ``message`` is the message's id.

    ``speaker`` said them, where that is told: of a known point, whose messages are not at hand any more.
    """

    message: int
    text: str
    speaker: str = ""


@dataclass(frozen=True, slots=True)
class DraftPoint:
    """A point as an analyst proposes it: one whole sentence that rests on quotes of the messages it was given.

    ``by`` are the speakers whose view, question, promise or decision it is, each of whom said a quoted message; without
    any, the speakers of the quoted messages. A ``spoken`` sentence stands as one of them said it, stutter and filler
    aside, so it is read with the speaker's name. ``unconfirmed`` says that a doubt about it could not be cleared up.
    """

    text: str
    evidence: tuple[Quote, ...]
    kind: PointKind = PointKind.CLAIM
    by: tuple[str, ...] = ()
    replaces: tuple[int, ...] = ()
    """Ids of the ledger points that this one answers, settles, corrects or completes."""
    rests_on: tuple[int, ...] = ()
    """Ids of ledger points that stay, and whose quotes say a number or a name that its own do not."""
    spoken: bool = False
    unconfirmed: bool = False

    @property
    def cites(self) -> tuple[int, ...]:
        """Return the ids of the quoted messages, each once."""
        return tuple(dict.fromkeys(quote.message for quote in self.evidence))


@dataclass(frozen=True, slots=True)
class KnownPoint:
    """A ledger point as an analyst is shown it."""

    id: int
    text: str
    kind: PointKind
    by: tuple[str, ...] = ()
    evidence: tuple[Quote, ...] = ()


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """Asks for a summary of messages, oldest first, given the tail of what is known already."""

    messages: Sequence[AnalystMessage]
    known: Sequence[KnownPoint] = ()
    topic_keywords: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class SummaryResult:
    """New or changed points in chronological order.

    ``rejected`` counts its proposals that are not grounded in messages that were given. ``degraded``
    says that plain text analysis stood in for a model that could not be asked, and ``refused`` counts the messages
    for which it stood in because the model refuses them, for good. ``over`` are ids of known points that are done,
    refused or withdrawn, without a new point in their place.
    """

    points: tuple[DraftPoint, ...]
    analyst: str
    rejected: int = 0
    usage: Usage = field(default_factory=Usage)
    degraded: bool = False
    refused: int = 0
    over: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """Asks to shorten ``points``, oldest first, to together at most ``tokens`` tokens, as fewer whole sentences.

    The points ``beside`` them stay as they are.
    """

    points: Sequence[KnownPoint]
    tokens: int
    beside: Sequence[KnownPoint] = ()


@dataclass(frozen=True, slots=True)
class CompactedPoint:
    """A sentence that takes the place of the points whose ids it ``merges``, oldest first."""

    text: str
    kind: PointKind
    merges: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """The sentences that the check accepted, and how many it ``rejected``; ``dropped`` are ids of points that are no
    longer needed, ``settled`` those of decisions, actions and questions that another point overtakes, reports as done
    or answers. All other points stay as they are.
    """

    points: tuple[CompactedPoint, ...]
    analyst: str
    dropped: frozenset[int] = frozenset()
    rejected: int = 0
    usage: Usage = NO_USAGE
    settled: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class StatedPreference:
    """A preference that the message ``message_id`` states, or takes back: ``what`` of which ``kind``."""

    message_id: int
    kind: PreferenceKind
    what: str
    withdrawn: bool = False


@dataclass(frozen=True, slots=True)
class PreferenceResult:
    """The preferences that messages state, in their order; ``rejected`` counts those that no message states."""

    preferences: tuple[StatedPreference, ...]
    analyst: str
    rejected: int = 0
    usage: Usage = NO_USAGE


Compact = Callable[[CompactionRequest], Awaitable[CompactionResult]]
"""A call that rewrites points as fewer sentences."""


@dataclass(frozen=True, slots=True)
class DocumentRequest:
    """Asks for the key statements of a document's ``passages``."""

    title: str
    passages: Sequence[str]


@dataclass(frozen=True, slots=True)
class DocumentResult:
    """Key statements in the document's order, each a sentence that stands alone; ``rejected`` counts those that the
    document does not make."""

    statements: tuple[str, ...]
    analyst: str
    rejected: int = 0
    usage: Usage = NO_USAGE


ProjectDocument = Callable[[DocumentRequest], Awaitable[DocumentResult]]
"""A call that finds the key statements of a document, which may stand for it."""

ReadPreferences = Callable[[Sequence[AnalystMessage]], Awaitable[PreferenceResult]]
"""A call that finds the lasting preferences that the messages state."""

ReadBoth = Callable[[Sequence[AnalystMessage], Sequence[AnalystMessage]], Awaitable[tuple[KeywordResult, DomainResult]]]
"""A call that finds keywords of the first messages and domains of the second ones."""


class ReadAtOnce(NamedTuple):
    """What reads a few short messages while the caller waits, which takes a millisecond or two."""

    keywords: Callable[[Sequence[AnalystMessage]], KeywordResult]
    domains: Callable[[Sequence[AnalystMessage]], DomainResult]


class Analyst(Protocol):
    """Reads what people said. Raises :class:`~context_builder.errors.AnalystError` on failure.

    A class that inherits from it has none of the functions ``read_both``, ``read_at_once``, ``read_preferences``,
    ``compact`` and ``project_document`` until it defines them.
    """

    @property
    def name(self) -> str:
        """Return the label under which the analyst's results are published, such as ``text``."""
        ...

    async def extract_keywords(self, messages: Sequence[AnalystMessage]) -> KeywordResult:
        """Return up to ten keywords for each message; none where its text has fewer than 10 characters."""
        ...

    async def infer_domains(self, messages: Sequence[AnalystMessage]) -> DomainResult:
        """Return the domains and topic keywords of the messages, oldest first."""
        ...

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        """Return the points worth keeping of the requested messages."""
        ...

    @property
    def read_both(self) -> ReadBoth | None:
        """Return a function that finds keywords and domains in one call; None where each takes a call of its own."""
        return None

    @property
    def read_at_once(self) -> ReadAtOnce | None:
        """Return what reads a little at once; None where that takes a thread, another process or a model."""
        return None

    @property
    def read_preferences(self) -> ReadPreferences | None:
        """Return a function that finds stated preferences; None where the analyst cannot."""
        return None

    @property
    def compact(self) -> Compact | None:
        """Return a function that rewrites points as fewer sentences; None where the analyst cannot."""
        return None

    @property
    def project_document(self) -> ProjectDocument | None:
        """Return a function that finds a document's key statements; None where the analyst cannot."""
        return None

    async def close(self) -> None:
        """Close connections and end threads."""
        ...
