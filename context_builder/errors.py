"""The errors of this package; vendors' exceptions never leave an adapter.

ContextBuilderError
├── SettingError            a setting is wrong; names the setting (exit status 2)
│   └── MissingExtra        what was asked for needs packages that are not installed; names the extra
├── SessionIdError          a session id that could reach another session's keys
├── MessageError            a delivery that cannot become a message; carries the reason
├── PromptError             a prompt file is missing or incomplete; names the file
├── PolicyError             a policy text is refused; names the text, line and column
├── EngineError             an embedded Redis or PostgreSQL could not be started
├── TranscriptError         a transcript file cannot be read; names file and line
├── RecordingError          a session's recording cannot be read or replayed; names the file
├── ForgottenInPart         something of a forgotten session may be left; names all of it
├── BackupError             a backup cannot be written, read or restored; names the file or what is in its way
├── StoreError              Redis
│   ├── StoreUnavailable    cannot be reached or is not ready; worth another try
│   │   └── WrongKeyType    somebody made one of our keys something else; names the key
│   ├── CommandWithheld     has no such command, or not for this user
│   ├── StoreDiverged       holds another revision than the one this process committed
│   ├── SessionOwned        another process runs the session; names it (exit status 3)
│   └── LeaseLost           this process no longer owns the session
├── AnalystError            a model
│   ├── AnalystUnavailable  cannot be reached, refuses, or is too slow; worth another try
│   │   ├── OverBudget      was not asked, because this hour's budget is used up
│   │   └── RequestRefused  refuses this request and does not say why; may answer others
│   └── ReplyInvalid        answered, but not with what was asked for
│       └── ContentRefused  refuses what the request holds: a filter, or a window too short; answers others
├── DatabaseError           the database of archive, memory and knowledge, or what stands in for it or serves it
│   ├── DatabaseUnavailable cannot be reached in time; worth another try
│   │   ├── EmbeddingsFailed      an embedder answers without embeddings of these texts; may embed others
│   │   └── KnowledgeTimeout      a service of knowledge, which did not answer within its time
│   ├── RowDamaged          holds a row that this project did not write so; names table and row
│   └── DatabaseRejected    refuses this request or this caller; says why
│       ├── DataRejected          refuses what this request holds, and will never take it
│       └── CannotForget          has no way to delete what it keeps
├── KnowledgeError          what is asked of knowledge and packages cannot be done
│   ├── PackageUnknown      there is no such package, or it is another tenant's
│   ├── ProjectUnknown      nothing is stored for the project that is to be searched
│   ├── IdempotencyClash    an Idempotency-Key came again with another body
│   ├── ArtifactChanged     others have changed the artifact since it was read
│   ├── AuditOfAnother      the audit is of another caller's package
│   └── AuditAnchorError    a file of exported anchors cannot be read; names file and line
├── Undeliverable           will never be delivered, though the receiver is well; also DataRejected
│   └── EntryUnreadable     an outbox entry that is not what this version writes
├── FilterInvalid           a filter of memories that cannot be used; says which of it
└── ContextError            a context that cannot be built
    ├── NoMemoryStore       a strategy needs a store and there is none
    ├── TokenLimitExceeded  what must be in the prompt is over its limit; says by how much
    ├── PinnedOverBudget    pinned sources do not fit, however short; says how large they are
    ├── EmptyContext        nothing to build a context from
    └── StrategyError       a strategy failed; names it
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from context_builder.costs import Usage


class ContextBuilderError(Exception):
    """Serves as the base of every error this package raises on purpose."""

    @property
    def page(self) -> str:
        """Return where the documentation says what to do about it."""
        documented = next(one for one in type(self).__mro__ if one.__module__ == __name__)
        return f"docs/reference/errors.md#{documented.__name__.lower()}"


class SettingError(ContextBuilderError):
    """Raised for a setting that cannot be used; the message begins with its name."""


class MissingExtra(SettingError):
    """Raised when optional packages are not installed; the message says how to install them."""


class SessionIdError(ContextBuilderError):
    """Raised for a session id that :func:`~context_builder.session.keys.is_session_id` refuses."""


class MessageError(ContextBuilderError):
    """Raised for a delivery that cannot become a message; ``str()`` is the reason, free of its content."""


class PromptError(ContextBuilderError):
    """Raised for a prompt file that is missing or lacks a placeholder."""


class PolicyError(ContextBuilderError):
    """Raised for a policy text that does not parse or fit the schema; ``line`` and ``column`` begin at 1.

    They are of the policy's beginning. The column counts characters; lines end with a line feed.
    """

    def __init__(self, name: str, line: int, column: int, message: str) -> None:
        super().__init__(f"{name}, line {line}, column {column}: {message}")
        self.name = name
        self.line = line
        self.column = column
        self.message = message

    def __reduce__(self) -> tuple[type[PolicyError], tuple[str, int, int, str]]:
        return type(self), (self.name, self.line, self.column, self.message)  # it comes from another process, too


class EngineError(ContextBuilderError):
    """Raised when an embedded engine cannot be found, started or stopped."""


class TranscriptError(ContextBuilderError):
    """Raised for a transcript that cannot be read."""


class RecordingError(ContextBuilderError):
    """Raised for a session's recording that cannot be read or replayed."""


class ForgottenInPart(ContextBuilderError):
    """Raised when something of a forgotten session is left, or may be; the message says what, and where."""


class BackupError(ContextBuilderError):
    """Raised for a backup that cannot be written, read or restored."""


class StoreError(ContextBuilderError):
    """Raised when Redis did not do what was asked."""


class StoreUnavailable(StoreError):
    """Raised when Redis cannot be reached, is loading, is out of memory or is a read-only replica."""


class WrongKeyType(StoreUnavailable):
    """Raised while a key holds another type than this package's."""


class CommandWithheld(StoreError):
    """Raised when Redis, or a proxy before it, has no such command, or does not let this user send it."""


class StoreDiverged(StoreError):
    """Raised when Redis holds another revision of the session than the one committed last from here."""

    def __init__(self, held: int, expected: int) -> None:
        super().__init__(f"Redis holds revision {held} where {expected} was committed")
        self.held = held
        self.expected = expected


class SessionOwned(StoreError):
    """Raised when another process runs this session."""


class LeaseLost(StoreError):
    """Raised when the session's lease is gone: run out (``expired``), taken over, or the session was forgotten."""

    def __init__(self, message: str, *, expired: bool = False) -> None:
        super().__init__(message)
        self.expired = expired


class AnalystError(ContextBuilderError):
    """Raised for a model call that gave nothing usable; ``usage`` is its cost all the same, where known."""

    usage: Usage | None = None


class AnalystUnavailable(AnalystError):
    """Raised when the model cannot be reached, refuses, or did not answer in time.

    ``retry_after`` is the wait in seconds that the server asked for, if it did.
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class OverBudget(AnalystUnavailable):
    """Raised when the model was not asked: the call could have cost more than is left of the hour's budget."""


class ReplyInvalid(AnalystError):
    """Raised when the model's reply is cut off, does not fit its schema, or is not what was asked for.

    ``rejected`` counts the points it had, when not one of them could be accepted.
    """

    def __init__(self, message: str, *, rejected: int = 0) -> None:
        super().__init__(message)
        self.rejected = rejected


class ContentRefused(ReplyInvalid):
    """Raised when the model, or a filter before it, refuses what a request holds, or finds it too long.

    Parts of it may be answered. A refusal ``by_chance`` is the model's own, which another try may not repeat.
    """

    def __init__(self, message: str, *, by_chance: bool = False) -> None:
        super().__init__(message)
        self.by_chance = by_chance


class RequestRefused(AnalystUnavailable):
    """Raised when a server refuses a request without saying why, though it may answer others."""


class Undeliverable(ContextBuilderError):
    """Raised when a receiver refuses an entry for good, while it may take other entries."""


class EntryUnreadable(Undeliverable):
    """Raised for an outbox entry that cannot be read."""


class DatabaseError(ContextBuilderError):
    """Raised when the database did not do what was asked: that of archive, memory and knowledge, what stands in for it,
    such as SomaBrain, or what serves it, such as an embedding model.
    """


class DatabaseUnavailable(DatabaseError):
    """Raised when the database cannot be reached, or did not answer in time."""


class EmbeddingsFailed(DatabaseUnavailable):
    """Raised when an embedder answers without embeddings of these texts: by chance, or because of one of them."""


class RowDamaged(DatabaseError):
    """Raised for a row into which somebody else wrote; names table and row, and quotes nothing of it."""


class DatabaseRejected(DatabaseError):
    """Raised when the database refuses a request from this caller; without :class:`DataRejected` perhaps any."""


class DataRejected(DatabaseRejected, Undeliverable):
    """Raised when the database refuses a request for good because of the data in it."""


class CannotForget(DatabaseRejected):
    """Raised when a memory store has no way to delete what it keeps."""


class KnowledgeTimeout(DatabaseUnavailable):
    """Raised when a service did not answer within ``seconds``."""

    def __init__(self, service: str, seconds: float) -> None:
        super().__init__(f"{service} did not answer within {seconds * 1000:.0f} ms")
        self.seconds = seconds


class KnowledgeError(ContextBuilderError):
    """Raised when what is asked of knowledge and its packages cannot be done."""


class IdempotencyClash(KnowledgeError):
    """Raised when an Idempotency-Key was sent before with another body."""


class AuditAnchorError(KnowledgeError):
    """Raised for a file of anchors that cannot be read."""


class ArtifactChanged(KnowledgeError):
    """Raised when an artifact is to be stored over one that others have changed meanwhile."""


class DecisionOutdated(KnowledgeError):
    """Raised when policies or the artifact have changed since access to it was decided: decide again."""


class PackageUnknown(KnowledgeError):
    """Raised for a context package that is not there: unknown, another tenant's, or past its time."""

    def __init__(self, package_id: str) -> None:
        super().__init__(f"there is no context package {package_id}")


class ProjectUnknown(KnowledgeError):
    """Raised when the project that is to be searched has no artifacts."""

    def __init__(self, project_id: str) -> None:
        super().__init__(
            f"there is no project {project_id}; `context-builder ingest FOLDER --project {project_id}` adds files"
        )


class AuditOfAnother(KnowledgeError):
    """Raised for the audit of another caller's context package, which admins alone may read."""

    def __init__(self, package_id: str) -> None:
        super().__init__(f"the context package {package_id} is another caller's")


class FilterInvalid(ContextBuilderError):
    """Raised when memories cannot be filtered by what was given."""


class ContextError(ContextBuilderError):
    """Raised when a context cannot be built."""


class NoMemoryStore(ContextError):
    """Raised when a strategy needs a memory store, and the builder has none."""


class TokenLimitExceeded(ContextError):
    """Raised when the required messages do not fit, in tokens: ``requested`` against ``limit``."""

    def __init__(self, requested: int, limit: int) -> None:
        super().__init__(f"needs {requested} tokens, {requested - limit} more than the limit of {limit}")
        self.requested = requested
        self.limit = limit


class PinnedOverBudget(ContextError):
    """Raised when even the shortest projections of all pinned sources exceed the limit; ``sizes`` are their tokens."""

    def __init__(self, sizes: Mapping[str, int], limit: int) -> None:
        listed = ", ".join(f"{ref} ({tokens})" for ref, tokens in sizes.items())
        super().__init__(f"pinned sources exceed {limit} tokens even at their shortest, in tokens: {listed}")
        self.sizes = dict(sizes)
        self.limit = limit


class EmptyContext(ContextError):
    """Raised when there is nothing to build a context from."""


class StrategyError(ContextError):
    """Raised when a strategy failed; it is named, and its error is the cause."""


def require_extra(extra: str, module: str, what: str) -> None:
    """Raise :class:`MissingExtra` unless ``module``, which ``what`` needs, is installed."""
    if find_spec(module) is None:
        raise MissingExtra(needs_extra(extra, what))


def needs_extra(extra: str, what: str) -> str:
    """Return the line that tells how to install the packages that ``what`` needs."""
    return f"{what} needs the extra {extra}: pip install 'context-builder[{extra}]'"
