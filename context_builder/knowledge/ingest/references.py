"""A file's references are the files of its folder that it links to or imports."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePosixPath
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt

from context_builder.knowledge.ingest.conversion import CONVERTERS
from context_builder.knowledge.ingest.folder import TextFile

LINKS: Final = "links_to"
IMPORTS: Final = "imports"

_MARKDOWN: Final = frozenset({".md", ".markdown", ".mdx"})
_CONVERTED: Final = frozenset(CONVERTERS)
"""Files that are read as Markdown."""
_RST: Final = frozenset({".rst"})
_ASCIIDOC: Final = frozenset({".adoc", ".asciidoc"})
_PAGES: Final = (".md", ".rst", ".adoc", ".ipynb", ".markdown", ".mdx", ".asciidoc", ".html", ".htm", ".txt")
"""Endings of files that are pages; those that are likelier first."""

_DIRECTIVE: Final = re.compile(r"\{(toctree|include|literalinclude)\}[ \t]*([^\n]*)")
_ROLE_BEFORE: Final = re.compile(r"\{(doc|ref|download)\}$")
_WIKI_LINK: Final = re.compile(r"\[\[([^\[\]|#\n]{1,200})(?:[|#][^\[\]\n]{0,200})?\]\]")
_RST_ROLE: Final = re.compile(r":(doc|ref|download):`([^`]{1,500})`")
_RST_LINK: Final = re.compile(r"`[^`<\n]{0,200}<([^`<>\s]{1,300})>`__?")
_RST_DIRECTIVE: Final = re.compile(
    r"^[ \t]*\.\.[ \t]+(toctree|include|literalinclude)::[ \t]*([^\n]*)\n((?:[ \t]+[^\n]*\n?|[ \t]*\n)*)", re.MULTILINE
)
_TITLED: Final = re.compile(r"<([^<>]{1,500})>\s*$")
_LABEL: Final = re.compile(r"^[ \t]*(?:\.\. _([^:\n`]{1,200}):[ \t]*$|\(([^()\n]{1,200})\)=[ \t]*$)", re.MULTILINE)
_ASCIIDOC_LINK: Final = re.compile(
    r"(?:xref:|link:|include::)([^\s\[\]]{1,300})\[|<<([^\s,<>]{1,300}\.adoc[^\s,<>]{0,200})[,>]"
)
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
    """A path in the folder, and how it is referred to."""

    path: str
    type: str


class FolderIndex:
    """Finds files of a folder by what other files call them: a path without its ending, a page's name, a label."""

    def __init__(self, files: Iterable[TextFile]) -> None:
        self.paths: dict[str, None] = {}
        self._names: dict[str, str] = {}
        self._labels: dict[str, str] = {}
        for file in files:
            self.paths[file.path] = None
            if file.suffix in _PAGES:
                self._names.setdefault(PurePosixPath(file.path).stem.casefold(), file.path)
                for label in _LABEL.findall(file.text[:_LONGEST_PARSED]):
                    self._labels.setdefault(_normal(label[0] or label[1]), file.path)

    def page(self, path: str) -> str | None:
        """Return the file that a path means: itself, a page without its ending, or the first page of a folder."""
        if path in self.paths:
            return path
        stem = path.removesuffix(".html").removesuffix("/")
        tried = (f"{stem}{middle}{suffix}" for middle in ("", "/index", "/README") for suffix in _PAGES)
        return next((one for one in tried if one in self.paths), None)

    def named(self, name: str) -> str | None:
        """Return the page of a name, as wikis link to it: wherever it is in the folder."""
        return self.page(name.strip()) or self._names.get(PurePosixPath(name.strip()).name.casefold())

    def labelled(self, label: str) -> str | None:
        """Return the file with a label, as Sphinx's ``ref`` names it."""
        return self._labels.get(_normal(label))


def references(file: TextFile, folder: FolderIndex) -> set[Reference]:
    """Return what the file refers to in the folder, without itself."""
    if len(file.text) > _LONGEST_PARSED:
        return set()
    found: set[Reference]
    if file.suffix in _PAGES:
        found = {Reference(path, LINKS) for path in _linked(file, folder) if path is not None}
    elif file.suffix == ".py":
        found = {Reference(path, IMPORTS) for path in _imported(file, folder.paths)}
    elif file.suffix in _SCRIPT_SUFFIXES:
        found = {Reference(path, IMPORTS) for path in _scripts(file, folder.paths)}
    else:
        found = set()
    return {one for one in found if one.path in folder.paths and one.path != file.path}


def _linked(file: TextFile, folder: FolderIndex) -> Iterator[str | None]:
    """Yield the files that a page links to, outside its code."""
    if file.suffix in _MARKDOWN or file.suffix in _CONVERTED:
        yield from _in_markdown(file, folder)
    elif file.suffix in _RST:
        yield from _in_restructured_text(file, folder)
    elif file.suffix in _ASCIIDOC:
        for found in _ASCIIDOC_LINK.finditer(file.text):
            yield folder.page(_below(file.path, (found[1] or found[2]).partition("#")[0]))


def _in_markdown(file: TextFile, folder: FolderIndex) -> Iterator[str | None]:
    """Yield what links, roles and toctrees of MyST, and links of wikis name."""
    if sum(len(_MARKS.findall(block)) ** 2 for block in _BLANK.split(file.text)) > _MOST_PAIRS:
        return
    for token in MarkdownIt().parse(file.text):
        if token.type == "fence" and (directive := _DIRECTIVE.match(token.info)) is not None:
            yield from _in_directive(file, directive[1], directive[2], token.content, folder)
        before = ""
        for child in token.children or ():
            target = child.attrGet("href") if child.type == "link_open" else None
            if isinstance(target, str) and not (parts := urlsplit(target)).scheme and parts.path:
                yield folder.page(_below(file.path, unquote(parts.path)))
            elif child.type == "code_inline" and (role := _ROLE_BEFORE.search(before)) is not None:
                yield _by_role(file, role[1], child.content, folder)
            elif child.type == "text":
                for name in _WIKI_LINK.findall(child.content):
                    yield folder.named(name)
            before = child.content


def _in_restructured_text(file: TextFile, folder: FolderIndex) -> Iterator[str | None]:
    """Yield what roles, toctrees, files that are included, and links name."""
    for role, text in _RST_ROLE.findall(file.text):
        yield _by_role(file, role, text, folder)
    for target in _RST_LINK.findall(file.text):
        if not (parts := urlsplit(target)).scheme and parts.path:
            yield folder.page(_below(file.path, unquote(parts.path)))
    for found in _RST_DIRECTIVE.finditer(file.text):
        yield from _in_directive(file, found[1], found[2], found[3], folder)


def _by_role(file: TextFile, role: str, text: str, folder: FolderIndex) -> str | None:
    """Return the file that a role of Sphinx names: ``path``, or ``text <path>``."""
    titled = _TITLED.search(text)
    target = (titled[1] if titled else text).strip()
    return folder.labelled(target) if role == "ref" else folder.page(_below(file.path, target))


def _in_directive(
    file: TextFile, directive: str, argument: str, body: str, folder: FolderIndex
) -> Iterator[str | None]:
    """Yield the files that a directive includes, or lists as pages."""
    if directive != "toctree":
        yield folder.page(_below(file.path, argument.strip()))
        return
    for line in body.splitlines():
        entry = line.strip()
        if entry and not entry.startswith(":"):
            titled = _TITLED.search(entry)
            yield folder.page(_below(file.path, titled[1] if titled else entry))


def _normal(label: str) -> str:
    return " ".join(label.casefold().split())


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
