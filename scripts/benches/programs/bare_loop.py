"""The least that could keep a state: pop one message, write a state of the same size. What it popped dies with it.

``python -m scripts.benches.programs.bare_loop REDIS_URL SESSION_ID ENTRIES ENTRY_BYTES``: ``ENTRIES`` buffered already,
each as long as a published one.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import Any

import redis

from context_builder.session.keys import Keys


def main() -> None:
    url, session_id, entries, entry_bytes = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    keys = Keys(session_id)
    buffer = deque((b"{}".ljust(entry_bytes) for _ in range(entries)), maxlen=1000)
    received = 0
    with redis.Redis.from_url(url) as client:
        print('{"event": "session.ready"}', file=sys.stderr, flush=True)
        while True:
            popped: Any = client.brpop([keys.input])
            received += 1
            buffer.append(popped[1].ljust(entry_bytes))
            counters = b'"highest_message_number":%d,"received_messages":%d' % (received, received)
            client.set(keys.state, b'{"raw_recent_buffer":[%b],%b}' % (b",".join(buffer), counters), ex=3600)


if __name__ == "__main__":
    main()
