"""A content's passages are short, together all of it, and know headings, lists, tables and code."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from context_builder.knowledge.excerpt import Part, pieces
from context_builder.knowledge.passages import passages, words_in

MARKDOWN = """# Whales

They sing.

They dive.

## Food

Krill, for example:

```python
def eat(krill):

    return krill
```

## Size

| whale | metres |
| ----- | ------ |
| blue  | 30     |
"""

RST = """
======
Whales
======

They sing.

Food
====

.. code-block:: python

    eat("krill")

    eat("fish")
"""


def texts(content: str, longest: int = 80) -> list[str]:
    return [one.text for one in passages(content, longest)]


def test_a_heading_begins_a_passage_that_knows_what_it_stands_under() -> None:
    assert [(one.headings, one.opens, one.text.splitlines()[-1]) for one in passages(MARKDOWN)] == [
        (("Whales",), True, "They dive."),
        (("Whales", "Food"), True, "```"),
        (("Whales", "Size"), True, "| blue  | 30     |"),
    ]


def test_headings_of_restructured_text_are_of_a_level_by_their_signs() -> None:
    assert [(one.headings, one.text.strip().splitlines()[-1].strip()) for one in passages(RST)] == [
        (("Whales",), "They sing."),
        (("Whales", "Food"), 'eat("fish")'),
    ]
    assert [one.headings for one in passages("= Whales\n\nThey sing.\n\n== Food\n\nKrill.")] == [
        ("Whales",),
        ("Whales", "Food"),
    ]


def test_no_comment_in_code_is_a_heading() -> None:
    fenced = "# Whales\n\n```\n# no heading\n\nx = 1\n```\n\nThey sing."
    assert [one.headings for one in passages(fenced)] == [("Whales",)]
    literal = "Whales\n======\n\nThey sing::\n\n   # no heading\n   sing()\n\nThen they dive."
    assert [one.headings for one in passages(literal)] == [("Whales",)]


def test_the_end_of_a_directive_underlines_no_heading() -> None:
    content = "# Whales\n\n:::{note}\nThey sing loudly.\n:::\n\n:::{include} ../songs.md\n:::\n\nThen they dive."
    assert [one.headings for one in passages(content)] == [("Whales",)]


LABELLED = """.. _whales:

======
Whales
======

They sing.

.. _food:
.. index:: krill

.. setting:: FOOD

FOOD of whales
--------------

Krill.

.. _Krill: https://krill.example
"""


def test_the_label_of_a_heading_stands_with_it() -> None:
    sings, eats = passages(LABELLED)
    assert sings.text.startswith(".. _whales:")
    assert sings.text.endswith("They sing.")
    assert (eats.headings, eats.opens) == (("Whales", "FOOD of whales"), True)
    assert eats.text == LABELLED[LABELLED.index(".. _food") :].strip()
    markdown = "# Whales\n\nThey sing.\n\n---\n\n(food)=\n\n## Food\n\nKrill."
    assert [one.text for one in passages(markdown)] == ["# Whales\n\nThey sing.", "---\n\n(food)=\n\n## Food\n\nKrill."]


def test_a_mark_does_not_repeat_the_headings_that_a_passage_begins_with() -> None:
    content = "Before.\n\n.. _b:\n\n===\nSea\n===\n\nDeep\n====\n\n\nWhales\n------\n\nThey sing."
    before, after = passages(content)
    assert after.headings == ("Sea", "Deep", "Whales")
    assert list(pieces([Part(1, after, 1.0)], "Animals", 2)) == ["[…]", after.text]
    assert before.text == "Before."


def test_what_is_not_of_the_text_is_no_passage_of_its_own() -> None:
    assert [one.headings for one in passages("# FAQ\n\n-----\n\n## How\n\nSo.")] == [("FAQ", "How")]


def test_a_heading_stands_with_the_block_after_it_though_that_fills_a_passage() -> None:
    block = "- one two three\n- four five six"
    assert texts(f"# Whales of the sea\n\n{block}", 8) == [f"# Whales of the sea\n\n{block}"]
    assert len(texts(f"# {'Whales ' * 40}\n\n{block}", 41)) == 2


def test_a_tab_is_no_heading() -> None:
    content = '# Install\n\n## From a file\n\n=== "Windows"\n    Run it.\n\n=== "macOS"\n    Open it.'
    assert [one.headings for one in passages(content)] == [("Install", "From a file")]


def test_a_block_that_fits_is_never_cut() -> None:
    block = "```\n" + "\n\n".join(f"line {number} of code" for number in range(10)) + "\n```"
    listed = "\n\n".join(f"- item {number} of a list" for number in range(8))
    content = f"Some words before it, and some more.\n\n{block}\n\nAnd after it.\n\n{listed}\n\nThe end."
    made = texts(content, 50)
    assert any(block in one for one in made)
    assert any(listed in one for one in made)


def test_what_announces_a_block_stays_with_it() -> None:
    content = "One two three four five six.\n\nFor example:\n\n```\na b c d e\n```"
    assert texts(content, 10) == ["One two three four five six.", "For example:\n\n```\na b c d e\n```"]


def test_a_long_paragraph_is_parted_between_sentences_and_a_long_sentence_between_words() -> None:
    assert texts("One two three. Four five. Six seven eight.", 5) == [
        "One two three. Four five.",
        "Six seven eight.",
    ]
    assert texts("a b c d e f g", 3) == ["a b c", "d e f", "g"]


def test_a_text_without_blanks_is_parted_too() -> None:
    chinese = "我们最近配置的重排模型是在北京机房运行的。" * 40
    made = texts(chinese, 60)
    assert len(made) > 5
    assert "".join(made) == chinese
    assert all(words_in(one) <= 60 for one in made)
    assert len(texts("x" * 5_000, 60)) > 5


def test_a_passage_is_a_slice_of_the_content() -> None:
    assert all(MARKDOWN[one.begins : one.ends] == one.text for one in passages(MARKDOWN, 8))


def test_nothing_has_no_passages() -> None:
    assert passages("") == passages(" \n\n\t\n") == ()


@given(st.text(alphabet="ab. \n#!-=`:|*1", max_size=400), st.integers(1, 12))
def test_no_word_is_lost_and_none_is_too_many(content: str, longest: int) -> None:
    made = texts(content, longest)
    assert "".join("".join(one.split()) for one in made) == "".join(content.split())
    assert all(0 < len(one.split()) <= longest + 24 for one in made)


def test_parts_of_a_long_table_stand_under_its_first_row() -> None:
    rows = "".join(f"| option_{place} | int | how often it is tried again |\n" for place in range(40))
    first, *others, after = passages(f"# Options\n\n| Name | Type | Use |\n|---|---|---|\n{rows}\n## Next\n\nText.\n")
    assert first.headings == ("Options",)
    assert others
    assert {one.headings for one in others} == {("Options", "| Name | Type | Use |")}
    assert after.headings == ("Options", "Next")
