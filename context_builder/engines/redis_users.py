"""The users of an embedded Redis, beside ``default``, whom listeners with REDIS_PASSWORD log in as."""

from __future__ import annotations

from typing import Final

USER: Final = "context_builder"
"""Whom our own commands log in as, always with the home's password: where the server accepts it, it is this home's."""

VISITOR: Final = "context_builder_visitor"
"""Whom everybody may log in as, and who may do nothing: tells another user's commands that the server that asks them
for a password is an embedded one, beside which they start their own."""
