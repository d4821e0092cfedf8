"""This module names every Redis key of a session, and how long each lives."""

from __future__ import annotations

import re
import unicodedata
from hashlib import blake2b
from typing import Final, Literal, get_args
from urllib.parse import quote, unquote

from context_builder.errors import SessionIdError

FENCE: Final = "context_builder:fence"
"""Hash of the counter that fencing tokens come from. No expiry: a token must never be given out twice."""

SESSIONS: Final = "context_builder:sessions"
"""Sorted set of session ids by the time of their last message on Redis' clock. No expiry: it is how sessions that
outlived their retention are found; a swept or forgotten session leaves it."""

SUMMARY_SEQS: Final = "context_builder:summary_seqs"
"""Hash of how many summaries each swept session had made, from which it goes on counting should its id be used
again. No expiry: the archive keeps those summaries for good. A forgotten session leaves it."""

FORGOTTEN: Final = "context_builder:forgotten"
"""Hash of a mark for each forgotten session, under a digest of its id: whoever loaded it before must not restore it. No
expiry: a process may be frozen for as long as its machine is suspended. At most 250 bytes each."""

SLEEPERS: Final = "context_builder_fleet:sleepers"
"""Sorted set of sleeping sessions' ids by the time of their last message, of Redis' clock. A fleet keeps it for an hour
after the last one went to sleep."""

PACKAGE: Final = "context_builder:package:"
"""Prefix of the key of a cached context package, before its id."""

PACKAGE_SIGNATURE: Final = "context_builder:package_signature:"
"""Prefix of the key of a cached context package's signature, before its id. Lives as long as the package."""

ARRIVALS: Final = "context_builder:arrivals"
"""Channel on which our own clients publish the ids of sessions that they have pushed to."""

Receiver = Literal["archive", "memory"]
"""Receivers that a session has an outbox for."""

RECEIVERS: Final[tuple[Receiver, ...]] = get_args(Receiver)

SESSION_ID_RULE: Final = "1 to 128 letters, digits or any of . , _ - : @ + ~ ="
"""Rule for session ids, for people."""

_PUNCTUATION: Final = frozenset("._-:@+~=,")
_MARKS: Final = ("Mn", "Mc")
"""Unicode categories of marks that many scripts write onto a letter."""

_INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters and marks that cannot be seen (``Default_Ignorable_Code_Point`` of Unicode)."""

_LONGEST: Final = 128
_LONGEST_ENCODED: Final = 240
"""Most characters of an encoded id, so that a file name of it has room for a suffix."""


def validate_session_id(session_id: str) -> str:
    """Return the id; raises :class:`SessionIdError` for one that no session can have."""
    if not is_session_id(session_id):
        raise SessionIdError(f"session id {session_id[:_LONGEST]!r}: use {SESSION_ID_RULE}")
    return session_id


def is_session_id(text: str) -> bool:
    """Return whether a session may have this id: nothing in it is invisible, or part of a path."""
    if not 0 < len(text) <= _LONGEST:
        return False
    if text.isascii():
        return all(char.isalnum() or char in _PUNCTUATION for char in text)
    return all(map(_is_visible, text)) and len(encoded_session_id(text)) <= _LONGEST_ENCODED


def _is_visible(char: str) -> bool:
    is_known = char.isalnum() or char in _PUNCTUATION or unicodedata.category(char) in _MARKS
    return is_known and not _INVISIBLE.match(char)


def encoded_session_id(session_id: str) -> str:
    """Return the id in ASCII letters, digits and ``. _ - ~ %``, percent-encoded: for names of files."""
    return quote(session_id, safe="")


def decoded_session_id(encoded: str) -> str:
    """Return the id that was encoded so. Raises :class:`SessionIdError` for any other text."""
    session_id = validate_session_id(unquote(encoded, errors="replace"))
    if encoded_session_id(session_id) != encoded:
        raise SessionIdError(f"{encoded[:_LONGEST]!r} is not how a session id is encoded")
    return session_id


def split_key(key: bytes) -> tuple[str, str] | None:
    """Return the id and the name in ``context_builder:ID:NAME``; None of another key. No session need have the id."""
    prefix, _, rest = key.decode(errors="replace").partition(":")
    session_id, _, name = rest.rpartition(":")
    return (session_id, name) if prefix == "context_builder" and session_id else None


def dead_count_field(receiver: Receiver) -> str:
    """Return the checkpoint's field for how many entries of an outbox became dead letters, kept or not."""
    return f"{receiver}_dead"


def dead_bytes_field(receiver: Receiver) -> str:
    """Return the checkpoint's field for the bytes of those kept."""
    return f"{receiver}_dead_bytes"


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
    ``message_index``     hash    by number and id, the messages that may be corrected        session
    ``recent``            list    identities taken in lately, of the newest messages          1 min
    ``outbox``            list    summaries on their way to the archive                       session
    ``memory_outbox``     list    what was summarized, on its way to the long-term memory     session
    ``dead``              list    deliveries that cannot become messages, with the reason     session
    ``archive_dead``      list    summaries that the archive refuses for good, and why        session
    ``memory_dead``       list    the same of the long-term memory                            session
    ``owner``             string  the lease: fencing token and holder                         LEASE_TIME
    ``control``           string  what another process asks of the owner                      10 min
    ``packages``          set     ids of cached packages that show what was said              as they
    ``recordings``        set     where it is recorded: machines and files                    session
    ``agent_items``       list    what the OpenAI Agents SDK keeps of it                      1 week
    ===================== ======= =========================================================== ==========

    "session" means: until ``SESSION_RETENTION`` after the last message, and never while input,
    buffer, pending or an outbox hold anything. Redis cannot express that as an expiry (a push to
    ``input`` would have to prolong it), so such sessions are swept by the next daemon to run.

    A name has no colon, so that the last one ends the id, whatever that is.
    """

    def __init__(self, session_id: str) -> None:
        self.session_id = validate_session_id(session_id)
        self.input = self._named("input")
        self.state = self._named("state")
        self.conversation = f"conversation_state:{session_id}"
        self.checkpoint = self._named("checkpoint")
        self.pending = self._named("pending")
        self.seen = self._named("seen")
        self.message_index = self._named("message_index")
        self.recent = self._named("recent")
        self.outbox = self._named("outbox")
        self.memory_outbox = self._named("memory_outbox")
        self.dead = self._named("dead")
        self.archive_dead = self._named("archive_dead")
        self.memory_dead = self._named("memory_dead")
        self.owner = self._named("owner")
        self.control = self._named("control")
        self.packages = self._named("packages")
        self.recordings = self._named("recordings")
        self.agent_items = self._named("agent_items")

    @property
    def forgotten_field(self) -> str:
        """Return the session's field in :data:`FORGOTTEN`."""
        return blake2b(self.session_id.encode(), digest_size=16).hexdigest()

    def _named(self, name: str) -> str:
        return f"context_builder:{self.session_id}:{name}"

    def outbox_of(self, receiver: Receiver) -> str:
        return self.outbox if receiver == "archive" else self.memory_outbox

    def dead_letters_of(self, receiver: Receiver) -> str:
        return self.archive_dead if receiver == "archive" else self.memory_dead

    def all(self) -> tuple[str, ...]:
        """Return every key that exists for this session alone, but for what others keep of it, its packages."""
        return tuple(key for name, key in vars(self).items() if name not in ("session_id", "packages"))
