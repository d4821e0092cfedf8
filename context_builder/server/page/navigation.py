"""The navigation lists the page's views: general ones, and those of one session."""

from __future__ import annotations

from typing import Final, NamedTuple


class NavigationLink(NamedTuple):
    """Names a view; ``path`` follows ``/ui/``, or a session's own address. Phones show the ``short`` name."""

    name: str
    path: str
    short: str = ""


VIEWS: Final = (
    NavigationLink("Sessions", "sessions"),
    NavigationLink("Back in time", "recordings", "Past"),
    NavigationLink("Prompt", "prompt"),
    NavigationLink("Packages", "packages"),
    NavigationLink("Memory", "memory"),
    NavigationLink("Health & cost", "health", "Health"),
)
"""In the head of every page."""

SESSION_VIEWS: Final = (
    NavigationLink("Live", ""),
    NavigationLink("Next prompt", "prompt"),
    NavigationLink("Back in time", "recording"),
)
"""In the head of a session's pages: ``/ui/sessions/{id}`` and, where ``path`` is not empty, ``/{path}``."""
