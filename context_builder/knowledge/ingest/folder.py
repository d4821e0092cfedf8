"""This module reads a folder's text files, except those that ``.gitignore`` files match; symbolic links are skipped.

A path may also name a single file, which is read whatever its name and the rules are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from errno import EFBIG
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple, TypeAlias

from pathspec import GitIgnoreSpec

from context_builder.knowledge.artifact import MAX_CONTENT
from context_builder.knowledge.ingest.conversion import CONVERTERS, LARGEST, Converter, NotReadable

_IGNORE_FILE: Final = ".gitignore"
_Rules: TypeAlias = tuple[tuple[Path, GitIgnoreSpec], ...]
"""The rules of folders, the innermost last."""

DOCUMENTS: Final = frozenset(
    {"", ".adoc", ".asciidoc", ".md", ".markdown", ".mdx", ".org", ".rst", ".tex", ".text", ".txt", *CONVERTERS}
)
"""Suffixes of files that are documents; every other text file is taken for code."""


_MOST_BYTES: Final = 200_000
"""Bytes of a file of rules."""

_STAR: Final = "[^/]*"
_STARS: Final = re.compile(r"(?:\[\^/\]\*)+")
_NEGATED: Final = re.compile(r"(?<!\\)\[\^(?!/\])")
"""Begins a class of other signs, which in Git has no slash either."""

_ANY_FOLDERS: Final = "(?:/.+)?/"
_BETWEEN_STARS: Final = re.compile(r"\[\^/\]\*((?:\\.|\[\^?\]?(?:\\.|[^\]\\])*\](?!\*)|[^/()\[\\])+)(?=\[\^/\]\*)")


class TextFile(NamedTuple):
    """A file of the folder: its ``path`` below the folder, with slashes, and its ``text``."""

    path: str
    text: str

    @property
    def suffix(self) -> str:
        """Return the end of the name, in lower case: ``.md``."""
        return Path(self.path).suffix.lower()


class Skipped(NamedTuple):
    """A file that is not stored, and the reason.

    Of what is ``unread``, a file or folder, nobody knows what it holds. A path that is not UTF-8 has question marks.
    """

    path: str
    reason: str
    unread: bool = False


def files_in(folder: Path) -> Iterator[TextFile | Skipped]:
    """Yield the folder's text files in the order of their paths, and what cannot be taken; of a file, that file alone.

    Hidden files and folders are passed over, as are those that a ``.gitignore`` names: in the folder, below it, or
    above it up to the top of its Git repository, where rules that ignore the folder itself do not hold. Raises
    :class:`OSError` for a folder that cannot be read.
    """
    folder = folder.resolve()
    if is_single_file(folder):
        with closing(Converter()) as converter:
            yield _read(folder, folder.name, converter)
        return
    ignoring: _Rules = ()
    for parent in _parents_in_repository(folder):
        ignoring = _with_rules_of(parent, ignoring)
    if _is_ignored(folder, ignoring, is_folder=True):
        ignoring = _without_rules_on(folder, ignoring)
    with closing(Converter()) as converter:
        yield from _walk(folder, folder, ignoring, converter)


def is_single_file(path: Path) -> bool:
    """Return whether the path names a file, and no folder."""
    return path.is_file()


def _without_rules_on(folder: Path, ignoring: _Rules) -> _Rules:
    """Return the rules without those that name the folder, which was asked for all the same."""
    return tuple(
        (
            base,
            GitIgnoreSpec(
                one for one in spec.patterns if one.match_file(_relative(folder, base, is_folder=True)) is None
            ),
        )
        for base, spec in ignoring
    )


def _parents_in_repository(folder: Path) -> list[Path]:
    """Return the folders above, from the top of the repository on; none where there is no repository."""
    around = [folder, *folder.parents]
    top = next((place for place, one in enumerate(around) if (one / ".git").exists()), 0)
    return around[top:0:-1]


def _with_rules_of(folder: Path, ignoring: _Rules) -> _Rules:
    rules = folder / _IGNORE_FILE
    if not rules.is_file() or rules.is_symlink():
        return ignoring
    if rules.stat().st_size > _MOST_BYTES:
        raise OSError(EFBIG, f"its {_IGNORE_FILE} is larger than {_MOST_BYTES:,} bytes")
    lines = rules.read_text(encoding="utf-8", errors="replace").splitlines()
    spec = GitIgnoreSpec.from_lines(filter(_is_rule, lines))
    for pattern in spec.patterns:
        if pattern.regex is not None:
            pattern.regex = re.compile(_without_backtracking(pattern.regex.pattern))
    return (*ignoring, (folder, spec))


def _without_backtracking(rule: str) -> str:
    """Return a rule's expression so that it takes no longer than its length times the path's, and matches the same.

    What stands between two wildcards may be taken where it is first found: the second one takes the rest.
    """
    first, *between = _NEGATED.sub("[^/", rule).split(_ANY_FOLDERS)
    middle = "".join(rf"(?>(?:/.+?)??/{_with_first_found(part)}(?=/))" for part in between[:-1])
    last = f"{_ANY_FOLDERS}{_with_first_found(between[-1])}" if between else ""
    return f"{_with_first_found(first)}{middle}{last}"


def _with_first_found(part: str) -> str:
    """Return a part of a rule's expression in which each wildcard but a name's last takes as little as it may."""
    return _BETWEEN_STARS.sub(r"(?>[^/]*?\1)", _STARS.sub(_STAR, part))


def _walk(root: Path, folder: Path, ignoring: _Rules, converter: Converter) -> Iterator[TextFile | Skipped]:
    try:
        entries = sorted(folder.iterdir())
        ignoring = _with_rules_of(folder, ignoring)
    except OSError as error:
        if folder == root:
            raise
        yield _unread(folder.relative_to(root).as_posix(), error)
        return
    for entry in entries:
        try:
            is_folder = entry.is_dir() and not entry.is_symlink()
        except OSError as error:  # the folder may be listed, but not entered
            yield _unread(entry.relative_to(root).as_posix(), error)
            continue
        if entry.name.startswith(".") or entry.is_symlink() or _is_ignored(entry, ignoring, is_folder=is_folder):
            continue
        if is_folder:
            yield from _walk(root, entry, ignoring, converter)
        elif entry.is_file():
            yield _read(entry, entry.relative_to(root).as_posix(), converter)


def _is_rule(line: str) -> bool:
    """Return whether a line of a ``.gitignore`` can be read; as in Git, one that cannot names nothing."""
    try:
        GitIgnoreSpec.from_lines([line])
    except (ValueError, re.error):
        return False
    return True


def _unread(path: str, error: OSError) -> Skipped:
    return Skipped(_printable(path), f"cannot be read: {error.strerror}", unread=True)


def _printable(path: str) -> str:
    return path.encode("utf-8", "replace").decode("utf-8")


def _is_ignored(entry: Path, ignoring: _Rules, *, is_folder: bool) -> bool:
    """Return what the innermost rule that names the entry says."""
    for base, spec in reversed(ignoring):
        ignored = spec.check_file(_relative(entry, base, is_folder=is_folder)).include
        if ignored is not None:
            return ignored
    return False


def _relative(entry: Path, base: Path, *, is_folder: bool) -> str:
    return entry.relative_to(base).as_posix() + ("/" if is_folder else "")


def _read(file: Path, path: str, converter: Converter) -> TextFile | Skipped:
    if path != _printable(path):
        return Skipped(_printable(path), "its path is not UTF-8")
    try:
        is_converted = (suffix := file.suffix.lower()) in CONVERTERS
        if file.stat().st_size > (LARGEST if is_converted else 4 * MAX_CONTENT):  # bytes of a character, at most
            return Skipped(path, f"longer than {MAX_CONTENT:,} characters")
        data = file.read_bytes()
        text = converter.convert(suffix, data) if is_converted else data.decode("utf-8-sig")
    except OSError as error:
        return _unread(path, error)
    except NotReadable as error:
        return Skipped(path, str(error))
    except UnicodeDecodeError:
        return Skipped(path, "not UTF-8 text")
    if "\x00" in text:
        return Skipped(path, "not text")
    if len(text) > MAX_CONTENT:
        return Skipped(path, f"longer than {MAX_CONTENT:,} characters")
    if reason := why_unfit(path, text):
        return Skipped(path, reason)
    return TextFile(path, text) if text.strip() else Skipped(path, "empty")


_LOCK_FILES: Final = frozenset(
    "bun.lock cargo.lock composer.lock flake.lock gemfile.lock go.sum mix.lock npm-shrinkwrap.json package-lock.json "
    "packages.lock.json pdm.lock pipfile.lock pnpm-lock.yaml poetry.lock podfile.lock pubspec.lock uv.lock "
    "yarn.lock".split()
)
_PICTURES: Final = frozenset({".svg", ".eps", ".ps", ".xpm"})
_MAPS: Final = frozenset({".map"})
_PACKED: Final = frozenset({".css", ".html", ".js", ".json", ".mjs", ".cjs", ".xml"})
"""Suffixes of files that programs write in few, long lines."""

_MINIFIED_NAME: Final = re.compile(r"[.-]min\.(?:js|mjs|css)$")
_LONG_LINES: Final = 1_000
"""Mean characters of a line from which a file is packed; people's longest lines are paragraphs."""

_GENERATED: Final = re.compile(
    r"@generated\b|\bdo not edit\b|\bautogenerated\b"
    r"|\b(?:code|file) (?:is |was )?(?:auto(?:matically)?[- ]?)?generated\b",
    re.IGNORECASE,
)
_HEAD: Final = 1_000
"""Characters at the beginning of a file in which a generator says that it wrote it."""

_COMMENT: Final = re.compile(r"^\s*(?:#|//|/\*|\*|--|;|<!--|%|\(\*|\"\"\")")


def why_unfit(path: str, text: str) -> str:
    """Return why a file is not a source: a picture, a lock file, minified or generated; empty for one that is."""
    name = PurePosixPath(path.lower()).name
    suffix = PurePosixPath(name).suffix
    if suffix in _PICTURES or text.lstrip()[:5].lower() == "<svg ":
        return "a picture"
    if name in _LOCK_FILES:
        return "a lock file"
    if suffix in _MAPS or _MINIFIED_NAME.search(name):
        return "minified"
    if suffix in _PACKED and len(text) / (text.count("\n") + 1) > _LONG_LINES:
        return "minified"
    return "generated" if suffix and suffix not in {".md", ".txt", ".rst"} and _says_generated(text[:_HEAD]) else ""


def _says_generated(head: str) -> bool:
    """Return whether a comment at the beginning says that a program wrote the file."""
    return any(_COMMENT.match(line) and _GENERATED.search(line) for line in head.splitlines()[:10])
