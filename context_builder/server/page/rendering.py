"""Templates are rendered to pages, and all values are escaped as text."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, NamedTuple

from fastapi import Request
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

from context_builder.assembly.budget import BEGINNING
from context_builder.clock import ago
from context_builder.concurrency import beside_loop
from context_builder.domains import DOMAINS
from context_builder.server import problem
from context_builder.server.access.caller import Role
from context_builder.server.asgi.callers import PAGE
from context_builder.server.page.logins import FOR_SCRIPTS
from context_builder.session.messages.message import CONSILIENCE
from context_builder.tracing import current_trace

_ORIGINS: Final = {
    "full_text": "words",
    "vector": "meaning",
    "semantic": "words or meaning",
    "metadata": "its fields",
    "neighbour": "what it stands beside",
}
_NUMBER: Final = {name: number for number, name in enumerate(DOMAINS)}


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("context_builder.server.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "ago": _ago,
        "beginning": beginning,
        "clock": clock,
        "day": day,
        "dollars": dollars,
        "domain_class": domain_class,
        "domain": short,
        "found_by": found_by,
        "speaker_class": speaker_class,
    }
    environment.globals |= {"PAGE": PAGE, "views": VIEWS, "session_views": SESSION_VIEWS}
    return environment


async def render(request: Request, template: str, *, title: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Return the page that a template makes of the values, beside the loop; ``title`` is what the browser's tab
    says."""
    given = {"login": request.scope["state"].get("login"), "path": request.scope["path"], "title": title, **values}
    return await beside_loop(lambda: HTMLResponse(_templates().get_template(template).render(given), status))


async def answer_error(request: Request, error: Exception) -> Response:
    """Answer what a view raised: to people with a page, to scripts with a problem document."""
    document = await problem.answer(request, error)
    if request.scope["path"].startswith(FOR_SCRIPTS):
        return document
    found = problem.problem_document(problem.as_problem(error), current_trace())
    found["detail"] = found["detail"].partition("; GET /")[0]  # where a program looks; people have links
    view = next((one for one in VIEWS if one.leads_to(request.scope["path"])), VIEWS[0])
    page = await render(
        request, "error.html", title=found["title"], status=document.status_code, problem=found, view=view
    )
    for name in ("retry-after",):
        if name in document.headers:
            page.headers[name] = document.headers[name]
    return page


def _ago(moment: float | None) -> str:
    return "never" if moment is None else ago(moment, time.time())


def beginning(text: str) -> str:
    """Return the text of a receipt, with a sign where it is but a beginning."""
    return f"{text.rstrip()}…" if len(text) >= BEGINNING else text


def clock(moment: float | None) -> str:
    """Return the time of day of an epoch second, in UTC; scripts show the reader's own."""
    if moment is None:
        return "–"
    try:
        return f"{datetime.fromtimestamp(moment, UTC):%H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return "–"


def day(moment: float) -> str:
    """Return the day of an epoch second, in UTC: ``2026-11-27``."""
    try:
        return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d}"
    except (ValueError, OverflowError, OSError):
        return "–"


def dollars(amount: float) -> str:
    """Return US dollars with as many places as say something."""
    return f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount:.4f}"


def found_by(origins: Sequence[str]) -> str:
    """Return how something was found, in words."""
    return " and ".join(dict.fromkeys(_ORIGINS.get(one, one.replace("_", " ")) for one in origins))


def domain_class(name: str) -> str:
    """Return the class that gives a domain its colour."""
    return f"d{_NUMBER.get(name, len(_NUMBER))}"


def speaker_class(name: str) -> str:
    """Return the class that gives a speaker a colour, the same everywhere; the assistant has one of its own."""
    return "consilience" if name == CONSILIENCE else f"s{sum(map(ord, name)) % 8}"


def short(name: str) -> str:
    """Return a domain's name where there is little room."""
    return name.split(" / ")[0].split(" (")[0]


class NavigationLink(NamedTuple):
    """Names a view; ``path`` follows ``/ui/``, or a session's own address. Phones show the ``short`` name.

    What is below ``other_path`` belongs to the view, too.
    """

    name: str
    path: str
    short: str = ""
    role: Role = Role.READER
    other_path: str = ""

    def leads_to(self, path: str) -> bool:
        """Return whether the address of a page is the view's, or below it."""
        return any(f"{path}/".startswith(f"{PAGE}/{one}/") for one in (self.path, self.other_path) if one)


VIEWS: Final = (
    NavigationLink("Sessions", "sessions", other_path="dead"),
    NavigationLink("Back in time", "recordings", "Past"),
    NavigationLink("Prompt", "prompt"),
    NavigationLink("Packages", "packages", other_path="audit"),
    NavigationLink("Memory", "memory"),
    NavigationLink("Health & cost", "health", "Health"),
)
"""In the head of every page."""

SESSION_VIEWS: Final = (
    NavigationLink("Live", ""),
    NavigationLink("Next prompt", "prompt"),
    NavigationLink("Back in time", "recording"),
    NavigationLink("Correct", "revisions", role=Role.WRITER),
)
"""In the head of a session's pages: ``/ui/sessions/{id}`` and, where ``path`` is not empty, ``/{path}``."""
