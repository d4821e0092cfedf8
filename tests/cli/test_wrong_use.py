"""A command line that is wrong is told in one line, which says what is wrong and where the help is."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from context_builder.cli import app


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("rnu x", "no such command 'rnu'. Did you mean 'run'? See `context-builder --help`"),
        ("send meeting", "missing argument 'text'; see `context-builder send --help`"),
        ("run a --speed 3", "no such option: --speed; see `context-builder run --help`"),
        ("keys creat", "is not one of 'create', 'list', 'revoke'; see `context-builder keys --help`"),
        (
            "package rate x",
            "--helped and --note is needed; see `context-builder package rate --help`",
        ),
    ],
)
def test_a_wrong_command_line_is_told_in_one_line(arguments: str, told: str) -> None:
    done = CliRunner().invoke(app, arguments.split(), prog_name="context-builder", env={"COLUMNS": "40"})
    assert done.exit_code == 2
    assert done.stderr.startswith("context-builder: ")
    assert done.stderr.endswith(f"{told}\n")
    assert done.stderr.count("\n") == 1


def test_a_group_without_a_command_shows_its_help_alone() -> None:
    done = CliRunner().invoke(app, ["policy"], prog_name="context-builder")
    assert "delete" in done.output
    assert "context-builder: " not in done.output
