"""Whatever somebody may say, and a listener send, as hypothesis strategies."""

from __future__ import annotations

import sys
from typing import Any, Final

from hypothesis import strategies as st


def _odd_cases() -> list[str]:
    """Characters whose cases differ in length or do not lead back, such as ß, İ, ı, ſ and the Kelvin sign."""
    every = (chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000)
    return [
        char
        for char in every
        if len(char.lower()) + len(char.upper()) + len(char.casefold()) > 3
        or char.lower().upper() not in (char, char.upper())
    ]


ODD_CASES: Final = st.deferred(lambda: st.sampled_from(_odd_cases()))
"""Found when first drawn: it takes a second."""

BIDI: Final = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\u200b\u200c\u200d\ufeff"
BLANKS: Final = "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f\x85\xa0\u2028\u2029\u3000"
SENTENCES: Final = (
    "I prefer coffee, I think, over tea.",
    "Please call me Dr. Ann Lee, thanks",
    "From now on, answer in bullet points; I dislike it when my mail is late.",
    "Let's decide: we go with Postgres. No, that is wrong!",
    "Who will send it? I will, by Friday 12:30 (2025-W40).",
    "uh, I I mean the the DNA replicates, you know",
    "key = sk-abcdef0123456789abcdef0123456789, password: hunter2 at http://user:pw@host:99999/x?y=[1]",
    "'quoted' \"text\" „so“ «da» `code` <|endoftext|> {{messages}} §§secret(KEY) 3.5% ½ Ⅷ ٣",
)
_LOOKALIKES: Final = {"i": "ı", "I": "İ", "s": "ſ", "k": "\u212a", "e": "e\u0301", " ": "\u3000", "-": "\u2011"}


@st.composite
def misspelt(draw: st.DrawFn) -> str:
    """A sentence some of whose letters are replaced by others that look alike or fold to them, with one character in
    another case and one added."""
    said = draw(st.sampled_from(SENTENCES))
    for letter in draw(st.sets(st.sampled_from([*_LOOKALIKES]))):
        said = said.replace(letter, _LOOKALIKES[letter])
    at = draw(st.integers(0, len(said) - 1))
    return f"{said[:at]}{said[at].swapcase()}{draw(st.characters(exclude_categories=['Cs']))}{said[at + 1 :]}"


texts: st.SearchStrategy[str] = st.one_of(
    st.text(max_size=200),
    st.text(ODD_CASES | st.sampled_from("aiIsSkK '.,"), max_size=60),
    st.text(st.sampled_from([*BIDI, *BLANKS, "\u0301", "a", "\x00", "\x1b"]), max_size=60),
    misspelt(),
    st.lists(misspelt(), max_size=4).map(" ".join),
    st.builds(str.__mul__, st.text(min_size=1, max_size=5) | st.sampled_from(SENTENCES), st.integers(1, 400)),
)
"""Texts from all planes of Unicode, in all cases, in all directions; like sentences with patterns in them; and long."""

timestamps: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.datetimes(timezones=st.none() | st.timezones()).map(lambda moment: moment.isoformat()),
    st.sampled_from(
        (
            "2025-10-02 10:30:45,123",
            "2025-W40-4T10:00",
            "2025-10-02T10:30:45+23:59",
            "2025-10-02T24:00:00",
            "0001-01-01T00:00:00+23:59",
            "9999-12-31T23:59:59.999999-23:59",
            "9999-12-31T24:00",
        )
    ),
    st.integers() | st.floats() | texts,
)

messages: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"text": texts},
    optional={
        "speaker": texts | st.sampled_from(("Alice", "Consilience", "Unknown")),
        "message_number": st.integers(0, 2**53 - 1) | st.integers(0, 9),
        "timestamp": timestamps,
        "confidence": st.floats() | st.integers(),
        "metadata": st.fixed_dictionaries({}, optional={"user_id": texts | st.integers(), "more": st.lists(texts)}),
    },
)
"""Messages as a listener may send them, half of them without a number."""
