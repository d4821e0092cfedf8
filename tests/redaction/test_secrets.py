"""Keys, tokens and passwords are masked; talk about them is not."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_builder.redaction import SecretRedactor
from context_builder.redaction.codes import CodeList
from context_builder.redaction.secret import Secret, masked
from context_builder.redaction.secret_patterns import secrets_in
from context_builder.redaction.secrets import LineContext
from context_builder.redaction.tables import Columns

REDACTOR = SecretRedactor()
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq0\nabcd==\n-----END RSA PRIVATE KEY-----"

LOGGED = (
    "".join(f"2025-10-02T10:30:45.{place}Z cat: {line}\n" for place, line in enumerate(KEY.split("\n"), 1))
    + "2025-10-02T10:30:46.99Z cat: done it"
)

MASKED = {
    "These:\ngravity machine north\nsort system female filter\nattitude volume fold club stay\nThanks": (
        "These:\n§§secret(PASSWORD)\nThanks"
    ),
    "seed phrase: kelp moss fern reed\nkelp moss fern reed\n> kelp moss fern reed": "seed phrase: §§secret(PASSWORD)",
    "my key is sk-proj-abcdefghijklmnop1234567890.": "my key is §§secret(API_KEY).",
    "AKIA" + "Q3EGRVS2N5HXJ7KD": "§§secret(AWS_ACCESS_KEY)",
    "push with ghp_" + "a1" * 18: "push with §§secret(GITHUB_TOKEN)",
    "postgres://bob:s3cr3tpw@host/db": "postgres://bob:§§secret(BASIC_AUTH_CREDENTIALS)@host/db",
    "Authorization: Bearer abcdefghijklmnop.qrst": "Authorization: Bearer §§secret(BEARER_TOKEN)",
    "x eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3": "x §§secret(JSON_WEB_TOKEN)",
    "password = correct-horse": "password = §§secret(PASSWORD)",
    "the password is hunter22, keep it": "the password is §§secret(PASSWORD), keep it",
    "api_key: 'abc123def456'": "api_key: '§§secret(KEY)'",
    f"before\n{KEY}\nafter": "before\n§§secret(PRIVATE_KEY)\nafter",
    "a -----BEGIN PRIVATE KEY-----MIIa-----END PRIVATE KEY----- b": "a §§secret(PRIVATE_KEY) b",
    "-----BEGIN PRIVATE KEY-----\nwe were cut off": "§§secret(PRIVATE_KEY)\nwe were cut off",
    "he wrote:\n> " + KEY.replace("\n", "\n> ") + "\n> thanks": "he wrote:\n> §§secret(PRIVATE_KEY)\n> thanks",
    LOGGED: "2025-10-02T10:30:45.1Z cat: §§secret(PRIVATE_KEY)\n2025-10-02T10:30:46.99Z cat: done it",
    "password=§§secret(A)realpass123 is set": "password=§§secret(A)§§secret(PASSWORD) is set",
    "the password for the guest wifi is hunter22.": "the password for the guest wifi is §§secret(PASSWORD).",
    "the root password is now hunter22": "the root password is now §§secret(PASSWORD)",
    "the password was changed to hunter22 today": "the password was changed to §§secret(PASSWORD) today",
    "use token kQ3x9Lw2Pz for now": "use token §§secret(KEY) for now",
    "the active credential remains st_lab_4Q7L-X2MP": "the active credential remains §§secret(KEY)",
    "the access token (of staging) kQ3x9Lw2Pz": "the access token (of staging) §§secret(KEY)",
    "log in with id/pw ann/kQ3x9Lw2Pz": "log in with id/pw §§secret(PASSWORD)",
    "kQ3x9Lw2Pz, I said: the password is kQ3x9Lw2Pz": "§§secret(PASSWORD), I said: the password is §§secret(PASSWORD)",
    "новый токен: kQ3x9Lw2Pz": "новый токен: §§secret(KEY)",
    "비밀번호 kQ3x9Lw2Pz": "비밀번호 §§secret(PASSWORD)",
    "smtps://ann@example.org:hunter22@mail": "smtps://ann@example.org:§§secret(BASIC_AUTH_CREDENTIALS)@mail",
    'env["DB_PASSWORD"] || "hunter22"': 'env["DB_PASSWORD"] || "§§secret(PASSWORD)"',
    "my password is: hunter2": "my password is: §§secret(PASSWORD)",
    "pw: hunter22": "pw: §§secret(PASSWORD)",
    "DB_PW=hunter": "DB_PW=§§secret(PASSWORD)",
    "the password is 'correct horse battery', he said": "the password is '§§secret(PASSWORD)', he said",
    "my passphrase was “correct horse battery”": "my passphrase was “§§secret(PASSWORD)”",
    "use cGFzc3dvcmQ6IGh1\nbnRlcjIyeHl6enk= for it": "use §§secret(PASSWORD) for it",
    "passwor=\nd: hunter=\n22xyz": "passwor=\nd: §§secret(PASSWORD)",
    "the AWS secret wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY is old": "the AWS secret §§secret(AWS_SECRET_KEY) is old",
}

PLAIN = [
    "the manual has AKIA" + "IOSFODNN7EXAMPLE for a key",
    "the password is required",
    "the secret: be kind to people",
    "token economies and key results",
    "see https://example.org/a/very/long/path/to-a-page-about-nothing.html",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "password=§§secret(DB_PASSWORD) and token: §§secret(API)",
    "is the password=§§secret(DB_PASSWORD)? (token=§§secret(API).)",
    "we pwned 3 of 4 targets: nothing1 was lost",
    "the secret key is 'be kind'",
    "the password for the old server is on page 12, ask Ann",
    "the token expires in May 2026, as ticket AB-1234 says. Ask for iPhone15Pro or kQ3x9Lw2Pz",
    "his secret is the MacBook Air M2 that room B12 has",
    "the token ops_kQ3x9Lw2Pz... is cut off",
    "we pass kQ3x9Lw2Pz by",
    "on aws we run commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
]


@pytest.mark.parametrize("text", MASKED)
def test_a_secret_is_masked_and_the_rest_stays(text):
    assert REDACTOR.redact(text) == MASKED[text]


@pytest.mark.parametrize("text", PLAIN)
def test_talk_and_placeholders_stay_as_they_are(text):
    assert REDACTOR.redact(text) == text


@pytest.mark.parametrize("text", [*MASKED, *PLAIN])
def test_a_stream_gives_the_same_wherever_it_is_cut(text):
    whole = REDACTOR.redact(text)
    for cut in range(len(text) + 1):
        stream = REDACTOR.stream()
        assert stream.feed(text[:cut]) + stream.feed(text[cut:]) + stream.close() == whole


@pytest.mark.parametrize("sign", ["> ", "| ", "# ", "- ", ""])
def test_a_stream_gives_the_same_wherever_a_quotation_is_cut(sign):
    secret = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    text = "key ghp_" + "".join(f"\n{sign}{secret[place : place + 4]}" for place in range(0, 36, 4)) + "\n"
    for cut in range(len(text)):
        stream = REDACTOR.stream()
        told = stream.feed(text[:cut]) + stream.feed(text[cut:]) + stream.close()
        assert told == REDACTOR.redact(text) == "key §§secret(GITHUB_TOKEN)\n"


def test_words_behind_a_secret_in_groups_stay():
    secret = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    groups = " ".join(secret[place : place + 4] for place in range(0, 40, 4))
    assert REDACTOR.redact(f"{groups} no, keep it") == "§§secret(GITHUB_TOKEN) no, keep it"


def test_a_stream_holds_back_little_of_short_and_long_lines():
    stream, talk = REDACTOR.stream(), "Yes.\nThe meeting is on Tuesday in the big room.\n" * 200
    told = "".join(map(stream.feed, talk.splitlines(keepends=True)))
    assert len(talk) - len(told) < 2_100


def test_a_stream_gives_the_same_character_by_character():
    text = "\n".join((*MASKED, *PLAIN))
    stream = REDACTOR.stream()
    assert "".join(map(stream.feed, text)) + stream.close() == REDACTOR.redact(text)


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["\n", KEY, " ", "-----BEGIN PRIVATE KEY-----", "abc", "key=abcd1234", "é"]), max_size=12),
    st.data(),
)
def test_any_cut_of_any_text_gives_the_same(parts, data):
    text = "".join(parts)
    cut = data.draw(st.integers(0, len(text)))
    stream = REDACTOR.stream()
    assert stream.feed(text[:cut]) + stream.feed(text[cut:]) + stream.close() == REDACTOR.redact(text)


HEADS = ("password", "backup codes", "recovery key", "2fa secret", "user", "PIN", "license key", "spare")
CELLS = (
    *("abcd1234", "hunter22xy", "efgh5678", "8f3a-91bc 77d2-0c4e", "JBSWY3DPEHPK3PXP", "4711", "ann", "rain4you"),
    *("password is kQ3x9Lw2Pz", "recovery codes: 5k2m-44xz and 6b9t-83qw", "key=zyx98wvu"),
)


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(HEADS), min_size=1, max_size=4),
    st.lists(st.sampled_from(CELLS), min_size=1, max_size=4, unique=True),
    st.sampled_from(["{}", "| {} |", "{}:", "- {}"]),
    st.sampled_from([" | ", ",", "\t", " "]),
)
def test_secrets_never_overlap_and_nothing_of_one_is_shown(heads, cells, form, between):
    head, line = form.format(between.join(heads)), form.removesuffix(":").format(between.join(cells))
    context, columns, codes = LineContext(), Columns(), CodeList()
    for one in (context, columns, codes):
        list(one.secrets(head))
    spans = context.secrets(line)
    assert all(one.start < one.end <= after.start for one, after in pairwise(spans))
    shown = masked(line, spans)
    for found in (*secrets_in(line), *(list(columns.secrets(line)) or codes.secrets(line))):
        assert not any(line[at : at + 8] in shown for at in range(found.start, found.end - 7))


def test_secrets_that_overlap_are_masked_as_one():
    overlapping = [Secret(8, 14, "PASSWORD"), Secret(0, 12, "KEY"), Secret(2, 4, "PIN"), Secret(14, 16, "PIN")]
    assert masked("0123456789abcdefgh", overlapping) == "§§secret(KEY)§§secret(PIN)gh"


def test_what_is_safe_to_show_is_shown_line_by_line():
    stream = REDACTOR.stream()
    assert stream.feed("first line\nkey is sk-proj-abcdef") == "first line\n"
    assert stream.feed("ghijklmnop1234567890\n") == "key is §§secret(API_KEY)\n"


@pytest.mark.parametrize("text", [text for text in MASKED if KEY not in text])
def test_redacting_again_changes_nothing(text):
    once = REDACTOR.redact(text)
    assert REDACTOR.redact(once) == once


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        "sk-",
        "aws ",
        "pw is '",
        "> -----BEGIN PRIVATE KEY-----\n> ",
        "xoxb-1-",
        "eyJ",
        "password=",
        "-----BEGIN PRIVATE KEY-----",
        "http://a:",
        "0",
        "monday10, ",
    ],
)
def test_text_made_to_be_slow_is_not(part):
    started = time.process_time()
    REDACTOR.redact(part * (60_000 // len(part)))
    assert time.process_time() - started < 2.0
