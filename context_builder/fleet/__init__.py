"""A fleet runs every session that has something to do, on as many workers and machines as there are.

In come the ids of sessions that were pushed to (``discovery``); each becomes a docket task (``worker``) that some
worker runs (``runner``) until the session sleeps (``sleepers``). Others may use ``FleetWorker``, ``FleetConfig`` and
what is in ``status``."""
