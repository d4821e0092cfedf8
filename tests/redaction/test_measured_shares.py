"""The benchmark of redaction counts secrets that are gone and harmless texts that changed."""

from __future__ import annotations

import json
from pathlib import Path

from scripts.benches.harness.report import Report
from scripts.benches.redaction import measure
from tests.redaction.tokens import token

CASES = (
    {"text": f"API_TOKEN={token('', 30)}", "secret": token("", 30)},
    {"text": "the door opens with a song", "secret": "a song"},
    {"text": "password = ${PASSWORD}", "secret": None},
    {"text": f"API_TOKEN={token('', 30)}", "secret": None},
)


def test_secrets_that_are_gone_and_texts_that_changed_are_counted_for_each_file(tmp_path: Path):
    (tmp_path / "mine.jsonl").write_text("\n".join(map(json.dumps, CASES)) + "\n", "utf-8")
    measure(report := Report("redaction"), tmp_path)
    lines = [(line.what, line.measured, line.reached) for line in report.lines]
    assert ("mine: masked", "50.0% of 2", False) in lines
    assert ("all: altered", "50.0% of 2", False) in lines


def test_a_folder_without_cases_is_said_to_lack_them(tmp_path: Path):
    measure(report := Report("redaction"), tmp_path)
    assert report.missing == [tmp_path / "*.jsonl"]
