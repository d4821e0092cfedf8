"""A document is split into passages, parts short enough to be embedded, read alone, and chosen by an intent.

A passage is a slice of the content, so that what is shown of a document is what it says. Headings, lists, tables and
code blocks are recognized in Markdown, reStructuredText and AsciiDoc; none that fits a passage is cut. Source code is
split at its functions and classes, which tree-sitter's grammars find also where it has errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node, Parser


LONGEST_SOURCE: Final = 500_000
"""Characters of a file that is parsed."""

_GRAMMARS: Final = {
    **dict.fromkeys((".py", ".pyi"), ("tree_sitter_python", "language")),
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs"), ("tree_sitter_javascript", "language")),
    **dict.fromkeys((".ts", ".mts"), ("tree_sitter_typescript", "language_typescript")),
    ".tsx": ("tree_sitter_typescript", "language_tsx"),
    ".go": ("tree_sitter_go", "language"),
    ".rs": ("tree_sitter_rust", "language"),
    ".java": ("tree_sitter_java", "language"),
    **dict.fromkeys((".c", ".h"), ("tree_sitter_c", "language")),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".hpp", ".hh"), ("tree_sitter_cpp", "language")),
    ".cs": ("tree_sitter_c_sharp", "language"),
    ".rb": ("tree_sitter_ruby", "language"),
    ".php": ("tree_sitter_php", "language_php"),
}
"""Module and function of the grammar of a file's ending."""

_DEFINITIONS: Final = frozenset(
    "function_definition class_definition function_declaration generator_function_declaration class_declaration "
    "method_definition interface_declaration type_alias_declaration enum_declaration abstract_class_declaration "
    "method_declaration type_spec function_item struct_item enum_item trait_item impl_item mod_item macro_definition "
    "constructor_declaration record_declaration struct_specifier class_specifier namespace_definition "
    "namespace_declaration struct_declaration property_declaration method singleton_method class module "
    "trait_declaration".split()
)
"""Types of nodes that define something with a name."""

_WRAPPERS: Final = frozenset(
    "decorated_definition export_statement type_declaration template_declaration lexical_declaration "
    "internal_module expression_statement".split()
)
"""Types of nodes that belong to a definition in them."""

_DEEPEST: Final = 5
"""Nodes between a definition and those inside it."""


class Definition(NamedTuple):
    """A part of a file: the places of its first character and after its last, and the names that it is within."""

    begins: int
    ends: int
    names: tuple[str, ...]


def is_parsed(name: str, content: str) -> bool:
    """Return whether there is a grammar for a file of this name, and the file is not too long for it."""
    return len(content) <= LONGEST_SOURCE and _parser(PurePosixPath(name).suffix.lower()) is not None


def definitions(name: str, content: str, longest: int) -> list[Definition]:
    """Return the parts of a file, which together hold all of it: its functions and classes, and what is between these.

    What has more than ``longest`` characters is parted at what is defined in it.
    """
    parser = _parser(PurePosixPath(name).suffix.lower())
    if parser is None:
        return [Definition(0, len(content), ())]
    data = content.encode("utf-8", "replace")
    parts = list(_parts(parser.parse(data).root_node, 0, len(data), (), longest))
    return parts if len(data) == len(content) else list(_in_characters(parts, data))


@cache
def _parser(suffix: str) -> Parser | None:
    if suffix not in _GRAMMARS:
        return None
    module, function = _GRAMMARS[suffix]
    try:
        from tree_sitter import Language, Parser

        return Parser(Language(getattr(import_module(module), function)()))
    except (ImportError, ValueError):  # not installed, or of another version of tree-sitter
        return None


def _parts(node: Node, begins: int, ends: int, names: tuple[str, ...], longest: int) -> Iterator[Definition]:
    """Yield the parts of a node, which is a slice of the file."""
    at = begins
    for outer, inner in _defined(node, 0):
        start, end = _with_comments(outer, at), outer.end_byte
        if start < at:
            continue
        if start > at:
            yield Definition(at, start, names)
        inside = (*names, _name(inner))
        if end - start > longest:
            yield from _parts(inner, start, end, inside, longest)
        else:
            yield Definition(start, end, inside)
        at = end
    if at < ends:
        yield Definition(at, ends, names)


def _defined(node: Node, depth: int) -> Iterator[tuple[Node, Node]]:
    """Yield what is defined directly within a node, each after what wraps it, such as its decorators."""
    for child in node.named_children:
        if child.type == "impl_item" or (child.type in _DEFINITIONS and child.child_by_field_name("name") is not None):
            yield child, child
        elif child.type in _WRAPPERS:
            inner = next(iter(_defined(child, depth + 1)), None)
            if inner is not None:
                yield child, inner[1]
        elif depth < _DEEPEST:
            yield from _defined(child, depth + 1)


def _name(node: Node) -> str:
    named = node.child_by_field_name("name") or node.child_by_field_name("type")
    text = named.text if named is not None else None
    return " ".join(text.decode("utf-8", "replace").split())[:200] if text else node.type


def _with_comments(node: Node, after: int) -> int:
    """Return where a definition begins with the comments directly above it."""
    begins = node.start_byte
    above = node.prev_named_sibling
    row = node.start_point[0]
    while above is not None and "comment" in above.type and above.end_point[0] >= row - 1 and above.start_byte >= after:
        begins, row = above.start_byte, above.start_point[0]
        above = above.prev_named_sibling
    return begins


def _in_characters(parts: list[Definition], data: bytes) -> Iterator[Definition]:
    """Yield the parts with places in characters instead of bytes."""
    place = character = 0
    for part in parts:
        begins = character + len(data[place : part.begins].decode("utf-8", "replace"))
        ends = begins + len(data[part.begins : part.ends].decode("utf-8", "replace"))
        yield Definition(begins, ends, part.names)
        place, character = part.ends, ends


LONGEST: Final = 120
"""Words of a passage. An embedding of more takes longer and blurs what is in it, and a package shows fewer."""

CODE: Final = "code"
"""Kind of what is source code."""

_CHARS_A_LINE_WORD: Final = 8
"""Characters of code for each word that a passage may have."""

_CHARS_A_WORD: Final = 10
"""A text without blanks counts as a word for each of so many characters: a hash, a minified script, a long path."""

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_ATX: Final = re.compile(r"(#{1,6})\s+(.*?)(?:\s+#+)?\s*$")
"""Markdown lets it be indented, which hardly anybody does; what is indented is mostly a comment in a block of code."""

_ASCIIDOC: Final = re.compile(r"(={1,6})\s+([^\s\"'].*?)\s*$")
"""What has a quoted name, ``=== "Windows"``, is a tab of MkDocs."""

_LABEL: Final = re.compile(
    r"\.\. (?:_.*:|(?:index|module|currentmodule|highlight)::.*)"
    r"|(?::(?:synopsis|platform|no-?index)|single|pair|see):.*"
    r"|\([^\s()]+\)=|<a\s[^>]*>(?:</a>)?|([-*_])(?:[ \t]*\1){2,}"
)
"""A line that names the heading after it, or sets it apart: labels of reStructuredText and MyST, anchors of HTML,
lines across the page."""

_DIRECTIVE: Final = re.compile(r"\.\. [\w:-]+:: *(.+)")
"""Before a heading that has its argument, a directive of a single line is a label of a kind of its own."""

_ABOVE: Final = 24
"""Words of headings that a passage may have beside its own."""

_UNDERLINE: Final = re.compile(r"""([-=~^"'`:.*+#<>_])\1{2,}\s*$""")
_ITEM: Final = re.compile(r"\s{0,3}(?:[-*+•]|\(?(?:\d{1,3}|[a-zA-Z])[.)])\s+\S")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])\s*|\n+")
_BLANKLESS: Final = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
"""Letters of scripts that put no blanks between words: Thai, Lao, Burmese, Khmer, Japanese, Chinese."""

_KEPT: Final = 256
"""Contents whose passages are remembered."""


class Passage(NamedTuple):
    """A part of a document: its ``text``, and the ``headings`` that it stands under, the outermost first. The last of
    them is the first row of the table that it goes on with, where it does.

    ``begins`` is the place of its first character in the content; ``opens`` whether it begins with the last of its
    headings.
    """

    text: str
    headings: tuple[str, ...] = ()
    begins: int = 0
    opens: bool = False

    @property
    def ends(self) -> int:
        """Return the place after its last character in the content."""
        return self.begins + len(self.text)


@dataclass(slots=True)
class _Block:
    """A heading, paragraph, list, table or block of code, as a slice of the content."""

    begins: int
    ends: int
    level: int = 0
    """Of a heading, 1 for the outermost; 0 of anything else."""
    title: str = ""
    is_label: bool = False
    """Whether it names the heading after it, or sets that apart, and says nothing."""
    columns: str = ""
    """Of a later part of a table, the table's first row, which names its columns."""


def words_in(text: str) -> int:
    """Return about how many words a text has, also where there are no blanks between them."""
    words = len(text.split())
    if not text.isascii():
        words += len(_BLANKLESS.findall(text)) // 2
    return max(words, len(text) // _CHARS_A_WORD)


@lru_cache(_KEPT)
def passages_of(content: str, kind: str, name: str) -> tuple[Passage, ...]:
    """Return the passages of what is of a kind: of code its functions and classes, where the end of its ``name`` tells
    its language; else as :func:`passages`."""
    if kind != CODE:
        return passages(content)
    return tuple(_passages_of_code(content, name)) if is_parsed(name, content) else passages(content, is_code=True)


def _passages_of_code(content: str, name: str) -> Iterator[Passage]:
    for begins, ends, names in definitions(name, content, LONGEST * _CHARS_A_LINE_WORD):
        last = _trimmed(content, ends)
        first = begins + len(content[begins:last]) - len(content[begins:last].lstrip("\n\r"))
        first = content.rfind("\n", 0, first) + 1 if not content[:first].rpartition("\n")[2].strip() else first
        if first < last:
            for start, end in _pieces(content, first, last, LONGEST):
                yield Passage(content[start:end], names, start)


def passages(content: str, longest: int = LONGEST, *, is_code: bool = False) -> tuple[Passage, ...]:
    """Return the content's passages in their order, which together hold all of its words, each at most ``longest``
    words and :data:`_ABOVE` of headings.

    A heading stands with what follows it, and so does its label. Blocks of a section are together where they fit. One
    that is longer is parted between its lines and sentences, a longer sentence between words.
    """
    made: list[Passage] = []
    headings: list[_Block] = []
    pending: list[_Block] = []
    """Blocks of the passage that is being gathered."""
    path: tuple[str, ...] = ()
    """Headings of the first of these."""
    room = longest

    def finish() -> None:
        nonlocal room
        if pending:
            begins = pending[0].begins
            text = content[begins : pending[-1].ends]
            made.append(Passage(text, path, begins, opens=any(one.level for one in pending)))
            pending.clear()
        room = longest

    def says_something() -> bool:
        return not all(one.level or one.is_label for one in pending)

    for block in _parted(content, _blocks(content, has_headings=not is_code), longest):
        size = words_in(content[block.begins : block.ends])
        block.is_label = not block.level and _is_label(content[block.begins : block.ends])
        if block.level:
            while headings and headings[-1].level >= block.level:
                headings.pop()
            headings.append(block)
            labels = _labels_of(content, pending, block)
            if says_something() or size > room:
                del pending[len(pending) - len(labels) :]
                finish()
                pending += labels
                room -= sum(words_in(content[one.begins : one.ends]) for one in labels)
        elif size > room and (says_something() or longest - room > _ABOVE):
            lead = pending.pop() if len(pending) > 1 and _leads(content, pending[-1]) else None
            finish()
            if lead is not None and (words := words_in(content[lead.begins : lead.ends])) + size <= longest:
                pending.append(lead)
                room -= words
            elif lead is not None:
                made[-1] = made[-1]._replace(text=content[made[-1].begins : lead.ends])
        if not says_something():
            columns = (block.columns,) if headings and block.columns else ()
            path = (*(one.title for one in headings), *columns)
        pending.append(block)
        room -= size
    finish()
    return tuple(made)


def _leads(content: str, block: _Block) -> bool:
    """Return whether a block announces what follows it: "For example:"."""
    return not block.level and content[block.ends - 1] in ":："


def _is_label(text: str) -> bool:
    return all(_LABEL.fullmatch(line.strip()) for line in text.splitlines())


def _labels_of(content: str, blocks: Sequence[_Block], heading: _Block) -> list[_Block]:
    """Return those of the last of these blocks that are labels of the heading after them."""
    labels: list[_Block] = []
    for block in reversed(blocks):
        if not block.is_label and not block.level:
            directive = _DIRECTIVE.fullmatch(content[block.begins : block.ends].strip())
            named = {one.strip("`") for one in heading.title.split()}
            block.is_label = directive is not None and directive[1].strip() in named
        if not block.is_label:
            break
        labels.append(block)
    return labels[::-1]


def _blocks(content: str, *, has_headings: bool) -> Iterator[_Block]:
    """Yield the blocks of a content in their order; together they hold all but blank lines."""
    lines = content.splitlines(keepends=True)
    levels: dict[tuple[str, bool], int] = {}
    open_block: _Block | None = None
    is_list = False
    after_blank = True
    at = place = 0
    while place < len(lines):
        line = lines[place]
        stripped = line.strip()
        if not stripped:
            after_blank = True
            at += len(line)
            place += 1
            continue
        begins = at
        if (fence := _FENCE.match(line)) is not None:
            taken = _fenced(lines, place, fence[1])
        elif has_headings and (underlined := _underlined(lines, place, levels)) is not None:
            taken, heading = underlined
            if open_block is not None:
                yield open_block
                open_block = None
            end = at + sum(map(len, lines[place : place + taken]))
            yield _Block(begins, _trimmed(content, end), *heading)
            at, place, after_blank = end, place + taken, True
            continue
        elif has_headings and (heading_line := _ATX.match(line) or _ASCIIDOC.match(line)) is not None:
            if open_block is not None:
                yield open_block
                open_block = None
            end = at + len(line)
            yield _Block(begins, _trimmed(content, end), len(heading_line[1]), heading_line[2])
            at, place, after_blank = end, place + 1, True
            continue
        else:
            taken = 1
        end = at + sum(map(len, lines[place : place + taken]))
        is_item = _ITEM.match(line) is not None
        continues = open_block is not None and (not after_blank or line[:1] in " \t" or (is_list and is_item))
        if open_block is None or not continues:
            if open_block is not None:
                yield open_block
            open_block, is_list = _Block(begins, 0), is_item
        open_block.ends = _trimmed(content, end)
        at, place, after_blank = end, place + taken, False
    if open_block is not None:
        yield open_block


def _fenced(lines: Sequence[str], place: int, fence: str) -> int:
    """Return how many lines a fenced block of code takes, to the end where nothing closes it."""
    for taken, line in enumerate(lines[place + 1 :], 2):
        closing = line.strip()
        if closing.startswith(fence) and not closing.strip(fence[0]):
            return taken
    return len(lines) - place


def _underlined(
    lines: Sequence[str], place: int, levels: dict[tuple[str, bool], int]
) -> tuple[int, tuple[int, str]] | None:
    """Return how many lines a heading with a line of signs below takes, its level and its title.

    As in reStructuredText, signs are of a level by the order in which they first come.
    """
    has_overline = _UNDERLINE.match(lines[place]) is not None
    title_at = place + has_overline
    if title_at + 1 >= len(lines) or (title := lines[title_at].strip()) == "":
        return None
    below = _UNDERLINE.match(lines[title_at + 1])
    if below is None or _UNDERLINE.match(lines[title_at]) or lines[title_at][:1] in "\t|-*+>" or len(title) > 200:
        return None
    if has_overline and lines[place].strip()[0] != below[1]:
        return None
    least = min(len(title), 3) if below[1] in "=-" else len(title)  # short ones of Markdown; ":::" ends a directive
    if len(lines[title_at + 1].strip()) < least or (place and not has_overline and lines[place - 1].strip()):
        return None
    level = levels.setdefault((below[1], has_overline), len(levels) + 1)
    return 2 + has_overline, (level, title)


def _trimmed(content: str, end: int) -> int:
    """Return the place after the last character before ``end`` that is not blank."""
    while end and content[end - 1].isspace():
        end -= 1
    return end


def _parted(content: str, blocks: Iterator[_Block], longest: int) -> Iterator[_Block]:
    """Yield the blocks, and of those that are too long parts that are not."""
    for block in blocks:
        if words_in(content[block.begins : block.ends]) <= longest:
            yield block
            continue
        level, title, columns = block.level, block.title, ""
        for begins, ends in _pieces(content, block.begins, block.ends, longest):
            yield _Block(begins, ends, level, title, columns=columns)
            level, columns = 0, columns or _columns(content[block.begins : ends])


def _columns(text: str) -> str:
    """Return the first row of a table of Markdown, on one line, where it is short enough to stand before its parts."""
    first, *rows = text.splitlines()
    is_table = bool(rows) and all(line.lstrip().startswith("|") for line in (first, *rows))
    return first.strip() if is_table and words_in(first) <= _ABOVE else ""


def _pieces(content: str, begins: int, ends: int, longest: int) -> Iterator[tuple[int, int]]:
    """Yield parts of a slice, each of as many lines and sentences as fit."""
    first, last, size = begins, begins, 0
    for start, end in _sentences(content, begins, ends):
        words = words_in(content[start:end])
        if size and size + words > longest:
            yield first, last
            size = 0
        if not size:
            first = start
        if words > longest:
            *cut, (first, last) = _cut(content, start, end, longest)
            yield from cut
            size = words_in(content[first:last])
            continue
        last, size = end, size + words
    if size:
        yield first, last


def _sentences(content: str, begins: int, ends: int) -> Iterator[tuple[int, int]]:
    start = begins
    for found in _SENTENCE_END.finditer(content, begins, ends):
        if found.start() > start:
            yield start, found.start()
        start = found.end()
    if start < ends:
        yield start, ends


def _cut(content: str, begins: int, ends: int, longest: int) -> list[tuple[int, int]]:
    """Return parts of a sentence that is too long, cut between words, or where one is too long after as many signs."""
    made = []
    while begins < ends:
        end = begins
        size = 0.0
        for found in re.finditer(r"\S+", content[begins:ends]):
            size = words_in(content[begins : begins + found.end()])
            if size > longest:
                break
            end = begins + found.end()
        else:
            end = ends
        if end == begins:
            end = _hard_cut(content, begins, ends, longest)
        made.append((begins, end))
        begins = end
        while begins < ends and content[begins].isspace():
            begins += 1
    return made


def _hard_cut(content: str, begins: int, ends: int, longest: int) -> int:
    """Return the place up to which a single word is taken."""
    while content[begins].isspace():
        begins += 1
    low, high = begins + 1, min(ends, begins + longest * _CHARS_A_WORD + _CHARS_A_WORD)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if words_in(content[begins:middle]) <= longest else (low, middle - 1)
    return low
