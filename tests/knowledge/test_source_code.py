"""Source code is split at its functions and classes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_builder.knowledge.passages import passages_of

PYTHON = '''"""A shop."""

import os


# What a cart holds.
@frozen
class Cart:
    """Holds goods."""

    def total(self) -> int:
        return 1


def pay(cart):
    # no heading
    return "ü", cart
'''


def names(content: str, name: str) -> list[tuple[str, ...]]:
    return [one.headings for one in passages_of(content, "code", name)]


def test_functions_and_classes_are_passages_with_their_names() -> None:
    assert names(PYTHON, "artifact:shop/cart.py") == [(), ("Cart",), ("pay",)]
    cart = passages_of(PYTHON, "code", "artifact:shop/cart.py")[1]
    assert cart.text.startswith("# What a cart holds.\n@frozen\nclass Cart:")


def test_a_class_that_is_too_long_is_parted_at_its_methods() -> None:
    methods = "\n\n".join(
        f"    def method_{number}(self):\n        return {number}  # {'words ' * 30}" for number in range(9)
    )
    assert ("Long", "method_7") in names(f"class Long:\n{methods}\n", "a.py")


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("a.ts", "export class Cart { total(): number { return 1 } }", ("Cart",)),
        ("a.js", "function pay(cart) { return cart }", ("pay",)),
        ("a.go", "package a\n\nfunc (c *Cart) Total() int { return 1 }", ("Total",)),
        ("a.rs", "impl Cart { fn total(&self) -> i32 { 1 } }", ("Cart",)),
        ("a.java", "class Cart { int total() { return 1; } }", ("Cart",)),
        ("a.cpp", "namespace shop { struct Cart { int n; }; }", ("shop",)),
        ("a.cs", "class Cart { int Total() => 1; }", ("Cart",)),
        ("a.rb", "class Cart\n  def total\n    1\n  end\nend", ("Cart",)),
        ("a.php", "<?php\nclass Cart { function total() { return 1; } }", ("Cart",)),
    ],
)
def test_many_languages_are_known(name: str, content: str, found: tuple[str, ...]) -> None:
    assert found in names(content, name)


def test_of_other_languages_blank_lines_part_the_code_and_comments_are_no_headings() -> None:
    made = passages_of("# no heading\nx = 1\n\ny = 2\n", "code", "a.unknown")
    assert [(one.headings, one.text) for one in made] == [((), "# no heading\nx = 1\n\ny = 2")]


@given(st.text(alphabet="defclass ():\n\t{}ü;#a\"'", max_size=300), st.sampled_from(["a.py", "a.ts", "a.rb", "a.c"]))
def test_nothing_is_lost(content: str, name: str) -> None:
    made = passages_of(content, "code", name)
    assert "".join("".join(one.text.split()) for one in made) == "".join(content.split())
