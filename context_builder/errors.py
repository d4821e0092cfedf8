"""The errors of this package; vendors' exceptions never leave an adapter.

ContextBuilderError
├── SettingError            a setting is wrong; names the setting (exit status 2)
│   └── MissingExtra        what was asked for needs packages that are not installed; names the extra
├── SessionIdError          a session id that could reach another session's keys
├── MessageError            a delivery that cannot become a message; carries the reason
├── PromptError             a prompt file is missing or incomplete; names the file
├── EngineError             an embedded Redis or PostgreSQL could not be started
├── TranscriptError         a transcript file cannot be read; names file and line
├── RecordingError          a session's recording cannot be read or replayed; names the file
├── StoreError              Redis
│   ├── StoreUnavailable    cannot be reached or is not ready; worth another try
│   │   └── WrongKeyType    somebody made one of our keys something else; names the key
│   ├── StoreDiverged       holds another revision than the one this process committed
│   ├── SessionOwned        another process runs the session; names it (exit status 3)
│   └── LeaseLost           this process no longer owns the session
├── AnalystError            a model
│   ├── AnalystUnavailable  cannot be reached, refuses, or is too slow; worth another try
│   │   └── OverBudget      was not asked, because this hour's budget is used up
│   └── ReplyInvalid        answered, but not with what was asked for
├── ArchiveError            the archive of summaries
│   ├── ArchiveUnavailable  cannot be reached; worth another try
│   └── ArchiveRejected     refuses this row or this caller; says why
│       └── ArchiveDataRejected   refuses this row, and will never take it
├── MemoryStoreError        the memory store
│   ├── MemoryUnavailable   cannot be reached in time; worth another try
│   └── MemoryRejected      refuses this request or this caller; says why
│       ├── MemoryDataRejected    refuses what this request holds, and will never take it
│       └── CannotForget    has no way to delete what it keeps
├── Undeliverable           will never be delivered, though the receiver is well; also the two ...DataRejected
│   └── EntryUnreadable     an outbox entry that is not what this version writes
└── ContextError            a context that cannot be built
    ├── NoMemoryStore       a strategy needs a store and there is none
    ├── TokenLimitExceeded  what must be in the prompt is over its limit; says by how much
    ├── EmptyContext        nothing to build a context from
    └── StrategyError       a strategy failed; names it
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from context_builder.costs import Usage


class ContextBuilderError(Exception):
    """Base of every error this package raises on purpose."""


class SettingError(ContextBuilderError):
    """A setting that cannot be used; the message begins with its name."""


class MissingExtra(SettingError):
    """Optional packages that are not installed; the message says how to install them."""


class SessionIdError(ContextBuilderError):
    """A session id outside ``[A-Za-z0-9._-]{1,128}``."""


class MessageError(ContextBuilderError):
    """A delivery that cannot become a message; ``str()`` is the reason, free of its content."""


class PromptError(ContextBuilderError):
    """A prompt file that is missing or lacks a placeholder."""


class EngineError(ContextBuilderError):
    """An embedded engine that cannot be found, started or stopped."""


class TranscriptError(ContextBuilderError):
    """A transcript that cannot be read."""


class RecordingError(ContextBuilderError):
    """A session's recording that cannot be read, replayed or compared."""


class StoreError(ContextBuilderError):
    """Redis did not do what was asked."""


class StoreUnavailable(StoreError):
    """Redis cannot be reached, is loading, is out of memory or is a read-only replica."""


class WrongKeyType(StoreUnavailable):
    """A key holds another type than ours, until somebody mends it."""


class StoreDiverged(StoreError):
    """Redis holds another revision of the session than the one committed last from here."""

    def __init__(self, held: int, expected: int) -> None:
        super().__init__(f"Redis holds revision {held} where {expected} was committed")
        self.held = held
        self.expected = expected


class SessionOwned(StoreError):
    """Another process runs this session."""


class LeaseLost(StoreError):
    """The session's lease is gone: it ran out (``expired``), was taken over, or the session was forgotten."""

    def __init__(self, message: str, *, expired: bool = False) -> None:
        super().__init__(message)
        self.expired = expired


class AnalystError(ContextBuilderError):
    """A model call that gave nothing usable; ``usage`` is what it cost all the same, where that is known."""

    usage: Usage | None = None


class AnalystUnavailable(AnalystError):
    """The model cannot be reached, refuses, or did not answer in time.

    ``retry_after`` is the wait in seconds that the server asked for, if it did.
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class OverBudget(AnalystUnavailable):
    """The model was not asked: the call could have cost more than is left of the hour's budget."""


class ReplyInvalid(AnalystError):
    """The model's reply is cut off, does not fit its schema, or is not what was asked for.

    ``rejected`` counts the points it had, when not one of them could be accepted.
    """

    def __init__(self, message: str, *, rejected: int = 0) -> None:
        super().__init__(message)
        self.rejected = rejected


class Undeliverable(ContextBuilderError):
    """What was to be delivered will be refused however often it is sent, while its receiver may take other things."""


class EntryUnreadable(Undeliverable):
    """An outbox entry that cannot be read."""


class ArchiveError(ContextBuilderError):
    """The archive of summaries did not take a row."""


class ArchiveUnavailable(ArchiveError):
    """The archive cannot be reached now."""


class ArchiveRejected(ArchiveError):
    """The archive does not take this row from this caller; without :class:`ArchiveDataRejected` perhaps none."""


class ArchiveDataRejected(ArchiveRejected, Undeliverable):
    """The archive will not take this row however often it is sent, for what is in it."""


class MemoryStoreError(ContextBuilderError):
    """The memory store did not do what was asked."""


class MemoryUnavailable(MemoryStoreError):
    """The memory store cannot be reached, or did not answer in time."""


class MemoryRejected(MemoryStoreError):
    """The memory store will not carry out this request however often it is sent."""


class MemoryDataRejected(MemoryRejected, Undeliverable):
    """The memory store will not carry out this request however often it is sent, for what is in it."""


class CannotForget(MemoryRejected):
    """The memory store has no way to delete what it keeps."""


class ContextError(ContextBuilderError):
    """A context that cannot be built."""


class NoMemoryStore(ContextError):
    """A strategy needs a memory store, and the builder has none."""


class TokenLimitExceeded(ContextError):
    """What must be in the prompt does not fit, in tokens: ``requested`` against ``limit``."""

    def __init__(self, requested: int, limit: int) -> None:
        super().__init__(f"needs {requested} tokens, {requested - limit} more than the limit of {limit}")
        self.requested = requested
        self.limit = limit


class EmptyContext(ContextError):
    """There is nothing to build a context from."""


class StrategyError(ContextError):
    """A strategy failed; it is named, and its error is the cause."""
