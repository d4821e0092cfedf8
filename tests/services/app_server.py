"""An ASGI app that a thread of the test's own process serves."""

from __future__ import annotations

import threading
from typing import Self

import uvicorn
from starlette.types import ASGIApp

from context_builder.engines.engine import LOOPBACK, free_port


class AppServer:
    """Serves the app at ``url``, on a free loopback port; stopped and started, it keeps its port."""

    def __init__(self, app: ASGIApp) -> None:
        self.port = free_port()
        self.url = f"http://{LOOPBACK}:{self.port}"
        self._app = app
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Returns when it listens."""
        server = uvicorn.Server(config_of(self._app, self.port))
        thread = threading.Thread(target=server.run, name=type(self).__name__, daemon=True)
        thread.start()
        waited = threading.Event()
        while not server.started:
            if not thread.is_alive():
                raise RuntimeError(f"{type(self).__name__} does not start on port {self.port}")
            waited.wait(0.005)
        self._server, self._thread = server, thread

    def stop(self) -> None:
        """From here on, connections are refused; requests in flight are dropped."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = self._server.force_exit = True
            self._thread.join(timeout=10)
            self._server = self._thread = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def config_of(app: ASGIApp, port: int) -> uvicorn.Config:
    return uvicorn.Config(app, host=LOOPBACK, port=port, log_level="critical", lifespan="off", ws="none")
