"""Keywords of scripts without blanks between words are words, not sentences nor pieces of words."""

from __future__ import annotations

import unicodedata

import pytest

from context_builder.analysis.text.keywords import keywords
from context_builder.analysis.text.words import words

SENTENCES = [
    ("来週の火曜日に東京本社で検索エンジンの性能評価を行います", {"東京本社", "性能評価", "エンジン"}),
    ("我们最近配置的重排模型是在北京机房运行的", {"重排模型", "最近配置"}),
    ("ประชุมงบประมาณครั้งหน้าจัดที่เชียงใหม่วันศุกร์", {"ประชุมงบประมาณ", "เชียงใหม่"}),
]


@pytest.mark.parametrize(("sentence", "expected"), SENTENCES)
def test_a_sentence_is_parted_into_terms(sentence: str, expected: set[str]) -> None:
    found = keywords(sentence)
    assert expected <= set(found)
    for one in found:
        assert len(one) <= 14
        after = sentence[sentence.index(one) + len(one) :][:1]
        assert not any(unicodedata.category(sign) in ("Mn", "Mc") for sign in (one[0], *after))


def test_words_beside_them_stay_what_they_are() -> None:
    assert [one.text for one in words("The GPT-4o 重排模型 is ready")] == ["The", "GPT-4o", "重排模型", "is", "ready"]


@pytest.mark.parametrize("word", ["हिन्दी", "தமிழ்", "cafe\u0301"])
def test_a_word_keeps_its_marks(word: str) -> None:
    assert [one.text for one in words(word)] == [word]


def test_a_run_that_cannot_be_parted_is_no_keyword() -> None:
    assert keywords("ກ" * 60) == keywords("កម្ពុជា" * 20) == ()
