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


@pytest.mark.parametrize("columns", [60, 80])
def test_the_list_cuts_nothing_in_a_narrow_terminal(
    migrated_url: str, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("DATABASE_URL", migrated_url)
    monkeypatch.setenv("COLUMNS", str(columns))
    for name in ("listener", "a-delivery-monitor-of-the-lab"):
        made = CliRunner().invoke(app, ["keys", "create", "--tenant", "laboratory", "--name", name])
        shown = CliRunner().invoke(app, ["keys", "list"]).output
        assert "…" not in shown
        assert made.stdout[4:30] in shown
    revoked = CliRunner().invoke(app, ["keys", "revoke", made.stdout[4:30]])
    assert revoked.exit_code == 0, revoked.output
    shown = CliRunner().invoke(app, ["keys", "list"]).output
    assert "\n" in shown[shown.index("revoked 2") :]
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= columns
