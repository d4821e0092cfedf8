"""Troubles of a session tell people which model calls fail, what waits, and what to do about it. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final
from urllib.parse import quote

from context_builder.analysis.text.analyst import NAME as TEXT_ANALYST
from context_builder.json_values import number_of, object_of
from context_builder.session.activity import SessionActivity
from context_builder.session.client import JsonObject


def run_command(session_id: str) -> str:
    """Return the line that runs the session from a terminal."""
    return f"context-builder run {shlex.quote(session_id)}"


_TITLES: Final = {
    "summary": "The summary fails",
    "keywords": "Keywords are not found",
    "domains": "Domains are not inferred",
    "compaction": "The summary cannot be shortened",
}
"""What is said of each task that fails, the most serious first."""

_LONGEST_REASON: Final = 300


@dataclass(frozen=True, slots=True)
class Trouble:
    """What fails, ``since`` which epoch second, if that is known, and what there is to say about it.

    ``level`` is ``bad`` where something is missing, ``warn`` where something else stands in for it, or it waits.
    ``commands`` mend it from a terminal; ``view`` of the page, a path that follows ``/ui/``, tells more.
    """

    level: str
    title: str
    since: float | None = None
    details: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    view: str = ""

    def as_json(self) -> JsonObject:
        return asdict(self)


def failing_tasks(state: JsonObject) -> tuple[str, ...]:
    """Return the tasks that a published state says are failing, the most serious first."""
    failing = object_of(state.get("failing"))
    return tuple(task for task in _TITLES if object_of(failing.get(task)))


def troubles_of(state: JsonObject, *, is_run: bool, has_model: bool) -> list[Trouble]:
    """Return the troubles of a session with this published state; ``has_model`` says that a model is set up."""
    return [*_failing(state), *_stood_in(state, is_run=is_run, has_model=has_model)]


def undelivered(
    session_id: str, status: SessionActivity, waiting: int, dead: int, *, is_masked: bool = False
) -> list[Trouble]:
    """Return what keeps messages from their place: ``waiting`` were not taken in, ``dead`` could not be delivered.

    Who sees the session masked may not read the latter.
    """
    found = []
    if status is SessionActivity.NOT_RUNNING:
        waits = f"{_counted(waiting, 'message')} {'waits' if waiting == 1 else 'wait'}." if waiting else ""
        commands = (run_command(session_id), "context-builder fleet")
        found.append(Trouble("warn", "Nobody runs this session", details=(waits,) * bool(waits), commands=commands))
    if dead:
        view = "" if is_masked else f"dead/{quote(session_id, safe='')}"
        found.append(Trouble("bad", f"{_counted(dead, 'message')} could not be read or delivered", view=view))
    return found


def _failing(state: JsonObject) -> Iterator[Trouble]:
    failing = object_of(state.get("failing"))
    for task in failing_tasks(state):
        told = object_of(failing.get(task))
        yield Trouble("bad", _TITLES[task], number_of(told.get("since")), tuple(_details(task, told, state)))


def _details(task: str, told: JsonObject, state: JsonObject) -> Iterator[str]:
    tries, tokens = (int(number_of(told.get(name)) or 0) for name in ("tries", "tokens"))
    spent = f" and used {_counted(tokens, 'token')}" if tokens else ""
    yield f"{_counted(tries, 'try', 'tries')} failed{spent}."
    if reason := str(told.get("reason") or "")[:_LONGEST_REASON].strip():
        yield f"{reason[0].upper()}{reason[1:]}{'' if reason.endswith('.') else '.'}"
    waiting = int(number_of(state.get("messages_since_summary")) or 0)
    if task == "summary" and waiting:
        yield f"{_counted(waiting, 'message')} {'waits' if waiting == 1 else 'wait'} for it; nothing is lost."


def _stood_in(state: JsonObject, *, is_run: bool, has_model: bool) -> Iterator[Trouble]:
    analysts = object_of(state.get("analyst"))
    if is_run and has_model and TEXT_ANALYST in (analysts.get("keywords"), analysts.get("domains")):
        details = "Keywords and domains come from plain text analysis, because the model does not answer."
        yield Trouble("warn", "The model is not reached", None, (details,))
    summary = object_of(state.get("rolling_summary"))
    if has_model and (refused := int(number_of(summary.get("degraded_messages")) or 0)):
        title = f"{_counted(refused, 'message')} {_were(refused)} summarized without the model"
        yield Trouble("warn", title, None, ("It refused them, or failed for too long: plain text analysis read them.",))


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def _were(number: int) -> str:
    return "was" if number == 1 else "were"
