"""Tokens of chat messages, counted as OpenAI bills them.

Each message costs 3 tokens and those of its values, a name 1 more, and the reply is primed with 3
(OpenAI cookbook, "How to count tokens with tiktoken", ``num_tokens_from_messages``). That is exact for
messages of text; a value that is no text, such as tool calls, is counted as its JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

Message = dict[str, Any]
"""A chat message: ``role``, ``content`` and perhaps ``name`` and others."""

PER_MESSAGE: Final = 3
PER_NAME: Final = 1
REPLY_PRIMING: Final = 3

_CACHED_TEXTS: Final = 8_192
_LONGEST_CACHED: Final = 32_768


class MessageTokenCounter:
    """Counts with any function from a text to its tokens; a text of up to 32,768 characters is counted once."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count
        self._count_cached = lru_cache(maxsize=_CACHED_TEXTS)(count)

    def text(self, text: str) -> int:
        """Return the tokens of ``text``."""
        return self._count(text) if len(text) > _LONGEST_CACHED else self._count_cached(text)

    def message(self, message: Mapping[str, Any]) -> int:
        """Return the tokens of one message within a prompt."""
        if len(message) == 2 and type(content := message.get("content")) is str and type(message.get("role")) is str:
            return PER_MESSAGE + self._count_cached(message["role"]) + self.text(content)  # nearly all there are
        tokens = PER_MESSAGE
        for key, value in message.items():
            tokens += self.text(value if type(value) is str else plain(value))
            if key == "name":
                tokens += PER_NAME
        return tokens

    def prompt(self, messages: Iterable[Mapping[str, Any]]) -> int:
        """Return the tokens of a whole prompt."""
        return REPLY_PRIMING + sum(map(self.message, messages))


def plain(value: object) -> str:
    """Return a message's value as the text that is counted for it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
