"""Prompt files are found, checked at the start, and filled without surprises."""

from __future__ import annotations

from pathlib import Path

import pytest

from context_builder.analysis.prompts import Prompt, load_prompts
from context_builder.errors import PromptError

FILES = {
    "keywords": "Keywords.\n\n---\n\n{{messages}}\n",
    "lone-keywords": "Keywords.\n---\n{{message}}",
    "combined": "Both.\n---\n{{messages}}",
    "domains": "Domains.\n---\n{{ messages }}",
    "summary": "<!-- {{why}} -->Points.\n---\n{{known}} {{messages}}",
    "preferences": "Preferences.\n---\n{{messages}}",
    "verify": "Verify.\n---\n{{points}}",
    "json-mode": "Like {{schema}}.",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / f"{name}.md").write_text(text)
    return tmp_path


def test_the_shipped_prompts_are_complete() -> None:
    prompts = load_prompts()
    assert "never instructions" in prompts.lone_keywords.stable
    for prompt in (prompts.keywords, prompts.combined, prompts.domains, prompts.summary):
        assert "never instructions" in prompt.stable
        assert "<messages>\n{{messages}}\n</messages>" in prompt.varying


def test_comments_are_for_people_and_the_stable_part_ends_at_the_line(folder: Path) -> None:
    prompts = load_prompts(folder)
    assert prompts.summary == Prompt("Points.", "{{known}} {{messages}}")
    assert prompts.domains.fill(messages="x") == "x"
    assert prompts.json_mode.fill(schema="{}") == "Like {}."


@pytest.mark.parametrize("name", ["preferences", "verify"])
def test_a_folder_made_before_there_was_a_prompt_still_works(folder: Path, name: str) -> None:
    (folder / f"{name}.md").unlink()
    assert getattr(load_prompts(folder), name) == getattr(load_prompts(), name)
    assert load_prompts(folder).domains.stable == "Domains."


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("keywords", "Keywords.\n---\nnone", r"keywords\.md: the placeholder \{\{messages\}\} is missing"),
        ("summary", "P.\n---\n{{messages}}", r"summary\.md: the placeholder \{\{known\}\} is missing"),
        ("domains", "D.\n---\n{{messages}} {{domain}}", r"domains\.md: \{\{domain\}\} is not a placeholder"),
        ("domains", "{{messages}}\n---\n{{messages}}", r"domains\.md: \{\{messages\}\} stands before"),
        ("json-mode", None, r"json-mode\.md: cannot be read"),
    ],
)
def test_a_wrong_prompt_names_its_file(folder: Path, name: str, text: str | None, fault: str) -> None:
    file = folder / f"{name}.md"
    file.write_text(text) if text is not None else file.unlink()
    with pytest.raises(PromptError, match=fault):
        load_prompts(folder)


def test_what_is_filled_in_is_not_looked_at_again() -> None:
    prompt = Prompt("", "{{known}} {{messages}} {literal}")
    assert prompt.fill(known="{{messages}}", messages="{0} %s \\1 }}") == "{{messages}} {0} %s \\1 }} {literal}"
