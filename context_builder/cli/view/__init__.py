"""The live view of a session: published state in, something to look at out; no I/O."""

from context_builder.cli.view.screen import View, export_svg, render

__all__ = ["View", "export_svg", "render"]
