"""No part of a secret leaves by any door, however it is disguised and wherever a budget cuts."""

from __future__ import annotations

import random
import re
from base64 import b32encode, b64encode
from collections.abc import AsyncIterator, Callable
from typing import Final
from unicodedata import category, normalize
from uuid import uuid4

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_builder.assembly.govern import RedactionPolicy
from context_builder.knowledge.excerpt import excerpts, parts_of
from context_builder.knowledge.node import KnowledgeNode
from context_builder.quoting import quoted_lines
from context_builder.redaction import SecretRedactor
from context_builder.redaction.pii import PiiRedactor
from context_builder.server.access.caller import Role
from context_builder.wiring.knowledge import redactor_of_packages
from tests.redaction.tokens import token
from tests.services.api_server import ApiServer

PART: Final = 8
"""Characters of a secret that are too many."""

SECRETS: Final = (
    token("ghp_", 36),
    "sk-proj-" + token("", 40),
    "AKIA" + "Q3EGRVS2N5HXJ7KD",
    "anna.smith@example.org",
)
INVISIBLE: Final = "\x01\x7f\u2066\u180e\U000e0041\u200b\u00ad\ufe0f\u3164"
LOOK_ALIKE: Final = str.maketrans("aeopcxyiABEKMHOPCTX", "аеорсхуіАВЕКМНОРСТХ")
DISGUISES: Final[dict[str, Callable[[str], str]]] = {
    "none": str,
    **{f"U+{ord(one):04X}": (lambda text, one=one: text[:9] + one + text[9:]) for one in INVISIBLE},
    **{f"U+{ord(one):04X} everywhere": one.join for one in INVISIBLE},
    "look-alikes": lambda text: text.translate(LOOK_ALIKE),
    "full width": lambda text: "".join(chr(ord(one) + 0xFEE0) for one in text),
    "JSON": lambda text: "".join(f"\\u{ord(one):04x}" for one in text),
    "URL": lambda text: "".join(f"%{ord(one):02X}" for one in text),
    "hexadecimal": lambda text: text.encode().hex(),
}


def read(text: str) -> str:
    """What a hostile reader makes of a text."""
    text = re.sub(r"\\+u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text)
    text = re.sub(r"%([0-9A-F]{2})", lambda found: chr(int(found[1], 16)), text)
    text = re.sub(r"(?:[0-9a-f]{2}){8,}", lambda found: bytes.fromhex(found[0]).decode("latin-1"), text)
    kept = "".join(one for one in normalize("NFKC", text) if category(one) not in ("Cf", "Cc", "Mn", "Lo"))
    return kept.translate(
        {ord(look): plain for plain, look in zip("aeopcxyiABEKMHOPCTX", "аеорсхуіАВЕКМНОРСТХ", strict=True)}
    )


def parts(secret: str) -> set[str]:
    return {secret[at : at + PART] for at in range(len(secret) - PART + 1)}


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=60),
    st.sampled_from(SECRETS),
    st.sampled_from(sorted(DISGUISES)),
    st.text("ab \n", max_size=60),
)
def test_no_part_of_a_secret_is_in_anything_that_is_made_of_a_source(
    before: str, secret: str, disguise: str, after: str
) -> None:
    hidden = DISGUISES[disguise](secret)
    content = f"{before} {hidden} {after}. " + "More of it is told here. " * 30
    node = KnowledgeNode(
        "artifact:a", "document", f"{hidden} notes", content, 1, tags=(hidden,), speaker=f"{hidden} Lee"
    )
    shown, _, withheld = node.redacted(RedactionPolicy(redactor_of_packages()))
    assert not withheld
    parted = parts_of(shown.content or "", shown.kind, shown.ref, "more of it", floor=1.0)
    told = [shown.title, shown.heading, shown.content or "", *shown.projections, *shown.tags, shown.speaker or ""]
    told += [text for one in parted for text in (one.passage.text, *one.passage.headings)]
    told += excerpts(parted, shown.title)
    for text in (*told, *map(quoted_lines, told)):
        assert not [part for part in parts(secret) if part in read(text)]


def grouped(size: int, between: str) -> Callable[[str], str]:
    """What writes a text in groups of one length."""
    return lambda text: between.join(text[at : at + size] for at in range(0, len(text), size))


WITHIN_WORDS: Final[dict[str, Callable[[str], str]]] = {
    "Markdown's escapes": lambda text: re.sub(r"([-_.@])", r"\\\1", text),
    "Markdown's emphasis": lambda text: f"{text[:6]}**{text[6:12]}**{text[12:]}",
    "elements": lambda text: f"{text[:6]}<b>{text[6:12]}</b>{text[12:]}",
    "a comment": lambda text: f"{text[:9]}<!-- x -->{text[9:]}",
    "two strings": lambda text: f"'{text[:9]}' + '{text[9:]}'",
    "octal": lambda text: "".join(f"\\{ord(one):03o}" for one in text),
    "quoted-printable": lambda text: "".join(f"={ord(one):02X}" for one in text),
    "numbers": lambda text: " ".join(str(ord(one)) for one in f"key={text}"),  # two digits each would be hexadecimal
    "letter by letter": " ".join,
    **{f"letter by letter with {between!r}": between.join for between in (", ", "\t", "  ", "_", '","', "🙂")},
    "tags": lambda text: "".join(chr(0xE0000 + ord(one)) for one in text),
    **{f"groups of {size}": grouped(size, " ") for size in (2, 4, 5)},
    "escapes of style sheets": lambda text: "".join(f"\\{ord(one):x} " for one in text),
    "nothing put in": lambda text: f'{text[:9]}${{""}}{text[9:]}',
    "three strings": lambda text: f'"{text[:3]}" + \'{text[3:12]}\' + f"{text[12:]}"',
    "strings of SQL": lambda text: f"'{text[:9]}' || '{text[9:]}'",
    "a link": lambda text: f"[{text[:9]}](https://x.example/a){text[9:]}",
    "quoted-printable, in small letters": lambda text: "".join(f"={ord(one):02x}" for one in text),
}


def thirds(text: str) -> list[str]:
    size = -(-len(text) // 3)
    return [text[at : at + size] for at in range(0, len(text), size)]


IN_PIECES: Final[dict[str, Callable[[str], str]]] = {
    **{f"lines of {size}": grouped(size, "\n") for size in (1, 2, 3, 4, 8)},
    **{f"{between!r} between letters": between.join for between in ("\r", "\v", "\f", "\r\n")},
    "quoted lines": grouped(4, "\n> "),
    "groups with dashes": grouped(4, " - "),
    "groups with commas": grouped(4, ", "),
    "cells": lambda text: f"| {text[:9]} | {text[9:15]} | {text[15:]} |",
    "cells of HTML": lambda text: f"<td>{text[:9]}</td><td>{text[9:]}</td>",
    "base32": lambda text: b32encode(f"my key is {text}".encode()).decode(),
    "base64 of other letters": lambda text: b64encode(f"café {text} bye".encode()).decode(),
    "from its end": lambda text: text[::-1],
    "lines of e-mails": grouped(9, "=\n"),
    "lines that end in elements": grouped(9, "<br>\n"),
    "lines of elements": lambda text: "\n" + "".join(f"  <td>{part}</td>\n" for part in thirds(text)),
    "numbered rows": lambda text: "\n" + "".join(f"| {at} | {part} |\n" for at, part in enumerate(thirds(text))),
    "named lines": lambda text: "\n" + "".join(f"Part {at}: {part}\n" for at, part in enumerate(thirds(text))),
    "a log": lambda text: "\n" + "".join(f"2026-01-02T10:00:00Z INFO {part}\n" for part in thirds(text)),
    "values of JSON": lambda text: (
        "{" + ", ".join(f'"part{at}": "{part}"' for at, part in enumerate(thirds(text))) + "}"
    ),
    "variables": lambda text: "\n".join(f'part{at} = "{part}"' for at, part in enumerate(thirds(text))),
    "calls": lambda text: "\n".join(f'strcat(k, "{part}");' for part in thirds(text)),
    "values of a query": lambda text: "?" + "&".join(f"p{at}={part}" for at, part in enumerate(thirds(text))),
    "groups with dots": grouped(4, "..."),
    "a footnote": lambda text: f"{text[:12]}[^1]{text[12:]}",
}
"""What the forms of secrets are known in."""


@pytest.mark.parametrize("secret", SECRETS[:3], ids=["GitHub", "OpenAI", "AWS"])
@pytest.mark.parametrize("disguise", IN_PIECES)
def test_a_secret_is_found_in_pieces(disguise: str, secret: str) -> None:
    hidden = IN_PIECES[disguise](secret)
    shown = redactor_of_packages().redact(f"Use {hidden} for it.")
    least = len(hidden) * PART // len(secret)
    if disguise == "a log":  # the time and the level before the first piece are longer, and stay
        assert not [part for part in parts(secret) if part in shown], shown
    else:
        assert not [at for at in range(len(hidden) - least) if hidden[at : at + least] in shown], shown


@pytest.mark.parametrize(
    "text",
    [
        "sk- is what keys begin with, and ghp_ is what those of GitHub do",
        "This word that they have used with them 2nd time",
        "| ghp_ | 36 letters and digits |\n| sk-  | 48 letters and digits |",
        "- AKIA\n- ASIA\n- second item 2\n- third",
        "id1\nid2\nid3\nid4\nid5",
        "4111 1111",
        'prefix = "ghp_"\nlength = 36\nalphabet = "abc"',
        "step1: open\nstep2: read\nstep3: close",
        'print("ghp_" + name + "1")',
        "[ghp_](https://x.example/ghp) and [sk-](https://x.example/sk) are forms",
    ],
)
def test_what_only_begins_as_secrets_do_is_left(text: str) -> None:
    assert SecretRedactor().redact(text) == text


@pytest.mark.parametrize("secret", SECRETS, ids=["GitHub", "OpenAI", "AWS", "e-mail"])
@pytest.mark.parametrize("disguise", WITHIN_WORDS)
def test_a_secret_is_found_within_markup_and_spelled(disguise: str, secret: str) -> None:
    hidden = WITHIN_WORDS[disguise](secret)
    shown = redactor_of_packages().redact(f"Use {hidden} for it.")
    least = len(hidden) * PART // len(secret)
    assert not [at for at in range(len(hidden) - least) if hidden[at : at + least] in shown], shown


@pytest.mark.parametrize(
    "said",
    [
        *("das Passwort lautet {}", "le mot de passe est {}", "la password è {}", "a senha é {}", "hasło to {}"),
        *(
            "密码是{}",
            "パスワードは{}です",
            "비밀번호는 {}",
            "setx DB_PASS {}",
            "{} is the password",
            '"{}" is my wifi password',
        ),
    ],
)
def test_a_password_is_told_in_many_languages(said: str) -> None:
    password = "hunter22xyzzy"
    assert password not in redactor_of_packages().redact(said.format(password))


@pytest.mark.parametrize("number", ["4111111111111111", "+442079460958", "212-09-4567"], ids=["card", "phone", "SSN"])
@pytest.mark.parametrize("between", [", ", "\t", "  ", "_", '","', "🙂", "\r", "\v", "\f", "\r\n", " | ", "; "])
def test_a_number_is_found_digit_by_digit(between: str, number: str) -> None:
    hidden = between.join(number)
    assert hidden not in redactor_of_packages().redact(f"Use {hidden} for it.")


@pytest.mark.parametrize("number", ["4111111111111111", "+442079460958", "212-09-4567"], ids=["card", "phone", "SSN"])
def test_a_number_is_found_in_octal(number: str) -> None:
    hidden = "".join(f"\\{ord(one):03o}" for one in number)
    assert hidden not in redactor_of_packages().redact(f"Use {hidden} for it.")


@pytest.mark.parametrize("disguise", ["variables", "values of a query"])
@pytest.mark.parametrize("said", ["anna.smith@example.org", "DE89370400440532013000"], ids=["e-mail", "IBAN"])
def test_personal_data_is_found_in_parts_with_names(said: str, disguise: str) -> None:
    hidden = IN_PIECES[disguise](said)
    assert not [part for part in thirds(said)[1:] if part in redactor_of_packages().redact(f"Use {hidden} for it.")]


@pytest.mark.parametrize("disguise", ["groups with dashes", "groups with dots", "lines of 8"])
@pytest.mark.parametrize("secret", [f"glpat-{token('', 20)}", f"sk_live_{token('', 24)}"], ids=["GitLab", "Stripe"])
def test_a_keyword_in_two_pieces_is_found(secret: str, disguise: str) -> None:
    hidden = IN_PIECES[disguise](secret)
    assert hidden[10:30] not in redactor_of_packages().redact(f"Use {hidden} for it.")


@pytest.mark.parametrize(
    "said", ["password={}", "API_TOKEN={}", "postgres://admin:{}@db.example.org/x"], ids=["password", "key", "URL"]
)
def test_what_is_assigned_is_found_from_its_end(said: str) -> None:
    secret = token("", 16)
    assert secret[::-1] not in redactor_of_packages().redact(f"Use {said.format(secret)[::-1]} for it.")


@pytest.mark.parametrize(
    "text",
    [
        "4, 7, 7, 8, 9, 8, 3, 7, 6, 1, 0, 1, 4, 9",
        "1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 1",
        "5\t2\t0\t8\t6\t1\t3\t9\t1\t8\t4\t2\t9\t4\t1",
        "12, 09, 45 and 2024-01-02; 3, 4, 5, 6, 7, 8, 9, 10",
        "see user@host:22 and file://share or //:80",
    ],
)
def test_lists_of_digits_are_left(text: str) -> None:
    assert redactor_of_packages().redact(text) == text


@pytest.mark.parametrize("between", [" ", "  ", ", ", ",", "\t", " | ", "; ", "/"])
@pytest.mark.parametrize("count", [14, 15, 16])
def test_rows_of_single_digits_are_left(between: str, count: int) -> None:
    rng = random.Random(count)
    rows = [between.join(rng.choices("0123456789", k=count)) for _ in range(40)]
    rows.insert(20, between.join("4111111111111111"))  # whose checksum one row in ten has
    text = "\n".join(("Presses of each key by the hour:", *rows, ""))
    assert redactor_of_packages().redact(text) == text


@pytest.mark.parametrize("before", ["Use {} for it.", "The card:\n{}\n{}\n", "{}"])
def test_a_card_that_is_no_row_of_a_table_is_found_digit_by_digit(before: str) -> None:
    hidden = ", ".join("4111111111111111")
    assert hidden not in redactor_of_packages().redact(before.format(hidden, hidden))


@pytest.mark.parametrize("below", ["4111111111111111", "2025550143", "12271", "5500005555555559"])
def test_two_rows_of_digits_are_no_table(below: str) -> None:
    hidden = " ".join("4111111111111111")
    assert hidden not in PiiRedactor().redact(f"It is\n{hidden}\n{' '.join(below)}\n")


def test_a_phone_number_behind_a_list_of_single_digits_is_found() -> None:
    listed = "1, 2, 3, 4, 5, 6, 7, 8, 9, 0, " * 3
    assert "0143" not in PiiRedactor().redact(f"{listed}202-555-0143 is new")


def test_no_phone_number_is_looked_for_in_a_list_of_single_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[str] = []
    redactor = PiiRedactor()

    def matcher(text: str, *_: object, **__: object) -> tuple[()]:
        looked_at.append(text)
        return ()

    monkeypatch.setattr(redactor, "_phone_matcher", matcher)
    redactor.redact("- 1 " * 500 + "call +44 20 7946 0958")
    assert looked_at
    assert all(sum(map(str.isdigit, text)) < 50 for text in looked_at)


@pytest.fixture
async def client(api: ApiServer) -> AsyncIterator[httpx.AsyncClient]:
    async with api.client(api.key(Role.WRITER, f"lab-{uuid4().hex[:8]}")) as one:
        yield one


@pytest.mark.engines
async def test_what_a_budget_cuts_is_redacted_whole(client: httpx.AsyncClient) -> None:
    password = "correct1horse2battery"
    lines = [f"Line {number} of the runbook says what to do." for number in range(150)]
    for place in (1, 40, 120):
        text = "\n".join([*lines[:place], "The password is:", f"    {password}", *lines[place:]])
        artifact = {"kind": "document", "title": "Runbook", "content": text, "sensitivity": "confidential"}
        (await client.put(f"/knowledge/artifacts/artifact:{place}", json=artifact)).raise_for_status()
        for budget in (60, 90, 150, 300, 700, 1_500, 4_000):
            asked = {"intent": "runbook", "tokenBudget": budget, "pinned": [f"artifact:{place}"]}
            built = await client.post("/knowledge/context/build", json=asked)
            assert not [part for part in parts(password) if part in built.text], (place, budget)


@pytest.mark.engines
async def test_no_field_of_a_confidential_artifact_shows_a_secret(client: httpx.AsyncClient) -> None:
    secret = SECRETS[0]
    artifact = {
        "kind": "document", "title": f"x {secret}", "content": secret, "sensitivity": "confidential", "type": secret,
        "moduleId": secret, "projectId": secret, "tags": [secret], "source": secret,
    }  # fmt: skip
    (await client.put("/knowledge/artifacts/artifact:a", json=artifact)).raise_for_status()
    built = await client.post("/knowledge/context/build", json={"intent": "x", "tokenBudget": 2000})
    path = f"/knowledge/context/{built.json()['contextPackageId']}"
    answers = [built.text] + [
        (await client.get(one)).raise_for_status().text
        for one in ("/knowledge/artifacts/artifact:a", path, f"{path}?format=prompt", f"{path}/audit")
    ]
    for text in answers:
        assert not [part for part in parts(secret) if part in text]
