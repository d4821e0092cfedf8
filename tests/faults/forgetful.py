"""A Redis that loses what it had last."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.services.redis_server import RedisServer


class ForgetfulRedis:
    """A Redis of the test's own, whose disk can be put back to an earlier moment."""

    def __init__(self, folder: Path) -> None:
        self._data = folder / "data"
        self._earlier = folder / "earlier"
        self._data.mkdir(parents=True)
        self.server = RedisServer(self._data, "--appendfsync", "always")

    def remember(self) -> None:
        shutil.rmtree(self._earlier, ignore_errors=True)
        shutil.copytree(self._data, self._earlier)

    def fall_back(self) -> None:
        """To what was remembered."""
        self.server.kill()
        shutil.rmtree(self._data)
        shutil.copytree(self._earlier, self._data)
        self.server.start()

    def be_replaced(self) -> None:
        """By an empty one."""
        self.server.kill()
        shutil.rmtree(self._data)
        self._data.mkdir()
        self.server.start()
