"""The file ``.env`` is read here, and changed: lines of names that are set, and no other."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from uuid import uuid4

from dotenv import dotenv_values

from context_builder.errors import SettingError

PRIVATE: Final = 0o600
_NAME: Final = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=")


def read_values(file: Path) -> Mapping[str, str | None]:
    """Return what the file sets; nothing where there is none. Raises :class:`SettingError`."""
    try:
        return dotenv_values(file) if file.is_file() else {}
    except UnicodeDecodeError:
        raise SettingError(f"{file}: is not UTF-8; correct it first") from None
    except OSError as error:
        raise SettingError(f"{file}: cannot be read: {error.strerror}") from None


def write_values(file: Path, values: Mapping[str, str | None]) -> None:
    """Set the names in the file, and take out those with None; other lines stay as they are.

    The file is replaced in one step and is its owner's alone. A name that was set in several lines is in one, the last.
    Raises :class:`SettingError`.
    """
    try:
        target = file.resolve()
        text = target.read_text(encoding="utf-8") if target.exists() else ""
    except UnicodeDecodeError:
        raise SettingError(f"{file}: is not UTF-8; correct it first") from None
    except OSError as error:
        raise SettingError(f"{file}: cannot be read: {error.strerror}") from None
    lines = text.removesuffix("\n").split("\n") if text else []
    kept = [line for line in lines if not ((found := _NAME.match(line)) and found[1] in values)]
    kept += [f"{name}={_quoted(name, value)}" for name, value in values.items() if value is not None]
    replace_text(target, "".join(f"{line}\n" for line in kept))


def replace_text(file: Path, text: str) -> None:
    """Write the file in one step, its owner's alone. Raises :class:`SettingError`."""
    partial = file.with_name(f".{file.name}.{uuid4().hex[:8]}")
    try:
        with os.fdopen(
            os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE), "w", encoding="utf-8"
        ) as stream:
            stream.write(text)
        partial.replace(file)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise SettingError(f"{file}: cannot be written: {error.strerror}") from None


def _quoted(name: str, value: str) -> str:
    """Return the value as a line of the file takes it. Even within single quotes ``${NAME}`` is replaced, so the dollar
    sign before a brace is written as what stands for a variable that is not there.
    """
    if any(not char.isprintable() for char in value):
        raise SettingError(f"{name}: has a character that is not printable")
    if re.fullmatch(r"[A-Za-z0-9_./:@%+,=?&~-]*", value):
        return value
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("${", "${:-$}{")
    return f"'{escaped}'"
