"""Which servers the protocol's tests run on, and what is said of the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import protocol


def server(folder: Path, version: str) -> str:
    """A program that says it is this server."""
    program = folder / version.replace(" ", "-")
    program.write_text(f"#!/bin/sh\necho {version.replace(' ', ' server v=')} sha=0\n")
    program.chmod(0o755)
    return str(program)


@pytest.fixture(autouse=True)
def no_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this machine's own."""
    monkeypatch.setattr(protocol, "ROOT", tmp_path)
    monkeypatch.setattr(protocol, "find_servers", list)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)


@pytest.mark.engines
def test_each_other_version_is_tried_once_and_what_is_proven_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    valkey, redis = server(tmp_path, "Valkey 9.1.2"), server(tmp_path, "Redis 7.0.15")
    monkeypatch.setattr(protocol, "redis_binary", lambda: valkey)
    monkeypatch.setattr(
        protocol, "find_servers", lambda: [SearchResult(redis), SearchResult(valkey), SearchResult(redis)]
    )
    tried: list[str] = []
    monkeypatch.setattr(protocol, "passes", lambda name: tried.append(name) or True)
    assert protocol.main() == 0
    assert tried == [redis]
    told = capsys.readouterr().out.splitlines()
    assert told[-1] == "Proven: Valkey 9.1.2 (all tests), Redis 7.0.15"
    assert told[:-1] == [
        "Not proven here: Redis 6.2 (CI takes it from a wheel, with Python 3.11 or 3.12)",
        "Redis 7.0.15: tests/session tests/faults",
    ]


@pytest.mark.engines
def test_a_server_that_fails_fails_all_and_is_no_longer_called_proven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    valkey, redis = server(tmp_path, "Valkey 9.1.2"), server(tmp_path, "Redis 7.0.15")
    monkeypatch.setattr(protocol, "redis_binary", lambda: valkey)
    monkeypatch.setattr(protocol, "find_servers", lambda: [SearchResult(redis)])
    monkeypatch.setattr(protocol, "passes", lambda _: False)
    assert protocol.main() == 1
    assert capsys.readouterr().out.splitlines()[-2:] == ["Proven: Valkey 9.1.2 (all tests)", "Failed: Redis 7.0.15"]


@pytest.mark.engines
def test_on_a_laptop_nothing_is_installed_and_what_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    valkey = server(tmp_path, "Valkey 9.1.2")
    monkeypatch.setattr(protocol, "redis_binary", lambda: valkey)
    installer = tmp_path / "apt-get"
    installer.write_text(f"#!/bin/sh\ntouch {tmp_path / 'installed'}\n")
    installer.chmod(0o755)
    assert protocol.main() == 0
    assert capsys.readouterr().out.splitlines()[0] == "Not proven here: Redis 7 (apt-get install redis-server)"
    assert not (tmp_path / "installed").exists()


class SearchResult:
    """A server of PATH."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
