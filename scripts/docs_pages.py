"""A MkDocs hook: the reference pages that are generated from the code, and the changelog."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from enum import EnumType
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

import context_builder
from context_builder import Settings
from context_builder.cli.settings import example_env

ROOT = Path(__file__).resolve().parents[1]
_WIDTH = 100


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages to the documentation."""
    for path, text in {
        "index.md": _index(),
        "reference/settings.md": _settings(),
        "reference/commands.md": _commands(),
        "reference/python-api.md": _python_api(),
        "changelog.md": (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
    }.items():
        files.append(File.generated(config, path, content=text))
    return files


def _index() -> str:
    """The README, with its links as they are from inside docs/."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.sub(r"\]\(docs/", "](", text).replace(
        "[`.env.example`](.env.example)", "[Settings](reference/settings.md)"
    )


def _settings() -> str:
    rows = [
        "# Settings",
        "",
        "Set in the environment or in `.env`. With the prefix `CONTEXT_BUILDER_` a name wins over the plain one, "
        "which other programs may share.",
        "",
        "| setting | default | meaning |",
        "| --- | --- | --- |",
    ]
    for comment, name, default in re.findall(r"^# (.*)\n#(\w+)=(.*)$", example_env(), re.MULTILINE):
        rows.append(f"| `{name}` | {f'`{default}`' if default else ''} | {comment.replace('|', '&#124;')} |")
    return "\n".join(rows) + "\n"


def _commands() -> str:
    typer = [sys.executable, "-m", "typer", "context_builder.cli", "utils", "docs", "--name", "context-builder"]
    text = subprocess.run(typer, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return "# Commands\n\n" + re.sub(r"^# .*\n+", "", text, count=1, flags=re.MULTILINE)


def _python_api() -> str:
    parts = ["# Python API", "", "Everything here is imported from `context_builder`."]
    for name in context_builder.__all__:
        value = getattr(context_builder, name)
        parts += ["", f"## {name}", "", *_described(value, name)]
        if inspect.isclass(value):
            for member, function in _methods(value):
                parts += ["", f"### {name}.{member}", "", *_described(function, member)]
    return "\n".join(parts) + "\n"


def _methods(of: type) -> Iterator[tuple[str, object]]:
    """The documented public methods that the package itself defines."""
    own = [vars(base) for base in of.__mro__ if base.__module__.startswith("context_builder")]
    for member in dict.fromkeys(name for names in own for name in names):
        function = getattr(of, member)
        if inspect.isroutine(function) and not member.startswith("_") and inspect.getdoc(function):
            yield member, function


def _described(value: object, name: str) -> list[str]:
    if not callable(value):
        return ["One of:", "", *(f"- `{one}`" for one in value)] if isinstance(value, tuple) else []
    lines = ["```python", _signature(value, name), "```", ""] if _tells_its_parameters(value) else []
    text = inspect.getdoc(value) or ""
    text = re.sub(r"^(``\w+``): {2,}", r"- \1: ", text, flags=re.MULTILINE)
    text = re.sub(r":(?:class|func|meth|data|attr|mod):`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", text)
    return [*lines, text.replace("``", "`")]


def _tells_its_parameters(value: Callable[..., object]) -> bool:
    """Protocols, enumerations and errors are not called, and the settings have a page of their own."""
    if not isinstance(value, type):
        return True
    return not (
        isinstance(value, EnumType) or issubclass(value, Exception | Settings) or getattr(value, "_is_protocol", False)
    )


def _signature(function: Callable[..., object], name: str) -> str:
    """How it is called, one parameter a line where it is long."""
    signature = inspect.signature(function)
    plain = [_plain(str(one)) for one in signature.parameters.values() if one.name != "self"]
    kinds = [one.kind for one in signature.parameters.values() if one.name != "self"]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        plain.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    back = signature.return_annotation
    returns = f" -> {back}" if back not in (inspect.Signature.empty, None, "None") else ""
    line = f"{name}({', '.join(plain)}){returns}"
    return line if len(line) <= _WIDTH else "\n".join([f"{name}(", *(f"    {one}," for one in plain), f"){returns}"])


def _plain(parameter: str) -> str:
    """Annotations without quotes, and defaults by their names instead of their addresses."""
    parameter = re.sub(r": '([^']*)'", r": \1", parameter)
    parameter = re.sub(r"<(?:class|function) '?(?:\w+\.)*(\w+)[^>]*>", r"\1", parameter)
    parameter = re.sub(r"<(\w+\.\w+): [^>]*>", r"\1", parameter)
    return re.sub(r"<[^>]*>", "…", parameter)
