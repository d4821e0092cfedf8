"""Makes the Python code of ``knowledge.proto``; the package ships it, so that only developers need grpcio-tools."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PROTO: Final = Path("context_builder/knowledge/grpc/knowledge.proto")
"""Below the root, which makes the imports in the code those of the package."""

MADE: Final = ("knowledge_pb2.py", "knowledge_pb2.pyi")


def make(folder: Path) -> list[Path]:
    """The files made, below ``folder`` as below the root."""
    outputs = [f"--{kind}_out={folder}" for kind in ("python", "pyi")]
    command = [sys.executable, "-m", "grpc_tools.protoc", "--proto_path=.", *outputs, str(PROTO)]
    subprocess.run(command, cwd=ROOT, check=True)
    return [folder / PROTO.parent / name for name in MADE]


if __name__ == "__main__":
    make(ROOT)
