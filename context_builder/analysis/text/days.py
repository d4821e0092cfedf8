"""Days that sentences name, by their names or by their numbers in the month."""

from __future__ import annotations

import re
from typing import Final

_ORDINALS: Final = (
    "(?:twenty |twenty-|thirty |thirty-)?(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth)"
    "|(?:ten|eleven|twelf|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen)th|twentieth|thirtieth"
)
_DAY: Final = re.compile(
    r"\b(?:(?P<name>(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch"
    r"|(?:lun|mar|mercre|jeu|vendre|same)di|dimanche|lunes|martes|miércoles|jueves|viernes|sábado|domingo)s?"
    r"|(?:(?:on )?the (?P<english>\d{1,2})(?=st|nd|rd|th)(?:st|nd|rd|th)"
    rf"|(?P<of_month>{_ORDINALS})(?= of (?:january|february|march|april|may|june|july|august|\w+ber)\b)"
    rf"|the (?P<ordinal>{_ORDINALS})(?=[.,!?]|$| (?:is|works|then|it is)\b)"
    r"|(?:am|vom|zum|der|den|dem|bis) (?P<german>\d{1,2})(?=\.)"
    r"|(?:le|el|il)(?: día)? (?P<romance>\d{1,2})(?!\s*(?:%|h\b|heures|por|pour|euros)|[.,]?\d)))\b",
    re.IGNORECASE,
)

_MOVES: Final = re.compile(
    r"\b(?:move[ds]?|moving|postpone[ds]?|reschedule[ds]?|make it|verschieb\w*|verschoben|verleg\w*"
    r"|machen wir(?:['’]s| es| das)|déplac\w+|décal\w+|report(?:e|er|ons|é)|aplaz\w+|move(?:r|mos)|cambi(?:ar|amos))\b",
    re.IGNORECASE,
)
_IS_DONE: Final = re.compile(
    r"\b(?:have|has|been|is|hab\w*|ist|wird|wurde|a été|est|ha sido|hemos)\b|['’](?:ve|s) ", re.IGNORECASE
)
"""What stands before a verb of moving that tells what was done already."""


def days_in(text: str) -> tuple[str, ...]:
    """Return the days that a text names: those of the week in small letters, those of the month in figures."""
    return tuple(next(filter(None, found.groups())).lower() for found in _DAY.finditer(text))


def without_days(text: str) -> str:
    """Return the text without the words for days."""
    return _DAY.sub(" ", text)


def moves(text: str) -> bool:
    """Return whether a verb of the text puts something on another day."""
    return _MOVES.search(text) is not None


def is_moved(text: str) -> bool:
    """Return whether the text tells that something was put on another day, which it names."""
    verb = _MOVES.search(text)
    return verb is not None and _IS_DONE.search(text[: verb.start()]) is not None and bool(days_in(text))
