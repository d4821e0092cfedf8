"""The sessions of a process share one reader of all inputs and one refresher of expiring keys. In go sessions
that register; out come events that wake those with something to do. Others import from ``host``.
"""
