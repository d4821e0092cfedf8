"""``keys`` makes what callers of the server show."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from context_builder.cli import app

pytestmark = pytest.mark.engines


def test_a_new_key_is_alone_on_standard_output(migrated_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", migrated_url)
    told = CliRunner().invoke(app, ["keys", "create", "--tenant", "lab", "--role", "writer", "--name", "listener"])
    assert told.exit_code == 0, told.output
    assert re.fullmatch(r"cbk_[0-9A-Z]{26}_[\w-]{43}\n", told.stdout)
    assert "of tenant lab, role writer. It is not shown again." in told.stderr
    assert told.stdout.strip() not in told.stderr
