"""The kinds of lasting preferences that people state."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class PreferenceKind(StrEnum):
    """Tells the kind of a preference."""

    PREFERS = "prefers"
    LIKES_WHEN = "likes when"
    DISLIKES = "dislikes"
    DISLIKES_WHEN = "dislikes when"
    ALWAYS = "always"
    NEVER = "never"
    NAME = "name"
    LANGUAGE = "language"

    def phrase(self, what: str) -> str:
        """Return the preference for ``what``, in the third person."""
        return _FORMS[self].format(what)


_FORMS: Final[Mapping[PreferenceKind, str]] = {
    PreferenceKind.PREFERS: "Prefers {}",
    PreferenceKind.LIKES_WHEN: "Likes it when {}",
    PreferenceKind.DISLIKES: "Dislikes {}",
    PreferenceKind.DISLIKES_WHEN: "Dislikes it when {}",
    PreferenceKind.ALWAYS: "Always {}",
    PreferenceKind.NEVER: "Never {}",
    PreferenceKind.NAME: "Wants to be called {}",
    PreferenceKind.LANGUAGE: "Wants replies in {}",
}
