"""A fleet's workers, made of the app's parts: one for each Redis server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial

from context_builder.errors import StoreError
from context_builder.fleet.process import WorkloadMeter
from context_builder.fleet.worker import LEASE, FleetWorker
from context_builder.settings.settings import Settings
from context_builder.wiring.app import App, open_app


def fleet_settings(settings: Settings) -> Settings:
    """Return the settings with a lease that has run out when a dead worker's sessions are run elsewhere."""
    session = settings.session
    lease = min(session.lease, max(LEASE, 2 * session.tick + 1))
    return settings.model_copy(update={"session": replace(session, lease=lease)})


@asynccontextmanager
async def open_apps(settings: Settings) -> AsyncIterator[tuple[App, ...]]:
    """Open an app for each Redis server; they share everything else. Each runs many sessions."""
    first, *others = (fleet_settings(one) for one in settings.of_each_server())
    async with open_app(first, many=True) as app, AsyncExitStack() as stack:
        yield (app, *[await stack.enter_async_context(app.beside(one)) for one in others])


async def check_servers(apps: tuple[App, ...]) -> None:
    """Raise the :class:`StoreError` that makes a Redis unfit for sessions, which of several it names."""
    for app in apps:
        try:
            await app.check()
        except StoreError as error:
            raise StoreError(str(error) if len(apps) == 1 else f"{app.redis_is.what}: {error}") from None


@asynccontextmanager
async def open_workers(apps: tuple[App, ...], meter: WorkloadMeter) -> AsyncIterator[tuple[FleetWorker, ...]]:
    """Open a worker for each of the apps, with a host that its sessions share."""
    async with AsyncExitStack() as stack:
        workers = []
        for app in apps:
            host, settings = await stack.enter_async_context(app.host()), app.settings
            worker = FleetWorker(
                settings.redis.server_name,
                app.redis_url,
                host.client,
                partial(app.session, host=host),
                settings.fleet,
                settings.session,
                meter,
                host.arrivals,
            )
            workers.append(worker)
        yield tuple(workers)
