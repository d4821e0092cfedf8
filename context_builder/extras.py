"""The optional dependencies, each group of which is an extra of the package (``pyproject.toml``)."""

from __future__ import annotations

from importlib.util import find_spec

from context_builder.errors import MissingExtra


def require_extra(extra: str, module: str, what: str) -> None:
    """Raise :class:`MissingExtra` unless ``module``, which ``what`` needs, is installed."""
    if find_spec(module) is None:
        raise MissingExtra(needs_extra(extra, what))


def needs_extra(extra: str, what: str) -> str:
    """Return the line that tells how to install the packages that ``what`` needs."""
    return f"{what} needs the extra {extra}: pip install 'context-builder[{extra}]'"
