"""Where one command or answer of Redis' protocol ends and the next begins."""

from __future__ import annotations

from collections.abc import Iterator


class Frames:
    """Cuts a stream of bytes into whole commands or answers, of RESP2 or RESP3."""

    def __init__(self) -> None:
        self._held = b""

    def cut(self, data: bytes) -> Iterator[bytes]:
        """What has become whole with ``data``."""
        self._held += data
        while (end := _end(self._held, 0)) is not None:
            whole, self._held = self._held[:end], self._held[end:]
            yield whole


def _end(data: bytes, start: int) -> int | None:
    """Where the value at ``start`` ends; ``None`` when there is not all of it."""
    line_end = data.find(b"\r\n", start)
    if line_end < 0:
        return None
    kind, rest, at = data[start : start + 1], data[start + 1 : line_end], line_end + 2
    if kind in b"$=!":
        at += int(rest) + 2 if int(rest) >= 0 else 0
        return at if len(data) >= at else None
    if kind in b"*~>%|":
        for _ in range(int(rest) * (2 if kind in b"%|" else 1)):
            after = _end(data, at)
            if after is None:
                return None
            at = after
    return at
