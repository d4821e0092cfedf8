"""Checks that each dependency has a wheel for every Python and platform that the project installs on.

One without is built from source, which needs a compiler, and fails on machines that have none. All extras count that
exclude no others, but for what their markers leave out. The package index is asked once for all
(``uv pip compile --universal``), and again only when pyproject.toml, constraints.txt or this file changed. Where it
does not answer, nothing is checked: that is said on a laptop, and fails in CI.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from packaging.markers import default_environment
from packaging.pylock import Package, Pylock
from packaging.tags import Tag, compatible_tags, cpython_tags, mac_platforms
from packaging.utils import parse_wheel_filename

ROOT: Final = Path(__file__).parents[1]
CHECKED: Final = ROOT / ".venv" / "wheels-checked"
PYTHONS: Final = ((3, 11), (3, 12), (3, 13), (3, 14))
PLATFORMS: Final = {
    "Linux x86-64": ("linux", "x86_64"),
    "Linux ARM64": ("linux", "aarch64"),
    "macOS x86-64": ("darwin", "x86_64"),
    "macOS ARM64": ("darwin", "arm64"),
}
GLIBC: Final = (2, 28)  # Debian 10, Ubuntu 20.04, RHEL 8
MACOS: Final = (14, 0)
EXCEPTIONS: Final[frozenset[tuple[str, str]]] = frozenset()
"""Dependencies and platforms without a wheel, each with its reason. None now: markers leave out what has none."""


APART: Final = frozenset({"pipecat"})
"""Extras that exclude others. Pipecat itself needs what is built from source, and what Intel Macs have no wheels of."""


class IndexAway(Exception):
    """The package index does not answer."""


def main() -> int:
    """The exit status; what lacks a wheel is printed."""
    inputs = (ROOT / "pyproject.toml", ROOT / "constraints.txt", Path(__file__))
    digest = sha256(b"\0".join(path.read_bytes() for path in inputs)).hexdigest()
    if CHECKED.exists() and CHECKED.read_text() == digest:
        return 0
    try:
        found = list(lacking(resolved()))
    except IndexAway as error:
        print(f"wheels: not checked, the package index does not answer: {error}", file=sys.stderr)
        return 1 if os.environ.get("CI") else 0
    if found:
        print(*(f"wheels: none of {line}" for line in found), sep="\n", file=sys.stderr)
        return 1
    CHECKED.write_text(digest)
    return 0


def resolved() -> Pylock:
    """Every dependency with its files. Raises :class:`IndexAway`; ends the program when no versions fit together."""
    with tempfile.TemporaryDirectory() as folder:
        lock = Path(folder) / "pylock.toml"
        options = ("--universal", "--constraint", "constraints.txt", "--output-file", str(lock))
        extras = [f"--extra={extra}" for extra in checked_extras()]
        command = [sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", *extras, *options, "--quiet"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0 and "No solution found" in done.stderr:
            sys.exit(f"wheels: {done.stderr}")
        if done.returncode != 0:
            raise IndexAway(done.stderr.strip().splitlines()[-1] if done.stderr else f"exit status {done.returncode}")
        return Pylock.from_dict(tomllib.loads(lock.read_text()))


def checked_extras() -> list[str]:
    """The extras that may be installed together."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    return [extra for extra in extras if extra not in APART]


def lacking(lock: Pylock) -> Iterator[str]:
    """What lacks a wheel, where: one line for each dependency, Python and platform."""
    for python in PYTHONS:
        for platform, (system, machine) in PLATFORMS.items():
            environment = environment_of(python, system, machine)
            tags = frozenset(tags_of(python, system, machine))
            for package in lock.packages:
                if (
                    (package.marker is None or package.marker.evaluate(environment, context="lock_file"))
                    and (package.name, platform) not in EXCEPTIONS
                    and not has_wheel(package, tags)
                ):
                    yield f"{package.name} {package.version} for Python {python[0]}.{python[1]} on {platform}"


def has_wheel(package: Package, tags: frozenset[Tag]) -> bool:
    """Whether one of the package's wheels fits one of the tags."""
    return any(not tags.isdisjoint(parse_wheel_filename(wheel.filename)[3]) for wheel in package.wheels or ())


def environment_of(python: tuple[int, int], system: str, machine: str) -> Mapping[str, str]:
    """What markers are evaluated by."""
    version = f"{python[0]}.{python[1]}"
    return {
        **default_environment(),
        "implementation_version": f"{version}.0",
        "platform_machine": machine,
        "platform_system": system.capitalize(),
        "python_full_version": f"{version}.0",
        "python_version": version,
        "sys_platform": system,
    }


def tags_of(python: tuple[int, int], system: str, machine: str) -> Iterator[Tag]:
    """The wheels that an installer takes there."""
    if system == "darwin":
        platforms = list(mac_platforms(MACOS, machine))
    else:
        platforms = [f"manylinux_{GLIBC[0]}_{minor}_{machine}" for minor in range(GLIBC[1], 4, -1)]
        platforms += [f"{name}_{machine}" for name in ("manylinux2014", "manylinux2010", "manylinux1", "linux")]
    yield from cpython_tags(python, platforms=platforms)
    yield from compatible_tags(python, interpreter=f"cp{python[0]}{python[1]}", platforms=platforms)


if __name__ == "__main__":
    sys.exit(main())
