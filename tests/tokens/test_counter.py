"""Token counts: exact, offline, and never a hang."""

from __future__ import annotations

import hashlib
import lzma
import socket
import time
from importlib import import_module
from importlib.resources import files

import pytest

from context_builder.tokens import counter as tokens
from context_builder.tokens.counter import ENCODING, LONGEST_SLICE, PATTERN, TokenCounter, token_ranks

TALK = "We measured 42 samples on Tuesday, didn't we? Primer B7 – 37 °C, naïve cells.\n\n  Next: the PCR…  " * 3


@pytest.fixture(scope="module")
def counter() -> TokenCounter:
    return TokenCounter("gpt-4o-mini")


def test_the_vocabulary_is_the_published_one() -> None:
    packed = (files("context_builder.tokens.data") / f"{ENCODING}.tiktoken.xz").read_bytes()
    digest = hashlib.sha256(lzma.decompress(packed)).hexdigest()
    assert digest == "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"


def test_the_pattern_is_the_published_one(monkeypatch: pytest.MonkeyPatch) -> None:
    published = import_module("tiktoken_ext.openai_public")
    monkeypatch.setattr(published, "load_tiktoken_bpe", lambda *_, **__: {})
    assert published.o200k_base()["pat_str"] == PATTERN


def test_counting_needs_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "socket", None)
    tokens._encoding.cache_clear()
    assert TokenCounter("gpt-4o").count("hello world") == 2


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("tiktoken is great!", 6), ("<|endoftext|>", 7), ("antidisestablishmentarianism", 6), ("\ud800", 1)],
)
def test_counts_are_exact(counter: TokenCounter, text: str, count: int) -> None:
    assert counter.count(text) == count


@pytest.mark.parametrize(
    ("model", "assumed"),
    [
        ("gpt-4o", False),
        ("gpt-4o-mini-2024-07-18", False),
        ("openai/gpt-4.1-mini", False),
        ("gpt-oss-20b", False),
        ("gpt-4", True),
        ("SmolLM2-135M-Instruct", True),
        ("", True),
    ],
)
def test_an_encoding_that_is_only_assumed_says_so(model: str, assumed: bool) -> None:
    assert TokenCounter(model).assumed is assumed
    assert TokenCounter(model).encoding_name == "o200k_base"


def test_a_text_counted_in_slices_counts_the_same(counter: TokenCounter, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = counter.count(TALK * 40)
    monkeypatch.setattr(tokens, "LONGEST_SLICE", 97)
    assert counter.count(TALK * 40) == whole


@pytest.mark.parametrize("character", ["a", " ", "^", "\n", "中", "😀"])
def test_a_quarter_megabyte_of_one_character_does_not_hang(counter: TokenCounter, character: str) -> None:
    counter.load()
    begun = time.monotonic()
    assert counter.count(character * 4 * LONGEST_SLICE) > 0
    assert time.monotonic() - begun < 2


@pytest.mark.parametrize("text", ["abc" * 60_000, "é€" * 70_000, "\n" * 150_000 + "x", "1" * 200_000, "漢字" * 60_000])
def test_a_long_text_without_a_blank_is_counted_exactly(counter: TokenCounter, text: str) -> None:
    counter.load()
    assert counter.count(text) == len(token_ranks(text))


def test_a_million_blanks_do_not_overflow_the_encoder(counter: TokenCounter) -> None:
    assert counter.count(" " * 2**20) > 0


def test_long_texts_are_not_kept(counter: TokenCounter) -> None:
    before = counter._count_cached.cache_info().currsize
    counter.count("word " * 1000)
    assert counter._count_cached.cache_info().currsize == before
