"""The daemon whose session does nothing periodic by itself, as in a process with many: ``hosted run SESSION``."""

from __future__ import annotations

import asyncio
from typing import Any

from context_builder.__main__ import main
from context_builder.session.host import SessionHost
from context_builder.session.session import Session
from context_builder.storage.multiplexed import MultiplexedRedis
from context_builder.wiring.app import App
from scripts.alteration import replace


def host_every_session() -> None:
    """Give each session that the app makes a host of its own, which runs while the session is served."""
    make = App.session

    def session(app: App, session_id: str, **options: Any) -> Session:
        host = SessionHost(MultiplexedRedis(app.redis), app.settings.session)
        made = make(app, session_id, host=host, **options)
        serve = made.serve

        async def served(**how: bool) -> None:
            running = asyncio.create_task(host.run(), name="session host")
            try:
                await serve(**how)
            finally:
                running.cancel()
                await host.client.aclose()

        replace(made, "serve", served)
        return made

    replace(App, "session", session)


if __name__ == "__main__":
    host_every_session()
    main()
