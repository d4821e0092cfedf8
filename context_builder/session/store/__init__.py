"""A session in Redis: lease, lineage, the one commit that writes all of it, what is to be delivered, what failed.

Beside the session, commands may use ``SessionRegistry`` (registry), ``DeadLetters`` (dead_letters) and ``SessionStore``
(store)."""
