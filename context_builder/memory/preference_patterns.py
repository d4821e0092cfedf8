"""The words in which people state a preference, and those in which they only seem to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from context_builder.analysis.analyst import PreferenceKind


@dataclass(frozen=True, slots=True)
class Pattern:
    """A way to state a preference; its group ``rest`` is what is preferred, or, where it ``withdraws``, no longer is.

    A request may be put as a question. ``but_not`` are beginnings of a ``rest`` that is not a lasting wish.
    """

    pattern: re.Pattern[str]
    kind: PreferenceKind
    is_request: bool = False
    but_not: re.Pattern[str] | None = None
    withdraws: bool = False


_REST: Final = (
    r"(?P<rest>[^\n;]{2,160}?)(?=[\s.!?,]*$|;|[.!?]\s|,? (?:but|because|although|though|while|whereas|since|so)\b"
    r"|,? and (?:please|call me|I|my|he|she|they|we|you)\b)"
)
_WITHDRAWN: Final = (
    r"(?P<rest>[^\n;,]{2,80}?)"
    r"(?=[\s.!?]*$|[,.!?;]|\s(?:any ?more|any longer|but|because|although|though|since|so|and)\b)"
)
_NO_MORE: Final = r"(?P<rest>[^\n;,]{2,80}?) (?:any ?more|any longer)\b"
_NAME: Final = (
    r"[\"“']?(?P<rest>(?:(?i:dr|mr|mrs|ms|prof|professor|doctor|captain|miss)\b\.? )?"
    r"(?:[A-ZÀ-ÖØ-Þ][\w'-]*(?: [A-ZÀ-ÖØ-Þ][\w'-]*){0,2}"
    r"|[^\W\d_]{2,20}(?=(?:,? (?:please|thanks|thank you))?[ .!?]*$)))"
)
_LANGUAGES: Final = (
    *("arabic", "chinese", "czech", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hebrew"),
    *("hindi", "hungarian", "italian", "japanese", "korean", "norwegian", "polish", "portuguese", "romanian"),
    *("russian", "spanish", "swedish", "turkish", "ukrainian"),
)
_LANGUAGE: Final = rf"(?P<rest>(?:simple |plain )?(?:{'|'.join(_LANGUAGES)}))\b"
# What an order or a request begins with: "they call me" is none.
_ASKED: Final = (
    r"(?:^|[,:] |\b(?:please|just|so|and|but|can you|could you|would you|will you|you can|you may|you could"
    r"|please always|feel free to|want you to|like you to|prefer you to|prefer that you|prefer if you|now on) )"
)
_DISLIKE: Final = r"\bI (?:really |absolutely )?(?:hate|can't stand|cannot stand|don't like|do not like|dislike)"
_POINTING: Final = r"(?:this|that|these|those|it|them|him|her|you|so)(?: ones?)?$"

_NEED_NOT: Final = r"\b(?:you (?:don't|do not) (?:have|need) to|(?:there is |there's )?no need to)"

# The closer ones first: what one has taken, those after it do not see.
STATED: Final = (
    *(
        Pattern(re.compile(f"(?i:{said})"), kind, withdraws=True, but_not=re.compile(f"(?i:{_POINTING})"))
        for said, kind in (
            (rf"\bI no longer (?:really )?(?:prefer|like|love|want|need) {_WITHDRAWN}", PreferenceKind.PREFERS),
            (rf"\bI (?:don't|do not) (?:prefer|like|love|want|need) {_NO_MORE}", PreferenceKind.PREFERS),
            (rf"\bforget (?:that )?I (?:prefer|like) {_WITHDRAWN}", PreferenceKind.PREFERS),
            (rf"\bI no longer (?:hate|dislike|mind) {_WITHDRAWN}", PreferenceKind.DISLIKES),
            (rf"\bI (?:don't|do not) (?:hate|dislike|mind) {_NO_MORE}", PreferenceKind.DISLIKES),
            (rf"{_NEED_NOT} always {_WITHDRAWN}", PreferenceKind.ALWAYS),
            (
                rf"{_NEED_NOT} (?:answer|reply|respond|write|speak|talk)(?: to)?(?: me)? in {_LANGUAGE}",
                PreferenceKind.LANGUAGE,
            ),
        )
    ),
    Pattern(
        re.compile(rf"(?i:{_ASKED}(?:don't|do not|never|stop) call(?:ing)? me ){_NAME}"),
        PreferenceKind.NAME,
        is_request=True,
        withdraws=True,
    ),
    Pattern(re.compile(rf"(?i:{_ASKED}call me ){_NAME}"), PreferenceKind.NAME, is_request=True),
    Pattern(
        re.compile(rf"(?i:\bI(?:'d| would)? (?:prefer|like|want) (?:to be called|being called|to go by) ){_NAME}"),
        PreferenceKind.NAME,
    ),
    Pattern(re.compile(rf"(?i:\bI go by ){_NAME}"), PreferenceKind.NAME),
    Pattern(
        re.compile(rf"(?i:{_ASKED}(?:answer|reply|respond|write|speak|talk)(?: to)?(?: me)? in {_LANGUAGE})"),
        PreferenceKind.LANGUAGE,
        is_request=True,
    ),
    Pattern(
        re.compile(
            r"(?i:\bI(?:(?:'d| would)?(?: really| strongly| generally| usually| always| much| actually| just| now)*"
            rf" prefer|(?:'ve| have) always preferred) {_REST})"
        ),
        PreferenceKind.PREFERS,
        but_not=re.compile(rf"(?i:(?:is|was|are|were|and|or|not to)\b|{_POINTING})"),
    ),
    Pattern(
        re.compile(rf"(?i:\bmy preference is (?:for )?{_REST})"),
        PreferenceKind.PREFERS,
        but_not=re.compile(f"(?i:{_POINTING})"),
    ),
    Pattern(re.compile(rf"(?i:\bI (?:really )?(?:like|love) it when {_REST})"), PreferenceKind.LIKES_WHEN),
    Pattern(re.compile(rf"(?i:{_DISLIKE} it when {_REST})"), PreferenceKind.DISLIKES_WHEN),
    Pattern(
        re.compile(rf"(?i:{_DISLIKE} {_REST})"),
        PreferenceKind.DISLIKES,
        but_not=re.compile(
            r"(?i:to (?:say|break|admit|interrupt|bother|be|ask|tell|disappoint)\b"
            r"|(?:this|that|these|those|him|her|them|you|it)\b)"
        ),
    ),
    Pattern(re.compile(rf"(?i:\bplease always {_REST})"), PreferenceKind.ALWAYS, is_request=True),
    Pattern(
        re.compile(rf"(?i:^(?:(?:ok|okay|so|and|well),? )?from now on,? (?:please )?(?:always )?{_REST})"),
        PreferenceKind.ALWAYS,
        is_request=True,
        but_not=re.compile(r"(?i:(?:I|we|he|she|it|they|you|the|my|our|this|that|there|no|please|never)\b)"),
    ),
    Pattern(
        re.compile(rf"(?i:(?:\bplease never (?:ever )?|^never ever |^(?:please )?(?:don't|do not) ever ){_REST})"),
        PreferenceKind.NEVER,
        is_request=True,
    ),
)  # fmt: skip

_CUES: Final = (
    *("prefer", "ever ", "always", "hate", "like it", "love it", "no longer", "any more", "anymore", "any longer"),
    *("forget", "call me", "calling me", "be called", "being called", "go by", "dislike", "don't like", "do not like"),
    *("can't stand", "cannot stand", "from now on", *_LANGUAGES),
)
"""Each of the patterns has one of these in it, in small letters; of messages, three in a hundred."""

_CASELESS: Final = str.maketrans("ſıİ", "sii")
"""Letters beyond ASCII that a pattern which is regardless of case takes for one of ASCII, and :meth:`str.lower` not."""

# What follows "call me" without being a name.
_NO_NAMES: Final = frozenset(
    "a an the i i'm i'll if it we you he she they this that my your back later soon tomorrow today tonight now"
    " then when whenever whatever anything anytime any at on in by to up out for from with about after before"
    " during once again first next asap directly collect maybe and or so but not crazy mad stupid naive paranoid"
    " cynical lazy biased weird picky silly boring cheesy lucky curious sceptical skeptical old-fashioned old"
    " selfish please names home sometime monday tuesday wednesday thursday friday saturday sunday".split()
)
_QUOTED: Final = re.compile(
    r"\"[^\"\n]*\"|“[^“”]*”|«[^«»]*»|„[^„“”]*[“”]|`[^`]*`|(?<!\w)'(?:[^'\n]|(?<=\w)'(?=\w))*'(?!\w)|^[ \t]*>.*$",
    re.MULTILINE,
)
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bMrs\.)(?<!\bProf\.)\s+|\n+")
_NEARBY: Final = 200
"""Characters before and after a wish in which the words stand that tell whose it is."""

_REPORTED: Final = re.compile(
    r"(?<![\w'])(?P<who>[\w']+)(?: just| always| once| also| already| actually)? (?:said|says|say|told|tells|wrote"
    r"|writes|asked|asks|claims|claimed|replied|answered|insists|goes|thinks|thought|was like|is like|were like)\b"
    r"|\baccording to\b",
    re.IGNORECASE,
)
_REPORTED_AFTER: Final = re.compile(
    r",? (?:said|says|replied|answered|wrote) (?!I\b)\w+|, (?!I\b)[\w ]{1,30} (?:said|says|replied|wrote)\W*$",
    re.IGNORECASE,
)
_UNSURE: Final = re.compile(
    r"\b(?:if|whether|unless|when|whenever|why|what|which|who|do|did|should|would|could|may|might|suppose|imagine|pretend"
    r"|not that|nor)\s*$",
    re.IGNORECASE,
)
_TRAILING: Final = re.compile(
    r"(?:[ ,]+(?:please|thanks|thank you|actually|now|from now on|if possible|though|instead|honestly|in general))+$",
    re.IGNORECASE,
)
_VOCATIVE: Final = re.compile(r", [A-Z][a-z]+$")
_IN_THIRD_PERSON: Final = {
    "i": "they",
    "me": "them",
    "my": "their",
    "mine": "theirs",
    "myself": "themselves",
    "i'm": "they're",
    "i've": "they've",
    "i'll": "they'll",
    "i'd": "they'd",
    "i am": "they are",
    "i was": "they were",
}
_FIRST_PERSON: Final = re.compile(r"\b(?:I (?:am|was)|I'(?:m|ve|ll|d)|I|me|mine|myself|my)\b(?!')", re.IGNORECASE)


def may_state(text: str) -> bool:
    """Return whether ``text`` has a word without which nothing in :data:`STATED` is said; much faster than to look."""
    if not text.isascii():
        text = _straight(text).translate(_CASELESS)
    words = " ".join(text.lower().split())
    return any(cue in words for cue in _CUES)


def _straight(text: str) -> str:
    return text.replace("’", "'").replace("‘", "'")


def own_words(text: str) -> Iterator[str]:
    """Return the sentences of ``text`` without its quotations; a name may stand in quotation marks."""
    plain = _straight(text)
    plain = _QUOTED.sub(lambda quoted: quoted[0] if len(quoted[0].split()) < 3 and ">" not in quoted[0] else "…", plain)
    return filter(None, (" ".join(sentence.split()) for sentence in _SENTENCE_END.split(plain)))


def is_of_others(sentence: str, start: int) -> bool:
    """Return whether the words from ``start`` on are about somebody else, or only supposed."""
    before = sentence[max(0, start - _NEARBY) : start]
    tellers = (reported["who"] for reported in _REPORTED.finditer(before))
    return (
        any(who is None or who.lower() not in ("i", "i've", "i'd") for who in tellers)
        or _UNSURE.search(before) is not None
        or _REPORTED_AFTER.search(sentence, start, start + _NEARBY) is not None
    )


def name_in(rest: str, sentence: str) -> str | None:
    """Return the name in ``rest``, if it can be one: with a capital, unless the whole sentence has none."""
    if rest.split()[0].lower() in _NO_NAMES or (rest == rest.lower() and sentence != sentence.lower()):
        return None
    return rest.strip("'")


def cleaned(rest: str, pattern: Pattern) -> str | None:
    """Return the preference told of a third person; None if it is not a lasting one."""
    wish = _TRAILING.sub("", _VOCATIVE.sub("", rest.strip(" ,.!?"))).strip('"“”')
    if not wish or (pattern.but_not is not None and pattern.but_not.match(wish)):
        return None
    # Regardless of case, "I" matches ı and İ too, and "s" matches ſ: these are not pronouns, and stay.
    return _FIRST_PERSON.sub(lambda one: _IN_THIRD_PERSON.get(one[0].lower(), one[0]), wish)
