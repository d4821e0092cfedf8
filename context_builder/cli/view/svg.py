"""The view as a picture."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Final

from rich.console import Console

from context_builder.cli.view.screen import View, render
from context_builder.client import Snapshot

SIZE: Final = (132, 36)
"""Columns and rows of the picture."""


def export_svg(snapshot: Snapshot, now: float, path: Path, view: View | None = None) -> None:
    """Write the session at epoch second ``now`` to ``path`` as SVG."""
    width, height = SIZE
    console = Console(
        file=io.StringIO(),
        record=True,
        width=width,
        height=height,
        force_terminal=True,
        color_system="truecolor",
    )
    console.print(render(snapshot, now, SIZE, view), height=height)
    console.save_svg(str(path), title=f"context-builder watch {snapshot.session_id}")
