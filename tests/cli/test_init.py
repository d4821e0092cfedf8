"""``init`` asks four questions, tries the answers, and writes them into ``.env`` and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from dotenv import dotenv_values
from redis import Redis
from typer.testing import CliRunner, Result

from context_builder.cli import app, init
from context_builder.settings.env_file import write_values
from tests.services.redis_server import RedisServer

pytestmark = pytest.mark.engines


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which the command is given."""
    monkeypatch.chdir(tmp_path)
    for name in ("REDIS_URL", "DATABASE_URL", "OPENAI_API_KEY", "SUPABASE_KEY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody is there to answer, though the answers come from the test."""
    monkeypatch.setattr(
        "context_builder.cli.init.sys", type("Sys", (), {"stdin": type("In", (), {"isatty": bool(1).__bool__})})
    )


def run(*options: str, answers: str = "") -> Result:
    return CliRunner().invoke(app, ["init", *options], input=answers)


def elsewhere(redis_server: RedisServer, database_url: str) -> list[str]:
    return ["--redis", redis_server.url, "--database", database_url]


def test_options_alone_are_tried_and_written_for_the_owner_alone(redis_server: RedisServer, database_url: str) -> None:
    done = run(*elsewhere(redis_server, database_url), "--recordings", "said here")
    assert done.exit_code == 0, done.output
    assert "It answers, version" in done.output
    assert dotenv_values(".env") == {
        "REDIS_URL": redis_server.url,
        "DATABASE_URL": database_url,
        "RECORD_DIR": "said here",
    }
    assert Path(".env").stat().st_mode & 0o777 == 0o600
    assert Path("said here").is_dir()


def test_an_env_that_is_there_is_not_changed_unasked_and_keeps_its_other_lines(
    redis_server: RedisServer, database_url: str
) -> None:
    Path(".env").write_text(
        "# mine\nPOLL_INTERVAL=1\nREDIS_URL=redis://old\nexport DATABASE_URL=old\nREDIS_URL=older\n"
    )
    before = Path(".env").read_text()
    refused = run(*elsewhere(redis_server, database_url))
    assert (refused.exit_code, Path(".env").read_text()) == (1, before)
    assert "add --yes to go ahead" in refused.output
    assert run(*elsewhere(redis_server, database_url), "--yes").exit_code == 0
    assert Path(".env").read_text().splitlines()[:2] == ["# mine", "POLL_INTERVAL=1"]
    assert dotenv_values(".env")["REDIS_URL"] == redis_server.url
    assert Path(".env").read_text().count("REDIS_URL") == 1


def test_an_answer_that_does_not_work_is_told_and_nothing_is_written(database_url: str) -> None:
    done = run("--redis", "redis://:hunter2@127.0.0.1:1/0", "--database", database_url)
    assert done.exit_code == 2
    assert "--redis: Redis" in done.output
    assert "hunter2" not in done.output
    assert not Path(".env").exists()


def test_an_answer_is_tried_where_the_environment_says_but_without_what_it_answers(
    redis_server: RedisServer, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1/0")
    monkeypatch.setenv("CONTEXT_BUILDER_DATABASE_URL", "nonsense")
    monkeypatch.setenv("POLL_INTERVAL", "often")
    assert "POLL_INTERVAL" in run(*elsewhere(redis_server, database_url)).output
    monkeypatch.setenv("POLL_INTERVAL", "0.5")
    assert run(*elsewhere(redis_server, database_url)).exit_code == 0


def test_a_model_needs_its_key_which_is_not_shown(redis_server: RedisServer, database_url: str) -> None:
    done = run(*elsewhere(redis_server, database_url), "--model", "openai")
    assert done.exit_code == 2
    assert "OPENAI_API_KEY: set it in the environment" in done.output


def test_a_person_is_asked_until_the_answer_works(
    redis_server: RedisServer, database_url: str, at_a_terminal: None
) -> None:
    answers = f"redis://127.0.0.1:1/0\n\n{redis_server.url}\n\n{database_url}\n\nnone\nnone\n"
    done = run(answers=answers)
    assert done.exit_code == 0, done.output
    assert "That does not work: " in done.output
    assert dotenv_values(".env") == {"REDIS_URL": redis_server.url, "DATABASE_URL": database_url}
    kept = run("--yes", answers="keep\nkeep\nnone\nnone\n")
    assert kept.exit_code == 0, kept.output
    assert dotenv_values(".env") == {"REDIS_URL": redis_server.url, "DATABASE_URL": database_url}


def test_a_password_is_asked_for_unseen(redis_server: RedisServer, database_url: str, at_a_terminal: None) -> None:
    with Redis.from_url(redis_server.url) as redis:
        redis.acl_setuser(
            "app", enabled=True, passwords=["+hunter 2/"], keys=["*"], channels=["*"], categories=["+@all"]
        )
        mine = redis_server.url.replace("redis://", "redis://app@")
        done = run(
            "--database", database_url, "--model", "none", "--recordings", "none", answers=f"{mine}\nhunter 2/\n"
        )
        redis.acl_deluser("app")
    assert done.exit_code == 0, done.output
    assert dotenv_values(".env")["REDIS_URL"] == redis_server.url.replace("redis://", "redis://app:hunter%202%2F@")
    assert "hunter" not in done.output


@pytest.mark.parametrize(
    "value",
    [
        "plain",
        "a b",
        "it's",
        'quo"te',
        "back\\slash",
        "$HOME",
        "# no comment",
        "ключ",
        "${HOME}",
        "a${b:-c}${",
        "\\${x}'",
    ],
)
def test_values_come_back_as_they_went_in(value: str) -> None:
    write_values(Path(".env"), {"OPENAI_API_KEY": value})
    assert dotenv_values(".env") == {"OPENAI_API_KEY": value}


def test_lines_stay_as_they_are_whatever_is_in_them() -> None:
    Path(".env").write_text("A='x\u2028y'\nB=p\x0cq\n", encoding="utf-8")
    write_values(Path(".env"), {"C": "1"})
    assert Path(".env").read_text(encoding="utf-8") == "A='x\u2028y'\nB=p\x0cq\nC=1\n"


def test_an_answer_takes_the_place_of_whatever_answered_before(redis_server: RedisServer, database_url: str) -> None:
    Path(".env").write_text(
        "REDIS_URLS=redis://one redis://two\nREDIS_PORT=7000\nCONTEXT_BUILDER_DATABASE_URL=postgresql://old/x\n"
    )
    assert run(*elsewhere(redis_server, database_url), "--yes").exit_code == 0
    assert dotenv_values(".env") == {"REDIS_URL": redis_server.url, "DATABASE_URL": database_url}


def test_what_the_prefixed_names_answer_is_kept_where_nobody_asks(redis_server: RedisServer, database_url: str) -> None:
    Path(".env").write_text(f"CONTEXT_BUILDER_REDIS_URL={redis_server.url}\n")
    assert run("--database", database_url, "--yes").exit_code == 0
    assert dotenv_values(".env") == {"CONTEXT_BUILDER_REDIS_URL": redis_server.url, "DATABASE_URL": database_url}


@pytest.mark.parametrize("answer", ["postgresql://[", "http://[", "https://hunter2@x:port"])
def test_an_address_that_is_none_is_told(
    answer: str, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUPABASE_KEY", "sb_secret_x")
    done = run("--redis", redis_server.url, "--database", answer)
    assert (done.exit_code, "hunter2" in done.output) == (2, False), done.output
    assert "--database: " in done.output


def test_a_file_that_cannot_be_read_is_told() -> None:
    Path(".env").write_bytes(b"REDIS_HOST=caf\xe9\n")
    done = run("--yes")
    assert (done.exit_code, "is not UTF-8" in done.output) == (2, True), done.output


def test_there_are_four_questions() -> None:
    assert [question.text[:3] for question in init.QUESTIONS] == ["1/4", "2/4", "3/4", "4/4"]
