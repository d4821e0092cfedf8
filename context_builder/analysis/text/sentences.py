"""Sentences of what was said, each short enough to stand as one line of a summary."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from context_builder.analysis.evidence.words import TABLES
from context_builder.analysis.text.markers import is_plain
from context_builder.analysis.text.vocabulary import FUNCTION_WORDS

# Not in capitals: UM, ER and HMM are names of things.
_HESITATION: Final = (
    r"(?-i:(?:[Uu]h{1,9}m?|[Uu]m{1,9}|[Ee]rm?|[Hh]m{1,9}|[Mm]h?m{1,9}|[AaEeÄäÖö]h{1,9}m?|[Oo]h{1,9}|[Ee]uh)"
    r"(?:-(?:hmm?|mmm?|huh|oh))?)"
)
_WORD_ELSEWHERE: Final = frozenset(("um", "er"))
"""Hesitations in English that are words in German or Portuguese."""


def _not_after(leading: str) -> str:
    """Return a pattern of a place that none of the ``leading`` words stands before."""
    return "".join(rf"(?<!\b{word}\s)" for word in leading.split())


_A_KIND_IS_MEANT: Final = "what this that some any the a which each one other same different every certain new no first"
_KNOWING_IS_MEANT: Final = "do did if as let would could don't should to how what"

_FILLER: Final = re.compile(
    rf"""
    (?<![\w'’-])(?=[abehiklmosuyäö])(?:  # the first letters of all there is here, and before what looks back at much
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
_ARTICLES: Final = "ein eine einen einem einer un une una uma een"
_FIGURES: Final = "|".join(
    word for words in TABLES["numbers"].values() for word in words if word not in _ARTICLES.split()
)
# A figure that is spelled out aloud may well repeat. It is looked for only where something does.
_REPEATED: Final = re.compile(
    r"\b([\w']{1,30}+(?: [\w']{1,30}+)?)"
    rf"(?:,? (?=\1\b)(?!\d|(?:that|had|double|{_FIGURES})\b)\1)+",
    re.IGNORECASE,
)
_OPENING: Final = re.compile(
    r"^(?:(?:so|well|and|but|yeah|yep|yes|no|okay|ok|right|alright|now|hey|hi|wow|oh|sure|hmm?|great|cool|anyway"
    r"|because|'cause|cuz|or|then|i guess"
    r"|ja|nein|nee|also|gut|genau|naja|na ja|oui|non|bon|alors|ben|donc|eh bien|sí|bueno|pues|entonces|vale|claro)"
    r"(?:\s*[,.!-]+\s+|\s+(?=(?:so|well|and|but|yeah|okay|ok|right|now|then|i|we|you"
    r"|it|the|that|this|there|they|what|how|why|if)\b)))+",
    re.IGNORECASE,
)
_LOOSE: Final = re.compile(r" ([,.;:?!])(?=\s|$)", re.MULTILINE)
_MARKS: Final = re.compile(r"[,;] ?(?=[,;.?!](?:\s|$))|^(?:[\s,;:!]|[.-](?!\w))+", re.MULTILINE)


def fluent(text: str) -> str:
    """Return ``text`` without disfluencies, its lines kept; every word that is left stands in it, in order."""
    spaced = _spaced(text)
    # Of a text of nothing else it cannot be told in what language it hesitates.
    only_hesitates = _WORD_ELSEWHERE.issuperset(re.findall(r"\w+", spaced.lower()))
    kept = () if only_hesitates or _english_balance(spaced) > 0 else _WORD_ELSEWHERE
    cleaned = _FILLER.sub(lambda found: found[0] if found[0].strip(" ,").lower() in kept else " ", spaced)
    cleaned = _REPEATED.sub(r"\1", _spaced(_FALSE_START.sub(" ", cleaned)))
    return _MARKS.sub("", _LOOSE.sub(r"\1", cleaned)).strip()


def _without_stutter(match: re.Match[str]) -> str:
    return match[0] if len(match[1]) == 1 and match[2].lower() not in FUNCTION_WORDS else ""


def is_foreign(text: str) -> bool:
    """Return whether more of the words are function words of other languages than of English."""
    return _english_balance(text) < 0


def _english_balance(text: str) -> int:
    lower = re.findall(r"[\w'’]+", text.lower())
    return sum(word in FUNCTION_WORDS for word in lower) - sum(map(is_plain, lower))


def _spaced(text: str) -> str:
    """Return ``text`` with single spaces, so that no pattern here meets a run of them."""
    return "\n".join(" ".join(line.split()) for line in text.splitlines())


def without_opening(sentence: str) -> str:
    """Return ``sentence`` without the words that only take the turn: "Yeah, so, well, we ..." becomes "We ..."."""
    return capitalized(_OPENING.sub("", sentence) or sentence)


def capitalized(sentence: str) -> str:
    """Return ``sentence`` with a capital first letter, unless its first word is spelled in its own way (mRNA, p53)."""
    first = sentence.split(" ", 1)[0]
    plain = first.islower() and first.strip(",.!").replace("'", "").isalpha()
    return sentence[:1].upper() + sentence[1:] if plain else sentence


LONGEST: Final = 220
"""Characters from which a sentence is taken apart where a new one might as well have begun."""

LONGEST_PIECE: Final = 8 * LONGEST
"""Characters after which a piece ends in any case, so that text without ends takes no more time than other text."""

_END: Final = re.compile(
    r"(?:(?<=[.?!…؟۔।։])|(?<=[.?!…][\"”»'’)\]])|(?<=[\u0370-\u03ff\u1f00-\u1fff][;\u037e]))\s+"
    r"|(?<=[。？！｡])(?![」』）”])|\n"
)
_ABBREVIATION: Final = re.compile(
    r"(?:\b(?:dr|mr|mrs|ms|prof|vs|fig|eq|e\.g|i\.e|cf|etc|approx|no|vol|al|z\.b|bzw|ca|sra?|mme|mlle|p\.ex)\."
    r"|\b[A-Z]\.|\b(?:(?<!\bI )am|vom|zum|den|dem|der|das|bis|ab|seit)\s\d{1,2}\.)$",
    re.IGNORECASE,
)
"""The end of what is no sentence yet: an abbreviation, or a day of the month in German."""
# "I it's fine", "I'm I thought", "S I'll send it", "Al-Also"
_BEGUN_TWICE: Final = re.compile(
    r"\b(?:I'm|I|[Ww]e|[Tt]hey|[Ss]?[Hh]e),? "
    r"(?=(?:I|I'm|I've|[Ww]e|we're|[Tt]hey|they're|[Hh]e|[Ss]he|it|it's|it'll|there's)\b)"
    r"|^[B-HJ-Z] (?=(?:I|I'll|you|we|the|it|it's)\b)"
    r"|\bI (?:wanna|want|was|am|will|would|could|can|just|have|had) (?=I\b)"
)
# "Al-Also", "w-we"; one letter before a word that tells something is part of a term ("t-test", "s-shaped").
_STUTTER: Final = re.compile(r"\b([a-z]{1,4})-(?=(\1[a-z]+))", re.IGNORECASE)

# In speech that is written with capitals, one inside a sentence shows that it is begun anew: "I think the Were you".
_RESTART: Final = re.compile(
    r"(?<=[a-z,]) (?=(?:The|A|We|You|He|She|They|It|It's|There|That|That's|This|What|When|Where|Who|Why|How|If|Is|Are"
    r"|Was|Were|Do|Does|Did|Yeah|So|And|But|Because|No|Not|One|Some|Two|Again|Maybe|Then)\b,? [a-z])"
)
BROKEN_OFF: Final = "—"
"""Ends a sentence that its speaker left for another."""

# A clause that begins with its subject after one that did can stand by itself; any other part of a sentence cannot.
_NEW_CLAUSE: Final = re.compile(
    r"[,;–—-]?\s(?:and|but|so)\s+(?=(?:(?:then|so|now)\s)?"
    r"(?:i|we|you|he|she|they|it|there|that's|it's|i'm|i'll|we'll|let's)\b)|;\s",
    re.IGNORECASE,
)
_DEPENDENT: Final = re.compile(
    r"(?:if|when|whenever|because|while|since|although|though|unless|whether|until|as|once|after|before|that|who|which)\b",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(r"[\"“”„«»()]")


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of ``text`` in order, without disfluencies and without words that only take the turn."""
    for sentence in whole_sentences(fluent(text)):
        if said := without_opening(sentence).rstrip(" ,;:–—-"):
            yield said


def whole_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a fluent ``text``; a long one is parted where each part is a sentence of its own."""
    for sentence in _whole(text):
        *left, said = _RESTART.split(_BEGUN_TWICE.sub("", _STUTTER.sub(_without_stutter, sentence.strip())))
        yield from (f"{begun} {BROKEN_OFF}" for begun in left)
        yield from _clauses(said)


def _whole(text: str) -> Iterator[str]:
    begun = ""
    for piece in _END.split(text):
        begun = f"{begun} {piece}" if begun else piece
        if len(begun) > LONGEST_PIECE or not _ABBREVIATION.search(begun[-8:]):
            yield begun
            begun = ""
    if begun:
        yield begun


def _clauses(sentence: str) -> Iterator[str]:
    if len(sentence) <= LONGEST or _QUOTED.search(sentence):
        yield sentence
        return
    start = 0
    for match in _NEW_CLAUSE.finditer(sentence):
        part = sentence[start : match.start()]
        if len(part) > SHORTEST_CLAUSE and not _DEPENDENT.match(without_opening(part[:LONGEST])):
            yield part.rstrip(" ,;–—-")
            start = match.end()
    yield sentence[start:]


SHORTEST_CLAUSE: Final = 60
"""Characters that a clause has before a cut; speech without punctuation is not cut to shreds."""
