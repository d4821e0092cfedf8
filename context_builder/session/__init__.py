"""The live side keeps one conversation's state in Redis while people talk.

Deliveries, answers of analysts and the time come in; the published state, summaries and memories go out. Others use
``session`` (a session's loop), ``host`` (many sessions in one process), ``arrivals``, ``client`` (a program beside a
session), ``servers`` and ``keys``.
"""
