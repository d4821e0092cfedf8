"""The settings in force, for people and for programs."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner, Result

from context_builder.cli import app
from context_builder.cli.command import tell_misspelt
from context_builder.settings.settings import definitions


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the command is given, with secrets in the environment."""
    tell_misspelt.cache_clear()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CONTEXT_BUILDER_REDIS_URL", "redis://:hunter2@cache:6379/0")
    monkeypatch.setenv("CONTEXT_BUILDER_OPENAI_BASE_URL", "http://user:hunter2@models:8000/v1")
    return tmp_path


def settings(*options: str) -> Result:
    return CliRunner().invoke(app, ["settings", *options], catch_exceptions=False)


def test_programs_get_all_of_them_typed_and_without_secrets() -> None:
    shown = orjson.loads(settings("--json").stdout)
    assert list(shown) == list(definitions())
    assert (shown["REDIS_PORT"], shown["POLL_INTERVAL"], shown["DOMAIN_SKIP"]) == (6379, 0.5, True)
    assert shown["SUPABASE_URL"] is None
    assert (shown["REDIS_URL"], shown["OPENAI_BASE_URL"]) == ("**********", "http://**********@models:8000/v1")


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_no_secret_is_shown(options: tuple[str, ...]) -> None:
    output = settings(*options).output
    assert "REDIS_URL" in output
    assert "hunter2" not in output


def test_a_misspelt_name_in_the_file_is_told_and_nothing_else_is_disturbed(folder: Path) -> None:
    (folder / ".env").write_text("REDIS_ULR=redis://cache\npoll_interval=1\nSUPABASE_ACCESS_TOKEN=x\nPOLL_INTERVAL=2\n")
    result = settings("--json")
    assert result.stderr.splitlines() == [
        "context-builder: .env: REDIS_ULR is not a setting; did you mean REDIS_URL?",
        "context-builder: .env: poll_interval is not a setting; did you mean POLL_INTERVAL?",
    ]
    assert orjson.loads(result.stdout)["POLL_INTERVAL"] == 2
    assert result.exit_code == 0


def test_a_misspelt_name_in_the_environment_is_told_once_and_no_other_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    others = ("HTTP_PROXY", "SESSION_MANAGER", "REDIS_PORT_6379_TCP", "SUPABASE_ACCESS_TOKEN")
    for name in ("REDIS_ULR", "CONTEXT_MAX_TOKEN", "SERVE_ADDRESS", *others):
        monkeypatch.setenv(name, "x")
    told = [
        "context-builder: environment: REDIS_ULR is not a setting; did you mean REDIS_URL?",
        "context-builder: environment: CONTEXT_MAX_TOKEN is not a setting; did you mean CONTEXT_MAX_TOKENS?",
        "context-builder: environment: SERVE_ADDRESS is not a setting; did you mean SERVE_NAMES?",
    ]
    assert sorted(settings().stderr.splitlines()) == sorted(told)
    assert settings().stderr == ""
