"""Source code is split at its functions and classes, which tree-sitter's grammars find also where it has errors."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

LONGEST: Final = 500_000
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
    return len(content) <= LONGEST and _parser(PurePosixPath(name).suffix.lower()) is not None


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
