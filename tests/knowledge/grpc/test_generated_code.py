"""The code that is shipped is what ``knowledge.proto`` makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.grpc_code import ROOT, make


@pytest.mark.engines
def test_the_generated_code_is_that_of_the_proto(tmp_path: Path) -> None:
    for made in make(tmp_path):
        shipped = ROOT / made.relative_to(tmp_path)
        assert shipped.read_text() == made.read_text(), "run `python -m scripts.grpc_code`"
