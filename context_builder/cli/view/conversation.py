"""The newest messages of the conversation, as many as there is room for."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from rich.cells import cell_len
from rich.text import Text

from context_builder.cli.view.palette import ASSISTANT, UNBOUNDED, SpeakerColours, domain_colour, short_name
from context_builder.cli.view.published import PublishedMessage, published_message

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult


class DomainBars:
    """Draws one line a domain: its name, a bar as long as its confidence, per cent."""

    def __init__(self, domains: Sequence[tuple[str, float]]) -> None:
        self._domains = domains

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not self._domains:
            yield Text("no domain recognized", style="dim italic")
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
    """Return a bar of at most ``width`` columns, drawn to half of one."""
    halves = round(min(max(fraction, 0.0), 1.0) * width * 2)
    return "━" * (halves // 2) + "╸" * (halves % 2)


def domain_line(domains: Sequence[tuple[str, float]]) -> Text:
    """Return the domains in one line, where there is no room for bars."""
    line = Text(no_wrap=True, overflow="ellipsis")
    for domain, confidence in domains:
        line.append("● ", domain_colour(domain))
        line.append(f"{short_name(domain)} {confidence:.0%}  ", domain_colour(domain))
    return line or Text("no domains yet", style="dim italic")


def keyword_line(keywords: Sequence[str]) -> Text:
    """Return the topic's keywords, the first ones in full strength."""
    line = Text(overflow="ellipsis")
    for index, keyword in enumerate(keywords):
        line.append(" · " if index else "", "dim").append(keyword, "bold" if index < 3 else "")
    return line or Text("no keywords yet", style="dim italic")


LONGEST_NAME: Final = 14
"""Columns of a speaker's name; a longer one is cut."""

SCROLLBACK: Final = 60
"""Most messages shown that have left the buffer."""

TIMES_FROM: Final = 64
"""Columns below which the time of each message is left out."""


class Scrollback:
    """Messages that left the buffer while the view was open, oldest first."""

    def __init__(self) -> None:
        self.earlier: deque[Mapping[str, Any]] = deque(maxlen=SCROLLBACK)
        self._buffer: dict[object, Mapping[str, Any]] = {}

    def look(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Note the buffer as it is published now."""
        buffer = {_identity(entry): entry for entry in messages}
        self.earlier.extend(entry for identity, entry in self._buffer.items() if identity not in buffer)
        self._buffer = buffer


class ConversationView:
    """Draws messages from the newest upwards until the region is full.

    ``earlier`` ones, which are in the buffer no more, come before the others and are dimmed.
    """

    def __init__(
        self,
        messages: Sequence[Mapping[str, Any]],
        colours: SpeakerColours,
        earlier: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self._messages = messages
        self._colours = colours
        self._earlier = earlier

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        height = options.height or UNBOUNDED
        newest = [
            published_message(entry)
            for entry in islice(chain(reversed(self._messages), reversed(self._earlier)), height)
        ]
        if not newest:
            yield Text("nothing in the buffer", style="dim italic")
        for message in reversed(newest):
            _ = self._colours[message.speaker]  # in the order people came, whichever is drawn first
        names = min(LONGEST_NAME, max((cell_len(_name(message)) for message in newest), default=0))
        lines: list[Text] = []
        for index, message in enumerate(newest):
            room = height - len(lines)
            if room <= 0:
                break
            block = self._block(console, message, options.max_width, names, most=max(2, min(6, height // 3)))
            if index >= len(self._messages):
                for line in block:
                    line.stylize("dim")
            lines[:0] = block[-room:] if lines else block[:room]
        yield from lines

    def _block(self, console: Console, message: PublishedMessage, width: int, names: int, most: int) -> list[Text]:
        """Return the lines of one message, the first with the speaker's name, the last with its tags."""
        colour = ASSISTANT if message.assistant else self._colours[message.speaker]
        margin = self._margin(message, colour, width, names)
        room = max(8, width - margin.cell_len)
        text = Text(message.text, style=f"italic {ASSISTANT}" if message.assistant else "")
        wrapped = list(text.wrap(console, room))
        if len(wrapped) > most:
            wrapped = wrapped[:most]
            wrapped[-1].truncate(room - 1)
            wrapped[-1].append("…", "dim")
        if tags := _tags(message):
            tags.truncate(room, overflow="ellipsis")
            wrapped.append(tags)
        below = Text.assemble(("▎", colour), " " * (margin.cell_len - 1))
        return [Text.assemble(below if index else margin, line) for index, line in enumerate(wrapped or [Text()])]

    def _margin(self, message: PublishedMessage, colour: str, width: int, names: int) -> Text:
        name = Text(_name(message), style=f"bold {colour}")
        name.truncate(names, overflow="ellipsis", pad=True)
        time = Text(f"{message.time} ", style="dim") if width >= TIMES_FROM else Text()
        return Text.assemble(("▎", colour), time, name, " ")


def _identity(entry: Mapping[str, Any]) -> object:
    """Return what distinguishes a message from all others of the session."""
    return entry.get("id", (entry.get("message_number"), str(entry.get("speaker")), str(entry.get("text"))))


def _name(message: PublishedMessage) -> str:
    return f"✦ {message.speaker}" if message.assistant else message.speaker


def _tags(message: PublishedMessage) -> Text:
    """Return the domains and keywords in one line; empty where there are none yet."""
    tags = Text()
    for domain in message.domains[:3]:
        tags.append("● ", domain_colour(domain)).append(short_name(domain), domain_colour(domain)).append("  ")
    tags.append(" · ".join(message.keywords), "dim")
    return tags
