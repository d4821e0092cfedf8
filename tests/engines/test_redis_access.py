"""Who gets into the embedded Redis, and as which user it runs."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

import psutil
import pytest
from redis import Redis
from redis.exceptions import AuthenticationError, NoPermissionError, ResponseError

from context_builder.engines import home, redis_launch
from context_builder.engines.engine import LOOPBACK, VISITOR
from context_builder.engines.home import take_lock
from context_builder.engines.redis import RedisEngine, is_embedded
from context_builder.errors import EngineError
from tests.engines.conftest import RedisSubject
from tests.services.redis_server import RedisServer

pytestmark = pytest.mark.engines

REMEMBERED = b"*3\r\n$3\r\nSET\r\n$10\r\nremembered\r\n$3\r\nyes\r\n"
"""An append-only file in which a key is set."""

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root starts it as another user")


def password_of(home: Path) -> str:
    return (home / "redis.password").read_text()


def client(subject: RedisSubject, password: str | None = None) -> Redis:
    """As a listener logs in, with REDIS_PASSWORD or without."""
    return Redis(host=LOOPBACK, port=subject.port, password=password, decode_responses=True)


def test_it_asks_every_user_of_the_machine_for_the_homes_password(redis_subject: RedisSubject) -> None:
    address = redis_subject.engine.ensure()
    for guess in (None, "guess", ""):
        with pytest.raises(AuthenticationError):
            client(redis_subject, guess).get("context_builder:monday:state")
    assert client(redis_subject, password_of(redis_subject.home)).lpush("context_builder:monday:input", "{}") == 1
    assert address.access == 'eval "$(context-builder engines env)"'
    assert address.warning == ""


@pytest.mark.parametrize("command", ["CONFIG GET dir", "DEBUG SLEEP 0", "MODULE LIST"])
def test_commands_that_lead_to_files_and_code_are_gone(redis_subject: RedisSubject, command: str) -> None:
    address = redis_subject.engine.ensure()
    with Redis.from_url(address.url) as ours, pytest.raises(ResponseError, match="unknown command"):
        ours.execute_command(*command.split())


def test_neither_processes_nor_files_of_the_server_show_the_password(redis_subject: RedisSubject) -> None:
    redis_subject.engine.ensure()
    secret = password_of(redis_subject.home)
    process = psutil.Process(redis_subject.pid)
    assert secret not in " ".join(process.cmdline())
    assert secret not in repr(process.environ())
    files = [path for path in redis_subject.home.rglob("*") if path.is_file() and path.name != "redis.password"]
    assert not [path for path in files if secret.encode() in path.read_bytes()]


def test_where_the_settings_turn_the_password_off_it_says_that_everybody_gets_in(redis_subject: RedisSubject) -> None:
    engine = RedisEngine(redis_subject.home, redis_subject.port, guarded=False)
    address = engine.ensure()
    assert "every user of this machine can read and write it" in address.warning
    assert address.access == ""
    assert client(redis_subject).ping()
    assert Redis.from_url(address.url).ping(), "with a password too, which listeners may still have set"
    assert RedisEngine(redis_subject.home, redis_subject.port).running() == engine.running(), "however it is asked for"


def test_data_in_the_one_file_of_redis_6_is_taken_over(redis_subject: RedisSubject) -> None:
    folder = redis_subject.home / "redis"
    folder.mkdir(mode=0o700)
    (folder / "appendonly.aof").write_bytes(REMEMBERED)
    redis_subject.engine.ensure()
    assert client(redis_subject, password_of(redis_subject.home)).get("remembered") == "yes"


@as_root
def test_a_data_folder_that_is_a_link_is_not_followed(redis_subject: RedisSubject, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (redis_subject.home / "redis").symlink_to(tmp_path)
    with pytest.raises(EngineError, match=r"cannot give .*/redis to the user nobody"):
        redis_subject.engine.ensure()
    assert {path.stat().st_uid for path in (tmp_path, tmp_path / "file")} == {0}


def test_nothing_in_the_home_can_be_opened_by_other_users(redis_subject: RedisSubject) -> None:
    redis_subject.engine.ensure()
    files = [path for path in redis_subject.home.iterdir() if path.is_file()]
    assert {path.name for path in files} == {
        *("redis.data.lock", "redis.json", "redis.lock", "redis.log", "redis.password", "redis.port")
    }
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_a_server_whose_password_is_lost_is_named_and_never_doubled(redis_subject: RedisSubject) -> None:
    redis_subject.engine.ensure()
    lost, pid = password_of(redis_subject.home), redis_subject.pid
    (redis_subject.home / "redis.password").unlink()
    with pytest.raises(EngineError, match=rf"process {pid} uses .*/redis and does not accept .*redis\.password"):
        redis_subject.engine.ensure()
    (redis_subject.home / "redis.password").write_text(lost)
    assert redis_subject.engine.running() is not None


def test_another_homes_server_is_told_from_somebodys_own(
    redis_subject: RedisSubject, redis_server: RedisServer
) -> None:
    redis_subject.engine.ensure()
    assert is_embedded(redis_subject.port)
    with Redis.from_url(redis_server.url) as theirs:
        assert not is_embedded(redis_server.port)
        theirs.config_set("requirepass", "theirs")
        try:
            assert not is_embedded(redis_server.port)
        finally:
            theirs.config_set("requirepass", "")


def test_a_visitor_may_do_nothing(redis_subject: RedisSubject) -> None:
    redis_subject.engine.ensure()
    visitor = Redis(host=LOOPBACK, port=redis_subject.port, username=VISITOR, password="")
    for command in ("PING", "GET key", "INFO", "CLIENT LIST", "SUBSCRIBE c", "ACL LIST", "MULTI", "EVAL return(1) 0"):
        with pytest.raises(NoPermissionError):
            visitor.execute_command(*command.split())


@as_root
def test_run_by_root_it_is_an_unprivileged_process_also_in_a_home_that_only_root_can_enter(home: Path) -> None:
    closed = home / "closed"
    closed.mkdir(mode=0o700)
    subject = RedisSubject(closed / "home")
    subject.engine.ensure()
    process = psutil.Process(subject.pid)
    assert 0 not in (process.uids().real, process.uids().effective, process.gids().effective)
    assert _groups(subject.pid) == []
    written = list((closed / "home" / "redis").iterdir())
    assert {path.stat().st_uid for path in written} == {process.uids().effective}
    subject.engine.stop()


def _groups(pid: int) -> list[str]:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split()[1:] for line in status if line.startswith("Groups:"))


@as_root
def test_data_that_are_roots_become_the_servers(redis_subject: RedisSubject) -> None:
    folder = redis_subject.home / "redis"
    folder.mkdir(mode=0o700)
    (folder / "appendonly.aof").write_bytes(REMEMBERED)
    (folder / "link").symlink_to("/etc/passwd")
    redis_subject.engine.ensure()
    assert client(redis_subject, password_of(redis_subject.home)).get("remembered") == "yes"
    nobody = pwd.getpwnam("nobody").pw_uid
    assert {path.lstat().st_uid for path in (redis_subject.home / "redis").rglob("*")} == {nobody}
    assert Path("/etc/passwd").stat().st_uid == 0


@as_root
def test_a_program_that_only_root_can_reach_is_copied_and_a_link_in_its_place_is_not_followed(
    redis_subject: RedisSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_launch, "is_open_to_all", lambda _: False)
    folder = redis_subject.home / "redis"
    folder.mkdir(mode=0o700)
    victim = redis_subject.home / "victim"
    victim.write_text("precious")
    (folder / redis_launch.find_servers()[0].path.name).symlink_to(victim)
    redis_subject.engine.ensure()
    assert Path(psutil.Process(redis_subject.pid).exe()).parent == folder
    assert victim.read_text() == "precious"


@as_root
def test_where_root_may_not_become_another_user_it_says_so(
    redis_subject: RedisSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(home.os, "fchown", refused)
    with pytest.raises(
        EngineError, match=r"cannot give .*/redis to the user nobody: Operation not permitted; run this"
    ):
        redis_subject.engine.ensure()


def test_the_server_itself_holds_the_lock_of_its_data_until_it_ends(redis_subject: RedisSubject) -> None:
    redis_subject.engine.ensure()
    with (redis_subject.home / "redis.data.lock").open("a") as lock:
        assert not take_lock(lock, 0)
        redis_subject.engine.stop()
        assert take_lock(lock, 0)
