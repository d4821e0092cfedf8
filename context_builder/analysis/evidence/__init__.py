"""The evidence check tells whether a point says what its quotes say, by code alone, in any language.

A model wrote the sentence, so what can be counted is counted. What nobody said is rejected: a quote, a number with its
unit, a name, a speaker, or a sentence that has nothing to do with its messages. What code can only suspect is a doubt,
for a small model to look at: a "not" too many or too few, a decision that nobody accepted, a view of somebody who is
not quoted, words that are mostly the writer's own.
"""

from context_builder.analysis.evidence.check import Doubt, EvidenceCheck, Findings, Rejection, check_rewritten
from context_builder.analysis.evidence.overlap import is_told_in

__all__ = ["Doubt", "EvidenceCheck", "Findings", "Rejection", "check_rewritten", "is_told_in"]
