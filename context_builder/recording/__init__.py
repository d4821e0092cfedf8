"""Recordings of sessions: written beside the loop, and replayed without Redis and without a model.

A recording is a file of JSON lines. Every line has ``event``, ``run`` (which process' run of the session it belongs to)
and ``at``, the moment on both clocks: ``[epoch seconds, monotonic seconds]``; ``offset`` is that of its local time to
UTC, in seconds.

======================= =========================================================================================
event                   besides
======================= =========================================================================================
``begin``               ``schema``, ``version``, ``session_id``, ``tokens`` (how texts were counted), ``rules``, and
                        what the run continued from: ``revision``, checkpoint ``fields``, ``pending``
``received``            ``messages`` as they were decoded, ``last_id``
``revised``             ``revisions``: each ``what`` (``correction``, ``strike`` or ``rename``) and its fields
``deliveries_rejected`` ``count`` of deliveries that became dead letters
``dead_lettered``       ``receiver`` (``archive`` or ``memory``), ``count`` of all its entries that became dead letters
``charged``             ``task``, ``usage`` of a call beside the session's tasks, such as for embeddings
``task_started``        ``kind``, ``task`` (a number within the run; null when there was nothing to do), ``ids`` of its
                        messages; of domains also ``through`` and ``new``; of a summary ``known``,
                        ``topic_keywords``, and ``entries`` that came from the pending list
``task_finished``       ``task``, ``result`` (null when nothing came of it), ``usage`` (what it cost all the same),
                        ``reason`` (why nothing came of it; left out where nobody was asked)
``phase_changed``       ``phase``: ``closing``, ``ended`` or ``pending_lost``
``published``           ``revision``, ``state``: a digest of the published JSON
======================= =========================================================================================
"""
