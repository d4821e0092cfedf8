"""Labelled texts: JSON lines files in a folder, named for what is in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scripts.benches.shared.report import Report

Row = Mapping[str, Any]


def rows_of(data: Path, kind: str, report: Report, part: str = "") -> list[Row]:
    """Rows of all files of a kind (``domains_dev.jsonl``), or of a ``part`` of it (``meetings_dev_refs.jsonl``).

    Without any such file the report says that it is missing.
    """
    pattern = f"{kind}_*_{part}.jsonl" if part else f"{kind}_*.jsonl"
    files = [path for path in sorted(data.glob(pattern)) if part or not path.stem.endswith("_refs")]
    if not files:
        report.missing.append(data / pattern)
    lines = (line for path in files for line in path.read_text("utf-8").split("\n"))
    return [json.loads(line) for line in lines if line.strip()]
