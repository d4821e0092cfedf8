"""Every error has its place in the documentation, and names it."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import typer

from context_builder import errors
from context_builder.cli import command
from context_builder.errors import ContextBuilderError, SettingError

ROOT = Path(errors.__file__).parents[1]
OURS = [one for one in vars(errors).values() if inspect.isclass(one) and issubclass(one, ContextBuilderError)]


def test_each_error_has_a_section_that_says_something() -> None:
    page, _, _ = SettingError("x").page.partition("#")
    sections = (ROOT / page).read_text("utf-8").split("\n## ")[1:]
    told = {name.lower(): text.strip() for name, _, text in (one.partition("\n") for one in sections)}
    assert set(told) == {one.__name__.lower() for one in OURS}
    assert all(len(text) > 30 for text in told.values())


def test_an_error_names_its_section_and_one_of_somebody_elses_the_nearest() -> None:
    class Special(SettingError):
        """Of a program that uses the package."""

    assert SettingError("x").page == Special("x").page == "docs/reference/errors.md#settingerror"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_person_is_told_where_to_read_on_and_a_program_gets_one_line(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def fails() -> None:
        raise SettingError("REDIS_URL: is wrong")

    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    with pytest.raises(typer.Exit):
        command.run(fails())
    first, *more = capsys.readouterr().err.splitlines()
    assert first == "context-builder: REDIS_URL: is wrong"
    assert more == (["  more: docs/reference/errors.md#settingerror"] if is_terminal else [])
