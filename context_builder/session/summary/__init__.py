"""The rolling summary: points that cite messages, merged and shortened so that they fit their tokens.

Draft points of an analyst come in; :class:`RollingSummary` and the messages that a point cites go out."""
