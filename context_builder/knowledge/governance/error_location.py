"""This module finds the line and column of an error in a policy text, because Cedar reports only a message.

Where the text stops being the beginning of something valid, that token is the place. What parses but makes no sense is
narrowed down to the first condition, and in it to the first operand of ``&&`` or ``||``, with which the error appears;
the name that the message quotes is looked for there.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from context_builder.errors import PolicyError
from context_builder.knowledge.governance import cedar
from context_builder.knowledge.governance.policy_text import PolicyText, Token

Check = Callable[[str], str | None]
"""Returns what is wrong with a text of policies, None if nothing is."""

_SYNTAX: Final = ("unexpected end of input", "unexpected token", "invalid token")
_QUOTED: Final = re.compile(r"`([^`]+)`|'(=)'|(\?\w+)|: @?(\w+)$")
_KEYWORDS: Final = frozenset({"like", "when", "unless"})
_OWNERS: Final = {"principal": "`Agent`", "resource": "`Source`", "context": "in context"}
_OPENING: Final = frozenset("([{")
_CLOSING: Final = frozenset(")]}")


def parse_error(text: PolicyText) -> PolicyError | None:
    """Return the first error of a text that does not parse, None if it does."""
    if cedar.parse_error(text.text) is None:
        return None
    for policy in text.policies:
        message = cedar.parse_error(_source(text, policy))
        if message is None:
            continue
        if message.startswith(_SYNTAX):
            return _syntax_error(text, policy, message)
        return _meaning_error(text, policy, cedar.parse_error, message)
    return text.error(0, cedar.parse_error(text.text) or "does not parse")


def template_error(text: PolicyText) -> PolicyError | None:
    """Return the error of the first template, None if there is none: they would decide nothing."""
    slot = next((token for policy in text.policies for token in policy if token.text.startswith("?")), None)
    if slot is None and not cedar.has_templates(cedar.read_policies(text.text)):
        return None
    return text.error(slot.start if slot else 0, "templates are not supported")


def schema_error(text: PolicyText) -> PolicyError | None:
    """Return the first error of a text that parses but does not fit the schema, None if it does."""
    found = cedar.schema_error(text.text)
    if found is None:
        return None
    policy, message = text.policies[found[0]], found[1]
    return _meaning_error(text, policy, _first_error, message)


def _first_error(source: str) -> str | None:
    if (message := cedar.parse_error(source)) is not None:
        return message
    found = cedar.schema_error(source)
    return found and found[1]


def _source(text: PolicyText, policy: Sequence[Token]) -> str:
    return text.text[policy[0].start : policy[-1].end]


def _syntax_error(text: PolicyText, policy: Sequence[Token], message: str) -> PolicyError:
    """Return the error at the first token with which the policy's beginning can no longer be continued."""

    def impossible(count: int) -> bool:
        error = cedar.parse_error(_source(text, policy[:count]))
        return error is not None and error != cedar.UNFINISHED

    counts = range(1, len(policy) + 1)
    place = bisect_left(counts, 1, key=lambda count: int(impossible(count)))
    quoted = _QUOTED.search(message)
    if place and quoted and policy[place - 1].text == quoted[1] != policy[min(place, len(policy) - 1)].text:
        place -= 1  # Cedar's parser noted this token, and went on
    return text.error(policy[place].start if place < len(policy) else policy[-1].end, message)


def _meaning_error(text: PolicyText, policy: Sequence[Token], check: Check, message: str) -> PolicyError:
    """Return the error of a policy whose syntax is right; of several, the first in the text."""
    suspects = range(len(policy))
    begin = 0
    for end, closing in _cuts(policy):
        error = check(_source(text, policy[:end]) + closing)
        if error is not None and error.startswith(_SYNTAX):
            continue  # within an if, where a policy cannot end
        if error is not None:
            suspects, message = range(begin, end), error
            break
        begin = end
    return text.error(_named(text, policy, suspects, message), message)


def _cuts(policy: Sequence[Token]) -> Iterator[tuple[int, str]]:
    """Yield after how many tokens a policy may end, behind its scope, an operand or a condition, and what closes it."""
    depth = 0
    for place, token in enumerate(policy):
        if token.text in _OPENING:
            depth += 1
        elif token.text in _CLOSING:
            depth -= 1
            if depth == 0:
                yield place + 1, ";"
        elif depth == 1 and token.text in ("&&", "||"):
            yield place, "};"


def _named(text: PolicyText, policy: Sequence[Token], suspects: range, message: str) -> int:
    """Return where the suspects have what the message quotes; otherwise where the first of them that says something
    begins.
    """
    for found in _QUOTED.finditer(message):
        name = next(filter(None, found.groups()))
        if name in _KEYWORDS:
            continue
        places = [place for place in suspects if _is(text, policy[place], name)]
        if places:
            fitting = (place for place in places if _fits(policy, place, message))
            return policy[next(fitting, places[0])].start
        for place in suspects:  # an escape in a string
            if policy[place].text.startswith('"') and name in policy[place].text:
                return policy[place].start + policy[place].text.index(name)
    opening = (place for place in suspects if policy[place].text not in {"&&", "||", "{", "when", "unless"})
    return policy[next(opening, suspects.start)].start


def _is(text: PolicyText, token: Token, name: str) -> bool:
    if token.text.startswith('"'):
        return token.text in (name, f'"{name}"')
    return token.text == name or ("::" in name and text.text.startswith(name, token.start))


def _fits(policy: Sequence[Token], place: int, message: str) -> bool:
    """Return whether a token stands where what the message speaks of can stand."""
    before = policy[place - 1].text if place else ""
    after = policy[place + 1].text if place + 1 < len(policy) else ""
    if message.startswith("attribute"):
        owner = policy[place - 2].text if place > 1 else ""
        return before in (".", "has", "[") and _OWNERS.get(owner, owner) in message
    if "method" in message:
        return before == "."
    if "function" in message:
        return after == "(" and before != "."
    if "variable" in message:
        return before not in (".", "has", "@") and after not in (":", "(", "::")
    if "duplicate" in message:
        return any(token.text == policy[place].text for token in policy[:place])
    return True
