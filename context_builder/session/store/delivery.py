"""A delivery is what a producer pushed, as it came; of one that is too large, only the beginning is read."""

from __future__ import annotations

from hashlib import sha1
from typing import Final

WHOLE_BYTES: Final = 4 * 1024 * 1024
"""Deliveries up to this size are kept whole, also as dead letters: base64 grows, and Redis holds 512 MiB at most."""

BEGINNING_BYTES: Final = 64 * 1024
"""So much is read of a delivery that is larger, and than a message may be: on a slow network, all of it would hold up
what comes after it."""


class CutDelivery(bytes):
    """The beginning of a delivery; ``size`` (bytes) and ``sha1`` (in hexadecimal) are those of all of it."""

    size: int
    sha1: str

    @classmethod
    def of(cls, beginning: bytes, size: int, digest: bytes) -> CutDelivery:
        cut = cls(beginning)
        cut.size, cut.sha1 = size, digest.decode()
        return cut


def sha1_of(delivery: bytes) -> str:
    """Return the digest of all of the delivery, as scripts compute it, too."""
    return delivery.sha1 if isinstance(delivery, CutDelivery) else sha1(delivery, usedforsecurity=False).hexdigest()


def told_apart_by(delivery: bytes) -> bytes:
    """Return what tells the delivery from others, the same whether it was read whole or not."""
    is_large = isinstance(delivery, CutDelivery) or len(delivery) > WHOLE_BYTES
    return sha1_of(delivery).encode() if is_large else delivery
