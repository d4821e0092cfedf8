"""What all embedded engines promise: one server a home, that outlives who started it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat

import psutil
import pytest

from context_builder.engines.engine import LOOPBACK
from tests.engines.conftest import Subject

pytestmark = pytest.mark.engines


def test_two_terminals_that_start_at_once_share_one_server(subject: Subject) -> None:
    starting = [subject.start_in_another_process() for _ in range(2)]
    first, second = (process.communicate(timeout=60)[0].split() for process in starting)
    assert first[0] == second[0]
    assert sorted((first[1], second[1])) == ["False", "True"]


async def test_it_outlives_the_process_that_started_it(subject: Subject) -> None:
    starter = subject.start_in_another_process()
    url, _ = starter.communicate(timeout=60)[0].split()
    address = await asyncio.to_thread(subject.engine.running)
    assert address is not None
    assert address.url == url
    await subject.remember(address)
    assert os.getsid(subject.pid) != os.getsid(0), "a Ctrl-C in the terminal must not reach it"


async def test_its_data_is_kept_over_a_stop(subject: Subject) -> None:
    address = await asyncio.to_thread(subject.engine.ensure)
    await subject.remember(address)
    pid = subject.pid

    assert await asyncio.to_thread(subject.engine.stop)
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    assert await asyncio.to_thread(subject.engine.running) is None
    assert not await asyncio.to_thread(subject.engine.stop)

    address = await asyncio.to_thread(subject.engine.ensure)
    assert address.started
    assert await subject.remembers(address)


async def test_its_data_is_kept_over_a_kill(subject: Subject) -> None:
    address = await asyncio.to_thread(subject.engine.ensure)
    await subject.remember(address)
    os.kill(subject.pid, signal.SIGKILL)
    address = await asyncio.to_thread(subject.engine.ensure)
    assert address.started
    assert await subject.remembers(address)


def test_it_takes_its_standard_port_and_listens_on_loopback_only(subject: Subject) -> None:
    address = subject.engine.ensure()
    assert f"{LOOPBACK}:{subject.port}" in address.url
    assert address.name.endswith(f"at {LOOPBACK}:{subject.port}")
    connections = psutil.Process(subject.pid).net_connections()
    listening = {found.laddr for found in connections if found.status == psutil.CONN_LISTEN}
    assert listening == {(LOOPBACK, subject.port)}


def test_a_standard_port_that_is_taken_is_left_to_who_has_it(subject: Subject) -> None:
    with socket.create_server((LOOPBACK, subject.port)):
        address = subject.engine.ensure()
        assert f":{subject.port}" not in address.url
        assert subject.engine.ensure() == subject.engine.running()


def test_nothing_runs_in_an_empty_home(subject: Subject) -> None:
    assert subject.engine.running() is None
    assert not subject.engine.stop()
    assert {file.name for file in subject.home.iterdir() if not file.name.endswith(".lock")} == set()


def test_secrets_are_readable_by_their_owner_only_and_not_shown(subject: Subject) -> None:
    address = subject.engine.ensure()
    secrets = list(subject.home.glob("*.password"))
    assert secrets
    for secret in secrets:
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
        assert secret.read_text() in address.url
        assert secret.read_text() not in repr(address)


def test_it_keeps_a_port_that_others_may_know(subject: Subject) -> None:
    with socket.create_server((LOOPBACK, subject.port)):
        first = subject.engine.ensure()
    os.kill(subject.pid, signal.SIGKILL)
    assert subject.engine.ensure().url == first.url
    assert subject.engine.stop()
    assert subject.engine.ensure().url == first.url
