"""The prompts, read from Markdown files and checked once, at the start.

A file of ``prompts/`` holds what a model is told for one task. Comments (``<!-- -->``) are for
people. What is the same in every call comes first, so that a provider's prompt cache knows it;
after a line ``---`` comes what varies, marked as ``{{name}}``.

What people said goes in as data, one line of JSON a message (:func:`~context_builder.quoting.quoted_json`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from context_builder.errors import PromptError

_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_PLACEHOLDER: Final = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_SEPARATOR: Final = re.compile(r"^---$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Prompt:
    """One task's prompt: ``stable`` is the same in every call, ``varying`` has the placeholders."""

    stable: str
    varying: str

    def fill(self, **values: str) -> str:
        """Return ``varying`` with its placeholders replaced in one pass, so that values are never expanded again."""
        return _PLACEHOLDER.sub(lambda match: values[match[1]], self.varying)


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompt of each task."""

    keywords: Prompt
    lone_keywords: Prompt
    combined: Prompt
    domains: Prompt
    summary: Prompt
    compact: Prompt
    verify: Prompt
    preferences: Prompt
    artifact: Prompt
    json_mode: Prompt


_PLACEHOLDERS: Final[Mapping[str, frozenset[str]]] = {
    "keywords": frozenset({"messages"}),
    "lone_keywords": frozenset({"message"}),
    "combined": frozenset({"messages"}),
    "domains": frozenset({"messages"}),
    "summary": frozenset({"known", "messages"}),
    "compact": frozenset({"words", "points", "others"}),
    "verify": frozenset({"points"}),
    "preferences": frozenset({"messages"}),
    "artifact": frozenset({"title", "passages"}),
    "json_mode": frozenset({"schema"}),
}


_LATER: Final = frozenset({"preferences", "compact", "verify", "artifact"})
"""Prompts that folders made for earlier versions lack."""


def load_prompts(folder: Traversable | None = None) -> Prompts:
    """Return the prompts of ``folder``; by default those of the source checkout, else of the installed package.

    Raises :class:`~context_builder.errors.PromptError` naming the file that is missing or wrong.
    """
    shipped = _default_folder()
    folder = folder or shipped

    def source(task: str) -> Traversable:
        return shipped if task in _LATER and not _file(folder, task).is_file() else folder

    return Prompts(**{task: _load(source(task), task, names) for task, names in _PLACEHOLDERS.items()})


def _default_folder() -> Traversable:
    shipped = files("context_builder") / "_prompts"
    return shipped if shipped.is_dir() else Path(__file__).parents[2] / "prompts"


def _file(folder: Traversable, task: str) -> Traversable:
    return folder / f"{task.replace('_', '-')}.md"


def _load(folder: Traversable, task: str, names: frozenset[str]) -> Prompt:
    file = _file(folder, task)
    try:
        text = _COMMENT.sub("", file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(f"{file}: cannot be read: {type(error).__name__}") from None
    stable, *varying = (part.strip() for part in _SEPARATOR.split(text, maxsplit=1))
    prompt = Prompt(stable, varying[0]) if varying else Prompt("", stable)
    if misplaced := _PLACEHOLDER.search(prompt.stable):
        raise PromptError(f"{file}: {misplaced[0]} stands before the line ---, where nothing may vary")
    found = set(_PLACEHOLDER.findall(prompt.varying))
    for name in sorted(names - found):
        raise PromptError(f"{file}: the placeholder {{{{{name}}}}} is missing")
    for name in sorted(found - names):
        raise PromptError(f"{file}: {{{{{name}}}}} is not a placeholder of this prompt")
    return prompt
