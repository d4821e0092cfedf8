"""What somebody will do or offers to do, by the verb and the time that a sentence names."""

from __future__ import annotations

import re
from typing import Final

from context_builder.analysis.text.sentences import is_foreign

DOING: Final = frozenset(
    """send write draft prepare ask call email contact talk book order review organize organise schedule try test check
    look file fix update share report make do set get bring find run collect finish start submit upload
    deploy""".split()
)
"""Verbs of what people promise at work, in English."""

_SOON: Final = re.compile(
    r"\b(?:demain|aujourd['’]hui|ce (?:soir|matin)|cet après-midi|cette semaine|la semaine prochaine"
    r"|(?:lun|mar|mercre|jeu|vendre)di|mañana|hoy|ahora mismo|est[ae] (?:tarde|noche|semana)"
    r"|heute|morgen|nachher|gleich|(?:diese|nächste) woche|bis (?:mon|diens|donners|frei)tag|bis mittwoch"
    r"|la semana que viene|el (?:lunes|martes|miércoles|jueves|viernes))\b",
    re.IGNORECASE,
)
"""A time that is still to come."""

_FEELS: Final = "(?:glaube|denke|finde|sehe|hoffe|meine|hasse|liebe|kenne|mag|brauche|vermisse|verstehe)"
_OWN_DEED: Final = re.compile(
    r"\bje (?:passe(?! mon temps)|prépare|vérifie|commande|réserve|relis|demande)\b"
    r"|\bj['’](?:appelle|envoie|apporte|écris)\b"
    r"|\bje (?:vous |te )?(?:les?|la|lui|leur) (?!pense|trouve|crois|vois)\w+e\b"
    rf"|\bich (?!{_FEELS}\b)\w+e (?:es|sie|ihn|ihm|dir|euch)\b"
    rf"|\b(?!{_FEELS}\b)\w+e ich (?:es|sie|ihn|ihm|dir|euch)\b"
    r"|\b(?:(?:te|os|se) )?(?:l[oae]s?|te|os) (?:llevo|traigo|mando|envío|preparo|reviso|compro|pido|arreglo|entrego"
    r"|recojo|busco|miro)\b",
    re.IGNORECASE,
)
"""A deed in the present tense whose subject is the speaker, in languages that promise by it."""

_NOT_SO: Final = re.compile(
    r"\b(?:not|never|no|nothing|only|have|had|if|but|when|unless|without|nicht|nie|kein\w*|leider|nur|wenn|aber|falls"
    r"|hätte|hatte|habe|pas|jamais|rien|ne|si|mais|quand|sauf|chaque|tous|toujours"
    r"|nunca|nada|pero|cuando|sin|salvo|desde|sólo|solo|cada|todos|siempre)\b|n['’]t\b|\bn['’]",
    re.IGNORECASE,
)
"""Words with which a deed is denied, is past, is a habit or depends on something."""

_REFUSES_TO: Final = re.compile(
    r"\bich (?:\w+ ){0,4}(?:nicht|nie|kein\w*|seit)\b|\bje ne (?!sais|suis|peux|crois|pense)"
    r"|\bno (?:(?:te|os|les?|se|me|l[oa]s?) ){1,2}(?:mando|envío|escribo|llamo|preparo|reviso|consulto|pregunto|dejo"
    r"|aviso|confirmo|cambio|encargo|ocupo|hago)\b",
    re.IGNORECASE,
)
"""A first person that denies its verb, in languages that promise by the present tense."""

_SAYS_MORE: Final = re.compile(r"[,;:–—]|\bnicht nur\b|\bdonc\b", re.IGNORECASE)
"""Signs of a second clause, whose verb may be the one that promises."""

_OFFERS: Final = re.compile(
    r"\bI (?:could|['’]d be happy to) (?:also |just |then )?(?:send|write|draft|prepare|email|call|ask|contact|book"
    r"|order|review|organi[sz]e|schedule|check|fix|update|share|collect|submit|upload|deploy|translate|print"
    r"|look (?:at|into))\b"
    r"|\bI can (?:write|draft|prepare|check|fix|review|order|book|update|print|translate|send|call|ring) "
    r"(?:it|them|that|this|the|an?|you|him|her)\b"
    r"|\b(?:ich könnte|könnte ich)\b.{0,150} (?:schicken|schreiben|prüfen|bestellen|übernehmen|fragen|anrufen|senden"
    r"|erledigen|testen|besorgen|organisieren|entwerfen|liefern|buchen|klären|übersetzen)\W*$"
    r"|\bje pourrais (?:envoyer|écrire|vérifier|relire|appeler|demander|commander|préparer|réserver|apporter|organiser"
    r"|traduire)\b"
    r"|\bpuedo (?:enviar|mandar|escribir|preparar|revisar|llamar|preguntar|comprar|pedir|repartir|reservar"
    r"|organizar|traducir)(?:l[oae]s?)?\b",
    re.IGNORECASE,
)
"""What somebody could do for the others, by verbs of work: "I could bring the roof down" offers nothing."""


def will_do_soon(sentence: str) -> bool:
    """Return whether a first person in the present tense does something at a time that is still to come."""
    return bool(_SOON.search(sentence) and _OWN_DEED.search(sentence)) and not _NOT_SO.search(sentence)


def denies_its_verb(sentence: str) -> bool:
    """Return whether a first person in the present tense says what it does not do."""
    return bool(_REFUSES_TO.search(sentence)) and not _SAYS_MORE.search(sentence) and is_foreign(sentence)


def offers(sentence: str) -> bool:
    """Return whether the speaker offers to do something, which is promised once another takes up the offer."""
    return bool(_OFFERS.search(sentence)) and not _NOT_SO.search(sentence)
