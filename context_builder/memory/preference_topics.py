"""A preference's topic tells what it is about, so that one stated later takes the place of the earlier."""

from __future__ import annotations

import re
from typing import Final


def _by_word(topics: dict[str, str]) -> dict[str, str]:
    return {word: topic for topic, words in topics.items() for word in words.split()}


# Of what people want one kind at a time; the noun that the wish comes down to tells which.
_NOUNS: Final = _by_word(
    {
        "length": "brevity conciseness detail details verbosity one-liners",
        "form": "bullets lists prose tables markdown paragraphs diagrams",
        "tone": "formality informality politeness directness",
        "units": "metric imperial celsius fahrenheit kilometers kilometres miles kilograms pounds",
        "language": "arabic chinese czech danish dutch english finnish french german greek hebrew hindi hungarian"
        " italian japanese korean norwegian polish portuguese romanian russian spanish swedish turkish ukrainian",
        "drink": "tea coffee espresso cappuccino water juice milk lemonade cola beer wine cider cocoa matcha",
        "pets": "cat cats dog dogs",
        "seat": "aisle window",
        "travel": "train trains plane planes flying bus buses car cars driving bike bikes cycling walking",
        "contact": "email emails e-mail e-mails phone text texts texting call calls chat video letters",
        "day": "mondays tuesdays wednesdays thursdays fridays saturdays sundays weekdays weekends"
        " monday tuesday wednesday thursday friday saturday sunday",
        "hour": "morning mornings afternoon afternoons evening evenings night nights",
        "payment": "cash card cards invoice",
    }
)
_ADJECTIVES: Final = _by_word(
    {
        "length": "short shorter brief briefer concise succinct terse long longer detailed verbose thorough in-depth",
        "form": "bullet bulleted numbered",
        "tone": "formal informal casual friendly polite direct blunt professional",
    }
)
# Nouns beside which the adjective tells: short answers, a window seat, afternoon meetings, metric units.
_BEARERS: Final = frozenset(
    "answer answers reply replies response responses explanation explanations summary summaries message messages"
    " style tone language unit units points list lists seat seats meeting meetings appointment appointments".split()
)
_OVER: Final = re.compile(r"\s+(?:over|rather than|instead of|more than|(?<!^to )to)\s+")
_OCCASION: Final = re.compile(
    r"\s+(?:in|on|at|for|with|without|when|while|during|after|before|by|from|of|if|as)\s+(.*)"
)
_LEAD: Final = re.compile(
    r"(?:(?:to|it|if|when|that|you|your|the|a|an|my|some|things|getting|get|having|have|drinking|drink|using|use|speaking|speak"
    r"|talking|talk|writing|write|answering|answer|replying|reply|keep|kept|in|by|would|always)\s+)+"
)


def topic_of(wish: str) -> str:
    """Return the kind of thing that is preferred (``drink``, ``length``), else the preference's own words.

    Tea and coffee are both drinks. A wish for an occasion ("tea in the morning") is another than the wish without it.
    Of "vim over emacs" and "emacs over vim" the later holds, as both choose between the same.
    """
    words = " ".join(wish.lower().split())
    alternatives = [part for part in _OVER.split(words, maxsplit=1) if part]
    known = next(filter(None, map(_kind, alternatives)), None)
    return known or " or ".join(sorted(alternatives))


def chosen(wish: str) -> str:
    """Return the preferred one of several things: "tea" of "tea over coffee"."""
    return next((part for part in _OVER.split(wish, maxsplit=1) if part), "")


def _kind(preference: str) -> str | None:
    lead = _LEAD.match(preference)
    what, *occasion = _OCCASION.split(" " + preference[lead.end() if lead else 0 :], maxsplit=1)
    words = what.split()
    if not 0 < len(words) <= 3:
        return None
    if words[-1] in _BEARERS or all(word in _ADJECTIVES for word in words):
        return next(
            filter(None, (_ADJECTIVES.get(word) or _NOUNS.get(word) for word in [*words, *_last(occasion)])), None
        )
    topic = _NOUNS.get(words[-1])
    return f"{topic}, {occasion[0]}" if topic and occasion and occasion[0] else topic


def _last(occasion: list[str]) -> list[str]:
    """Return the noun of "answers in German"."""
    return occasion[0].split()[-1:] if occasion else []
