"""The live view of a session: published state in, something to look at out; no I/O."""

from context_builder.cli.view.screen import View, render
from context_builder.cli.view.svg import export_svg

__all__ = ["View", "export_svg", "render"]
