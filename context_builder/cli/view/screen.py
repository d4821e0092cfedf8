"""The whole view, laid out for the room there is."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.box import ROUNDED
from rich.console import Console, Group, RenderableType
from rich.layout import Layout
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from context_builder.cli.view.conversation import ConversationView, DomainBars, domain_line, keyword_line
from context_builder.cli.view.palette import SpeakerColours
from context_builder.cli.view.published import Published
from context_builder.cli.view.status import (
    SILENCE,
    archived,
    clock_time,
    counted,
    duration,
    figures,
    flow,
    running,
    silence_clock,
)
from context_builder.cli.view.summary import SummaryView, summary_line

if TYPE_CHECKING:
    from context_builder.session.client import Snapshot

WIDE: Final = 100
"""Columns from which conversation and understanding stand side by side."""

TALL: Final = 24
"""Rows from which there is room for all of the summary in one column, not only a line of it."""

_BORDER: Final = "bright_black"


@dataclass(frozen=True, slots=True)
class View:
    """What the view knows beside the snapshot.

    ``per_minute`` is the rate of messages, ``notice`` a line that concerns the view itself
    (such as a Redis that does not answer), ``silence_threshold`` in seconds, ``earlier`` messages
    that have left the buffer.
    """

    per_minute: float | None = None
    notice: str = ""
    silence_threshold: float = SILENCE
    earlier: Sequence[Mapping[str, Any]] = ()
    colours: SpeakerColours = field(default_factory=SpeakerColours)


def render(snapshot: Snapshot, now: float, size: tuple[int, int], view: View | None = None) -> RenderableType:
    """Return the session at epoch second ``now`` for a terminal of ``size`` columns and rows."""
    view = view or View()
    page = Published(snapshot)
    width, height = size
    if not page.known:
        return _absent(page, now, view)
    frame = Layout()
    body = _side_by_side(page, view) if width >= WIDE and height >= 16 else _one_column(page, view, height)
    footer = flow(figures(page, now, view.per_minute), width - 2, rows=2 if height >= TALL else 1)
    head = _wide_head(page, now, view) if width >= WIDE else _narrow_head(page, now, view)
    frame.split_column(
        Layout(head, size=1 if width >= WIDE else 2),
        body,
        Layout(Padding(Group(*footer), (0, 1)), size=len(footer)),
    )
    return frame


def _absent(page: Published, now: float, view: View) -> RenderableType:
    """Return what is said of a session of which nothing is published, or no longer."""
    command = f"context-builder run {page.session_id}"
    if page.owned:
        explanation = Text.assemble("It starts: ", running(page, now))
    elif page.ended:
        of = f"{counted(page.ended.messages, 'message')}, {archived(page.ended)}"
        explanation = Text.assemble(
            f"It ended {clock_time(page.ended.at, now)}: {of}. Open it again with\n\n  ", (command, "bold")
        )
    else:
        explanation = Text.assemble("No daemon runs it. Start one with\n\n  ", (command, "bold"))
    if page.waiting:
        explanation.append(
            f"\n\n{counted(page.waiting, 'message')} {'waits' if page.waiting == 1 else 'wait'} for it.", "yellow"
        )
    lines = [
        Text.assemble(("Session ", "dim"), (page.session_id, "bold"), (" publishes nothing.", "dim")),
        Text(),
        explanation,
    ]
    if view.notice:
        lines += [Text(), Text(view.notice, style="bold red")]
    return Padding(Group(*lines), (1, 2))


def _wide_head(page: Published, now: float, view: View) -> RenderableType:
    line = Table.grid(expand=True)
    line.add_column(ratio=1, no_wrap=True)
    line.add_column(justify="center", no_wrap=True)
    line.add_column(ratio=1, justify="right", no_wrap=True)
    line.add_row(_title(page, now), silence_clock(page, now, view.silence_threshold), _standing(page, now, view))
    return Padding(line, (0, 1))


def _narrow_head(page: Published, now: float, view: View) -> RenderableType:
    line = Table.grid(expand=True)
    line.add_column(ratio=1, no_wrap=True)
    line.add_column(justify="right", no_wrap=True)
    line.add_row(_title(page, now), silence_clock(page, now, view.silence_threshold))
    standing = _standing(page, now, view)
    standing.no_wrap = True
    return Padding(Group(line, standing), (0, 1))


def _title(page: Published, now: float) -> Text:
    age = page.age(now)
    since = f"  {duration(age)}" if age is not None else ""
    return Text.assemble((page.session_id, "bold"), (since, "dim"), overflow="ellipsis")


def _standing(page: Published, now: float, view: View) -> Text:
    standing = Text(view.notice, style="bold red") if view.notice else running(page, now)
    standing.overflow = "ellipsis"
    return standing


def _side_by_side(page: Published, view: View) -> Layout:
    understanding = Layout(ratio=2)
    understanding.split_column(
        Layout(_framed(DomainBars(page.domains), "domains"), size=2 + min(max(len(page.domains), 3), 6)),
        Layout(_framed(keyword_line(page.keywords), "topic"), size=4),
        Layout(_framed(SummaryView(page.points, view.colours), "memory", _memory_note(page))),
    )
    body = Layout()
    body.split_row(Layout(_conversation(page, view), ratio=3), understanding)
    return body


def _one_column(page: Published, view: View, height: int) -> Layout:
    body = Layout()
    lines = [Layout(Padding(domain_line(page.domains), (0, 1)), size=1)]
    if height >= TALL:
        keywords = keyword_line(page.keywords)
        keywords.no_wrap = True
        memory = _framed(SummaryView(page.points, view.colours), "memory", _memory_note(page))
        lines += [Layout(Padding(keywords, (0, 1)), size=1), Layout(memory, ratio=2)]
    else:
        lines.append(Layout(Padding(summary_line(page.points, _memory_note(page)), (0, 1)), size=1))
    body.split_column(Layout(_conversation(page, view), ratio=3), *lines)
    return body


def _conversation(page: Published, view: View) -> Panel:
    messages = page.messages
    note = f"{len(messages):,} in the buffer" + (", dimmed ones are summarized" if view.earlier else "")
    return _framed(ConversationView(messages, view.colours, view.earlier), "conversation", note)


def _memory_note(page: Published) -> str:
    return f"{counted(page.summarized, 'message')} in {counted(len(page.points), 'point')}" if page.points else ""


def _framed(content: RenderableType, title: str, note: str = "") -> Panel:
    return Panel(
        content,
        title=Text(title, style="bold"),
        title_align="left",
        subtitle=Text(note, style="dim") if note else None,
        subtitle_align="right",
        box=ROUNDED,
        border_style=_BORDER,
        padding=(0, 1),
    )


SIZE: Final = (132, 36)
"""Columns and rows of the picture."""


def export_svg(snapshot: Snapshot, now: float, path: Path) -> None:
    """Write the session at epoch second ``now`` to ``path`` as SVG."""
    width, height = SIZE
    console = Console(
        file=io.StringIO(),
        record=True,
        width=width,
        height=height,
        force_terminal=True,
        color_system="truecolor",
    )
    console.print(render(snapshot, now, SIZE), height=height)
    console.save_svg(str(path), title=f"context-builder watch {snapshot.session_id}")
