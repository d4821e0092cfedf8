"""A page with a form reports invalid input and keeps what was entered."""

from __future__ import annotations

from typing import Any

from fastapi import Request, Response

from context_builder.server.page.page_route import pairs_of
from context_builder.server.page.rendering import render
from context_builder.server.problem import Problem


def form_page(
    request: Request, template: str, *, title: str, problem: Problem | None = None, **values: Any
) -> Response:
    """Return the page, with the status of the problem, if there is one, and its text as ``problem``."""
    status, detail = (200, "") if problem is None else (problem.status, problem.detail)
    return render(request, template, title=title, status=status, problem=detail, **values)


async def values_of(request: Request, name: str) -> list[str]:
    """Return all values that a form sent under a name, such as those of ticked boxes."""
    return [value for key, value in await pairs_of(request) if key == name]
