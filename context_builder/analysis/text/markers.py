"""What a sentence does, by the phrases and the label in it.

All languages are looked up together, so that a sentence need not tell its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Final, NamedTuple

from context_builder.analysis.analyst import PointKind
from context_builder.analysis.text.phrases import ALONE, JAPANESE, LABELS, LANGUAGES, Marker

LABEL_CHARACTERS: Final = 40
"""Most characters before the colon of a label."""

_PLAIN_WORDS: Final = frozenset(
    """
    aber alle als also am an auch auf aus bei bin bis bist da damit dann das dass dem den denn der des deshalb dich dir
    doch dort du durch ein eine einem einen einer eines einfach er es etwas euch für ganz gar genau gerne gibt gut habe
    haben hat hatte hier ich ihm ihn ihr ihre im immer ist ja jetzt kann kein keine klar können könnte mal mehr mein
    meine mich mir mit muss müssen nach nein nicht nichts noch nun nur ob oder ohne schon sehr sein seine sich sie sind
    so soll sollte sollten um und uns unser unter viel vom von vor wäre warum weil wenn wer werden wie wieder wir wird
    wo wohl würde zu zum zur zwar über ah naja eigentlich machen mache macht sagen sage ok okay
    au aussi avec avoir beaucoup bien ce ceci cela celle celui ces cet cette chez comme comment dans de depuis des donc
    du elle elles en encore est et être eu eux fait faire faut il ils je juste la le les leur lui ma mais me même mes
    moi mon ne nos notre nous non on ont où oui par parce pas peu peut peux plus pour pourquoi qu quand que quel quelle
    qui quoi sa sans se sera ses si son sont sous suis sur ta te tes toi toujours tous tout toute très trop tu un une
    va vais vas voilà vont vos votre vous ça été était c'est d'accord j'ai qu'on qu'il l'on n'est y a-t-il
    al algo algún ante aquí así aunque cada casi como con cosa cosas cual cuando cómo de del desde donde dos el ella
    ellos en entonces era eres es esa ese eso esta estamos estar este esto está están estoy fue gracias ha hace hacer
    hasta hay he hemos la las le les lo los luego mi mis mismo mucho muy más nada ni nos nosotros nuestra nuestro o
    otra otro para pero poco por porque puede puedo pues que quien qué se sea ser si sido siempre sin sobre somos son
    soy su sus sí también tan te tengo tenemos tiene todo todos tu un una uno unos usted vale vamos van voy ya yo
    """.split()
) - frozenset("an am also as den gut mal once pour sage sous son sin dos sale era elle don war die man was".split())
"""Words of the other languages that say nothing by themselves, without those that say something in English."""


def is_plain(lower: str) -> bool:
    """Return whether the word says nothing by itself, in the languages other than English."""
    return lower in _PLAIN_WORDS


class _Phrase(NamedTuple):
    rest: tuple[str, ...]
    marker: Marker
    is_opening: bool


GAP: Final = "…"
GAP_WORDS: Final = 3
NAME: Final = "name"


def _compiled() -> Mapping[str, Sequence[_Phrase]]:
    found: dict[str, list[_Phrase]] = {}
    for language in LANGUAGES.values():
        for marker, listed in language.items():
            for phrase in listed.split(";"):
                first, *rest = phrase.strip().removeprefix("^").split()
                found.setdefault(first, []).append(_Phrase(tuple(rest), marker, phrase.strip().startswith("^")))
    return found


_PHRASES: Final = _compiled()

_JAPANESE: Final = {marker: re.compile(pattern) for marker, pattern in JAPANESE.items()}
_KANA: Final = re.compile("[\u3040-\u30ff]")

_WITHOUT_APOSTROPHES: Final = {
    f"{begun}{ending}": f"{begun}'{ending}"
    for ending, beginnings in {
        "ll": "i you they", "ve": "i we you they", "m": "i", "re": "you they", "d": "you they",
        "s": "it let that what there who",
        "t": "don doesn didn isn aren wasn weren couldn wouldn shouldn hasn haven can won",
    }.items()
    for begun in beginnings.split()
}  # fmt: skip
"""Contractions as speech recognition may write them, without those that are other words ("were", "well")."""


def spelled_out(lower: Sequence[str]) -> list[str]:
    """Return the words of talk that is written without signs, with the apostrophes of its contractions."""
    return [_WITHOUT_APOSTROPHES.get(word, word) for word in lower]


def markers_of_unspaced(sentence: str) -> set[Marker]:
    """Return what a sentence does that is written without blanks between its words."""
    if not _KANA.search(sentence):
        return set()
    return {marker for marker, pattern in _JAPANESE.items() if pattern.search(sentence)}


def markers(lower: Sequence[str], names: Set[str], *, denies: bool = True) -> set[Marker]:
    """Return what the words, in lower case, do; ``names`` are words that name people.

    A first word such as "no" ``denies`` what was said before, unless it belongs to the sentence ("No funciona.").
    """
    found: set[Marker] = set()
    idle: set[int] = set()
    hits: list[tuple[int, Marker]] = []
    for at, word in enumerate(lower):
        keys = (word, NAME) if word in names else (word,)
        for key in keys:
            for phrase in _PHRASES.get(key, ()):
                if (at == 0 or not phrase.is_opening) and _continues(lower, at + 1, phrase.rest):
                    if phrase.marker is Marker.PROPOSES and at + 1 + len(phrase.rest) >= len(lower):
                        continue  # "we should" at the end of a sentence is about what somebody else said
                    if phrase.marker is Marker.DISAGREES and phrase.is_opening and not (phrase.rest or denies):
                        continue
                    if phrase.marker is Marker.IDLE:
                        idle.update(range(at, at + 1 + len(phrase.rest)))
                    else:
                        hits.append((at, phrase.marker))
    found.update(marker for at, marker in hits if at not in idle or marker is Marker.CHATTERS)
    return found


def _continues(lower: Sequence[str], at: int, rest: Sequence[str]) -> bool:
    for number, word in enumerate(rest):
        if word == GAP:
            tail = rest[number + 1 :]
            return any(_continues(lower, start, tail) for start in range(at, min(at + GAP_WORDS + 1, len(lower))))
        if at >= len(lower) or lower[at] != word:
            return False
        at += 1
    return True


_LABEL_KINDS: Final = {
    label.strip(): kind for kind, listed in LABELS.items() for label in " ".join(listed.split()).split(";")
}
_COLON: Final = re.compile(r"\s*[:：]\s*")
_EDGE: Final = re.compile(r"^[\W_]+|[\W_]+$")


def label_of(sentence: str) -> tuple[PointKind | None, str]:
    """Return the kind that the sentence's label tells, as in "Decision: we wait.", and what comes after the label.

    A sentence that is nothing but a label leaves nothing.
    """
    colon = _COLON.search(sentence, 0, LABEL_CHARACTERS)
    head = _EDGE.sub("", (sentence[: colon.start()] if colon else sentence)[:LABEL_CHARACTERS]).lower()
    rest = sentence[colon.end() :] if colon else ""
    if not colon and len(sentence) > LABEL_CHARACTERS // 2:
        return None, sentence
    for label in _beginnings_and_ends(head):
        kind = _LABEL_KINDS.get(label)
        if kind is None or (label in ALONE and (label != head or not colon)):
            continue
        if colon or (kind is PointKind.DECISION and head.removeprefix(label) in ("", " then", " also")):
            return kind, rest
    return None, sentence


def _beginnings_and_ends(head: str) -> Iterator[str]:
    parts = head.split()
    if len(parts) <= 5:
        yield head
        for count in (3, 2, 1):
            yield " ".join(parts[:count])
            yield " ".join(parts[-count:])
