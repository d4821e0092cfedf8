"""Sentences of what was said, each short enough to stand as one line of a summary."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

# Not in capitals: UM, ER and HMM are names of things.
_HESITATION: Final = (
    r"(?-i:(?:[Uu]h{1,9}m?|[Uu]m{1,9}|[Ee]rm?|[Hh]m{1,9}|[Mm]h?m{1,9}|[AaOoEe]h{1,9})(?:-(?:hmm?|mmm?|huh|oh))?)"
)


def _not_after(leading: str) -> str:
    """Return a pattern of a place that none of the ``leading`` words stands before."""
    return "".join(rf"(?<!\b{word}\s)" for word in leading.split())


_A_KIND_IS_MEANT: Final = "what this that some any the a which each one other same different every certain new no first"
_KNOWING_IS_MEANT: Final = "do did if as let would could don't should to how what"

_FILLER: Final = re.compile(
    rf"""
    (?<![\w'’-])(?=[abehiklmosuy])(?:  # the first letters of all there is here, and before what looks back at much
        {_HESITATION}
      | (?=y){_not_after(_KNOWING_IS_MEANT)}
        you\s+know (?=\s*[,.;?!-]|\s*$
          |\s+(?!(?:what|how|why|who|whether|where|when|if|that|the|about|any\w*|him|her|them|it|this|more)\b)\w)
      | i\s+mean (?=\s*[,.;!-]|\s+(?:i|we|you|they|it|he|she|there|that's|it's|the|if|so|yeah)\b)
      | (?=[ks]){_not_after(_A_KIND_IS_MEANT)}
        (?:kind|sort)\s+of
      | (?<=,\s)like (?=\s*,)
      | or\s+(?:something|whatever)(?:\s+like\s+that)? (?=\s*[,.;?!]|\s*$)
      | and\s+(?:stuff|things)\s+like\s+that
      | (?:basically|actually|literally|honestly) (?=\s*,)
    )(?![\w'’])(?!-\w) \s*[,]?
    """,
    re.IGNORECASE | re.VERBOSE,
)
# "th- the", and as transcripts without hyphens have it, "th this".
_FALSE_START: Final = re.compile(
    r"(?<![\w'’-])(?:[A-Za-z]{1,4}-(?=[\s,.])(?! (?:and|or|to) )|([bcdfghjklmnpqrstvwxz]{1,4})\s(?=\1\w))"
)
# A figure that is spelled out aloud may well repeat. It is looked for only where something does.
_REPEATED: Final = re.compile(
    r"\b([\w']{1,30}+(?: [\w']{1,30}+)?)"
    r"(?:,? (?=\1\b)(?!\d|(?:that|had|zero|one|two|three|four|five|six|seven|eight|nine|double)\b)\1)+",
    re.IGNORECASE,
)
_OPENING: Final = re.compile(
    r"^(?:(?:so|well|and|but|yeah|yep|yes|no|okay|ok|right|alright|now|hey|hi|wow|oh|sure|hmm?|great|cool|anyway"
    r"|because|'cause|or|then|i guess)(?:\s*[,.!-]+\s+|\s+(?=(?:so|well|and|but|yeah|okay|ok|right|now|then|i|we|you"
    r"|it|the|that|this|there|they|what|how|why|if)\b)))+",
    re.IGNORECASE,
)
_LOOSE: Final = re.compile(r" ([,.;:?!])(?=\s|$)", re.MULTILINE)
_MARKS: Final = re.compile(r"[,;] ?(?=[,;.?!](?:\s|$))|^(?:[\s,;:!]|[.-](?!\w))+", re.MULTILINE)


def fluent(text: str) -> str:
    """Return ``text`` without disfluencies, its lines kept; every word that is left stands in it, in order."""
    cleaned = _FILLER.sub(" ", _spaced(text))
    cleaned = _REPEATED.sub(r"\1", _spaced(_FALSE_START.sub(" ", cleaned)))
    return _MARKS.sub("", _LOOSE.sub(r"\1", cleaned)).strip()


def _spaced(text: str) -> str:
    """Return ``text`` with single spaces, so that no pattern here meets a run of them."""
    return "\n".join(" ".join(line.split()) for line in text.splitlines())


def without_opening(sentence: str) -> str:
    """Return ``sentence`` without the words that only take the turn: "Yeah, so, well, we ..." becomes "We ..."."""
    return capitalized(_OPENING.sub("", sentence) or sentence)


def capitalized(sentence: str) -> str:
    """Return ``sentence`` with a capital first letter, unless its first word is spelled in its own way (mRNA, p53)."""
    first = sentence.split(" ", 1)[0]
    plain = first.islower() and first.strip(",").replace("'", "").isalpha()
    return sentence[:1].upper() + sentence[1:] if plain else sentence


LONGEST: Final = 220
"""Characters of one sentence; a longer one is taken apart at its clauses."""

SHORTEST_CLAUSE: Final = 60
"""Characters that a clause has before a cut; speech without punctuation is not cut to shreds."""

_END: Final = re.compile(r"(?:(?<=[.?!…])|(?<=[.?!…][\"”'’)\]]))\s+|(?<=[。？！])|\n")
_ABBREVIATION: Final = re.compile(
    r"(?:\b(?:dr|mr|mrs|ms|prof|vs|fig|eq|e\.g|i\.e|cf|etc|approx|no|vol|al)\.|\b[A-Z]\.)$", re.I
)
_CLAUSE: Final = re.compile(
    r"[,;:–—-]\s+|\s+(?=(?:and|but|so|because|which|then|or|if|when|while|whereas|although|where)\s)", re.IGNORECASE
)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of ``text`` in order, without disfluencies, none longer than ``LONGEST``."""
    for sentence in _whole(fluent(text)):
        for piece in _parts(without_opening(sentence.strip())):
            if part := piece.rstrip(" ,;:–—-"):
                yield part


def _whole(text: str) -> Iterator[str]:
    begun = ""
    for piece in _END.split(text):
        begun = f"{begun} {piece}" if begun else piece
        if len(begun) > LONGEST or not _ABBREVIATION.search(begun[-8:]):
            yield begun
            begun = ""
    if begun:
        yield begun


def _parts(sentence: str) -> Iterator[str]:
    while len(sentence) > LONGEST:
        cut = _cut(sentence)
        yield sentence[:cut]
        sentence = capitalized(sentence[cut:].lstrip(" ,;:–—-"))
    yield sentence


def _cut(sentence: str) -> int:
    """Return where to part a long sentence: at its last clause within the limit, else between words."""
    clause = 0
    for match in _CLAUSE.finditer(sentence, SHORTEST_CLAUSE, LONGEST):
        clause = match.end()
    if clause:
        return clause
    space = sentence.rfind(" ", SHORTEST_CLAUSE, LONGEST)
    return space if space > 0 else LONGEST
