"""The rolling summary: the points of the conversation that are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from rich.text import Text

from context_builder.cli.view.palette import ASSISTANT, UNBOUNDED, SpeakerColours

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from context_builder.cli.view.published import PublishedPoint

KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "claim": ("•", "#9aa5ce"),
    "question": ("?", "#61afef"),
    "decision": ("✓", "#98c379"),
    "action": ("→", "#e5a04b"),
    "proposal": ("◇", "#c678dd"),
    "disagreement": ("≠", "#e06c75"),
    "consilience": ("✦", ASSISTANT),
}
"""Sign and colour of each kind of point."""

MOST_LINES: Final = 4
"""Lines of one point; a longer one is cut."""


def summary_line(points: Sequence[PublishedPoint], note: str) -> Text:
    """Return the summary in one line: ``note``, and its newest point."""
    if not points:
        return Text("memory: nothing summarized yet", style="dim italic")
    sign, colour = KINDS.get(points[-1].kind, KINDS["claim"])
    line = Text.assemble(("memory ", "bold"), (f"{note}  ", "dim"), (f"{sign} ", f"bold {colour}"), points[-1].text)
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


class SummaryView:
    """Draws the newest points that there is room for, each with its speakers."""

    def __init__(self, points: Sequence[PublishedPoint], colours: SpeakerColours) -> None:
        self._points = points
        self._colours = colours

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not self._points:
            yield Text("nothing summarized yet", style="dim italic")
        height = options.height or UNBOUNDED
        lines: list[Text] = []
        shown = 0
        for point in reversed(self._points):
            block = self._block(console, point, options.max_width)
            earlier = shown + 1 < len(self._points)
            if lines and len(block) + earlier > height - len(lines):
                break
            lines[:0] = block[: height - len(lines)]
            shown += 1
        if hidden := len(self._points) - shown:
            yield Text(f"⋮ {hidden} earlier", style="dim")
        yield from lines

    def _block(self, console: Console, point: PublishedPoint, width: int) -> list[Text]:
        sign, colour = KINDS.get(point.kind, KINDS["claim"])
        text = Text(point.text)
        if point.kind not in ("claim", "consilience"):
            text = Text.assemble((f"{point.kind} ", f"bold {colour}"), text)
        for index, speaker in enumerate(point.speakers[:3]):
            text.append(", " if index else "  ", "dim").append(speaker, self._colour(speaker))
        wrapped = list(text.wrap(console, max(8, width - 2)))
        if len(wrapped) > MOST_LINES:
            wrapped = wrapped[:MOST_LINES]
            wrapped[-1].truncate(width - 3)
            wrapped[-1].append("…", "dim")
        return [
            Text.assemble((f"{sign} ", f"bold {colour}") if not i else "  ", line) for i, line in enumerate(wrapped)
        ]

    def _colour(self, speaker: str) -> str:
        return ASSISTANT if speaker == "Consilience" else self._colours[speaker]
