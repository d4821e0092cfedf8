"""What somebody will do, by the verb and the time that a sentence names."""

from __future__ import annotations

import re
from typing import Final

from context_builder.analysis.text.sentences import is_foreign

DOING: Final = frozenset(
    """send write draft prepare ask call email contact talk book order review organize organise schedule try test check
    look file fix update share report make do set get bring find run collect finish start submit upload
    deploy add analyse analyze announce arrange build buy calculate cancel change circulate clean compare confirm
    contact create deliver design document download explain fetch follow hire implement inform
    install invite investigate label list mail meet merge message move offer open pick ping plan post
    present print propose provide publish pull push read redo refund reinstall remove rename repeat replace reply
    rerun research reserve restart return revert revise rewrite ring ship show sign speak stop switch take tell text
    translate type verify visit warn work""".split()
)
"""Verbs of what people promise at work, in English."""

_SOON: Final = re.compile(
    r"\b(?:morgen|heute|nachher|gleich|(?:nächste|diese)n? (?:woche|\w+tag)|am \w+tag|bis (?:zum )?\w+"
    r"|demain|aujourd['’]hui|ce (?:soir|matin)|cet après-midi|cette semaine|la semaine prochaine"
    r"|(?:lun|mar|mercre|jeu|vendre)di|mañana|hoy|ahora mismo|est[ae] (?:tarde|noche|semana|mes)"
    r"|la semana que viene|el (?:lunes|martes|miércoles|jueves|viernes))\b",
    re.IGNORECASE,
)
_OWN_DEED: Final = re.compile(
    r"(?<!\bbin )(?<!\bwar )(?<!\bhab )(?<!\bhabe )(?<!\bkann )(?<!\bmuss )(?<!\bwill )(?<!\bwürd )"
    r"(?<!\bwürde )(?<!\bwenn )\b(?:ich|je) "
    r"(?!hab|war|bin|hatte|wurde|kann|muss|will|könnte|würde?|glaub|denk|find|suis|crois|pense|peux|sais)"
    r"|\b(?:l[oae]s?|te|me|os|se) (?!siento|creo)\w+o\b",
    re.IGNORECASE,
)
"""A verb in the present tense of which the speaker is the subject, in languages that promise by it."""

_REFUSES_TO: Final = re.compile(
    r"\bich (?:\w+ ){0,4}(?:nicht|nie|kein\w*)\b|\bje ne\b|\bno (?:\w+ ){0,2}\w+o\b", re.IGNORECASE
)
"""A first person that denies its verb, in languages that promise by the present tense."""

_BARE_PROMISE: Final = re.compile(
    r"\bI(?:['’]ll| will| shall|['’]m g(?:oing to|onna)) (?:also |just |then )?(?P<verb>\w+)", re.IGNORECASE
)
"""How English promises anything, in earnest or not."""


def will_do_soon(sentence: str) -> bool:
    """Return whether a first person in the present tense does something at a time that is still to come."""
    return bool(_SOON.search(sentence) and _OWN_DEED.search(sentence))


def denies_its_verb(sentence: str) -> bool:
    """Return whether a first person in the present tense says what it does not do."""
    return bool(_REFUSES_TO.search(sentence)) and is_foreign(sentence)


def is_work(sentence: str) -> bool:
    """Return whether what is promised is work, unless it is "I'll" with another verb ("I'll grow a beard")."""
    promised = _BARE_PROMISE.search(sentence)
    return promised is None or promised["verb"].lower() in DOING
