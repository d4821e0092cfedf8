"""Words of scripts that put no blanks between them, as far as they can be told without a dictionary.

Japanese writes what has content in Chinese letters or katakana, and the rest in hiragana. In Chinese and Thai, the
commonest function words part a sentence. What is left longer than a term is no term, and is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

LONGEST: Final = 14
"""Characters of a term."""

RUN: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f]+"
)
"""Letters and vowel signs of Thai, Lao, Burmese, Khmer, Japanese and Chinese."""

_KANA: Final = re.compile("[\u3040-\u30ff]")
_JAPANESE: Final = re.compile("[\u3005\u3400-\u9fff\uf900-\ufaff]+|[\u30a1-\u30fa\u30fc\uff66-\uff9f]+")
_THAI: Final = re.compile("[\u0e00-\u0e7f]")
_CHINESE_FUNCTION_WORDS: Final = re.compile(
    "我们|你们|他们|她们|它们|这个|那个|这些|那些|因为|所以|但是|如果|没有|什么|怎么|可以|已经|"
    "[的是在了和与我你他她它这那有不也都就或被把从到对为以及等着过吗呢吧啊很还要会能]"
)
_THAI_FUNCTION_WORDS: Final = re.compile(
    "ครั้ง|หน้า|และ|หรือ|ของ|เป็น|ที่|ใน|การ|ความ|ได้|มี|ไม่|จะ|ให้|กับ|ว่า|นี้|นั้น|แต่|โดย|จาก|ถึง|เรา|ผม|ฉัน|คุณ|เขา|ครับ|ค่ะ|จัด|วัน|แล้ว|อยู่|ต้อง|เพื่อ"
)
_MARKS: Final = re.compile(
    "[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u17b4-\u17d3]"
)
"""Signs that belong to the letter before them."""


def terms(run: str) -> Iterator[str]:
    """Yield the words with content of a run of such letters, in their order."""
    if _KANA.search(run):
        found = _JAPANESE.findall(run)
    elif _THAI.search(run):
        found = _whole(_THAI_FUNCTION_WORDS.split(run), run)
    else:
        found = _CHINESE_FUNCTION_WORDS.split(run)
    yield from (one for one in found if 2 <= len(one) <= LONGEST)


def _whole(parts: list[str], run: str) -> list[str]:
    """Return the parts, unless what parted them was within a word: then a part begins with a sign of another letter."""
    return [run] if any(part and _MARKS.match(part) for part in parts) else parts
