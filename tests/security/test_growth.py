"""Whatever people say, reading it takes time in proportion to its length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from context_builder.analysis.analyst import AnalystMessage
from context_builder.analysis.evidence.check import check_rewritten
from context_builder.analysis.evidence.figures import FiguresSaid, figures_of
from context_builder.analysis.evidence.negation import negates
from context_builder.analysis.evidence.words import plain as plain_of
from context_builder.analysis.text.domains import score_domains
from context_builder.analysis.text.keywords import keywords
from context_builder.analysis.text.sentences import fluent
from context_builder.analysis.text.statements import kind_of as kind_of_point
from context_builder.analysis.text.summary import Digest
from context_builder.analysis.text.words import Recurrence
from context_builder.assembly.query_kind import kind_of as kind_of_query
from context_builder.cli.view.palette import plain
from context_builder.memory.preferences import stated_preferences
from context_builder.quoting import quoted_json, quoted_line, quoted_lines
from context_builder.redaction import PiiRedactor, RedactorProtocol, SecretRedactor
from tests.growth import is_linear


def summarized(*texts: str) -> None:
    digest = Digest()
    digest.add([AnalystMessage(number, "Ann", text) for number, text in enumerate(texts, 1)])
    digest.points()


READERS: Final[dict[str, Callable[[str], object]]] = {
    "keywords": lambda text: keywords(text, Recurrence()),
    "domains": lambda text: score_domains([text]),
    "summary": summarized,
    "disfluencies": fluent,
    "kind of point": kind_of_point,
    "kind of query": kind_of_query,
    "preferences": stated_preferences,
    "secrets": SecretRedactor().redact,
    "figures": lambda text: FiguresSaid.of(plain_of(text), [*figures_of(plain_of(text))]),
    "negations": lambda text: negates(plain_of(text)),
    "quoting": quoted_json,
    "quoted lines": quoted_lines,
    "one line": quoted_line,
    "terminal": lambda text: plain(text, 80),
}

SHAPES: Final = (
    *("私が", "わたしが話を"),
    *("a", "A ", "1,", "th th", " \t", "\n", "\u2028", "'", "'a ", '"', "“", "«", "„", "`", "(", "<", "{{"),
    *("a-", "a.", "a@", "=", ", ", "? ", "-----BEGIN ", "password=", "e.g. ", "um, ", "kind of ", "the the "),
    *("1", "١", "1.", "1万", "ışma", "ışme "),
    *("I prefer tea and ", "call me Ann, ", "please always x and ", "she said ", "İ", "\u0301"),
)

PARTS: Final = (
    *(
        "ghp_a1\n",
        '"a" + ',
        '"a", ',
        'k = "a"\n',
        '"a"\n',
        "a@b\n",
        "@",
        "a1=\n",
        "x=\\\n",
        "<td>a1</td>",
        "| 1 | a1 |\n",
    ),
    *(
        "QUJDREVGR0hJSktM\n",
        "MFRG-",
        "chr(65)+",
        "DE89\n",
        "+44 7\n",
        "password = (\n",
        '"a#b".replace(',
        "[a](b)",
        '{"a"}',
    ),
    *("a: b1\n", "?a=b&", '" "', 'a = "x"; b = "y"; ', "2026-01-02T10:00:00Z INFO a1\n", " :drowssap ", "\u202ea"),
)
"""What may be the parts of a secret."""


@pytest.mark.slow
@pytest.mark.parametrize("redactor", [SecretRedactor, PiiRedactor])
@pytest.mark.parametrize("part", PARTS)
def test_redacting_takes_time_in_proportion_to_the_length(redactor: type[RedactorProtocol], part: str) -> None:
    redact = redactor().redact
    redact(part)
    assert is_linear(redact, part, most=20_000 // len(part))


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_reading_takes_time_in_proportion_to_the_length(reader: str) -> None:
    assert [shape for shape in SHAPES if not is_linear(READERS[reader], shape, most=3_200)] == []


@pytest.mark.slow
@pytest.mark.parametrize("part", ["if ", "only a, ", "1 ", "not 1 ", "twenty-"])
def test_a_rewritten_sentence_is_checked_in_proportion_to_its_length(part: str) -> None:
    def checked(text: str) -> object:
        return check_rewritten(text, [text], [text], ["Ann", "Speaker 2"])

    checked(part)
    assert is_linear(checked, part, most=1_600)


@pytest.mark.slow
def test_many_messages_that_move_days_take_time_in_proportion_to_their_number() -> None:
    talk = "The exam is on Thursday at ten.\nThen let's do Friday.\nWe moved the meeting to Monday.\nTuesday it is.\n"
    assert is_linear(lambda text: summarized(*text.split("\n")), talk, most=320)


@pytest.mark.slow
@pytest.mark.parametrize("unclosed", ["“", "«", "„", "I prefer tea and ", "I prefer tea but she said ", "call me Al, "])
def test_the_preferences_of_a_long_text_take_time_in_proportion_to_it(unclosed: str) -> None:
    assert is_linear(stated_preferences, unclosed, before="I prefer tea. ", most=8_000)


def test_a_word_without_end_before_a_preference_takes_no_long_time() -> None:
    assert is_linear(stated_preferences, "a", after=" and I prefer tea", most=32_000)
