"""This module names every Redis key of a session, and how long each lives."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Literal, get_args

from context_builder.errors import SessionIdError

FENCE: Final = "context_builder:fence"
"""Hash of the counter that fencing tokens come from. No expiry: a token must never be given out twice."""

SESSIONS: Final = "context_builder:sessions"
"""Sorted set of session ids by the time of their last message. No expiry: it is how sessions that
outlived their retention are found; a swept or forgotten session leaves it."""

SUMMARY_SEQS: Final = "context_builder:summary_seqs"
"""Hash of how many summaries each swept session had made, from which it goes on counting should its id be used
again. No expiry: the archive keeps those summaries for good. A forgotten session leaves it."""

FORGOTTEN: Final = "context_builder:forgotten"
"""Hash of a mark for each forgotten session, under a digest of its id: whoever loaded it before must not restore it. No
expiry: a process may be frozen for as long as its machine is suspended. At most 250 bytes each."""

PACKAGE: Final = "context_builder:package:"
"""Begins the key of a cached context package, before its id."""

PACKAGE_SIGNATURE: Final = "context_builder:package_signature:"
"""Begins the key of a cached context package's signature, before its id. Lives as long as the package."""

ARRIVALS: Final = "context_builder:arrivals"
"""Channel on which our own clients tell ids of sessions that they have pushed to."""

Receiver = Literal["archive", "memory"]
"""Receivers that a session has an outbox for."""

RECEIVERS: Final[tuple[Receiver, ...]] = get_args(Receiver)

_SESSION_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")


def validate_session_id(session_id: str) -> str:
    """Return the id; raises :class:`SessionIdError` when it could reach another session's keys."""
    if not _SESSION_ID.fullmatch(session_id):
        raise SessionIdError(f"session id {session_id[:128]!r}: use 1 to 128 of A-Z a-z 0-9 . _ -")
    return session_id


def is_session_id(text: str) -> bool:
    """Return whether a session may have this id."""
    return _SESSION_ID.fullmatch(text) is not None


def dead_count_field(receiver: Receiver) -> str:
    """Return the checkpoint's field for how many entries of an outbox became dead letters, kept or not."""
    return f"{receiver}_dead"


def dead_bytes_field(receiver: Receiver) -> str:
    """Return the checkpoint's field for the bytes of those kept."""
    return f"{receiver}_dead_bytes"


@dataclass(frozen=True, slots=True)
class Keys:
    """Names the keys of one session.

    ===================== ======= =========================================================== ==========
    key                   type    holds                                                       lives
    ===================== ======= =========================================================== ==========
    ``input``             list    deliveries not yet acknowledged, oldest at the right end    producers'
    ``state``             string  the published state                                         STATE_TTL
    ``conversation``      string  the published silence clock                                 10 s
    ``checkpoint``        hash    what is needed to continue: ``head``, ``order``, one field  session
                                  for each buffered message, assistant response, and
                                  message that the summary cites; counts of dead letters
    ``pending``           list    messages waiting for their summary outside the buffer       session
    ``seen``              set     identities of all messages taken in                         session
    ``recent``            list    identities taken in lately, of the newest messages          1 min
    ``outbox``            list    summaries on their way to the archive                       session
    ``memory_outbox``     list    what was summarized, on its way to the long-term memory     session
    ``dead``              list    deliveries that cannot become messages, with the reason     session
    ``archive_dead``      list    summaries that the archive refuses for good, and why        session
    ``memory_dead``       list    the same of the long-term memory                            session
    ``owner``             string  the lease: fencing token and holder                         LEASE_TIME
    ``control``           string  what another process asks of the owner                      10 min
    ``packages``          set     ids of cached packages that show what was said              as they
    ``agent_items``       list    what the OpenAI Agents SDK keeps of it                      1 week
    ===================== ======= =========================================================== ==========

    "session" means: until ``SESSION_RETENTION`` after the last message, and never while input,
    buffer, pending or an outbox hold anything. Redis cannot express that as an expiry (a push to
    ``input`` would have to prolong it), so such sessions are swept by the next daemon to run.
    """

    session_id: str

    def __post_init__(self) -> None:
        validate_session_id(self.session_id)

    @property
    def forgotten_field(self) -> str:
        """Return the session's field in :data:`FORGOTTEN`."""
        return blake2b(self.session_id.encode(), digest_size=16).hexdigest()

    def _key(self, name: str) -> str:
        return f"context_builder:{self.session_id}:{name}"

    @property
    def input(self) -> str:
        return self._key("input")

    @property
    def state(self) -> str:
        return self._key("state")

    @property
    def conversation(self) -> str:
        return f"conversation_state:{self.session_id}"

    @property
    def checkpoint(self) -> str:
        return self._key("checkpoint")

    @property
    def pending(self) -> str:
        return self._key("pending")

    @property
    def seen(self) -> str:
        return self._key("seen")

    @property
    def recent(self) -> str:
        return self._key("recent")

    @property
    def outbox(self) -> str:
        return self._key("outbox")

    @property
    def memory_outbox(self) -> str:
        return self._key("memory_outbox")

    @property
    def dead(self) -> str:
        return self._key("dead")

    @property
    def archive_dead(self) -> str:
        return self._key("archive_dead")

    @property
    def memory_dead(self) -> str:
        return self._key("memory_dead")

    def outbox_of(self, receiver: Receiver) -> str:
        return self.outbox if receiver == "archive" else self.memory_outbox

    def dead_letters_of(self, receiver: Receiver) -> str:
        return self.archive_dead if receiver == "archive" else self.memory_dead

    @property
    def owner(self) -> str:
        return self._key("owner")

    @property
    def control(self) -> str:
        return self._key("control")

    @property
    def packages(self) -> str:
        return self._key("packages")

    @property
    def agent_items(self) -> str:
        return self._key("agent_items")

    def all(self) -> tuple[str, ...]:
        """Return every key that exists for this session alone, but for what others keep of it, its packages."""
        return (
            self.input,
            self.state,
            self.conversation,
            self.checkpoint,
            self.pending,
            self.seen,
            self.recent,
            self.outbox,
            self.memory_outbox,
            self.dead,
            self.archive_dead,
            self.memory_dead,
            self.owner,
            self.control,
            self.agent_items,
        )
