"""Personal data is masked, written and spoken."""

from __future__ import annotations

import sys

import pytest

from context_builder.errors import SettingError
from context_builder.redaction import NoopRedactor, PiiRedactor, RedactorChain, SecretRedactor


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("write to ann.lee+x@mail.example.org, please", "write to <EMAIL_ADDRESS>, please"),
        ("ann dot lee at gmail dot co dot in", "<EMAIL_ADDRESS>"),
        ("please email me at ann dot lee at gmail dot com", "please email me at <EMAIL_ADDRESS>"),
        ("card 4111 1111 1111 1111 expires soon", "card <CREDIT_CARD> expires soon"),
        ("my credit card number is 84 90 37 83 03 16 32 78", "my credit card number is <CREDIT_CARD>"),
        ("pay to DE89 3704 0044 0532 0130 00 today", "pay to <IBAN_CODE> today"),
        ("iban gb82west12345698765432", "iban <IBAN_CODE>"),
        ("my ssn is 536-32-3065", "my ssn is <US_SSN>"),
        ("the server is 10.20.30.40 or 2001:db8::1", "the server is <IP_ADDRESS> or <IP_ADDRESS>"),
        ("call me on +44 7700 900123", "call me on <PHONE_NUMBER>"),
        ("nine eight oh eight six oh nine five four one", "<PHONE_NUMBER>"),
        ("ann@exam\u00adple.\u200borg", "<EMAIL_ADDRESS>"),
        ("ann＠example．org", "<EMAIL_ADDRESS>"),
        ("a link to ann%40example.org", "a link to <EMAIL_ADDRESS>"),
        ("a [link](https://x.example/ann%40example.org)", "a [link](https:<EMAIL_ADDRESS>)"),
        ("ann\\u0040example&#46;org", "<EMAIL_ADDRESS>"),
        ("ann[at]x[dot]org or ann (at) x (dot) org", "<EMAIL_ADDRESS> or <EMAIL_ADDRESS>"),
        ("talk to anna at example dot org please", "talk to <EMAIL_ADDRESS> please"),
        ("card ４１１１ 1111\u200b 1111 1111", "card <CREDIT_CARD>"),
        ("my phone is 7 5 7 1 5 3 1 4 5 7", "my phone is <PHONE_NUMBER>"),
        ("write to anna.smith@\r\n> example.org please", "write to <EMAIL_ADDRESS> please"),
        ("anna.smith\n@example.org, ann@exam\nple.org", "<EMAIL_ADDRESS>, <EMAIL_ADDRESS>"),
        ("see ann@example.\norg now", "see <EMAIL_ADDRESS> now"),
    ],
)
def test_personal_data_is_masked(personal, text, masked):
    assert personal.redact(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "we met on 2024-10-12 at 13:45",
        "look at google dot com",
        "sign up at example dot org",
        "he is good [at] it",
        "one two three, one two three",
        "the 4111 1111 1111 1112 rows",
        "version 1.2.3 of 300000000000 tests",
        "it costs $1,234,567.89",
        "DE89 3704 0044 0532 0130 02 has a wrong checksum",
        "thanks\n@ann.lee said that ann@home\nand ann@lab\nv2.0 are there",
    ],
)
def test_what_is_not_personal_stays(personal, text):
    assert personal.redact(text) == text


def test_something_beyond_the_first_window_of_a_long_text_is_found_once(personal):
    text = "word " * 817 + "mail ann.lee@example.org now " + "word " * 2000
    assert personal.redact(text) == text.replace("ann.lee@example.org", "<EMAIL_ADDRESS>")


def test_redactors_can_be_chained(personal):
    chain = RedactorChain(NoopRedactor(), SecretRedactor(), personal)
    assert chain.redact("password=abc123 of ann@example.org") == "password=§§secret(PASSWORD) of <EMAIL_ADDRESS>"


def test_without_the_extra_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "presidio_analyzer", None)
    with pytest.raises(SettingError, match=r"context-builder\[pii\]"):
        PiiRedactor()
