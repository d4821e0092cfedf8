"""Ingestion brings a project's artifacts and edges in line with the files of a folder.

A file's references are the files of its folder that it links to or imports.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt

from context_builder.errors import KnowledgeError
from context_builder.knowledge.artifact import Artifact, ArtifactKind, Edge, Sensitivity, Status
from context_builder.knowledge.ingest.conversion import CONVERTERS
from context_builder.knowledge.ingest.folder import DOCUMENTS, Skipped, TextFile, files_in, is_single_file
from context_builder.knowledge.passages import passages
from context_builder.knowledge.store import ArtifactOutline, KnowledgeStore

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
_LINK_TARGET: Final = re.compile(r"<([^<>]{1,500})>\s*$")
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
_BESIDE_PROSE: Final = re.compile(
    r"<!--.{0,2000}?-->|<[^<>]{1,500}>|!?\[[^\[\]]{0,200}\](?:\([^()\n]{0,500}\)|\[[^\[\]\n]{0,200}\])", re.DOTALL
)
"""Comments, tags, links and pictures: where only these stand before a heading, they are not an introduction."""
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
    titled = _LINK_TARGET.search(text)
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
            titled = _LINK_TARGET.search(entry)
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


MOST_FILES: Final = 100_000

_OUTSIDE_REFS: Final = re.compile(r"[^A-Za-z0-9:._/@-]")
_TITLED: Final = 50_000
"""Characters of a document in which its title is looked for."""

_LONGEST_TITLE: Final = 200
_LONGEST_PATH: Final = 300

_AT_ONCE: Final = 500
"""Files that the store is asked about in one call."""


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """Says whose the files are; ``prune`` erases the project's artifacts whose file is gone."""

    project_id: str
    module_id: str = ""
    status: Status = Status.APPROVED
    sensitivity: Sensitivity = Sensitivity.INTERNAL
    prune: bool = False


@dataclass(slots=True)
class IngestResult:
    """Counts what an ingestion did: artifacts that are new, changed or as before, and edges stored."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    edges: int = 0
    erased: list[str] = field(default_factory=list)
    """Refs of artifacts whose file is gone."""
    skipped: list[Skipped] = field(default_factory=list)


OnFile = Callable[[int, int], None]
"""Told how many files are done, and of how many."""


def ref_of(project_id: str, path: str) -> str:
    """Return the ref of a project's file; signs that a ref has not are replaced, and told apart by a digest."""
    name = f"{project_id}/{path}"
    plain = _OUTSIDE_REFS.sub("-", name)
    if plain != name or len(plain) > _LONGEST_PATH:
        plain = f"{plain[:_LONGEST_PATH]}@{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
    return f"artifact:{plain}"


def artifact_of(file: TextFile, options: IngestOptions) -> Artifact:
    """Return the artifact that a file is; its title is the heading of a document, else the path."""
    is_document = file.suffix in DOCUMENTS
    heading = " ".join(_heading(file.text[:_TITLED]).split())[:_LONGEST_TITLE] if is_document else ""
    return Artifact(
        kind=ArtifactKind.DOCUMENT if is_document else ArtifactKind.CODE,
        title=heading or file.path[-1_000:],
        content=file.text,
        project_id=options.project_id,
        module_id=options.module_id,
        status=options.status,
        sensitivity=options.sensitivity,
        source=file.path[-2_000:],
    )


def _heading(text: str) -> str:
    """Return the first heading of a document; empty where that is a section's, one of several after an introduction."""
    parts = passages(text)
    outermost = list(dict.fromkeys(one.headings[0] for one in parts if one.headings))
    before = " ".join(one.text for one in takewhile(lambda one: not one.headings, parts))
    is_introduced = any(map(str.isalnum, _BESIDE_PROSE.sub("", _BESIDE_PROSE.sub("", before))))  # a badge is two
    return outermost[0] if outermost and (len(outermost) == 1 or not is_introduced) else ""


async def ingest(
    store: KnowledgeStore, tenant_id: str, folder: Path, options: IngestOptions, on_file: OnFile | None = None
) -> IngestResult:
    """Store the folder's text files as artifacts, and their links and imports as edges.

    Of a file that is as it was nothing is sent. ``folder`` may be a single file: it is stored as if its folder had been
    given, and keeps the edges that it has, because the files at their other ends are not read. Raises
    :class:`~context_builder.errors.DatabaseError`, and :class:`~context_builder.errors.KnowledgeError` for a folder
    that cannot be read, for more than :data:`MOST_FILES`, and for a single file with ``prune``, which would erase all
    others.
    """
    result = IngestResult()
    is_alone = is_single_file(folder)
    if is_alone and options.prune:
        raise KnowledgeError("--prune needs the project's folder; a single file was given")
    files: list[TextFile] = []
    try:
        for one in files_in(folder):
            if isinstance(one, Skipped):
                result.skipped.append(one)
            else:
                files.append(one)
            if len(files) > MOST_FILES:
                raise KnowledgeError(f"{folder} has more than {MOST_FILES:,} files; ingest its folders one by one")
    except OSError as error:
        raise KnowledgeError(f"{folder} cannot be read: {error.strerror or error}") from error
    index = FolderIndex(files)
    for start in range(0, len(files), _AT_ONCE):
        some = {ref_of(options.project_id, file.path): file for file in files[start : start + _AT_ONCE]}
        held = await store.outlines(tenant_id, list(some), (LINKS, IMPORTS))
        for done, (ref, file) in enumerate(some.items(), start + 1):
            wanted = {
                Edge(from_ref=ref, to_ref=ref_of(options.project_id, one.path), type=one.type)
                for one in references(file, index)
            }
            if is_alone and ref in held:
                wanted |= held[ref].edges
            await _store(store, tenant_id, ref, artifact_of(file, options), wanted, held.get(ref), result)
            if on_file is not None:
                on_file(done, len(files))
    if options.prune:
        unread = [one.path for one in result.skipped if one.unread]
        result.erased = await _erase_missing(store, tenant_id, files, unread, options)
    return result


async def _store(
    store: KnowledgeStore,
    tenant_id: str,
    ref: str,
    artifact: Artifact,
    edges: set[Edge],
    held: ArtifactOutline | None,
    result: IngestResult,
) -> None:
    """Send what of the artifact and its edges differs from those ``held``."""
    if held is not None and held.describes(artifact):
        result.unchanged += 1
    else:
        version, changed = await store.put(tenant_id, ref, artifact)
        if not changed:
            result.unchanged += 1
        elif version == 1:
            result.new += 1
        else:
            result.changed += 1
    before = held.edges if held is not None else frozenset()
    await store.unlink(tenant_id, before - edges)
    await store.link(tenant_id, edges - before)
    result.edges += len(edges)


async def _erase_missing(
    store: KnowledgeStore, tenant_id: str, files: Sequence[TextFile], unread: Sequence[str], options: IngestOptions
) -> list[str]:
    """Erase what was ingested of the project and has no file any more; what came in other ways has no such ref.

    What is, or is below, an ``unread`` path may still be there, and stays.
    """
    present = {ref_of(options.project_id, file.path) for file in files}
    held = await store.sources(tenant_id, options.project_id)
    gone = [
        ref
        for ref, source in held.items()
        if ref == ref_of(options.project_id, source)
        and ref not in present
        and not (source in unread or source.startswith(tuple(f"{path}/" for path in unread)))
    ]
    for ref in gone:
        await store.erase(tenant_id, ref)
    return gone
