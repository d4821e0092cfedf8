"""Talk in portions that fit a prompt: all of it, in order, none too large."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from context_builder.analysis.analyst import AnalystMessage
from context_builder.analysis.chunking import (
    LONGEST_COUNTED,
    SHORTEST_PIECE,
    chunks,
    line_of,
    most_tokens_of,
    tokens_of,
)
from context_builder.quoting import quoted_json
from context_builder.tokens.counter import count_tokens

TEXTS = st.lists(st.integers(0, 3_000).map(lambda length: ("some words, " * 250)[:length]), max_size=8)


@given(TEXTS, st.integers(300, 2_000))
def test_nothing_is_skipped_or_moved_and_nothing_is_too_large(texts: list[str], room: int) -> None:
    messages = [AnalystMessage(number, "Alice", text) for number, text in enumerate(texts)]
    parts = list(chunks(messages, room, len))
    pieces = [piece for part in parts for piece in part]
    assert [piece.id for piece in pieces] == sorted(piece.id for piece in pieces)
    assert ["".join(p.text for p in pieces if p.id == said.id) for said in messages] == texts
    assert all(sum(len(line_of(p.speaker, p.text)) for p in part) <= room for part in parts)


def test_where_there_is_no_room_at_all_pieces_stay_readable() -> None:
    pieces = [piece for part in chunks([AnalystMessage(1, "A" * 999, "x" * 1_000)], 10, len) for piece in part]
    assert "".join(piece.text for piece in pieces) == "x" * 1_000
    assert all(SHORTEST_PIECE // 2 <= len(piece.text) <= SHORTEST_PIECE for piece in pieces)


def test_a_line_is_never_reckoned_smaller_than_it_is() -> None:
    for text in ("short", '"<quotes>"\n' * 40, "ሀሁሂ " * 900, "word " * LONGEST_COUNTED):
        counted = count_tokens(f"999 {quoted_json(text)}\n")
        assert counted <= tokens_of(text, count_tokens) <= most_tokens_of(text)
