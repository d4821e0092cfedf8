"""What an installation would have to compile is found before anybody installs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from packaging.pylock import Pylock

from scripts import wheels


def lock(*files: str, marker: str | None = None) -> Pylock:
    """One dependency, which has these files."""
    url = "https://files.example/"
    package: dict[str, Any] = {"name": "server", "version": "1.0", **({"marker": marker} if marker else {})}
    hashed = [{"name": name, "url": url + name, "hashes": {"sha256": "0" * 64}} for name in files]
    package["wheels"] = [file for file in hashed if file["name"].endswith(".whl")]
    package["sdist"] = next((file for file in hashed if file["name"].endswith(".tar.gz")), None)
    return Pylock.from_dict({"lock-version": "1.0", "created-by": "test", "packages": [package]})


def of(python: str, platform: str) -> str:
    return f"server 1.0 for Python {python} on {platform}"


def every(*pythons: str) -> set[str]:
    return {of(python, platform) for python in pythons for platform in wheels.PLATFORMS}


def test_a_wheel_for_every_python_and_platform_is_enough() -> None:
    assert list(wheels.lacking(lock("server-1.0-py3-none-any.whl", "server-1.0.tar.gz"))) == []


def test_what_has_only_its_source_is_named_everywhere() -> None:
    assert set(wheels.lacking(lock("server-1.0.tar.gz"))) == every("3.11", "3.12", "3.13", "3.14")


def test_newer_pythons_that_a_wheel_was_not_built_for_are_named() -> None:
    built = [
        f"server-1.0-cp3{minor}-cp3{minor}-{platform}.whl"
        for minor in (11, 12)
        for platform in (
            *("manylinux_2_17_x86_64.manylinux2014_x86_64", "manylinux_2_28_aarch64"),
            *("macosx_10_15_x86_64", "macosx_11_0_arm64"),
        )
    ]
    assert set(wheels.lacking(lock(*built, "server-1.0.tar.gz"))) == every("3.13", "3.14")


def test_stable_interfaces_serve_newer_pythons_and_newer_systems_none() -> None:
    assert set(wheels.lacking(lock("server-1.0-cp39-abi3-macosx_10_9_universal2.whl"))) == {
        of(python, platform)
        for python in ("3.11", "3.12", "3.13", "3.14")
        for platform in ("Linux x86-64", "Linux ARM64")
    }
    assert len(set(wheels.lacking(lock("server-1.0-py3-none-manylinux_2_39_x86_64.whl")))) == 16


def test_where_a_marker_leaves_it_out_it_needs_no_wheel() -> None:
    marker = "sys_platform == 'darwin' and platform_machine == 'x86_64' and python_version >= '3.13'"
    found = wheels.lacking(lock("server-1.0.tar.gz", marker=marker))
    assert set(found) == {of("3.13", "macOS x86-64"), of("3.14", "macOS x86-64")}


@pytest.mark.engines
@pytest.mark.parametrize(("ci", "status"), [("", 0), ("true", 1)])
def test_an_index_that_is_away_is_said_on_a_laptop_and_fails_in_ci(tmp_path: Path, ci: str, status: int) -> None:
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_bytes((wheels.ROOT / name).read_bytes())
    (tmp_path / "scripts").mkdir()
    program = tmp_path / "scripts" / "wheels.py"
    program.write_bytes(Path(wheels.__file__).read_bytes())
    away = {"UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple", "UV_HTTP_RETRIES": "0", "UV_NO_CACHE": "1", "CI": ci}
    done = subprocess.run(
        [sys.executable, str(program)], env={**os.environ, **away}, capture_output=True, text=True, check=False
    )
    assert done.returncode == status
    assert done.stderr.startswith("wheels: not checked, the package index does not answer: ")
