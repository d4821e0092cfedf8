"""The language of a text, by its script or by the commonest words of languages in Latin letters.

It is a guess from two common words: of a text without, the language is not known.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

ENGLISH: Final = "english"

_SAMPLE: Final = 2_000
"""Characters of a text that are looked at."""

_ENOUGH: Final = 2
"""Common words that tell a language."""

_WORD: Final = re.compile(r"[^\W\d_]+")

_SCRIPTS: Final = (
    ("russian", re.compile("[\u0400-\u04ff]")),
    ("greek", re.compile("[\u0370-\u03ff]")),
    ("arabic", re.compile("[\u0600-\u06ff]")),
    ("tamil", re.compile("[\u0b80-\u0bff]")),
)

_COMMON: Final[Mapping[str, str]] = {
    ENGLISH: "the and of to in is that it for was with as be this are have not you at by from or we they but what will",
    "german": "der die das und ist nicht ein eine zu den von mit auf für im sich wir ich sie auch wird dass wie noch",
    "french": "le la les des et est une du que pour pas dans qui sur nous vous ce au avec plus sont il elle mais ne",
    "spanish": "el los las y que es una por con para no se del lo como más pero su al está son hay qué muy este",
    "italian": "il lo gli di che è una per non con del della sono si come anche ma più nel alla dei questo ha ho le",
    "portuguese": "o os as e que é uma por com para não se do da em como mais mas no na ao são dos foi está",
    "dutch": "de het een en van is dat niet op te zijn voor met die er aan ook als maar om wij ik bij naar wordt",
    "danish": "og det er en at den til på for ikke af med de der har som jeg vi også men blev hvad kan et skal",
    "swedish": "och det är en att den till på för inte av med de som har jag vi också men ett om var kan ska så",
    "norwegian": "og det er en at den til på for ikke av med de som har jeg vi også men ble hva kan et skal å",
    "finnish": "ja on ei että se hän oli mutta kun niin myös ovat tämä joka kuin sen olla me voi vain nyt jos",
    "hungarian": "az és hogy nem is egy van meg ez azt de csak már vagy mint volt lesz amit ha még ki el kell",
    "romanian": "și este nu în de la cu pe un o care mai să din sunt pentru ce au fost dar era sau al ca",
    "turkish": "ve bir bu da de için ile çok ne olarak daha var gibi ama en değil olan kadar sonra mi biz ben o",
    "indonesian": "yang dan di ini itu dengan untuk tidak dari dalam akan pada ada juga kami saya ke karena bisa atau",
}
"""Some of the commonest words of each language."""

_LANGUAGES: Final = {
    word: tuple(name for name, words in _COMMON.items() if word in words.split())
    for word in {word for words in _COMMON.values() for word in words.split()}
}


def language_of(text: str) -> str | None:
    """Return the language of a text as PostgreSQL calls its text search configuration; None where it is not known."""
    sample = text[:_SAMPLE]
    if not sample.isascii():
        for name, letters in _SCRIPTS:
            if len(letters.findall(sample)) * 2 > len(sample.replace(" ", "")):
                return name
    votes = Counter(name for word in _WORD.findall(sample.casefold()) for name in _LANGUAGES.get(word, ()))
    ranked = votes.most_common(2)
    if not ranked or ranked[0][1] < _ENOUGH:
        return None
    (first, most), *others = ranked
    if others and others[0][1] == most and ENGLISH in (first, others[0][0]):
        return ENGLISH
    return first
