"""A stand-in for Redis where no Redis server runs: fakeredis on a port, in memory only.

It runs as a process of its own, ``python -m context_builder.engines.stand_in FOLDER`` with a :class:`Config` as JSON on
standard input, and does what fakeredis' TCP server lacks: it asks for a password, answers INFO and SHUTDOWN, and keeps
a connection open after an error.
"""

from __future__ import annotations

import hmac
import json
import os
import select
import sys
from dataclasses import asdict, dataclass
from hashlib import sha1, sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from context_builder.engines.engine import LOOPBACK
from context_builder.engines.redis_users import VISITOR

NAME: Final = "fakeredis"
WARNING: Final = f"{NAME} stands in for Redis: nothing is kept when it stops; install redis-server or valkey"
_FORBIDDEN: Final = {b"CONFIG", b"DEBUG", b"MODULE"}
_POLL: Final = 0.01  # seconds between looks for what the server sends without being asked


@dataclass(frozen=True, slots=True)
class Config:
    """Where the stand-in listens, who may log in, and as which user it runs, if not the present one.

    Without ``password_sha256`` everybody may; but for the visitor's, names are no part of a login here.
    """

    port: int
    password_sha256: str | None = None
    uid: int | None = None
    gid: int | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def is_available() -> bool:
    """Whether fakeredis is installed together with the Lua it needs to run commits."""
    return find_spec("fakeredis") is not None and find_spec("lupa") is not None


def command(folder: Path) -> list[str]:
    """How it is started; the folder is only for who reads the list of processes."""
    return [sys.executable, "-m", __name__, str(folder)]


def _serve(config: Config) -> None:
    import hiredis
    from fakeredis import TcpFakeServer
    from fakeredis._clients._tcp_server import TCPFakeRequestHandler, encode_reply
    from fakeredis._helpers import SimpleError
    from redis import RedisError

    info = _info(config.port)

    class Connection(TCPFakeRequestHandler):
        """One client: logs in, then hands its commands to fakeredis."""

        def setup(self) -> None:
            super().setup()
            self.connection.settimeout(None)  # fakeredis' own loop reads without waiting; a long answer would fail
            self._logged_in, self._visits = config.password_sha256 is None, False

        def handle(self) -> None:
            commands = hiredis.Reader()  # a command has the form of an answer
            while True:
                self._send_answers()
                if not select.select([self.connection], [], [], _POLL)[0]:
                    continue
                received = self.connection.recv(1 << 16)
                if not received:
                    return
                commands.feed(received)
                while (words := commands.gets()) is not False:
                    answer = self._answered_here(words[0].upper(), words)
                    if answer is None:
                        self.current_client.get_socket().sendall(hiredis.pack_command(tuple(words)))
                    else:
                        self._send(answer)
                    self._send_answers()

        def _send_answers(self) -> None:
            while self.current_client.can_read():
                try:
                    answer: Any = self.current_client.read_response()
                except RedisError as error:
                    answer = error
                self._send(answer)

        def _send(self, answer: Any) -> None:
            if isinstance(answer, Exception):  # of one line, also that of a script, which has a traceback
                answer.args = (str(answer).partition("\n")[0],)
            # As a part of an answer has a length before it, and may hold whatever bytes; fakeredis' own has not.
            self.wfile.write(encode_reply(answer, self.protocol_version, nested=True))

        def _answered_here(self, name: bytes, words: list[bytes]) -> Any:
            """The answer to a command that fakeredis is not to see; None for the others."""
            if name == b"AUTH":
                return self._log_in(*words[1:])
            if name == b"HELLO" and len(words) >= 5 and words[2].upper() == b"AUTH":
                refused = self._log_in(*words[3:5])
                del words[2:5]
                if isinstance(refused, Exception):
                    return refused
            if self._visits:
                return SimpleError("NOPERM User has no permissions")
            if not self._logged_in:
                return SimpleError("NOAUTH Authentication required.")
            if name == b"SHUTDOWN":
                os._exit(0)
            if name in _FORBIDDEN:
                return SimpleError(f"ERR unknown command '{name.decode()}'")
            return info if name == b"INFO" else None

        def _log_in(self, *words: bytes) -> str | Exception:
            *name, password = words or (b"",)
            self._visits = name == [VISITOR.encode()]
            if self._visits:
                return "OK"
            if config.password_sha256 is not None:
                self._logged_in = hmac.compare_digest(sha256(password).hexdigest(), config.password_sha256)
            return "OK" if self._logged_in else SimpleError("WRONGPASS invalid username-password pair")

    server = TcpFakeServer((LOOPBACK, config.port), server_type="redis")
    server.RequestHandlerClass = Connection
    _complete_scripts(server.fake_server)
    _drop_privileges(config)
    server.serve_forever()


def _complete_scripts(server: Any) -> None:
    """Give scripts what fakeredis' Lua lacks, and commits need."""
    from fakeredis import FakeRedis

    FakeRedis(server=server).eval("return 1", 0)  # makes the runtime
    add = server._lua_runtime.eval("function(sha1hex) redis.sha1hex = sha1hex end")
    add(lambda text: sha1(text).hexdigest().encode())  # noqa: S324 (what Redis' function is)


def _info(port: int) -> str:
    """What INFO answers, whatever section is asked for."""
    fields = {
        "redis_version": "7.4.0",
        "server_name": NAME,
        "process_id": os.getpid(),
        "tcp_port": port,
        "loading": 0,
        "aof_enabled": 0,
        "maxmemory_policy": "noeviction",
        "role": "master",
        "cluster_enabled": 0,
    }
    return "".join(f"{name}:{value}\r\n" for name, value in fields.items())


def _drop_privileges(config: Config) -> None:
    if config.uid is None or config.gid is None:
        return
    os.setgroups([])
    os.setgid(config.gid)
    os.setuid(config.uid)


if __name__ == "__main__":
    _serve(Config(**json.load(sys.stdin)))
