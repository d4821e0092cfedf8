"""The replies a model is asked for, as pydantic models and as the JSON schemas made from them.

Names are short because the schema is part of what every call costs. A field that takes only
certain words says so in the schema, but any word is read: what does not fit is dropped with the
entry it stands in, not with the whole reply. An entry in another form becomes an empty one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from context_builder.analysis.analyst import MAX_CITATIONS, MAX_KEYWORDS, PointKind
from context_builder.domains import DOMAINS
from context_builder.errors import ReplyInvalid
from context_builder.preference_kind import PreferenceKind

DOMAIN_NAMES: Final[Mapping[str, str]] = dict(
    zip(
        (
            "Biology",
            "Chemistry",
            "Physics / Astronomy",
            "Mathematics / Statistics",
            "Computer Science",
            "Medicine / Neuroscience",
            "Psychology",
            "Engineering",
            "Business / Economics",
            "Social Sciences",
            "Environmental Science",
            "Political Science / Law",
            "Philosophy",
            "History / Humanities",
            "Linguistics",
            "Machine Learning",
            "Design",
            "Robotics",
        ),
        DOMAINS,
        strict=True,
    )
)
"""Short names of the domains for models: enough to know each by, in little more than half of the tokens."""

MAX_POINTS: Final = 12
"""Most points of one reply: what fits a thousand tokens."""


MAX_PREFERENCES: Final = 20
"""Most preferences of one reply."""


class Reply(BaseModel):
    """Holds a reply that is asked for without further properties, and read with them from lenient servers."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"additionalProperties": False})


def _if_odd(value: object) -> Any:
    """Replace a field of another form than asked for by ``value``."""

    def validated(given: Any, validate: ValidatorFunctionWrapHandler) -> Any:
        try:
            return validate(given)
        except ValidationError:
            return value

    return WrapValidator(validated)


def _at_most(items: int) -> Any:
    return Field(json_schema_extra={"maxItems": items})


def _one_of(*words: str) -> Any:
    return Field(json_schema_extra={"enum": list(words)})


Number = Annotated[float, Field(allow_inf_nan=False)]
Keyword = Annotated[str, _if_odd("")]
Keywords = Annotated[list[Keyword], _at_most(MAX_KEYWORDS)]


class KeywordReply(Reply):
    """Holds a list for each message: its number, then its keywords."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    keywords: list[Annotated[list[Keyword], _at_most(MAX_KEYWORDS + 1)]]


class LoneKeywordReply(Reply):
    """Holds the keywords of a single message; asked for most often, so their number is left to the prompt."""

    keywords: list[Keyword]


class DomainEntry(Reply):
    domain: Annotated[str, _one_of(*DOMAIN_NAMES)]
    confidence: Number


DomainEntries = Annotated[list[Annotated[DomainEntry, _if_odd(DomainEntry(domain="", confidence=0.0))]], _at_most(5)]


class DomainReply(Reply):
    domains: DomainEntries
    keywords: Keywords


class CombinedReply(KeywordReply):
    """Holds the messages' keyword lists, and the domains with their topic's keywords."""

    domains: DomainEntries
    topic: Keywords


class PointEntry(Reply):
    text: str
    cites: Annotated[list[int], Field(json_schema_extra={"minItems": 1, "maxItems": MAX_CITATIONS})]
    kind: Annotated[str, _one_of(*PointKind)]
    replaces: Annotated[int, _if_odd(0)]


_NO_POINT: Final = PointEntry(text="", cites=[], kind="", replaces=0)


class SummaryReply(Reply):
    points: Annotated[list[Annotated[PointEntry, _if_odd(_NO_POINT)]], _at_most(MAX_POINTS)]
    chatter: bool


class PreferenceEntry(Reply):
    message: int
    kind: Annotated[str, _one_of(*PreferenceKind)]
    what: str
    withdrawn: bool


_NO_PREFERENCE: Final = PreferenceEntry(message=0, kind="", what="", withdrawn=False)


class PreferenceReply(Reply):
    preferences: Annotated[list[Annotated[PreferenceEntry, _if_odd(_NO_PREFERENCE)]], _at_most(MAX_PREFERENCES)]


R = TypeVar("R", bound=Reply)


@cache
def schema_of(reply: type[Reply]) -> dict[str, Any]:
    """Return the reply's JSON schema, without titles, descriptions and references."""
    full = reply.model_json_schema()
    compact: dict[str, Any] = _compact(full, full.get("$defs", {}))
    return compact


def _compact(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_compact(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _compact(definitions[node["$ref"].rpartition("/")[2]], definitions)
    if "properties" in node:
        node = {**node, "properties": {k: _compact(v, definitions) for k, v in node["properties"].items()}}
    else:
        node = {key: _compact(value, definitions) for key, value in node.items()}
    return {key: value for key, value in node.items() if key not in {"title", "description", "$defs"}}


def parse_reply(reply: type[R], content: str) -> R:
    """Return the reply in ``content``, which may stand in a code fence. Raises :class:`ReplyInvalid`."""
    try:
        return reply.model_validate_json(content[content.index("{") : content.rindex("}") + 1])
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"])) or "reply"
        raise ReplyInvalid(f"the model's reply does not fit {reply.__name__}: {where}: {first['type']}") from None
    except ValueError:
        raise ReplyInvalid("the model's reply holds no JSON object") from None
