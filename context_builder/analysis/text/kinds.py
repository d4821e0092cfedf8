"""What sort of thing a sentence is, by how such sentences are usually put."""

from __future__ import annotations

import re
from typing import Final

from context_builder.analysis.analyst import PointKind

_QUESTION: Final = re.compile(
    r"\?[\"”')\]]*$"
    r"|^(?:what|how|why|who|where|when|which)\b(?!.*[.!]$)\s+(?:is|are|was|were|do|does|did|can|could|should|would|will|about|if|many|much)\b"
    r"|^(?:do|does|did|can|could|should|would|is|are|has|have|will)\s+(?:you|we|they|it|he|she|there|this|that|anyone|anybody)\b(?!.*[.!]$)",
    re.IGNORECASE,
)
_DECISION: Final = re.compile(
    r"\b(?:(?:we|i|they)(?:'ve| have)?\s+(?:all\s+|both\s+)?(?:decided|agreed|settled|chose|voted)\b"
    r"|(?:the|our|my)\s+(?:final\s+)?decision\b|(?:it is|it's|that's|is|are)\s+(?:decided|settled|agreed)\b"
    r"|let's\s+(?:go\s+(?:with|for|ahead)|use|stick|keep|drop|choose|pick|say|make|move|start|do|postpone|leave|settle|agree)\b"
    r"|we(?:'ll|\s+will|'re\s+going\s+to|\s+are\s+going\s+to)\s+(?:go\s+(?:with|for)|use|stick|keep|drop|adopt|switch)\b"
    r"|(?:motion|proposal|plan)\s+(?:is\s+)?(?:carried|approved|accepted|adopted)\b|\bi've\s+decided\b)",
    re.IGNORECASE,
)
_ACTION: Final = re.compile(
    r"\b(?:action\s+item|to-?do\b|next\s+steps?\b|follow\s+up\s+(?:on|with)|deadline|assigned\s+to|take\s+care\s+of)"
    r"|\b(?:i'll|i\s+will|i'm\s+going\s+to|i\s+can|he'll|she'll|you'll|they'll|we'll)\s+(?!be\b|have\b|see\b|never\b|always\b|not\b|just\s+say\b)"
    r"(?:send|write|check|look|prepare|make|set|get|run|try|ask|talk|call|email|share|fix|add|update|review|test|draft|finish|do|bring|contact"
    r"|schedule|book|find|put|read|follow|start|report|collect|give|organize|work)\b"
    r"|\b(?:we|you|i|someone|somebody)\s+(?:really\s+|still\s+|also\s+|just\s+)?(?:need|needs|have|has|ought|must)\s+to\b"
    r"|\b(?:can|could|would|will)\s+you\s+(?:please\s+)?(?:send|write|check|look|prepare|make|set|get|run|try|ask|share|fix|add|update|review|draft)\b"
    r"|^please\b|\bby\s+(?:monday|tuesday|wednesday|thursday|friday|tomorrow|next\s+week|the\s+end\s+of)\b",
    re.IGNORECASE,
)
_DISAGREEMENT: Final = re.compile(
    r"\b(?:i\s+(?:strongly\s+|really\s+|completely\s+)?disagree|disagree\s+with|i\s+(?:do\s+not|don't)\s+(?:agree|think\s+(?:so|that's|it's|we|you|this|that|the))"
    r"|i'm\s+not\s+(?:so\s+)?(?:sure|convinced)|i\s+am\s+not\s+(?:so\s+)?(?:sure|convinced)|not\s+(?:necessarily|true|the\s+case|convinced)"
    r"|i\s+doubt|on\s+the\s+contrary|that's\s+(?:wrong|not\s+(?:right|true|correct|what))|you're\s+wrong|i\s+(?:would\s+)?object\b|i\s+beg\s+to\s+differ)",
    re.IGNORECASE,
)
_ASKED: Final = re.compile(r"\?[\"”')\]]*$")


def kind_of(sentence: str) -> PointKind:
    """The kind of one sentence; a claim when nothing marks it as anything else."""
    sentence = sentence.replace("’", "'")
    if _ACTION.search(sentence) and not _ASKED.search(sentence):
        return PointKind.DECISION if _DECISION.search(sentence) else PointKind.ACTION
    for kind, pattern in (
        (PointKind.QUESTION, _QUESTION),
        (PointKind.DECISION, _DECISION),
        (PointKind.DISAGREEMENT, _DISAGREEMENT),
    ):
        if pattern.search(sentence):
            return kind
    return PointKind.CLAIM
