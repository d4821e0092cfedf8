"""What the sessions of a process share: one reader of all their inputs, one refresher of what expires. In go sessions
that register; out come events that wake those with something to do. Others import from ``host``.
"""
