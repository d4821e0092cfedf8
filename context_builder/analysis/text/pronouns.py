"""Pronouns that stand for what was said before, so that a reader of the sentence alone cannot tell what it is about."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from typing import Final

from context_builder.analysis.text.markers import is_plain
from context_builder.analysis.text.sentences import is_foreign
from context_builder.analysis.text.vocabulary import FUNCTION_WORDS
from context_builder.analysis.text.words import words

_HANGING: Final = frozenset(
    "it they he she them him es er dies ça cela c'est ceci il ils elle elles eso esto ello".split()
)
_POINTING: Final = frozenset("this that these those das".split())
_EXPLETIVE: Final = frozenset((("es", "gibt"), ("il", "y"), ("il", "faut"), ("il", "faudrait")))
_REFERS: Final = re.compile(
    r"\b(?:(?:does|did|is|was|would|could|can|will|should) (?:that|this)|(?-i:it|It)|its|them|him|her|he|she"
    r"|th(?:at|is|ose|ese)(?: ones?)?(?=\W*$|[,;:.!?]| (?:on|in|at|by|for|to|with|from|too|now|then|today|tonight"
    r"|tomorrow|before|after|until|first|later|please|up|out|off|again|as|again|so)\b)"
    r"|m['’]en|t['’]en|lui|ça|cela|je (?:vous |te )?l['’]\w+"
    r"|(?:se|te|me|os) l[oa]s?|l[oa]s? (?:\w+o|\w+ré)|les? (?:escribo|mando|envío|llamo)"
    r"|\w{1,20}[aei]rl[oae]s?|\w{0,20}[áéíóú]\w{0,10}[aei]l[oae]s?|eso|esto)\b(?!['’](?:s|ll) (?:a|the)\b)",
    re.IGNORECASE,
)
"""Pronouns anywhere in a sentence that stand for what was named before, in Spanish also at the end of a verb."""

_REFERS_IN_GERMAN: Final = re.compile(
    r"\b(?:ihm|ihn|ihnen|es(?! gibt)|er|sie|den(?=[?.,])|das(?! [A-ZÄÖÜ]))\b|\b(?:wir|ich|er|sie)['’]s\b"
)
"""Pronouns that stand for what was named before; in German that is a noun, which has a capital."""

_DOES_IT: Final = re.compile(r"(?:then |and )?I(?:['’]ll| will) \w+ (?-i:it|them|him|her)\b", re.IGNORECASE)
"""How a promise begins whose verb alone stands before the pronoun: a verb names nothing."""

NAMED: Final = 0.5
"""Specificity of a word that a pronoun after it may stand for."""


def hangs(lower: Sequence[str], *, is_short: bool = False) -> bool:
    """Return whether a sentence of these words begins with a pronoun that stands for what was said before.

    A short one hangs wherever the pronoun is.
    """
    if is_short and any(word in _HANGING for word in lower):
        return True
    if not lower or tuple(lower[:2]) in _EXPLETIVE:
        return False
    first, _, ending = lower[0].partition("'")
    if first in _HANGING or lower[0] in _HANGING:
        return True
    after = lower[1] if len(lower) > 1 else ""
    return first in _POINTING and (bool(ending) or not after or after in FUNCTION_WORDS or is_plain(after))


def refers_back(text: str, lower: Sequence[str], names: Set[str], *, is_short: bool) -> bool:
    """Return whether a pronoun stands for something that nothing in the sentence names before it.

    ``lower`` are its words in lower case, ``names`` those that name people. A short one refers back wherever the
    pronoun is.
    """
    if hangs(lower, is_short=is_short) or _DOES_IT.match(text):
        return True
    if (refers := _REFERS_IN_GERMAN.search(text)) and is_foreign(text):
        return not any(word.text[0].isupper() and word.lower not in names for word in words(text[: refers.start()])[1:])
    refers = _REFERS.search(text)
    return refers is not None and not any(
        word.is_content and word.specificity >= NAMED and not is_plain(word.lower) and word.lower not in names
        for word in words(text[: refers.start()])
    )
