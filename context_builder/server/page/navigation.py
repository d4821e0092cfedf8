"""The navigation lists the page's views: general ones, and those of one session."""

from __future__ import annotations

from typing import Final, NamedTuple


class Link(NamedTuple):
    """Names a view; ``path`` follows ``/ui/``, or a session's own address. Phones show the ``short`` name."""

    name: str
    path: str
    short: str = ""


VIEWS: Final = (
    Link("Sessions", "sessions"),
    Link("Back in time", "recordings", "Past"),
    Link("Prompt", "prompt"),
    Link("Packages", "packages"),
    Link("Memory", "memory"),
    Link("Health & cost", "health", "Health"),
)
"""In the head of every page."""

SESSION_VIEWS: Final = (Link("Live", ""), Link("Next prompt", "prompt"), Link("Back in time", "recording"))
"""In the head of a session's pages: ``/ui/sessions/{id}`` and, where ``path`` is not empty, ``/{path}``."""
