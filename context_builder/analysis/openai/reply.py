"""From the text of a reply to the object in it, which stands among thoughts and fences, or was cut off."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any, Final, TypeVar

from pydantic import ValidationError
from pydantic_core import from_json

from context_builder.analysis.openai.schemas import Reply, schema_of
from context_builder.errors import ReplyInvalid

R = TypeVar("R", bound=Reply)

_END_OF_THOUGHTS: Final = re.compile(
    r"</(?:think|thinking|thought|thoughts|reasoning|reflection|analysis)>|\[/THINK\]|◁/think▷"
    r"|<\|end_of_thought\|>|<\|channel\|>(?:final|commentary)[^{}\[\]\n]{0,99}<\|message\|>|assistantfinal(?=\s*[{\[`])",
    re.IGNORECASE,
)
"""Tags that models put behind their thoughts, and the markers of gpt-oss, or what is left of them as plain text."""

_START_OF_THOUGHTS: Final = re.compile(
    r"\s*(?:<(?:seed:)?(?:think|thinking|thought|reasoning)>|\[THINK\]|◁think▷|<\|begin_of_thought\|>"
    r"|(?:<\|start\|>assistant)?<\|channel\|>analysis|analysis(?-i:(?=[A-Z])))",
    re.IGNORECASE,
)
_MOST_TRIED: Final = 300
_MOST_RESHAPED: Final = 20
_MOST_SEARCHED: Final = 300_000
"""Braces at which an object is looked for, as asked for or in another form, and characters among which: the last ones,
more than a model writes.
"""

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|(?P<open>\\?\Z))|[\[\]{}]', re.DOTALL)
_EMPTY: Final[dict[str, Any]] = {"array": [], "boolean": False, "string": "", "integer": 0, "number": 0.0}
_COMMA: Final = re.compile(r'("(?:[^"\\]|\\.)*+(?:"|\\?\Z))|,(?=\s*+[}\]])', re.DOTALL)
"""A text, or a comma behind which nothing follows."""

_LOOSE: Final = re.compile(
    r""""(?:[^"\\]|\\.)*+(?:"|\\?\Z)|'(?:[^'\\]|\\.)*+(?:'|\\?\Z)|“[^”]*+(?:”|\Z)"""
    r"|//[^\n]*+|/\*.*?(?:\*/|\Z)|\b[A-Za-z_]\w*+(?=\s*+:)|\b(?:True|False|None)\b",
    re.DOTALL,
)
"""A text, whatever its quotation marks, a comment, a key without any, or a literal of Python's."""

_LITERALS: Final = {"True": "true", "False": "false", "None": "null"}
_ESCAPED: Final = re.compile(r"\\(.)|\"", re.DOTALL)
_DECODER: Final = json.JSONDecoder(strict=False)


class CutOff(ReplyInvalid):
    """Raised when a reply ended at its limit before there was anything to use; perhaps while the model was thinking."""

    def __init__(self, *, in_thoughts: bool) -> None:
        super().__init__(
            f"the model's reply was cut off at its token limit{', in its thoughts' if in_thoughts else ''}"
        )
        self.in_thoughts = in_thoughts


def parse_reply(reply: type[R], content: str, *, is_cut_off: bool = False) -> R:
    """Return the last object in ``content`` that fits ``reply``; of a reply that ``is_cut_off``, what is whole.

    Thoughts may stand before it, with drafts. Raises :class:`ReplyInvalid` if nothing fits, without quoting any of it.
    """
    if (bare := _unfenced(content)).startswith('"'):  # a text that holds the JSON
        with suppress(ValueError):
            content = str(json.loads(bare))
    answer = _END_OF_THOUGHTS.split(content)[-1]
    if is_cut_off and answer is content and _START_OF_THOUGHTS.match(content):
        raise CutOff(in_thoughts=True)
    for text in dict.fromkeys((answer, content)):
        for fit in (_fitting, _reshaped):
            if (found := _last_fitting(reply, text, fit)) is not None:
                return found
    if is_cut_off:
        if reply.counts_in_part and (found := _whole_items(reply, answer)) is not None:
            return found
        raise CutOff(in_thoughts=not answer.lstrip().startswith(("{", "[", "```")))
    raise ReplyInvalid(_fault(reply, answer if "{" in answer else content))


def _unfenced(text: str) -> str:
    return text.strip().removeprefix("```").removeprefix("json").removesuffix("```").strip()


def _last_fitting(reply: type[R], text: str, fit: Callable[[type[R], str], R | None]) -> R | None:
    first, last = "[]" if fit is _reshaped and _unfenced(text).startswith("[") else "{}"
    if (whole := fit(reply, text[max(text.find(first), 0) : text.rfind(last) + 1])) is not None:
        return whole
    text, found, within = text[-_MOST_SEARCHED:], None, 0
    for start, end in _objects(text, _MOST_TRIED if fit is _fitting else _MOST_RESHAPED):
        if start >= within and (fitting := fit(reply, text[start:end])) is not None:
            found, within = fitting, end
    return found


def _objects(text: str, most: int) -> Iterator[tuple[int, int]]:
    """Yield where objects begin and end: the outermost, and what stands in one that may not be the reply."""
    for start in [found.start() for found in re.finditer(r"\{", text)][-most:]:
        try:
            _, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        yield start, end


def _fitting(reply: type[R], text: str) -> R | None:
    try:
        return reply.model_validate_json(text)
    except ValidationError as error:
        is_json = (
            error.errors(include_url=False, include_input=False, include_context=False)[0]["type"] != "json_invalid"
        )
    if is_json or not text or (mended := _mended(text)) is None:
        return None
    try:
        return reply.model_validate_json(mended)
    except ValidationError:
        return None


def _mended(text: str) -> str | None:
    """Return as JSON what small models write for it: line ends in texts, other quotation marks, keys without any,
    comments, a comma too much, or literals of Python's.
    """
    value = _value(_LOOSE.sub(_as_json, text))
    return json.dumps(value) if isinstance(value, dict) else None


def _value(text: str) -> Any:
    """Return what JSON with a comma too much holds; None for any other text."""
    with suppress(ValueError, RecursionError):
        return _DECODER.decode(_COMMA.sub(lambda found: found[1] or "", text))
    return None


def _as_json(found: re.Match[str]) -> str:
    token = found[0]
    if token[0] == '"':
        return token
    if token[0] == "/":
        return " "
    if token[0] in "'“":
        return f'"{_ESCAPED.sub(_escaped, token[1:-1])}"'
    return _LITERALS.get(token, f'"{token}"')


def _escaped(found: re.Match[str]) -> str:
    """Return a character, or an escaped one, of a text in other quotation marks as it stands in JSON's."""
    return '\\"' if found[1] is None else "'" if found[1] == "'" else found[0]


def _reshaped(reply: type[R], text: str) -> R | None:
    """Return a reply in a form that small models make of the one asked for: keys in another case, the answer within
    the schema, or the list alone that an object was to hold.
    """
    value = _value(text) or _value(_LOOSE.sub(_as_json, text))
    if isinstance(value, list) and value and reply.bare_list:
        fields = schema_of(reply)["properties"]
        if any(isinstance(item, dict) != (fields[reply.bare_list]["items"]["type"] == "object") for item in value):
            return None
        value = {**{name: _EMPTY[field["type"]] for name, field in fields.items()}, reply.bare_list: value}
    if not isinstance(value, dict):
        return None
    if isinstance(inner := value.get("properties"), dict):
        value = inner
    try:
        return reply.model_validate_json(json.dumps(_renamed(value, _names(reply))))
    except (ValidationError, RecursionError):
        return None


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_renamed(item, names) for item in value]
    if not isinstance(value, dict):
        return value
    return {names.get(_plain(key), key): _renamed(item, names) for key, item in value.items()}


@cache
def _names(reply: type[Reply]) -> dict[str, str]:
    """Return the names in a reply's schema by what is left of them in any case and with any hyphens."""
    named: dict[str, str] = {}
    waiting: list[Any] = [schema_of(reply)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            named |= {_plain(name): name for name in node.get("properties", {})}
            waiting += node.values()
    return named


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name)).casefold()


def _whole_items(reply: type[R], text: str) -> R | None:
    """Return the reply with the items that are whole in a text that was cut off, if there are any."""
    start = text.find("{")
    end = _end_of_items(text, start) if start >= 0 else None
    if end is None:
        return None
    try:
        given = from_json(text[start:end], allow_partial=True)
    except ValueError:
        return None
    fields = schema_of(reply)["properties"]
    if not any(given.get(name) for name, field in fields.items() if field["type"] == "array"):
        return None
    missing = {name: _EMPTY[field["type"]] for name, field in fields.items() if name not in given}
    return _fitting(reply, json.dumps({**missing, **given}))


def _end_of_items(text: str, start: int) -> int | None:
    """Return where the last whole item of a list ends."""
    inside: list[str] = []
    end = None
    for token in _TOKEN.finditer(text, start):
        mark = token[0]
        if token["open"] is not None:
            break
        if mark in ("{", "["):
            inside.append(mark)
            continue
        if mark in ("}", "]") and inside:
            inside.pop()
        if inside == ["{", "["]:
            end = token.end()
    return end


def _fault(reply: type[Reply], text: str) -> str:
    try:
        reply.model_validate_json(text[text.index("{") : text.rindex("}") + 1])
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"])) or "reply"
        return f"the model's reply does not fit {reply.__name__}: {where}: {first['type']}"
    except ValueError:
        pass
    return "the model's reply holds no JSON object"
