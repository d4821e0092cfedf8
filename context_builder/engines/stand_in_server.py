"""The process of the stand-in for Redis: ``python -m context_builder.engines.stand_in_server FOLDER``.

It reads a :class:`~context_builder.engines.stand_in.StandInConfig` as JSON from standard input, and does what
fakeredis' TCP server lacks: it asks for a password, answers INFO and SHUTDOWN, and keeps a connection open after an
error.
"""

from __future__ import annotations

import hmac
import json
import os
import select
import sys
from hashlib import sha1, sha256
from typing import Any, Final

import hiredis
from fakeredis import FakeRedis, TcpFakeServer
from fakeredis._clients._tcp_server import TCPFakeRequestHandler, encode_reply
from fakeredis._helpers import SimpleError
from redis import RedisError

from context_builder.engines.engine import LOOPBACK, VISITOR
from context_builder.engines.stand_in import NAME, StandInConfig

_FORBIDDEN: Final = {b"CONFIG", b"DEBUG", b"MODULE"}
_POLL: Final = 0.01  # seconds between looks for what the server sends without being asked


class Connection(TCPFakeRequestHandler):
    """Serves one client: logs it in, then passes its commands to fakeredis."""

    config: StandInConfig

    def setup(self) -> None:
        super().setup()
        self.connection.settimeout(None)  # fakeredis' own loop reads without waiting; a long answer would fail
        self._logged_in, self._visits = self.config.password_sha256 is None, False

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
        """Return the answer to a command that fakeredis is not to see; None for the others."""
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
        return _info(self.config.port) if name == b"INFO" else None

    def _log_in(self, *words: bytes) -> str | Exception:
        *name, password = words or (b"",)
        self._visits = name == [VISITOR.encode()]
        if self._visits:
            return "OK"
        if self.config.password_sha256 is not None:
            self._logged_in = hmac.compare_digest(sha256(password).hexdigest(), self.config.password_sha256)
        return "OK" if self._logged_in else SimpleError("WRONGPASS invalid username-password pair")


def serve(config: StandInConfig) -> None:
    """Listen until a client sends SHUTDOWN."""
    server = TcpFakeServer((LOOPBACK, config.port), server_type="redis")
    server.RequestHandlerClass = type("ConfiguredConnection", (Connection,), {"config": config})
    _complete_scripts(server.fake_server)
    _drop_privileges(config)
    server.serve_forever()


def _complete_scripts(server: Any) -> None:
    """Give scripts what fakeredis' Lua lacks, and commits need."""
    FakeRedis(server=server).eval("return 1", 0)  # makes the runtime
    add = server._lua_runtime.eval("function(sha1hex) redis.sha1hex = sha1hex end")
    add(lambda text: sha1(text).hexdigest().encode())  # noqa: S324 (what Redis' function is)


def _info(port: int) -> str:
    """Return what INFO answers, whatever section is asked for."""
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


def _drop_privileges(config: StandInConfig) -> None:
    if config.uid is None or config.gid is None:
        return
    os.setgroups([])
    os.setgid(config.gid)
    os.setuid(config.uid)


if __name__ == "__main__":
    serve(StandInConfig(**json.load(sys.stdin)))
