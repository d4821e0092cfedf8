"""The read side: from a turn and all that is remembered to messages that fit the token budget.

What others may import is in ``public``, which is loaded when a name of it is first used: its config is read by
programs that build no prompts.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from context_builder.assembly.public import *  # noqa: F403


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(import_module("context_builder.assembly.public"), name)
