"""Settings become the builder that makes prompts."""

from __future__ import annotations

import pytest

from context_builder.assembly import AssemblyRules
from context_builder.builders import assembly_rules_of, builder_of
from context_builder.errors import SettingError
from context_builder.settings import Settings, load_settings

TURN = {"user_message": "Mail ann@example.org about it", "history": [{"role": "user", "content": "ann@example.org"}]}


def settings(**environ: str) -> Settings:
    return load_settings(environ, env_file=None)


def test_without_settings_the_rules_are_the_documented_ones() -> None:
    assert assembly_rules_of(settings()) == AssemblyRules()


def test_the_models_window_is_the_limit() -> None:
    known = settings(CONTEXT_MODEL="gpt-4o", CONTEXT_REPLY_TOKENS="2000")
    assert assembly_rules_of(known).limit() == 126_000
    assert assembly_rules_of(settings(CONTEXT_MODEL="mine", CONTEXT_WINDOW="3000")).limit() == 2000


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({"CONTEXT_MODEL": "mine"}, "CONTEXT_MODEL: the window of mine is not known; set CONTEXT_WINDOW"),
        ({"CONTEXT_MODEL": "gpt-4", "CONTEXT_REPLY_TOKENS": "9000"}, "CONTEXT_REPLY_TOKENS: must be below"),
    ],
)
def test_a_window_that_cannot_be_is_refused(environ: dict[str, str], told: str) -> None:
    with pytest.raises(SettingError, match=told):
        assembly_rules_of(settings(**environ))


@pytest.mark.parametrize(
    ("redact", "shown"),
    [("none", "ann@example.org"), ("secrets", "ann@example.org"), ("personal", "<EMAIL_ADDRESS>"), ("all", "<EMAIL")],
)
async def test_what_is_to_be_masked_is(redact: str, shown: str) -> None:
    built = await builder_of(settings(CONTEXT_REDACT=redact), None).build_for_turn(TURN)
    assert shown in built.messages[1]["content"]
