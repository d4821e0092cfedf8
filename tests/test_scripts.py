"""The scripts set up a checkout once, and CI runs every check; programs that only write down how they are called."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STUB = '#!/bin/sh\necho "$(basename "$0") $*" >> calls\n'
PROGRAMS = ("python", "ruff", "mypy", "lint-imports", "mkdocs", "context-builder", "npm", "promtool")
STATIC = [
    *("ruff format --check .", "ruff check .", "mypy ", "lint-imports ", "python -m scripts.wheels"),
    "mkdocs build --strict --clean",
]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The scripts alone, with a virtual environment of such programs."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / ".venv/bin").mkdir(parents=True)
    for name in PROGRAMS:
        program = tmp_path / ".venv/bin" / name
        program.write_text(STUB)
        program.chmod(0o755)
    return tmp_path


def called(checkout: Path, *command: str) -> list[str]:
    """The programs that the command calls, in order."""
    environ = {"PATH": os.environ["PATH"]}
    subprocess.run(command, cwd=checkout, env=environ, check=True, stderr=subprocess.DEVNULL)
    calls = (checkout / "calls").read_text().splitlines()
    (checkout / "calls").unlink()
    return calls


@pytest.mark.engines
def test_the_second_start_installs_nothing_and_takes_no_time(checkout: Path) -> None:
    first = called(checkout, "./scripts/start", "monday")
    assert [call.split()[:4] for call in first] == [
        ["python", "-m", "pip", "install"],
        ["context-builder", "run", "monday"],
    ]
    began = time.monotonic()
    assert called(checkout, "./scripts/start", "monday") == ["context-builder run monday"]
    assert time.monotonic() - began < 1.0  # of the two seconds; the process takes the rest
    (checkout / "constraints.txt").write_text("redis==0.0\n")
    assert called(checkout, "./scripts/start", "monday")[0].startswith("python -m pip install")


@pytest.mark.engines
def test_ci_runs_the_gates_static_checks_and_then_every_test(checkout: Path) -> None:
    calls = called(checkout, ".ci/run")
    installs = [call for call in calls if " install " in call]
    assert len(installs) == len(set(installs)) == calls.index(STATIC[0])
    assert calls[len(installs) :] == [
        *STATIC,
        "python -m pytest -n auto --dist worksteal -m not model and not long",
        "python -m pytest -m model --timeout 400",
        "python -m pytest -m long or hypothesis --hypothesis-profile thorough -n 2 --dist worksteal",
        "python -m pytest -n 2 -m slow tests/session/test_protocol.py",
        "python -m scripts.protocol",
    ]
    assert called(checkout, "./scripts/check")[: len(STATIC)] == STATIC


@pytest.mark.parametrize("module", sorted((ROOT / "scripts").rglob("*.py")), ids=lambda path: path.stem)
def test_every_module_of_the_scripts_can_be_imported(module: Path) -> None:
    """What they take from the package moves, and nobody runs all of them every day."""
    name = ".".join(module.relative_to(ROOT).with_suffix("").parts)
    if name == "scripts.docs_pages":
        pytest.importorskip("mkdocs")
    importlib.import_module(name)
