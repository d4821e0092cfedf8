"""What is pushed: messages of every kind that is to be taken in, and deliveries that cannot be."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from scripts.campaign.hostile_fields import MISSING, HostileFields
from scripts.campaign.hostile_text import HostileText
from scripts.campaign.tokens import message_token, poison_token

POISONS: Final[tuple[Callable[[str], bytes], ...]] = (
    lambda token: f"{token} is no JSON".encode(),
    lambda token: json.dumps([token]).encode(),
    lambda token: json.dumps({"message_number": 1, "speaker": token}).encode(),
    lambda token: json.dumps({"text": "  ", "speaker": token}).encode(),
    lambda token: json.dumps({"text": "\u2003\u3000\x1f", "speaker": token}).encode(),
    lambda token: json.dumps({"text": {"nested": token}}).encode(),
    lambda token: json.dumps({"text": [token]}).encode(),
    lambda token: json.dumps({"text": token, "message_number": -1}).encode(),
    lambda token: json.dumps({"text": token, "message_number": 2**53}).encode(),
    lambda token: json.dumps({"text": token, "message_number": True}).encode(),
    lambda token: json.dumps({"text": token, "message_number": "٤٢"}).encode(),
    lambda token: json.dumps({"text": token, "message_number": float("nan")}).encode(),
    lambda token: json.dumps({"text": token, "message_number": 10**400}).encode(),
    lambda token: json.dumps({"text": f"{token} \ud800"}).encode(),
    lambda token: json.dumps({"text": f"{token} \udc00\ud800"}).encode(),
    lambda token: json.dumps({"text": token, "speaker": "\udfff"}).encode(),
    lambda token: b'{"text": "' + token.encode() + b' \xff"}',
    lambda token: b'{"text": "' + token.encode() + b' \xed\xa0\x80"}',  # a lone surrogate as UTF-8 would write it
    lambda token: b'{"text": "' + token.encode() + b' \xed\xa0\xbd\xed\xb8\x80"}',  # a pair of them, as CESU-8 does
    lambda token: b'{"text": "' + token.encode() + b' \xc0\x80"}',  # NUL, overlong
    lambda token: b"\xef\xbb\xbf" + json.dumps({"text": token}).encode(),
    lambda token: token.encode() + json.dumps({"text": token}).encode("utf-16"),
    lambda token: json.dumps({"text": token}).encode()[:-1],
    lambda token: json.dumps({"text": token}).encode() + b"{}",
    lambda token: b'{"text": "' + token.encode() + b'", "metadata": ' + b"[" * 200_000 + b"}",
    lambda token: json.dumps({"text": f"{token} " + "x" * 262_144}).encode(),
)
"""Deliveries that cannot become messages, each with a token: it is to be found among the dead letters."""

Fields = dict[str, Any]

LARGEST_NUMBER: Final = 2**53 - 1


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Delivery:
    """What is pushed at once, and the token to find it by.

    It is ``recognizable`` when it comes again if it has a number or a timestamp.
    """

    token: str
    raw: bytes
    recognizable: bool


class Talk:
    """Makes up the deliveries of one session with ``rng``, and knows what time it is ``now``; the same make the same
    ones."""

    def __init__(self, session_id: str, rng: random.Random, now: Callable[[], datetime] = _now) -> None:
        self._session_id = session_id
        self._rng = rng
        self._now = now
        self._text = HostileText(rng)
        self._fields = HostileFields(rng, self._text, now)
        self._messages = self._poisons = self._number = 0
        self._revisable: set[int] = set()
        self._told_apart: set[tuple[int, str]] = set()
        self._kinds: Mapping[Callable[[Fields], None], int] = {
            self._numbered: 40,
            self._number_as_text: 3,
            self._counted_anew: 3,
            self._consilience: 5,
            self._timestamp_alone: 34,
            self._neither: 15,
        }

    def message(self) -> Delivery:
        self._messages += 1
        token = message_token(self._messages)
        fields: Fields = {
            "session_id": self._session_id,
            "speaker": self._fields.speaker(),
            "text": self._text.around(token),
            "timestamp": self._fields.timestamp(),
            **self._fields.others(),
        }
        (kind,) = self._rng.choices(list(self._kinds), list(self._kinds.values()))
        kind(fields)
        self._tell_apart(fields)
        present = {name: value for name, value in fields.items() if value is not MISSING}
        recognizable = any(present.get(name) is not None for name in ("message_number", "timestamp"))
        return Delivery(token, self._written(present), recognizable)

    def plain(self) -> Delivery:
        """A message as most of them are: numbered in order, of the present moment, so the newest in every buffer."""
        return self.revisable()[0]

    def revisable(self) -> tuple[Delivery, Fields]:
        """A plain message, and its fields."""
        self._messages += 1
        self._number += 1
        self._revisable.add(self._number)
        token = message_token(self._messages)
        fields = {
            "session_id": self._session_id,
            "speaker": "Alice",
            "text": f"{token} {self._text.words()}",
            "timestamp": self._now().isoformat(),
            "message_number": self._number,
        }
        return Delivery(token, json.dumps(fields).encode(), recognizable=True), fields

    def correction(self, fields: Fields) -> tuple[Delivery, Fields]:
        """A correction that names a plain message, or has its number and time; and the message's fields afterwards."""
        self._messages += 1
        token = message_token(self._messages)
        words = self._text.words() if self._rng.random() < 0.5 else str(fields["text"]).partition(" ")[2]
        corrected = {**fields, "text": f"{token} {words}", "speaker": self._rng.choice(("Alice", "Bo"))}
        sent = dict(corrected)
        if self._rng.random() < 0.5:
            sent = {"corrects": fields["message_number"], "text": sent["text"], "timestamp": self._now().isoformat()}
        return Delivery(token, json.dumps(sent).encode(), recognizable=True), corrected

    def strike(self, fields: Fields, token: str) -> Delivery:
        """A strike of a plain message."""
        sent = {"strikes": fields["message_number"], "timestamp": self._now().isoformat()}
        return Delivery(token, json.dumps(sent).encode(), recognizable=True)

    def rename(self, old: str, new: str) -> Delivery:
        """Another name of a speaker, which has no token."""
        sent = {"renames": old, "speaker": new, "timestamp": self._now().isoformat()}
        return Delivery("", json.dumps(sent).encode(), recognizable=True)

    def poison(self) -> Delivery:
        """A delivery that can only become a dead letter."""
        self._poisons += 1
        token = poison_token(self._poisons)
        return Delivery(token, POISONS[self._poisons % len(POISONS)](token), recognizable=False)

    def start_over(self) -> None:
        """Count messages from the start again, as a listener does in a new session; tokens go on."""
        self._number = 0
        self._revisable.clear()
        self._told_apart.clear()

    def _tell_apart(self, fields: Fields) -> None:
        """Give a message another time if an earlier one has its number and time: it would be a correction of that."""
        number, timestamp = fields.get("message_number"), fields["timestamp"]
        if number in (None, MISSING) or timestamp in (None, MISSING):
            return
        counted = int(float(str(number)))
        if (counted, str(timestamp)) in self._told_apart:
            fields["timestamp"] = self._now().isoformat()
        self._told_apart.add((counted, str(fields["timestamp"])))

    def _written(self, fields: Fields) -> bytes:
        if self._rng.random() < 0.5:
            try:
                return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
            except UnicodeEncodeError:  # half of a pair can only be escaped
                pass
        return json.dumps(fields, indent=self._rng.choice((None, None, 1))).encode()

    def _numbered(self, fields: Fields) -> None:
        self._number += self._rng.choice((1, 1, 1, 1, 2))
        fields |= {"message_number": self._number, "_score": float(self._number)}
        if self._rng.random() < 0.1:
            fields["timestamp"] = self._rng.choice((None, MISSING))

    def _number_as_text(self, fields: Fields) -> None:
        self._numbered(fields)
        written = (str(self._number), f" {self._number}\n", f"{self._number:030}", float(self._number))
        fields["message_number"] = self._rng.choice(written)

    def _counted_anew(self, fields: Fields) -> None:
        """A number from before, but of none that may be revised: a revision is of the newest message of its number."""
        free = [number for number in range(max(1, self._number) + 1) if number not in self._revisable]
        fields["message_number"] = self._rng.choice(free)

    def _consilience(self, fields: Fields) -> None:
        fields |= {
            "speaker": self._rng.choice(("Consilience", fields["speaker"])),
            "type": "consilience",
            "message_number": self._rng.choice((int(self._now().timestamp() * 1000), LARGEST_NUMBER, None)),
            "metadata": {"trigger_type": "explicit_request", "priority": "P0"},
        }

    def _timestamp_alone(self, fields: Fields) -> None:
        fields["message_number"] = self._rng.choice((None, MISSING))

    def _neither(self, fields: Fields) -> None:
        """Nothing tells it from another message with the same text."""
        for name in ("message_number", "timestamp"):
            fields[name] = self._rng.choice((None, MISSING))
