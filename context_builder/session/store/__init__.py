"""A session's store in Redis holds its lease, lineage, commits, outboxes and dead letters.

Beside the session, commands may use ``SessionRegistry`` (registry), ``DeadLetters`` (dead_letters) and ``SessionStore``
(store)."""
