"""A replay rebuilds what was published at any instant: the same events give the same conversation."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import orjson

from context_builder.clock import Instant
from context_builder.costs import NO_USAGE
from context_builder.errors import RecordingError
from context_builder.recording.recording import (
    Line,
    RecordedTasks,
    Recording,
    digest,
    ids_of,
    read_entries,
    read_message,
    read_result,
    read_revision,
    read_rules,
    read_usage,
)
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.conversation.state import conversation_state, restore, take_session_state
from context_builder.session.conversation.tasks import AnalysisTask
from context_builder.tokens.counter import TokenCounter

UNFOLLOWED: Final = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""What a line raises that has other fields than a session writes, or does not follow from those before it."""


@dataclass(frozen=True, slots=True)
class RebuiltState:
    """A published state. It is ``exact`` where it is, byte for byte, what readers saw, except for the white space
    between messages, of which Redis may have more.

    ``conversation`` is what the delivery monitor was shown at the same moment.
    """

    session_id: str
    at: Instant
    revision: int
    state: bytes
    conversation: bytes
    exact: bool


class Player:
    """Replays a run from its ``begin`` line on.

    When keywords and domains were asked for is taken from the recording; what a summary takes out of the
    buffer follows from what happened before. Raises :class:`RecordingError` when that is something else now.
    """

    def __init__(self, begin: Line) -> None:
        written = begin.more
        fields = {name: orjson.dumps(value) for name, value in written["fields"].items()}
        rules, self._counter = read_rules(written["rules"]), TokenCounter(written["tokens"])
        self.session_id: str = written["session_id"]
        self._version: str = written["version"]
        self._conversation = restore(self.session_id, fields, written["pending"], rules, begin.at, self._counter.count)
        self._tasks = RecordedTasks(begin)
        self._under_way: dict[int, tuple[str, AnalysisTask]] = {}

    def apply(self, line: Line) -> None:
        """Apply one line."""
        conversation, more = self._conversation, line.more
        self._tasks.learn_messages(line)
        match line.event:
            case "received":
                conversation.receive([read_message(message) for message in more["messages"]], line.at)
            case "revised":
                conversation.revise([read_revision(one) for one in more["revisions"]], line.at)
            case "deliveries_rejected":
                conversation.count_dead_letters(more["count"])
            case "dead_lettered":
                conversation.dead_lettered(more["receiver"], more["count"])
            case "charged":
                conversation.charge(more["task"], read_usage(more["usage"]) or NO_USAGE, line.at)
            case "task_started":
                self._start_task(line)
            case "task_finished":
                self._finish_task(line)
            case "phase_changed":
                _PHASES[more["phase"]](conversation, line.at)
            case _:
                pass

    def pass_over(self) -> None:
        """Go past a ``published`` line whose state is not wanted, which takes most of the time."""
        self._conversation.take_changes()  # were written down then

    def copied(self) -> Player:
        """Return a player that plays on from here by itself. What is never changed, or only added to, is shared."""
        shared = (self._tasks, self._counter)
        return copy.deepcopy(self, {id(one): one for one in shared})

    def published(self, line: Line) -> RebuiltState:
        """Return the state that a ``published`` line is about."""
        self.pass_over()
        revision = line.more["revision"]
        state = bytes(take_session_state(self._conversation, revision, line.at))
        shown = conversation_state(self._conversation, line.at)
        return RebuiltState(self.session_id, line.at, revision, state, shown, digest(state) == line.more["state"])

    def _start_task(self, line: Line) -> None:
        kind = line.more["kind"]
        task: AnalysisTask | None
        if kind == "keywords":
            task = self._tasks.keywords(line)
        elif kind == "domains":
            task = self._tasks.domains(line)
        else:
            task = (
                self._conversation.next_compaction_task()
                if kind == "compaction"
                else self._conversation.next_summary_task(read_entries(line, line.more.get("entries", ())))
            )
            if (None if task is None else ids_of(task)) != line.more.get("ids"):
                what = f"this version summarizes other messages than {self._version} did"
                raise RecordingError(f"line {line.number}: {what}")
        if task is not None:
            self._under_way[line.more["task"]] = (kind, task)

    def _finish_task(self, line: Line) -> None:
        kind, task = self._under_way.pop(line.more["task"])
        result = line.more["result"]
        if result is None:
            usage, reason = read_usage(line.more.get("usage")), line.more.get("reason", "")
            self._conversation.fail(task, line.at, usage=usage, reason=reason)
        else:
            self._conversation.finish(task, read_result(kind, result), line.at)


_PHASES: dict[str, Callable[[Conversation, Instant], Any]] = {
    "closing": lambda conversation, _: conversation.close(),
    "ended": lambda conversation, now: conversation.end(now),
    "pending_lost": lambda conversation, _: conversation.pending_lost(),
}


def rebuild(recording: Recording, until: float = float("inf")) -> RebuiltState:
    """Return the state readers saw at epoch second ``until``. Raises :class:`RecordingError` without one.

    It plays all that led there, once. For one instant after the other there is ``library.Timeline``, which keeps copies
    on the way and is tested against this.
    """
    mark = recording.published(until)
    return next(state for line, state in rebuild_each(recording, run=mark.run) if line.number == mark.number)


def rebuild_each(recording: Recording, run: str | None = None) -> Iterator[tuple[Line, RebuiltState]]:
    """Yield what was published, in order, with its line; of one ``run`` only, if it is given."""
    players: dict[str, Player] = {}
    for line in recording.lines():
        if run not in (None, line.run):
            continue
        try:
            if line.event == "begin":
                players[line.run] = Player(line)
            elif line.event == "published":
                yield line, players[line.run].published(line)
            else:
                players[line.run].apply(line)
        except UNFOLLOWED as error:
            what = f"line {line.number} does not follow from what is before it: {error!r}"
            raise RecordingError(f"{recording.path}: {what}") from None
