"""Where embedded engines live."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from context_builder.engines.home import default_home, make_folder
from context_builder.errors import EngineError


def test_a_users_home_is_the_users_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_home().is_relative_to(tmp_path)
    assert default_home().name == "context-builder"


def test_roots_home_can_be_entered_by_the_user_that_postgresql_runs_as(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert default_home() == Path("/var/lib/context-builder")


def test_a_folder_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    existing = tmp_path / "existing"
    existing.mkdir(mode=0o750)
    mode = existing.stat().st_mode
    assert make_folder(existing, mode=0o700).stat().st_mode == mode
    assert make_folder(tmp_path / "new", mode=0o700).stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_made_is_named_with_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EngineError, match=r"cannot create .*/file/home: .*; set CONTEXT_BUILDER_HOME"):
        make_folder(tmp_path / "file" / "home")
