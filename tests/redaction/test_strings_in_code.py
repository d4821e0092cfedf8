"""Strings that a program puts together are masked as one; lists and sums of other strings stay."""

from __future__ import annotations

import pytest

from context_builder.redaction import PiiRedactor, SecretRedactor
from tests.redaction.tokens import token

TOKEN = token("ghp_", 36)
ONE, TWO, THREE = TOKEN[:9], TOKEN[9:20], TOKEN[20:]
SECRETS, PERSONAL = SecretRedactor(), PiiRedactor()

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
def test_personal_data_in_strings_that_a_program_puts_together_is_masked(written: str, parts: tuple[str, ...]) -> None:
    shown = PERSONAL.redact(written.format(*parts))
    assert not [part for part in parts if part in shown], shown


ON_ONE_LINE = [one for one in WRITTEN if "\n" not in one]


@pytest.mark.parametrize("written", ON_ONE_LINE)
def test_a_key_in_strings_that_a_program_puts_together_is_masked(written: str) -> None:
    shown = SECRETS.redact(written.format(ONE, TWO, THREE))
    assert not [part for part in (ONE, TWO, THREE) if part in shown], shown


@pytest.mark.parametrize(
    "text",
    [
        'addresses = ["ann@lab", "example.org"]',
        '["DE89 3704", " 0044 0532", " 0130 00"]',
        'name = "ann@lab"\nhost = "example.org"\nprint(name)',
        'greeting = "Hello, " + name + "!"',
        '["user", "42"].join(":")',
        '"ann@lab"\n"example.org"',
        'path = "usr" + "/" + "lib"',
        '"a#b".replace("#", "")',
    ],
)
def test_other_strings_stay(text: str) -> None:
    assert SECRETS.redact(PERSONAL.redact(text)) == text
