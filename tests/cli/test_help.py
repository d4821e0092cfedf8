"""The help of every command reads well on a terminal of any width."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from context_builder import cli


def _every_command() -> Iterator[tuple[str, ...]]:
    for name in cli.COMMANDS:
        yield (name,)
        yield from ((name, verb) for verb in getattr(cli.load(name), "commands", ()))


@pytest.mark.parametrize("command", [*_every_command()], ids=" ".join)
def test_help_shows_each_example_in_an_indented_line_of_its_own(command: tuple[str, ...]) -> None:
    group, *verb = command
    loaded = cli.load(group).commands[verb[0]] if verb else cli.load(group)
    examples = re.findall(r"^    \S.*$", loaded.help, re.MULTILINE)
    shown = CliRunner().invoke(cli.app, [*command, "--help"], env={"COLUMNS": "80"}).output
    assert examples or hasattr(loaded, "commands")
    assert {f" {one}" for one in examples} <= {line.rstrip() for line in shown.splitlines()}


def test_help_fills_the_lines_of_a_wide_terminal() -> None:
    shown = CliRunner().invoke(cli.app, ["build", "--help"], env={"COLUMNS": "200"}).output
    assert "(summary, topic, recent messages) and the memories that match the query. The memory has five" in shown


def test_help_names_every_command() -> None:
    shown = CliRunner().invoke(cli.app, ["--help"], env={"COLUMNS": "120"}).output
    assert {line.strip("│ ").partition(" ")[0] for line in shown.splitlines()} >= set(cli.COMMANDS)


@pytest.mark.parametrize("command", ["run", "package build"])
def test_help_names_no_value_behind_a_flag(command: str) -> None:
    shown = CliRunner().invoke(cli.app, [*command.split(), "--help"], env={"COLUMNS": "120"}).output
    flags = [line for line in shown.splitlines() if re.search("--(takeover|no-wait|explain|json|prompt) ", line)]
    assert flags
    assert not any("<bool>" in line for line in flags)
