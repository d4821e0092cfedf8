"""Correcting, renaming and striking from a terminal, also while nobody runs the session."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
import pytest
from click.testing import Result
from redis import Redis
from typer.testing import CliRunner

from context_builder.cli import app
from tests.services.redis_server import RedisServer
from tests.session.saying import spoken

pytestmark = pytest.mark.engines


@pytest.fixture
def redis(redis_server: RedisServer, migrated_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Redis]:
    """A session that was summarized and left."""
    monkeypatch.setenv("REDIS_URL", redis_server.url)
    monkeypatch.setenv("DATABASE_URL", migrated_url)
    with Redis.from_url(redis_server.url) as redis:
        redis.flushall()
        said = spoken(1, "The pump costs fifteen thousand euros.", "Speaker 2"), spoken(2, "We hide it in Zanzibar.")
        redis.lpush("context_builder:monday:input", *map(orjson.dumps, said))
        assert command("end", "monday").exit_code == 0
        yield redis


def command(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments], catch_exceptions=False)


def test_a_message_is_corrected_renamed_and_struck_though_nobody_runs_the_session(redis: Redis) -> None:
    corrected = command("correct", "monday", "1", "The pump costs fifty thousand euros.")
    assert (corrected.exit_code, corrected.stdout) == (0, "Corrected message 1 of session monday.\n")
    assert command("rename-speaker", "monday", "Speaker 2", "Ida").stdout == "Speaker 2 is Ida in session monday.\n"
    assert command("strike", "monday", "2", "--yes").stdout == "Nothing is left of message 2 of session monday.\n"
    again = CliRunner().invoke(app, ["rename-speaker", "monday", "Speaker 9", "Bo"])
    assert (again.exit_code, again.stderr) == (
        0,
        "Nobody called Speaker 9 has spoken yet; whoever does is called Bo.\n",
    )
    assert CliRunner().invoke(app, ["rename-speaker", "monday", "Ida", "Ida B."]).stderr == ""
    explained = command("explain", "monday").output
    assert "fifty thousand" in explained
    assert "Ida" in explained
    assert not [word for word in ("fifteen", "Speaker 2", "Zanzibar") if word in explained]
    assert b"Zanzibar" not in b"".join(redis.hvals("context_builder:monday:checkpoint"))


def test_what_cannot_be_changed_is_told(redis: Redis) -> None:
    assert command("strike", "monday", "2", "--yes").exit_code == 0
    for arguments, reason in (
        (("correct", "monday", "9", "x"), "session monday has no message 9"),
        (("correct", "monday", "2", "x"), "message 2 of session monday was struck"),
        (("strike", "monday", "id:9", "--yes"), "session monday has no message id:9"),
        (("correct", "monday", "message:tuesday/1", "x"), "of another session, tuesday"),
        (("correct", "nowhere", "1", "x"), "there is no session nowhere"),
        (("rename-speaker", "monday", " ", "Ida"), "renames needs two names"),
    ):
        refused = CliRunner().invoke(app, [*arguments])
        assert refused.exit_code == 1, arguments
        assert reason in refused.stderr, arguments
    for unclear in (("correct", "monday", "1"), ("correct", "monday", "first", "x"), ("strike", "monday", "-1", "-y")):
        assert CliRunner().invoke(app, [*unclear]).exit_code == 2
