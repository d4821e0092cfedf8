"""The rolling summary consists of points that cite messages, merged and shortened to fit their token budget.

Draft points of an analyst come in; the :class:`Summary` and the messages that a point cites go out."""
