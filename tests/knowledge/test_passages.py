"""A content's passages are short, and together all of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from context_builder.knowledge.passages import passages


def test_paragraphs_stay_whole_and_headings_begin_anew() -> None:
    content = "# Whales\n\nThey sing.\n\nThey dive.\n\n# Bees\n\nThey dance."
    assert passages(content) == ["# Whales\nThey sing.\nThey dive.", "# Bees\nThey dance."]


def test_a_long_paragraph_is_parted_between_sentences_and_a_long_sentence_between_words() -> None:
    assert passages("One two three. Four five. Six seven eight.", 5) == [
        "One two three. Four five.",
        "Six seven eight.",
    ]
    assert passages("a b c d e f g", 3) == ["a b c", "d e f", "g"]


def test_nothing_has_no_passages() -> None:
    assert passages("") == passages(" \n\n\t\n") == []


@given(st.text(alphabet="ab. \n#!", max_size=400), st.integers(1, 12))
def test_no_word_is_lost_and_none_is_too_many(content: str, longest: int) -> None:
    made = passages(content, longest)
    assert [word for passage in made for word in passage.split()] == content.split()
    assert all(0 < len(passage.split()) <= longest for passage in made)
