"""What is pushed: messages of every kind that is to be taken in, and deliveries that cannot be."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from scripts.campaign.tokens import message_token, poison_token

Fields = dict[str, Any]

_WORDS: Final = (
    "neuron enzyme membrane quantum lattice theorem variance compiler kernel latency diagnosis cortex therapy "
    "attention turbine bridge circuit market revenue contract society ritual wetland carbon treaty statute ethics "
    "virtue archive empire grammar dialect gradient dataset layout typography actuator gripper we think measured "
    "because however compared with the larger sample from last week and nobody expected that at all"
).split()
_SPEAKERS: Final = ("Alice", "Bob", "Speaker_0", "Speaker_1", "Zoë")


@dataclass
class Talk:
    """Makes up the deliveries of one session; the same seed makes the same ones, but for their times."""

    session_id: str
    rng: random.Random
    count: int = 0
    poisoned: int = 0
    _number: int = 0
    _kinds: dict[Callable[[Fields], None], int] = field(init=False)

    def __post_init__(self) -> None:
        self._kinds = {
            self._numbered: 86,
            self._consilience: 5,
            self._number_as_text: 2,
            self._without_number: 2,
            self._without_speaker: 2,
            self._counted_anew: 3,
        }

    def message(self) -> tuple[str, bytes]:
        """A message and its token."""
        self.count += 1
        token = message_token(self.count)
        fields: Fields = {
            "session_id": self.session_id,
            "speaker": self.rng.choice(_SPEAKERS),
            "text": f"{token} {' '.join(self.rng.choices(_WORDS, k=self.rng.randint(3, 14)))}",
            "timestamp": datetime.now(UTC).isoformat(),
            "confidence": 0.95,
        }
        (kind,) = self.rng.choices(list(self._kinds), list(self._kinds.values()))
        kind(fields)
        return token, json.dumps(fields).encode()

    def poison(self) -> tuple[str, bytes]:
        """A delivery that can only become a dead letter, and its token."""
        self.poisoned += 1
        token = poison_token(self.poisoned)
        return token, _POISONS[self.poisoned % len(_POISONS)](token)

    def _numbered(self, fields: Fields) -> None:
        self._number += self.rng.choice((1, 1, 1, 1, 2))
        fields |= {"message_number": self._number, "_score": float(self._number)}

    def _number_as_text(self, fields: Fields) -> None:
        self._numbered(fields)
        fields["message_number"] = str(self._number)

    def _without_number(self, fields: Fields) -> None:
        fields["message_number"] = None

    def _without_speaker(self, fields: Fields) -> None:
        self._numbered(fields)
        del fields["speaker"]

    def _counted_anew(self, fields: Fields) -> None:
        fields["message_number"] = self.rng.randint(1, max(1, self._number))

    def _consilience(self, fields: Fields) -> None:
        fields |= {
            "speaker": "Consilience",
            "type": "consilience",
            "message_number": int(time.time() * 1000),
            "metadata": {"trigger_type": "explicit_request", "priority": "P0"},
        }


_POISONS: Final[tuple[Callable[[str], bytes], ...]] = (
    lambda token: f"{token} is no JSON".encode(),
    lambda token: json.dumps([token]).encode(),
    lambda token: json.dumps({"message_number": 1, "speaker": token}).encode(),
    lambda token: json.dumps({"text": "  ", "speaker": token}).encode(),
    lambda token: json.dumps({"text": {"nested": token}}).encode(),
    lambda token: json.dumps({"text": token, "message_number": -1}).encode(),
    lambda token: json.dumps({"text": token, "message_number": 2**53}).encode(),
    lambda token: json.dumps({"text": f"{token} \ud800"}).encode(),
    lambda token: b'{"text": "' + token.encode() + b' \xff"}',
    lambda token: json.dumps({"text": f"{token} " + "x" * 262_144}).encode(),
)
