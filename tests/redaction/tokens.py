"""Random-looking tokens for tests; no key of anybody stands in the tests themselves."""

from __future__ import annotations

import random
from string import ascii_letters, ascii_lowercase, digits

HEX = "0123456789abcdef"
WORD = ascii_letters + digits
LOWER = ascii_lowercase + digits


def token(prefix: str, length: int, alphabet: str = WORD, suffix: str = "") -> str:
    """``prefix``, ``length`` characters of ``alphabet`` and ``suffix``: the same ones for the same arguments."""
    chosen = random.Random(f"{prefix}{length}{alphabet}")
    return prefix + "".join(chosen.choice(alphabet) for _ in range(length)) + suffix


def uuid(seed: str = "") -> str:
    """A UUID: the same one for the same seed."""
    text = token(seed, 32, HEX)[len(seed) :]
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
