"""A stretch of talk in portions that fit one prompt each: whole messages where they fit, long ones in pieces."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from context_builder.analysis.analyst import AnalystMessage, SummaryRequest, SummaryResult
from context_builder.costs import Usage
from context_builder.errors import AnalystError
from context_builder.quoting import quoted_json, quoted_name

FRAME_TOKENS: Final = 4
"""Most tokens of a line's number, the blank after it and the line's end."""

LONGEST_COUNTED: Final = 8_192
"""Bytes of a line whose tokens are counted: longer ones are reckoned at one a byte, which is never too few."""

SHORTEST_PIECE: Final = 200
"""Characters that are not parted any more, however small the room is."""


def excerpt(text: str, limit: int) -> str:
    """Return the text, or of one of more than ``limit`` characters its first and its last half of so many."""
    return text if len(text) <= limit else f"{text[: limit // 2]} … {text[-limit // 2 :]}"


def line_of(speaker: str, text: str) -> str:
    """Return the line that a prompt has for a message."""
    return f"{quoted_name(speaker)}: {text}"


def tokens_of(line: str, count: Callable[[str], int]) -> int:
    """Return at least the tokens that ``line`` takes as a numbered line of a prompt, by ``count``."""
    written = quoted_json(line)
    size = len(written.encode())
    return FRAME_TOKENS + (count(written) if size <= LONGEST_COUNTED else size)


def most_tokens_of(line: str) -> int:
    """Return what ``line`` takes at most, without counting: no token is shorter than a byte."""
    return FRAME_TOKENS + len(quoted_json(line).encode())


def chunks(messages: Sequence[AnalystMessage], room: int, size: Callable[[str], int]) -> Iterator[list[AnalystMessage]]:
    """Yield the messages in order, as many at a time as ``room`` holds by the ``size`` of their lines.

    One that has no room even alone comes in pieces under its id, which together are all of its text.
    """
    portion: list[AnalystMessage] = []
    left = room
    for message in messages:
        for piece in _pieces(message, room, size):
            needed = size(line_of(piece.speaker, piece.text))
            if portion and needed > left:
                yield portion
                portion, left = [], room
            portion.append(piece)
            left -= needed
    if portion:
        yield portion


def _pieces(message: AnalystMessage, room: int, size: Callable[[str], int]) -> Iterator[AnalystMessage]:
    if len(message.text) <= SHORTEST_PIECE or size(line_of(message.speaker, message.text)) <= room:
        yield message
        return
    middle = len(message.text) // 2
    cut = message.text.rfind(" ", middle // 2, middle) + 1 or middle
    for text in (message.text[:cut], message.text[cut:]):
        yield from _pieces(replace(message, text=text), room, size)


async def summarized(
    request: SummaryRequest,
    parts: Iterable[Sequence[AnalystMessage]],
    summarize: Callable[[SummaryRequest], Awaitable[SummaryResult]],
    name: str,
) -> SummaryResult:
    """Return the summaries of all ``parts`` of the request as one, by ``name``. If one fails, all do."""
    whole = SummaryResult((), name)
    for part in parts:
        try:
            result = await summarize(replace(request, messages=part))
        except AnalystError as error:
            if whole.usage.calls:
                spent = whole.usage + (error.usage or Usage())
                error.usage = replace(spent, rejected=spent.rejected + whole.rejected)
            raise
        whole = replace(
            whole,
            points=whole.points + result.points,
            rejected=whole.rejected + result.rejected,
            usage=whole.usage + result.usage,
            over=whole.over | result.over,
        )
    return whole
