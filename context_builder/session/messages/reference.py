"""A message reference names a message of a session: by its number, or by the id that the session gave it."""

from __future__ import annotations

import re
from typing import Any, Final

from context_builder.errors import MessageError
from context_builder.values import value

_ID: Final = re.compile(r"(?:id:|message:(?P<session>[^/]+)/)(?P<id>[0-9]{1,15})")
_LARGEST: Final = 2**53 - 1
_LONGEST_DIGITS: Final = 32


@value
class MessageReference:
    """Names a message by ``number`` or by ``id``, one of which is there; ``session`` is empty where it is not told."""

    number: int | None = None
    id: int | None = None
    session: str = ""

    def __str__(self) -> str:
        return f"message {self.number}" if self.id is None else f"message id:{self.id}"


def str_of(reference: MessageReference) -> str:
    """Return the reference as a delivery holds it."""
    return str(reference.number) if reference.id is None else f"id:{reference.id}"


def read_reference(written: Any, name: str) -> MessageReference:
    """Return the reference that the field ``name`` holds: a number, its digits, ``id:12`` or ``message:SESSION/12``.

    Raises :class:`MessageError`.
    """
    if isinstance(written, str):
        written = written.strip()
        if found := _ID.fullmatch(written):
            return MessageReference(id=int(found["id"]), session=found["session"] or "")
        if written.isascii() and written.isdigit() and len(written) <= _LONGEST_DIGITS:
            written = int(written)
    if isinstance(written, float) and written.is_integer():
        written = int(written)
    if isinstance(written, bool) or not isinstance(written, int) or not 0 <= written <= _LARGEST:
        raise MessageError(f"{name} is neither a message number nor an id such as id:12")
    return MessageReference(number=written)
