"""The image is built where a builder runs; elsewhere the Dockerfile's steps run, as they stand, in a clean root."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.deploy.test_deploy import DEPLOY, IMAGE, ROOT

pytestmark = [pytest.mark.engines, pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.long]

OF_THE_BASE = (
    "passwd",
    "group",
    "shadow",
    "gshadow",
    "login.defs",
    "hosts",
    "nsswitch.conf",
    "resolv.conf",
    "pip.conf",
)
"""Files of ``/etc`` that the base image has, or that name servers and package indexes."""
PROGRAM = """
import asyncpg, docket, fastapi, grpc, opentelemetry.sdk, os, pathlib, tree_sitter
from context_builder import __version__
assert (os.getuid(), os.getcwd()) == (10001, "/data"), (os.getuid(), os.getcwd())
assert os.environ["CONTEXT_BUILDER_HOME"] == "/data"
pathlib.Path("/data/written").touch()
assert not os.access("/opt/context-builder", os.W_OK)
print(__version__)
"""
"""What holds in a container."""


class Step(NamedTuple):
    """An instruction of a Dockerfile and what it is given."""

    name: str
    given: str


def steps() -> Iterator[Step]:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#")).replace("\\\n", " ")
    for line in lines.splitlines():
        if line.strip():
            name, _, given = line.strip().partition(" ")
            yield Step(name, " ".join(given.split()))


class Chroot:
    """Writes a script that carries the steps out under ``root``, each stage in a root of its own with no files but
    those of the system and of this Python, which can only be read."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._stages: dict[str, Path] = {}
        self._environ: dict[str, str] = {}
        self._folder, self._user = "/", "0"
        self.script = [f"mount -t tmpfs -o size=4g none {root}"]

    @property
    def here(self) -> Path:
        return list(self._stages.values())[-1]

    def take(self, step: Step) -> None:
        match step.name:
            case "FROM":
                self._begin(step.given.partition(" AS ")[2] or "last")
            case "WORKDIR":
                self._folder = step.given
                self.script.append(f"mkdir -p {self.here}{self._folder}")
            case "USER":
                self._user = step.given
            case "ENV":
                parts = (one.partition("=") for one in shlex.split(step.given))
                self._environ |= {name: value.replace("$PATH", self._environ["PATH"]) for name, _, value in parts}
            case "COPY":
                self._copy(step.given.split())
            case "RUN":
                self.run(f"sh -c {shlex.quote(step.given)}")
            case name:
                assert name in {"EXPOSE", "STOPSIGNAL", "ENTRYPOINT", "CMD"}, f"{name} is not known here"

    def run(self, command: str) -> None:
        """Run a command as the present user, in the present folder."""
        environ = " ".join(f"{name}={shlex.quote(value)}" for name, value in self._environ.items())
        inside = f"cd {self._folder} && exec env -i {environ} {command}"
        self.script.append(f"chroot --userspec={self._user}:{self._user} {self.here} /bin/sh -c {shlex.quote(inside)}")

    def _begin(self, name: str) -> None:
        stage = self._stages[name] = self._root / name
        indexes = {key: value for key, value in os.environ.items() if key.startswith("PIP_")}
        self._environ = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", **indexes}
        self._folder, self._user = "/", "0"
        folders = " ".join(f"{stage}/{one}" for one in ("dev", "etc", "opt", "proc", "root", "tmp", "usr", "src"))
        self.script += [f"mkdir -p {folders} {stage}{sys.base_prefix}", f"chmod 1777 {stage}/tmp"]
        for folder in dict.fromkeys(("/usr", sys.base_prefix)):
            self.script.append(f"mount --bind -o ro {folder} {stage}{folder}")
        if sys.base_prefix == "/usr":
            self.script += [f"mount -t tmpfs none {stage}/usr/local", f"mkdir {stage}/usr/local/bin"]
            self.script.append(f"ln -s /usr/bin/python3 {stage}/usr/local/bin/python")
        else:  # where the base image has its Python
            self.script.append(f"mount --bind -o ro {sys.base_prefix} {stage}/usr/local")
        self.script += [f"mount -t proc none {stage}/proc", f"mount --bind /dev {stage}/dev"]
        self.script += [f"ln -s usr/{one} {stage}/{one}" for one in ("bin", "sbin", "lib", "lib64")]
        there = [f"/etc/{one}" for one in (*OF_THE_BASE, "ssl") if Path("/etc", one).exists()]
        self.script.append(f"cp -rL {' '.join(there)} {stage}/etc/")

    def _copy(self, given: list[str]) -> None:
        *options, source, target = given
        to = f"{self.here}{Path(self._folder, target)}"
        if options:
            (came_from,) = options
            self.script.append(f"cp -a {self._stages[came_from.removeprefix('--from=')]}{source} {to}")
            return
        assert source == "."
        kept = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE)
        self.script.append(f"cp -r {' '.join(str(ROOT / one) for one in kept)} {to}")


@pytest.fixture(scope="module")
def in_image(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A script that runs :data:`PROGRAM` in what the Dockerfile makes."""
    if not os.environ.get("CI"):
        pytest.skip("CI=true builds the image")
    if shutil.which("docker") and subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0:
        build = f"docker build -q -f {DEPLOY / 'Dockerfile'} -t {IMAGE} {ROOT}"
        return f"{build} && docker run --rm --entrypoint python {IMAGE} -c {shlex.quote(PROGRAM)}"
    if os.getuid() != 0 or not shutil.which("unshare"):
        pytest.skip("neither a builder runs here, nor may a root be made")
    clean = Chroot(tmp_path_factory.mktemp("image"))
    for step in steps():
        clean.take(step)
    clean.run(f"python -c {shlex.quote(PROGRAM)}")
    return f"unshare --mount sh -euc {shlex.quote(chr(10).join(clean.script))}"


def test_the_image_runs_as_nobody_with_all_that_its_commands_need(in_image: str) -> None:
    done = subprocess.run(["sh", "-c", in_image], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    assert done.stdout.splitlines()[-1] == IMAGE.partition(":")[2]
