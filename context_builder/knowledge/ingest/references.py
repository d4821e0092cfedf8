"""A file's references are the files of its folder that it links to or imports."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt

from context_builder.knowledge.ingest.folder import TextFile

LINKS: Final = "links_to"
IMPORTS: Final = "imports"

_MARKDOWN: Final = frozenset({".md", ".markdown", ".mdx"})
_SCRIPT_SUFFIXES: Final = (".js", ".jsx", ".mjs", ".ts", ".tsx")
_SCRIPT_IMPORT: Final = re.compile(
    r"""(?:\bfrom\s+|\bimport\s*\(?\s*|\brequire\s*\(\s*)["'](\.{1,2}/[^"'\n]{1,500})["']"""
)
_LONGEST_PARSED: Final = 500_000
"""Characters of a file that is parsed; a parser of hostile text may take long."""


_MARKS: Final = re.compile(r"[\[\]!*_`<&(]")
_BLANK: Final = re.compile(r"\n[ \t]*\n")
_MOST_PAIRS: Final = 30_000_000
"""Pairs of marks in the same block of a Markdown file that is parsed: its parser compares each with each."""


class Reference(NamedTuple):
    """Holds a path in the folder, and how it is referred to."""

    path: str
    type: str


def references(file: TextFile, paths: Collection[str]) -> set[Reference]:
    """Return what the file refers to among the folder's ``paths``, without itself."""
    if len(file.text) > _LONGEST_PARSED:
        return set()
    if file.suffix in _MARKDOWN:
        found = {Reference(path, LINKS) for path in _linked(file)}
    elif file.suffix == ".py":
        found = {Reference(path, IMPORTS) for path in _imported(file, paths)}
    elif file.suffix in _SCRIPT_SUFFIXES:
        found = {Reference(path, IMPORTS) for path in _scripts(file, paths)}
    else:
        found = set()
    return {one for one in found if one.path in paths and one.path != file.path}


def _linked(file: TextFile) -> Iterator[str]:
    """Yield the paths that a Markdown file links to, outside its code."""
    if sum(len(_MARKS.findall(block)) ** 2 for block in _BLANK.split(file.text)) > _MOST_PAIRS:
        return
    for token in MarkdownIt().parse(file.text):
        for child in token.children or ():
            target = child.attrGet("href") if child.type == "link_open" else None
            if isinstance(target, str) and not (parts := urlsplit(target)).scheme and parts.path:
                yield _below(file.path, unquote(parts.path))


def _imported(file: TextFile, paths: Collection[str]) -> Iterator[str]:
    """Yield the modules that a Python file imports, as files of the folder, whichever folder they are imported from."""
    try:
        tree = ast.parse(file.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            names = [(node.level, base), *((node.level, f"{base}.{alias.name}".strip(".")) for alias in node.names)]
        else:
            continue
        for level, name in names:
            yield from _modules(file.path, level, name, paths)


def _modules(importer: str, level: int, name: str, paths: Collection[str]) -> Iterator[str]:
    module = name.replace(".", "/")
    parents = PurePosixPath(importer).parents
    if level:
        bases = [parents[level - 1]] if level <= len(parents) else []
    else:
        bases = [*reversed(parents), PurePosixPath("src")]
    for base in bases:
        for path in (f"{base / module}.py", f"{base / module / '__init__.py'}"):
            if path in paths:
                yield path
                return


def _scripts(file: TextFile, paths: Collection[str]) -> Iterator[str]:
    for found in _SCRIPT_IMPORT.finditer(file.text):
        path = _below(file.path, found[1])
        endings = ("", *_SCRIPT_SUFFIXES, *(f"/index{suffix}" for suffix in _SCRIPT_SUFFIXES))
        yield from (path + ending for ending in endings if path + ending in paths)


def _below(importer: str, target: str) -> str:
    """Return the path that ``target`` means in a file: below its folder, or with a slash before it, below the top."""
    parts: list[str] = [] if target.startswith("/") else [*PurePosixPath(importer).parent.parts]
    for part in target.split("/"):
        if part == "..":
            if not parts:
                return ""
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)
