"""Personal data is masked in lines, cells and items; tables of numbers and lists of names stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from context_builder.redaction import PiiRedactor

PARTED: Final[dict[str, Callable[[list[str]], str]]] = {
    "lines": "\n".join,
    "quoted lines": "\n> ".join,
    "lines with blank ones between": "\n\n".join,
    "items": "\n- ".join,
    "numbered items": lambda parts: "\n" + "\n".join(f"{number}. {one}" for number, one in enumerate(parts, 1)),
    "cells of Markdown": lambda parts: "\n| " + " | ".join(parts) + " |",
    "rows of Markdown": lambda parts: "\n|---|\n" + "\n".join(f"| {one} |" for one in parts),
    "numbered rows": lambda parts: "\n|---|---|\n" + "\n".join(f"| {at} | {one} |" for at, one in enumerate(parts, 1)),
    "values": ",".join,
    "quoted values": lambda parts: ",".join(f'"{one}"' for one in parts),
    "values with tabs": "\t".join,
    "cells of HTML": lambda parts: "".join(f"<td>{one}</td>" for one in parts),
    "JSON": lambda parts: "{" + ", ".join(f'"part{at}": "{one}"' for at, one in enumerate(parts, 1)) + "}",
    "YAML": lambda parts: "\n" + "\n".join(f"part{at}: {one}" for at, one in enumerate(parts, 1)),
}
PERSONAL: Final = {
    "e-mail": ["anna.smi", "th@examp", "le.org"],
    "IBAN": ["DE89 3704", "0044 0532", "0130 00"],
    "card": ["4539 57", "87 6362", "1486"],
    "phone": ["+44 7", "700 9", "00123"],
}


@pytest.mark.parametrize("parts", PERSONAL.values(), ids=PERSONAL)
@pytest.mark.parametrize("way", PARTED)
def test_personal_data_in_parts_is_masked(personal: PiiRedactor, way: str, parts: list[str]) -> None:
    shown = personal.redact(f"My card or phone is {PARTED[way](parts)} and so on.\nBye.")
    assert not [part for part in parts if part in shown], shown
    assert shown.endswith("Bye.")


@pytest.mark.parametrize(
    "text",
    [
        "| 4539 57 | 87 6362 | 1486 |",  # no card, as far as anybody can tell
        "cards: 4102, 4203, 4304, 4405",
        "phone,mail\n12,34\n56,78",
        "scores: +1, +4, +44, +7700, +900123",
        "DE89 3704\n0044 0532\n0130 02 has a wrong checksum",
        "AA11 BB22 CC33 DD44 EE55 FF66",
        "foo@1.2.3\nbar@2.0.0\nbaz@3.1.4",
        "ann@home\nbob@work\n@cleo",
        "see user@host: it is a prompt\nroot@web1:~# ls",
        "see foo@bar, baz.com and",
        "Ask bob@ \nhello.World ends",
        "@property\ndef name(self):\n    return self.org",
    ],
)
def test_tables_and_lists_of_other_things_stay(personal: PiiRedactor, text: str) -> None:
    assert personal.redact(text) == text


def test_a_domain_that_is_not_known_ends_a_mail_address_where_it_is_alone_in_its_line(personal: PiiRedactor) -> None:
    assert personal.redact("ann@\nfirma.gmbh\nBye") == "<EMAIL_ADDRESS>\nBye"
