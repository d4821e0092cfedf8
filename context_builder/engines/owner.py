"""The unprivileged user that root runs embedded servers as."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from context_builder.engines.home import is_root
from context_builder.errors import EngineError

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
