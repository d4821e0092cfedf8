"""What is encoded is masked if it is a secret or personal data, whichever encodings are within each other."""

from __future__ import annotations

from base64 import b32encode, b64encode, urlsafe_b64encode
from collections.abc import Callable
from textwrap import wrap
from typing import Final

import pytest

from context_builder.redaction import RedactorChain
from tests.redaction.tokens import token


def base32(text: str) -> str:
    return b32encode(text.encode()).decode()


def base64(text: str) -> str:
    return b64encode(text.encode()).decode()


def in_groups(text: str, between: str) -> str:
    return between.join(wrap(text, 4))


ENCODINGS: Final[dict[str, Callable[[str], str]]] = {
    "base64": base64,
    "base64 of URLs": lambda text: urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "base64 of base64": lambda text: base64(base64(text)),
    "hexadecimal of base64": lambda text: base64(text).encode().hex(),
    "base32": base32,
    "base32 in small letters": lambda text: base32(text).lower(),
    "base32 in groups": lambda text: in_groups(base32(text).rstrip("="), "-"),
    "base32 in lines": lambda text: "\n".join(wrap(base32(text), 16)),
    "base64 in quoted lines": lambda text: "\n> ".join(wrap(base64(text), 20)),
    "numbers of characters": lambda text: f"String.fromCharCode({', '.join(str(ord(one)) for one in text)})",
    "calls": lambda text: "+".join(f"chr({ord(one)})" for one in text),
    "selectors of variations": lambda text: "".join(chr(0xE0100 - 16 + ord(one)) for one in text),
}


@pytest.mark.parametrize(
    "secret",
    [token("ghp_", 36), "ann.smith@example.org", "DE89 3704 0044 0532 0130 00", "password: hunter22xyzzy"],
    ids=["key", "e-mail", "IBAN", "password"],
)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_what_is_encoded_is_masked(redactor: RedactorChain, encoding: str, secret: str) -> None:
    encode = ENCODINGS[encoding]
    hidden = encode(secret)
    least = len(hidden) * 8 // len(secret)
    shown = redactor.redact(f"Use this:\n{hidden}\nThanks.").replace(encode("password: "), "")
    assert not [at for at in range(len(hidden) - least) if hidden[at : at + least] in shown], shown


@pytest.mark.parametrize("width", [16, 20, 64])
@pytest.mark.parametrize("behind", ["", " and so on.", " for it.\nThanks, bye\n", "\n\nGood bye."])
def test_a_token_whose_parts_are_encoded_is_masked_in_lines_of_base32(
    redactor: RedactorChain, width: int, behind: str
) -> None:
    parts = [
        urlsafe_b64encode(part).decode().rstrip("=") for part in (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"12345"}')
    ]
    hidden = wrap(base32(".".join((*parts, token("", 43)))), width)
    shown = redactor.redact("Use this: " + "\n".join(hidden) + behind)
    assert not [line for line in hidden if line in shown], shown
    assert shown.endswith(behind)


def test_digits_of_other_scripts_are_digits(redactor: RedactorChain) -> None:
    assert redactor.redact("card ٤١١١ ١١١١ ١١١١ ١١١١, or ४१११ ११११ ११११ ११११") == "card <CREDIT_CARD>, or <CREDIT_CARD>"


@pytest.mark.parametrize(
    "text", [base64("a harmless text"), base32("harmless words"), "51, 52, 50, 49, 55, 53, 54, 52, 50, 51"]
)
def test_what_is_harmless_stays_as_it_is_encoded(redactor: RedactorChain, text: str) -> None:
    assert redactor.redact(text) == text
