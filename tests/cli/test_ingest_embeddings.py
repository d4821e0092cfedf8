"""What ``ingest`` and the server store is found by meaning, with the real embedding engine."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from context_builder.cli import app
from context_builder.engines.embeddings import EmbeddingEngine, is_available

pytestmark = [pytest.mark.engines, pytest.mark.model]


@pytest.fixture
def engine(engine_folder: Path, migrated_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingEngine]:
    if not is_available():
        pytest.skip("the embedding engine is not installed")
    home = Path(tempfile.mkdtemp(prefix="home-", dir=engine_folder))
    monkeypatch.setenv("DATABASE_URL", migrated_url)
    monkeypatch.setenv("CONTEXT_BUILDER_HOME", str(home))
    monkeypatch.setenv("EMBEDDED_EMBEDDINGS", "true")
    engine = EmbeddingEngine(home)
    yield engine
    engine.stop()


def test_an_ingested_folder_is_found_by_meaning(
    engine: EmbeddingEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pets.md").write_text("Speedy, my tortoise, eats lettuce.")
    (tmp_path / "law.md").write_text("Income is taxed by the year.")
    with monkeypatch.context() as patch:
        patch.setattr("context_builder.cli.ingest.PATIENCE", 0.0)
        left = CliRunner().invoke(app, ["ingest", str(tmp_path), "--project", "kelp"])
    assert "`ingest --wait` now" in left.stdout, left.output
    again = ["ingest", str(tmp_path), "--project", "kelp", "--wait", "--json"]
    told = json.loads(CliRunner().invoke(app, again).stdout)
    assert (told["new"], told["embedded"], told["unembedded"]) == (0, 2, 0)
    asked = ["package", "build", "-i", "Which animal does she keep?", "--project", "kelp", "--json"]
    package = json.loads(CliRunner().invoke(app, asked).stdout)
    assert package["coverage"]["semantic"] == "ok", package["coverage"]
    assert package["sources"][0]["title"] == "pets.md" or "tortoise" in package["sources"][0]["content"]
    again = CliRunner().invoke(app, ["ingest", str(tmp_path), "--project", "kelp"])
    assert "embedded" not in again.stdout
