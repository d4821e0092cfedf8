"""Secrets are masked in the disguises that text brings with it: escapes, encodings, odd characters."""

from __future__ import annotations

import json
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable
from itertools import accumulate, pairwise
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_builder.redaction import SecretRedactor
from tests.redaction.tokens import token

REDACTOR = SecretRedactor()
TOKEN = token("ghp_", 36)
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{token('MII', 61)}\n{token('', 50)}==\n-----END RSA PRIVATE KEY-----"
GITHUB = "§§secret(GITHUB_TOKEN)"

DISGUISED = {
    "zero width": (TOKEN[:9] + "\u200b" + TOKEN[9:], GITHUB),
    "soft hyphens": ("\u00ad".join(TOKEN), GITHUB),
    "control characters": (TOKEN[:9] + "\x01" + TOKEN[9:20] + "\x7f" + TOKEN[20:], GITHUB),
    "invisible signs": ("\u2066".join(TOKEN[:9]) + "\u180e" + "\U000e0041".join(TOKEN[9:]), GITHUB),
    "blank letters": (f"{TOKEN[:9]}\u3164{TOKEN[9:20]}\u034f{TOKEN[20:]}\ufe0f", GITHUB),
    "struck through": ("\u0336".join(TOKEN), GITHUB),
    "look-alike letters": (TOKEN.translate(str.maketrans("hpaeo", "һраео")), GITHUB),
    "escapes of JSON": ("".join(f"\\u{ord(char):04x}" for char in TOKEN), GITHUB),
    "one escape of JSON": (TOKEN.replace("_", "\\u005f"), GITHUB),
    "escapes of HTML": ("".join(f"&#{ord(char)};" for char in TOKEN), GITHUB),
    "escapes of URLs in escapes of URLs": ("%2567" + TOKEN[1:], GITHUB),
    "hexadecimal": (f"it is {TOKEN.encode().hex()}!", f"it is {GITHUB}!"),
    "hexadecimal, apart": (f"it is {TOKEN.encode().hex(' ')}!", f"it is {GITHUB}!"),
    "a password, hexadecimal": (f"the password is {b'hunter22'.hex(':')}", "the password is §§secret(PASSWORD)"),
    "a line break": (f"use {TOKEN[:20]}\n{TOKEN[20:]} now", f"use {GITHUB} now"),
    "a line break early": (f"use\n{TOKEN[:3]}\r\n  {TOKEN[3:]} now", f"use\n{GITHUB} now"),
    "a quoted line break": (f"> use {TOKEN[:20]}\n> {TOKEN[20:]} now", f"> use {GITHUB} now"),
    "a line break behind enough": (
        f"sk-proj-{TOKEN[4:30]}\n{TOKEN[-12:]} now",
        "§§secret(API_KEY)\n§§secret(API_KEY) now",
    ),
    "a line break in a password": ("the password is hunt\ner22x", "the password is §§secret(PASSWORD)"),
    "two strings in PHP": (f"'{TOKEN[:12]}' . '{TOKEN[12:]}'", f"'{GITHUB}'"),
    "a comment within": (f"{TOKEN[:12]}/* no */{TOKEN[12:]}", GITHUB),
    "dashes between letters": ("-".join(TOKEN), GITHUB),
    "full width": ("".join(chr(ord(char) + 0xFEE0) for char in TOKEN), GITHUB),
    "JSON": (json.dumps({"said": f"it is\n{TOKEN}\nbye"}), f'{{"said": "it is\\n{GITHUB}\\nbye"}}'),
    "JSON in JSON": (json.dumps(json.dumps({"a": TOKEN})), f'"{{\\"a\\": \\"{GITHUB}\\"}}"'),
    "a password in JSON": (json.dumps("password=hunter22\n"), '"password=§§secret(PASSWORD)\\n"'),
    "URL-encoded": (
        f"https://x.example/?q={quote('a=' + TOKEN + '&b', safe='')}",
        f"https://x.example/?q=a%3D{GITHUB}%26b",
    ),
    "base64": (b64encode(f"token {TOKEN}".encode()).decode(), GITHUB),
    "base64url": (urlsafe_b64encode(TOKEN.encode()).decode().rstrip("="), GITHUB),
    "a password in base64": (b64encode(b"password=hunter22x").decode(), "§§secret(PASSWORD)"),
    "a private key in base64": (b64encode(PEM.encode()).decode(), "§§secret(PRIVATE_KEY)"),
    "a private key in JSON": (json.dumps({"key": PEM}), '{"key": "§§secret(PRIVATE_KEY)"}'),
    "a private key in one line": (PEM.replace("\n", " "), "§§secret(PRIVATE_KEY)"),
    "a private key with carriage returns": (PEM.replace("\n", "\r\n"), "§§secret(PRIVATE_KEY)"),
    "a key of SSH2": (
        PEM.replace("-----BEGIN RSA", "---- BEGIN SSH2 ENCRYPTED").replace("Y-----", "Y ----", 1),
        "§§secret(PRIVATE_KEY)",
    ),
    "signs in an address": (
        "postgres://ann:p@ss:w/rd!@db/shop",
        "postgres://ann:§§secret(BASIC_AUTH_CREDENTIALS)@db/shop",
    ),
    "escapes in an address": ("amqp://ann:p%40ss%2F1@mq//", "amqp://ann:§§secret(BASIC_AUTH_CREDENTIALS)@mq//"),
    "a secret of AWS by itself": (f"use {token('', 40)} for it", "use §§secret(KEY) for it"),
    "a scheme before it": (f'"token": "FlyV1 {TOKEN}"', f'"token": "FlyV1 {GITHUB}"'),
    "Markdown": (f"**{TOKEN}** or `{TOKEN}`", f"**{GITHUB}** or `{GITHUB}`"),
    "a line separator": ("a\u2028password: hunter22", "a\u2028password: §§secret(PASSWORD)"),
    "a password backwards": ("it is yzzyx22retnuh :drowssap!", "it is §§secret(PASSWORD)!"),
    "a string that is turned": (f'"{TOKEN[::-1]}"[::-1]', f'"{GITHUB}"[::-1]'),
    "a password that is shown backwards": ("\u202e22xyzzyx :drowssap\u202c", "\u202e§§secret(PASSWORD)"),
    "a no-break space": ("password:\u00a0hunter22", "password:\u00a0§§secret(PASSWORD)"),
}


@pytest.mark.parametrize("disguise", DISGUISED)
def test_a_disguised_secret_is_masked(disguise):
    text, masked = DISGUISED[disguise]
    assert REDACTOR.redact(text) == masked


@pytest.mark.parametrize("disguise", DISGUISED)
def test_redacting_again_changes_nothing(disguise):
    once = REDACTOR.redact(DISGUISED[disguise][0])
    assert REDACTOR.redact(once) == once


@pytest.mark.parametrize(
    "text",
    [
        f"use {TOKEN}\nThanks for it",
        f"a\n{TOKEN}\n\nb",
        "the pat\ntern AB12\nAB13",
        f"x={TOKEN}\n2026-01-02T10:00 done",
    ],
)
def test_lines_around_a_whole_secret_are_left(text):
    assert REDACTOR.redact(text) == text.replace(TOKEN, GITHUB)


PARTS = st.sampled_from(
    [
        "\n",
        " ",
        "token:",
        "password: |",
        "data:",
        "  a: YWRtaW46cGFzc3dvcmQ=",
        TOKEN,
        "hunter22",
        TOKEN[:20],
        TOKEN[20:],
        "ab1\n",
        "> ",
        "\r",
        '" +',
        "\u200b",
        "§§secret(A)",
        PEM,
        '"',
    ]
)


@settings(deadline=None)
@given(st.lists(PARTS, max_size=12), st.data())
def test_any_cut_of_any_text_gives_the_same(parts, data):
    text = "".join(parts)
    cut = data.draw(st.integers(0, len(text)))
    stream = REDACTOR.stream()
    assert stream.feed(text[:cut]) + stream.feed(text[cut:]) + stream.close() == REDACTOR.redact(text)


def fed(text: str, cuts: Iterable[int]) -> str:
    """What a stream shows of a text that is cut there."""
    stream = REDACTOR.stream()
    return "".join(stream.feed(text[start:end]) for start, end in pairwise((0, *cuts, len(text)))) + stream.close()


def line_ends(text: str) -> list[int]:
    return [*accumulate(map(len, text.splitlines(keepends=True)))]


@pytest.mark.parametrize(
    "text",
    [
        'passw")\n\\\nc2""b""\n. ',
        "d(pass=2x!=\n2",
        "token:2stYWJj=\nG",
        "token:c2stYWJjx9=\nG7h8I9j0\nbye\n",
        "token sk-QUJDREVGR0hJSktM\n0hJS",
        'd>GFzc3dvcmQ\nc2stYWJjcGFzc3ssword1b"ten\n"',
        "1. sk-|</tr>\nPart 1: ghp_A1b2C3d4E5f6G7h8",
        'k = "ghp_" + \\\n"A1b2C3d4E5f6G7h8I9j0K1l2" + \\\n"M3n4O5p6Q7r8"\nbye\n',
        'password = (\n"hunt"\n"er22x!"\n)\nbye\n',
    ],
)
def test_lines_that_go_on_give_the_same_in_a_stream(text):
    whole = REDACTOR.redact(text)
    assert fed(text, line_ends(text)) == whole
    assert fed(text, range(len(text))) == whole


GOING_ON = st.sampled_from(
    [
        *("password", "token: ", "sk-", "ghp_", "x", "12", "chr(65)+", "= ", " ", "|", "> ", "1. ", "- ", "Part 1: "),
        *("\n", "\r\n", "=\n", "\\\n", "(\\\n", '")\n', '"a', 'b"', '" + "', 'k = "', 'k += "', ".append("),
        *("<td>", "</td>", "<tr>", "</tr>", "hunter22x!", "c2stYWJj", "cGFzc3dvcmQ6IGh1", "bnRlcjIyeHl6enk="),
        *("QUJDREVGR0hJSktM\n", "A1b2C3d4E5f6G7h8I9"),
    ]
)


NAMED = st.sampled_from(["token:", "pass=", "c2stYWJjx9", "=\n", "\\\n", "\n", '"'])


@settings(deadline=None, max_examples=600)
@given(st.one_of(st.lists(NAMED, max_size=8), st.lists(GOING_ON, max_size=25)).map("".join), st.data())
def test_any_cuts_of_lines_that_go_on_give_the_same(text, data):
    whole = REDACTOR.redact(text)
    assert fed(text, line_ends(text)) == whole
    assert fed(text, sorted(data.draw(st.sets(st.integers(0, len(text)))))) == whole


@settings(deadline=None)
@given(st.text())
def test_any_text_can_be_redacted_and_again(text):
    once = REDACTOR.redact(text)
    assert REDACTOR.redact(once) == once


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [":_auth", "key=a1", "token(", "a.", "a->", '"a" == ', "://a:", "-u a:", "-eyJ", "password:\n", "data:\n a: b\n",
     "\u200b", "QUJD ",
     "AB1\n", "ghp_a\n", "ghp_ ", "sk-1 ab ", "'a' + ", "EAAab1 cd2\n", "](a)", "| sk-", "\\41 ", "MFRGG2LT", "-ks ",
     "x@x:", "@://:a", "//:a ", "1.. ", "\\u0041", "ab ", "&#65;", "e\u0336", "%2525",
     "§§secret(A) " + TOKEN + " ", "name: token\nvalue: x\n", "-----BEGIN ", " ", "authorization: "],
)  # fmt: skip
def test_text_made_to_be_slow_is_not(part):
    started = time.process_time()
    REDACTOR.redact(part * (50_000 // len(part)))
    assert time.process_time() - started < 3.0
