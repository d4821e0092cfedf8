"""The folder in which embedded engines keep their data, records and logs, and the unprivileged user they run as."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Final, TypeVar

from context_builder.errors import EngineError

LOCK_TIMEOUT: Final = 60.0
"""Seconds to wait for another terminal that is starting or stopping the same engine."""

_ROOT_HOME: Final = Path("/var/lib/context-builder")


def is_root() -> bool:
    return sys.platform != "win32" and os.geteuid() == 0


def default_home() -> Path:
    """Return the user's data folder; for root one that PostgreSQL, which refuses to be root, can enter."""
    if is_root():
        return _ROOT_HOME
    from platformdirs import user_data_path

    return user_data_path("context-builder", appauthor=False)


def make_folder(folder: Path, *, mode: int = 0o700) -> Path:
    """Return the folder, created with ``mode`` if it is missing; an existing one is left as it is."""
    try:
        if not folder.exists():
            folder.mkdir(parents=True)
            folder.chmod(mode)
    except FileExistsError:
        pass  # another terminal was faster
    except OSError as error:
        raise EngineError(
            f"cannot create {folder}: {error.strerror}; set CONTEXT_BUILDER_HOME to a folder of yours"
        ) from None
    return folder


def make_home(home: Path) -> Path:
    """Create the home: private, unless root's, where PostgreSQL's unprivileged user passes through."""
    return make_folder(home, mode=0o755 if is_root() else 0o700)


@contextmanager
def exclusive(lock: Path) -> Iterator[None]:
    """Lock out other processes, so that two terminals starting at once share one engine.

    The operating system lets go of it when its holder dies. What goes wrong with files of the
    home meanwhile is an :class:`EngineError`.
    """
    if find_spec("fcntl") is None:
        raise EngineError("no embedded engines on this system; set REDIS_URL and DATABASE_URL")
    make_home(lock.parent)
    try:
        with open_private(lock) as file:
            if not take_lock(file, LOCK_TIMEOUT):
                raise EngineError(f"another process has held {lock} for {LOCK_TIMEOUT:g} s")
            yield
    except OSError as error:
        raise EngineError(f"{error.filename or lock.parent}: {error.strerror}") from None


def take_lock(file: IO[str], timeout: float) -> bool:
    """Lock an open file for as long as it is open anywhere, also in a child that inherits it; false after ``timeout``
    seconds in which another process had it."""
    import fcntl

    deadline = time.monotonic() + timeout
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        else:
            return True


def open_private(file: Path) -> IO[str]:
    """Open a file to append to, created if it is missing, for its owner only."""
    return open(file, "a", opener=lambda path, flags: os.open(path, flags, 0o600))


def write_private(file: Path, text: str) -> None:
    """Write a file for its owner only, whole or not at all."""
    unfinished = file.with_name(f"{file.name}.writing")
    unfinished.unlink(missing_ok=True)
    unfinished.touch(mode=0o600, exist_ok=False)
    unfinished.write_text(text)
    unfinished.replace(file)


Record = TypeVar("Record")


def keep_record(file: Path, record: Any) -> None:
    """Record a started server for other terminals; ``record`` is a dataclass of values that JSON has."""
    write_private(file, json.dumps(asdict(record)))


def kept_record(file: Path, kind: Callable[..., Record]) -> Record | None:
    """Return the record that is kept in the file; None where there is none of this kind."""
    try:
        return kind(**json.loads(file.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def last_words(log: Path) -> str:
    """Return why a server did not start: the last fatal line of its log, else the last one."""
    try:
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    except OSError as error:
        return f"its log cannot be read: {error.strerror}"
    fatal = [line for line in lines if "fatal" in line.lower()]
    return (fatal or lines or ["its log is empty"])[-1]


UNPRIVILEGED: Final = "nobody"
_READ_AND_ENTER: Final = 0o005


@dataclass(frozen=True, slots=True)
class Owner:
    """Names an unprivileged user by number."""

    uid: int
    gid: int


def owner_of(folder: Path) -> Owner | None:
    """Return the user that a server with its data in ``folder`` runs as; None is the present user, who is not root.

    A folder that is root's is first given to ``nobody``, with all that is in it.
    """
    if not is_root():
        return None
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            if os.fstat(handle).st_uid == 0:
                _give(handle, unprivileged())
            status = os.fstat(handle)
        finally:
            os.close(handle)
    except OSError as error:
        reason = f"cannot give {folder} to the user {UNPRIVILEGED}: {error.strerror}"
        raise EngineError(f"{reason}; run this as another user") from None
    return Owner(status.st_uid, status.st_gid)


def is_open_to_all(program: Path) -> bool:
    """Return whether every user can reach and run the program."""
    real = program.resolve()
    chain = (program, *program.parents, real, *real.parents)
    return all(path.stat().st_mode & _READ_AND_ENTER == _READ_AND_ENTER for path in chain)


def unprivileged() -> Owner:
    import pwd

    try:
        user = pwd.getpwnam(UNPRIVILEGED)
    except KeyError:
        raise EngineError(f"there is no user {UNPRIVILEGED} to run servers as; run this as another user") from None
    return Owner(user.pw_uid, user.pw_gid)


def _give(folder: int, owner: Owner) -> None:
    """Change the owner of all that is in the open folder, and of the folder itself last: until then only root gets in.

    No link is followed, whoever may have put it there.
    """
    for _, folders, files, inside in os.fwalk(".", topdown=False, dir_fd=folder):
        for name in (*folders, *files):
            os.chown(name, owner.uid, owner.gid, dir_fd=inside, follow_symlinks=False)
    os.fchown(folder, owner.uid, owner.gid)
