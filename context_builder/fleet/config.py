"""The config of a fleet's worker."""

from __future__ import annotations

from pydantic.dataclasses import dataclass

from context_builder.config import CONFIG, Count, Seconds, setting


@dataclass(frozen=True, slots=True, config=CONFIG)
class FleetConfig:
    """When sessions sleep, how often Redis is scanned for new ones, and how many a worker runs."""

    sleep: Seconds = setting(
        600.0,
        "SESSION_SLEEP",
        "Time without a message after which a fleet puts a session to sleep, if nothing is waiting in it. seconds",
    )
    scan: Seconds = setting(
        0.5,
        "DISCOVERY_SCAN",
        "Time between two scans of 20,000 keys for sessions that a fleet has not been notified of; 60 times as "
        "long if Redis reports pushes (notify-keyspace-events). seconds",
    )
    concurrency: Count = setting(
        2_000,
        "FLEET_CONCURRENCY",
        "Maximum sessions of each Redis server that a worker of a fleet runs at the same time. sessions",
    )
