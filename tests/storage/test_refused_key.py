"""A server that refuses a key says why, and the key is not shown."""

from __future__ import annotations

import orjson
import pytest

from context_builder.storage.refusal import words_of_refusal

KEY = "sk-proj-Ab3dEf6hIj9kLmNoPqRs"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"error": {"message": "Invalid API Key"}}, "“Invalid API Key”"),
        ({"error": "no such user"}, "“no such user”"),
        ({"detail": "Not\n authenticated"}, "“Not authenticated”"),
        ([{"error": {"message": "API key not valid."}}], "“API key not valid.”"),
        (
            {"error": {"message": f"Incorrect API key provided: {KEY}. See us."}},
            "“Incorrect API key provided: …. See us.”",
        ),
        (
            {
                "error": {
                    "message": "Incorrect API key provided: sk-proj****PqRs. Find yours at https://a.example/keys."
                }
            },
            "“Incorrect API key provided: ….”",
        ),
        ({"error": {"message": f"Bad key {KEY[:12]} or {KEY[-8:]}"}}, "“Bad key … or …”"),
        ({"error": {"message": "Key 0123456789abcdef0 is another's"}}, "“Key … is another's”"),
        ({"error": {"message": 7}}, ""),
        ({"error": None}, ""),
        ({"error": "upstream https://me:secret@gateway/v1 said no"}, "“upstream … said no”"),
        ("refused", ""),
    ],
)
def test_the_message_is_quoted_in_a_line_without_the_key(said: object, words: str) -> None:
    assert words_of_refusal(orjson.dumps(said), KEY, "") == words


def test_what_is_no_json_says_nothing() -> None:
    assert words_of_refusal(b"<html>401</html>", KEY, "") == ""


def test_long_words_are_cut() -> None:
    assert len(words_of_refusal(orjson.dumps({"message": "no " * 500}), "", "")) == 202


@pytest.mark.parametrize("echo", ["Ida's password is fish", "IDA's  password\nis fish"])
def test_words_that_quote_the_request_are_not_shown(echo: str) -> None:
    sent = "Find the topics.\nAlice: Ida's password is fish."
    assert words_of_refusal(orjson.dumps({"error": f"not allowed to read: {echo}"}), KEY, sent) == ""
