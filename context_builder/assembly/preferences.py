"""What people say they want, to be remembered; found where the live side finds it too."""

from __future__ import annotations

from context_builder.memory.preferences import KIND, Preference, stated_preferences

__all__ = ["KIND", "Preference", "stated_preferences"]
