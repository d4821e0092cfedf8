"""Nothing that people say can take over the terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_builder.cli.view.palette import plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jclear \x1b(0line", "clear line"),
        ("a\r\nb\tc\x00\x08\x7f", "a b c"),
        ("abc\u202edef\u2066", "abcdef"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("[red]not markup[/red]", "[red]not markup[/red]"),
        (None, "None"),
    ],
)
def test_only_what_can_be_seen_is_left(text: object, shown: str) -> None:
    assert plain(text) == shown


def test_a_long_text_is_cut() -> None:
    assert plain("x" * 5000, 10) == "x" * 10 + "…"
    assert plain("x" * 10, 10) == "x" * 10


@given(st.text())
def test_no_control_character_ever_gets_through(text: str) -> None:
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in plain(text))
