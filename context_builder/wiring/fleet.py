"""A fleet's worker, made of the app's parts."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from context_builder.fleet.worker import LEASE, FleetWorker
from context_builder.session.host.host import SessionHost
from context_builder.settings.settings import Settings
from context_builder.wiring.app import App


def fleet_settings(settings: Settings) -> Settings:
    """Return the settings with a lease that has run out when a dead worker's sessions are run elsewhere."""
    session = settings.session
    lease = min(session.lease, max(LEASE, 2 * session.tick + 1))
    return settings.model_copy(update={"session": replace(session, lease=lease)})


def fleet_worker(app: App, host: SessionHost) -> FleetWorker:
    """Return a worker for the sessions at the app's Redis, which runs them with ``host``."""
    settings = app.settings
    return FleetWorker(app.redis_url, app.redis, partial(app.session, host=host), settings.fleet, settings.session)
