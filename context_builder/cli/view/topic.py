"""What the conversation is about: domains as bars, and the topic's keywords."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from context_builder.cli.view.palette import domain_colour, short_name


class DomainBars:
    """One line a domain: its name, a bar as long as its confidence, per cent."""

    def __init__(self, domains: Sequence[tuple[str, float]]) -> None:
        self._domains = domains

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not self._domains:
            yield Text("not enough said yet", style="dim italic")
        width = options.max_width
        names = [name if width >= 64 else short_name(name) for name, _ in self._domains]
        longest = min(max((len(name) for name in names), default=0), max(8, width // 2))
        room = max(4, width - longest - 6)
        for name, (domain, confidence) in zip(names, self._domains[: options.height], strict=False):
            colour = domain_colour(domain)
            label = Text(name)
            label.truncate(longest, overflow="ellipsis", pad=True)
            drawn = bar(confidence, room)
            track = ("─" * (room - len(drawn)), "bright_black dim")
            yield Text.assemble(label, " ", (drawn, colour), track, (f"{confidence:5.0%}", f"bold {colour}"))


def bar(fraction: float, width: int) -> str:
    """A bar of at most ``width`` columns, drawn to half of one."""
    halves = round(min(max(fraction, 0.0), 1.0) * width * 2)
    return "━" * (halves // 2) + "╸" * (halves % 2)


def domain_line(domains: Sequence[tuple[str, float]]) -> Text:
    """The domains in one line, where there is no room for bars."""
    line = Text(no_wrap=True, overflow="ellipsis")
    for domain, confidence in domains:
        line.append("● ", domain_colour(domain))
        line.append(f"{short_name(domain)} {confidence:.0%}  ", domain_colour(domain))
    return line or Text("no domains yet", style="dim italic")


def keyword_line(keywords: Sequence[str]) -> Text:
    """The topic's keywords, the first ones in full strength."""
    line = Text(overflow="ellipsis")
    for index, keyword in enumerate(keywords):
        line.append(" · " if index else "", "dim").append(keyword, "bold" if index < 3 else "")
    return line or Text("no topic yet", style="dim italic")
