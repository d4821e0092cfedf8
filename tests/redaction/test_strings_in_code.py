"""Strings that a program puts together are masked as one; lists and sums of other strings stay."""

from __future__ import annotations

import pytest

from context_builder.redaction import PiiRedactor, RedactorChain, SecretRedactor
from tests.redaction.tokens import token

TOKEN = token("ghp_", 36)
ONE, TWO, THREE = TOKEN[:9], TOKEN[9:20], TOKEN[20:]

WRITTEN = (
    '"{}" + "{}" + "{}"',
    '("{}") + ("{}") + ("{}")',
    '"{}"\n    + "{}"\n    + "{}"',
    '["{}", "{}", "{}"].join("")',
    "[\n  '{}',\n  '{}',\n  '{}',\n].join('')",
    '"".join(["{}", "{}", "{}"])',
    "''.join(('{}', '{}', '{}'))",
    "CONCAT('{}', '{}', '{}')",
    "'{}' || '{}' || '{}'",
    '"{{}}{{}}{{}}".format("{}", "{}", "{}")',
    '"{}".concat("{}").concat("{}")',
    'made.append("{}").append("{}").append("{}")',
    'made.append("{}");\nmade.append("{}");\nmade.append("{}");',
    'k = "{}"\nk += "{}"\nk += "{}"',
    "k = '{}'; k = k + '{}'; k = k + '{}'",
    'a = "{}"\nb = "{}"\nc = "{}"\nk = a + b + c',
    'x = (\n    "{}"\n    "{}"\n    "{}"\n)',
    "`${{\"{}\"}}${{'{}'}}${{'{}'}}`",
    "f\"{{'{}'}}{{'{}'}}{{'{}'}}\"",
    '"{}#{}#{}".replace("#", "")',
    '"{}~{}~{}".split("~").join("")',
)


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("parts", [("ann.sm", "ith@exam", "ple.org"), ("DE89 3704", " 0044 0532", " 0130 00")])
def test_personal_data_in_strings_that_a_program_puts_together_is_masked(
    personal: PiiRedactor, written: str, parts: tuple[str, ...]
) -> None:
    shown = personal.redact(written.format(*parts))
    assert not [part for part in parts if part in shown], shown


ON_ONE_LINE = [one for one in WRITTEN if "\n" not in one]


@pytest.mark.parametrize("written", ON_ONE_LINE)
def test_a_key_in_strings_that_a_program_puts_together_is_masked(secrets: SecretRedactor, written: str) -> None:
    shown = secrets.redact(written.format(ONE, TWO, THREE))
    assert not [part for part in (ONE, TWO, THREE) if part in shown], shown


@pytest.mark.parametrize(
    "text",
    [
        '["4111 1111", " 1111 1111"]',
        'name = "4111 1111"\nhost = " 1111 1111"\nprint(name)',
        'greeting = "Hello, " + name + "!"',
        '["user", "42"].join(":")',
        '"4111 1111"\n" 1111 1111"',
        'path = "usr" + "/" + "lib"',
        '"a#b".replace("#", "")',
    ],
)
def test_other_strings_stay(redactor: RedactorChain, text: str) -> None:
    assert redactor.redact(text) == text
