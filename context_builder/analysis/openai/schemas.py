"""The replies a model is asked for, as pydantic models and as the JSON schemas made from them.

Names are short because the schema is part of what every call costs. A field that takes only
certain words says so in the schema, but any word is read: what does not fit is dropped with the
entry it stands in, not with the whole reply. An entry in another form becomes an empty one.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Annotated, Any, ClassVar, Final

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    model_serializer,
    model_validator,
)

from context_builder.analysis.analyst import MAX_KEYWORDS, MAX_QUOTES, PointKind, PreferenceKind
from context_builder.domains import DOMAINS

MAX_POINTS: Final = 12
"""Most points of one reply: what fits a thousand tokens."""


MAX_STATEMENTS: Final = 12
"""Most key statements of one reply."""

MAX_REPLACED: Final = 8
"""Most known points that one point may take the place of: a decision may refuse several proposals."""

MAX_SETTLED: Final = 8
"""Most known points that one reply says to be over."""

MAX_PREFERENCES: Final = 20
"""Most preferences of one reply."""


class Reply(BaseModel):
    """Base of all replies. The schema allows no further properties; those that a lenient server adds are ignored."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"additionalProperties": False})

    counts_in_part: ClassVar[bool] = True
    """Whether the whole items of a reply that was cut off are used."""

    bare_list: ClassVar[str] = ""
    """Field that a list in place of the object stands for, where the others may be empty."""


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
    """The keywords of several messages, as a list for each: the message's number, then its keywords."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    bare_list: ClassVar[str] = "keywords"

    keywords: list[Annotated[list[Keyword], _at_most(MAX_KEYWORDS + 1)]]


class LoneKeywordReply(Reply):
    """The keywords of a single message."""

    bare_list: ClassVar[str] = "keywords"

    keywords: Keywords


class DomainEntry(Reply):
    domain: Annotated[str, _one_of(*DOMAINS)]
    confidence: Number


DomainEntries = Annotated[list[Annotated[DomainEntry, _if_odd(DomainEntry(domain="", confidence=0.0))]], _at_most(5)]


class DomainReply(Reply):
    bare_list: ClassVar[str] = "domains"

    domains: DomainEntries
    keywords: Keywords


class CombinedReply(KeywordReply):
    """The keywords of several messages, and the domains and terms of what they are about, from one call."""

    bare_list: ClassVar[str] = ""

    domains: DomainEntries
    topic: Keywords


class QuoteEntry(Reply):
    """A quote and its message's number, written as one text, ``3: the words``: as an object, it takes twice the tokens.

    Prompt folders made for earlier versions ask for the object, which is read as well.
    """

    message: int
    quote: str

    @model_validator(mode="before")
    @classmethod
    def _read_text(cls, written: Any) -> Any:
        if not isinstance(written, str) or (found := _NUMBERED.match(written)) is None:
            return written
        if not found["quote"] and any(map(str.isalpha, written)):
            return written  # the words stand before the number, and must not count as none
        return {"message": int(found["number"]), "quote": found["quote"]}

    @model_serializer
    def _as_text(self) -> str:
        return f"{self.message}: {self.quote}"


_NUMBERED: Final = re.compile(
    r"\D{0,12}(?P<number>\d{1,6})\b(?:(?:\s*(?:[,;/&–-]|\w{1,3})\s*\d{1,6}){1,8}\s*(?=:(?!\d)|\())?"
    r"\s*[].)]?\s*[:,–-]?\s*(?P<quote>.*)",
    re.DOTALL,
)
"""The number before a quote; of several (3-4, "3 and 4") the first, but a time of day is of the quote."""

_NO_QUOTE: Final = QuoteEntry(message=0, quote="")
Quoted = Annotated[QuoteEntry, _if_odd(_NO_QUOTE), WithJsonSchema({"type": "string"})]


class PointEntry(Reply):
    """A point of a summary. Its quotes come before its sentence, so that the model looks before it writes.

    Prompt folders made for earlier versions ask for messages in ``cites``, without quotes. These are read as empty
    quotes, which stand for the whole message; such a point replaces one other, or none (0).
    """

    evidence: Annotated[
        list[Quoted],
        Field(json_schema_extra={"minItems": 1, "maxItems": MAX_QUOTES}),
    ]
    text: str
    by: Annotated[list[Annotated[str, _if_odd("")]], _if_odd([])]
    kind: Annotated[str, _one_of(*PointKind)]
    replaces: Annotated[list[int], _if_odd([]), _at_most(MAX_REPLACED)]

    @model_validator(mode="before")
    @classmethod
    def _read_cites(cls, written: Any) -> Any:
        if not isinstance(written, dict):
            return written
        cites = written.get("cites")
        quotes = [{"message": cited, "quote": ""} for cited in cites] if isinstance(cites, list) else []
        replaces = written.get("replaces", [])
        listed = [replaces] if isinstance(replaces, int) else replaces
        evidence = written.get("evidence", quotes)
        listed_evidence = [evidence] if isinstance(evidence, str | dict) else evidence
        return {"by": [], **written, "evidence": listed_evidence, "replaces": listed}


_NO_POINT: Final = PointEntry(evidence=[], text="", by=[], kind="", replaces=[])


class OverEntry(Reply):
    """A known point that nobody needs any more, and the words that show it."""

    known: int
    message: int
    quote: str


_NONE_OVER: Final = OverEntry(known=0, message=0, quote="")


class SummaryReply(Reply):
    """New points, and known points that are over without a new one in their place."""

    bare_list: ClassVar[str] = "points"

    points: Annotated[list[Annotated[PointEntry, _if_odd(_NO_POINT)]], _at_most(MAX_POINTS)]
    over: Annotated[list[Annotated[OverEntry, _if_odd(_NONE_OVER)]], _if_odd([]), _at_most(MAX_SETTLED)]
    chatter: bool

    @model_validator(mode="before")
    @classmethod
    def _end_nothing(cls, written: Any) -> Any:
        """Read a reply to a prompt of an earlier version, which asks for new points alone."""
        return {"over": [], **written} if isinstance(written, dict) else written


class CompactedEntry(Reply):
    sources: Annotated[list[int], Field(alias="from", json_schema_extra={"minItems": 1})]
    text: str
    kind: Annotated[str, _one_of(*PointKind)]


_NO_COMPACTED: Final = CompactedEntry(**{"from": [], "text": "", "kind": ""})


class SettledEntry(Reply):
    """A decision, task or question that no longer stands, and the point that tells what became of it."""

    number: int
    by: int


_NONE_SETTLED: Final = SettledEntry(number=0, by=0)


class CompactionReply(Reply):
    """Sentences that take the place of points, and the numbers of points that can be left out.

    A reply that was cut off is rejected whole: it might leave a point out before it came to its sentence.
    """

    counts_in_part: ClassVar[bool] = False

    points: list[Annotated[CompactedEntry, _if_odd(_NO_COMPACTED)]]
    leave_out: Annotated[list[int], _if_odd([])]
    settled: Annotated[list[Annotated[SettledEntry, _if_odd(_NONE_SETTLED)]], _if_odd([]), _at_most(MAX_SETTLED)]

    @model_validator(mode="before")
    @classmethod
    def _leave_nothing_out(cls, written: Any) -> Any:
        """Read a reply to a prompt of an earlier version, which asks for sentences alone."""
        return {"leave_out": [], "settled": [], **written} if isinstance(written, dict) else written


class StatementEntry(Reply):
    passage: int
    text: str


_NO_STATEMENT: Final = StatementEntry(passage=0, text="")


class DocumentReply(Reply):
    bare_list: ClassVar[str] = "statements"

    statements: Annotated[list[Annotated[StatementEntry, _if_odd(_NO_STATEMENT)]], _at_most(MAX_STATEMENTS)]


class PreferenceEntry(Reply):
    message: int
    kind: Annotated[str, _one_of(*PreferenceKind)]
    what: str
    withdrawn: bool


_NO_PREFERENCE: Final = PreferenceEntry(message=0, kind="", what="", withdrawn=False)


class PreferenceReply(Reply):
    bare_list: ClassVar[str] = "preferences"

    preferences: Annotated[list[Annotated[PreferenceEntry, _if_odd(_NO_PREFERENCE)]], _at_most(MAX_PREFERENCES)]


class VerdictEntry(Reply):
    number: int
    supported: bool


_NO_VERDICT: Final = VerdictEntry(number=0, supported=False)
Verdict = Annotated[VerdictEntry, _if_odd(_NO_VERDICT)]


class VerifyReply(Reply):
    """A verdict for each numbered point: small models lose count of a bare list."""

    bare_list: ClassVar[str] = "verdicts"

    verdicts: Annotated[list[Verdict], _at_most(MAX_POINTS)]

    @model_validator(mode="before")
    @classmethod
    def _take_bare_verdicts(cls, reply: Any) -> Any:
        """Number a bare list of yes and no, whatever it is called; other forms stay as they are."""
        if not isinstance(reply, dict) or ("verdicts" not in reply and "supported" not in reply):
            return reply
        verdicts = reply.get("verdicts", reply.get("supported"))
        if not isinstance(verdicts, list) or any(isinstance(verdict, dict) for verdict in verdicts):
            return {"verdicts": verdicts}
        return {"verdicts": [{"number": n, "supported": verdict} for n, verdict in enumerate(verdicts, 1)]}

    def of(self, count: int) -> tuple[bool | None, ...]:
        """Return the verdict on each of ``count`` points in their order; None where the reply has none, or two."""
        given: dict[int, bool | None] = {}
        for verdict in self.verdicts:
            twice = given.get(verdict.number, verdict.supported) is not verdict.supported
            given[verdict.number] = None if twice else verdict.supported
        return tuple(given.get(number) for number in range(1, count + 1))


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
