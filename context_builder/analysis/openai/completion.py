"""A chat completion as it came back: its content, if it is one, and what it cost."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import from_json

from context_builder import metrics
from context_builder.analysis.openai.refusals import ServerError
from context_builder.analysis.openai.reply import CutOff
from context_builder.costs import Budget, Prices, Reservation, Usage
from context_builder.errors import ContentRefused, OverBudget, ReplyInvalid, RequestRefused

_JOINED: Final = ("content", "reasoning_content", "reasoning", "refusal")
_REASONS: Final = ("finish_reason", "native_finish_reason", "finish_details")
"""Why a choice ended: for its server, for the one behind it (OpenRouter), and as an object with a type."""


def joined(body: bytes) -> Any:
    """Return the completion in a body of events; any other body is read as JSON. Raises :class:`ValueError`."""
    if body.lstrip()[:1] in (b"{", b"[") or b"data:" not in body:
        return from_json(body)
    pieces: dict[str, list[Any]] = {"content": []}
    choice: dict[str, Any] = {}
    whole: dict[str, Any] = {"choices": [choice]}
    for event in _events(body):
        if event.get("error"):
            return event
        if event.get("usage"):
            whole["usage"] = event["usage"]
        choices = event.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(first, dict):
            continue
        choice |= {name: reason for name in _REASONS if (reason := first.get(name))}
        delta = first.get("delta") or first.get("message")
        if not isinstance(delta, dict):
            continue
        for name in _JOINED:
            if piece := delta.get(name):
                pieces.setdefault(name, []).append(piece)
    choice["message"] = {name: _together(all_pieces) for name, all_pieces in pieces.items()}
    return whole


def _events(body: bytes) -> Iterator[dict[str, Any]]:
    for line in body.splitlines():
        if not line.startswith(b"data:") or line[5:].strip() == b"[DONE]":
            continue
        event = from_json(line[5:].strip())
        if isinstance(event, dict):
            yield event


def _together(pieces: list[Any]) -> Any:
    """Return pieces of a text as one, or as the parts of a content if some of them are."""
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(pieces)
    lists = (piece if isinstance(piece, list) else [{"type": "text", "text": piece}] for piece in pieces)
    return [part for parts in lists for part in parts]


class NoCompletion(ReplyInvalid):
    """Raised for an answer that no model server gives: what is asked may be something else."""


class Meter:
    """Prices usage; with a ``budget``, lets through only calls whose worst case it can bear.

    ``count`` gives the tokens of a text in the models' encoding.
    """

    def __init__(self, prices: Prices, budget: Budget | None, count: Callable[[str], int]) -> None:
        self._prices = prices
        self._budget = budget
        self._count = count

    def load(self) -> None:
        """Load what counts tokens, if anything will be counted; from a thread."""
        if self._budget is not None:
            self._count("")

    def priced(self, usage: Usage) -> Usage:
        return self._prices.priced(usage)

    @contextmanager
    def hold(self, task: str, request: Mapping[str, Any], max_tokens: int) -> Iterator[Reservation]:
        """Set aside what the call may cost at worst. Raises :class:`OverBudget` when there is too little left."""
        if self._budget is None:
            yield Reservation(0.0)
            return
        price = self._prices.of(request["model"])
        worst = price.of(prompt_tokens(request, self._count), max_tokens)
        try:
            with self._budget.hold(task, worst) as held:
                yield held
        except OverBudget:
            metrics.OVER_BUDGET.labels(task).inc()
            raise


def prompt_tokens(request: Mapping[str, Any], count: Callable[[str], int]) -> int:
    """Return the tokens of a chat prompt: its messages, the reply's schema, and the frame of each message."""
    form = request.get("response_format", {}).get("json_schema")
    schema = json.dumps(form["schema"], separators=(",", ":")) if form else ""
    framing = 3 + 4 * len(request["messages"])
    return framing + count(schema) + sum(count(message["content"]) for message in request["messages"])


MOST_TOKENS: Final = 10_000_000
"""Tokens that no model's window holds: a server that counts more for a call counts wrongly."""


def _none_if_odd(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    try:
        return validate(value)
    except ValidationError:
        return None


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _first(value: Any) -> Any:
    return value[:1] if isinstance(value, list) else value


def _text_of(content: Any) -> Any:
    """Return the text of a content that is a list of parts, without thoughts, or an object that a server has parsed."""
    if isinstance(content, dict):
        return json.dumps(content, ensure_ascii=False)
    if not isinstance(content, list):
        return content
    parts = (part if isinstance(part, dict) else {} for part in content)
    texts = (part.get("text") for part in parts if part.get("type", "text") in {"text", "output_text"})
    return "".join(text for text in texts if isinstance(text, str))


_NoneIfOdd = WrapValidator(_none_if_odd)
_Text = Annotated[str | None, _NoneIfOdd]
_Content = Annotated[str | None, _NoneIfOdd, BeforeValidator(_text_of)]
_Count = Annotated[int | None, Field(strict=True, ge=0, le=MOST_TOKENS), _NoneIfOdd, BeforeValidator(_whole)]


class _Function(BaseModel):
    arguments: _Content = None


class _ToolCall(BaseModel):
    function: _Function


class _Message(BaseModel):
    content: _Content = None
    refusal: _Text = None
    reasoning_content: _Content = None
    reasoning: _Content = None
    function_call: Annotated[_Function | None, _NoneIfOdd] = None
    tool_calls: Annotated[list[_ToolCall] | None, _NoneIfOdd, BeforeValidator(_first)] = None

    @property
    def answer(self) -> str:
        """Return the answer, wherever it stands: some servers take it for a thought, or for a tool's arguments."""
        function = self.tool_calls[0].function if self.tool_calls else self.function_call
        called = function.arguments if function else None
        places = (self.content, called, self.reasoning_content, self.reasoning)
        return next((text for text in places if text and text.strip()), "")


class _Details(BaseModel):
    type: _Text = None


def _of_text(choice: Any) -> Any:
    """Return a choice with its message, also one of the older API, which has a text."""
    is_older = isinstance(choice, dict) and "message" not in choice and isinstance(choice.get("text"), str)
    return {**choice, "message": {"content": choice["text"]}} if is_older else choice


class _Choice(BaseModel):
    message: _Message
    finish_reason: _Text = None
    native_finish_reason: _Text = None
    finish_details: Annotated[_Details | None, _NoneIfOdd] = None
    error: Any = None

    @property
    def is_filtered(self) -> bool:
        """Return whether the reply was filtered; only an empty one shows it by another reason than the server's own."""
        others = (self.native_finish_reason, self.finish_details.type if self.finish_details else None)
        reasons = [self.finish_reason, *(() if self.message.answer else others)]
        return any(_FILTERED.search(reason.casefold()) for reason in reasons if reason)


class _PromptDetails(BaseModel):
    cached_tokens: _Count = None


class _Tokens(BaseModel):
    prompt_tokens: _Count = None
    completion_tokens: _Count = None
    prompt_tokens_details: Annotated[_PromptDetails | None, _NoneIfOdd] = None


_FILTERED: Final = re.compile(
    r"content_?filter|safety|prohibited|blocklist|spii|recitation|sensitive|refusal|guardrail"
)
"""Finish reasons of servers that filter what their model writes."""


_CUT_OFF: Final = re.compile(r"length|max_(?:\w{1,40}_)?tokens|token_limit|context_window")
"""Finish reasons of servers that stop at a limit."""


class NoChoice(RequestRefused):
    """Raised for an answer without a choice: perhaps by chance, or the server refuses what was asked."""


class Completion(BaseModel):
    """The first choice of a completion, and its figures where they are plausible. Servers differ in the rest."""

    choices: Annotated[
        list[Annotated[_Choice, BeforeValidator(_of_text)]], Field(min_length=1), BeforeValidator(_first)
    ]
    usage: Annotated[_Tokens | None, _NoneIfOdd] = None

    @classmethod
    def of(cls, body: bytes) -> Completion:
        """Return the completion in a response's body, or in its events.

        Raises :class:`ServerError` for an error in its place, and :class:`NoCompletion` if there is neither.
        """
        try:
            said = joined(body)
        except ValueError:
            page = ": it is a web page" if body.lstrip()[:1] == b"<" else ""
            raise NoCompletion(f"the model's answer is no chat completion{page}") from None
        try:
            completion = cls.model_validate(said)
        except ValidationError:
            completion = None
        error = _error_in(said, completion)
        if error is not None:
            raise ServerError.of_body(error)
        if completion is None and _is_withheld(said):
            if _says_filtered(said):
                raise ContentRefused("the request was filtered")
            raise NoChoice("the model's answer has no choice, as of servers that do not say that they refuse")
        if completion is None:
            raise NoCompletion("the model's answer is no chat completion")
        return completion

    @property
    def is_cut_off(self) -> bool:
        """Return whether the reply ended at its limit."""
        return _CUT_OFF.search((self.choices[0].finish_reason or "").casefold()) is not None

    @property
    def tokens(self) -> int | None:
        """Return the tokens of the reply, where the server counts them."""
        return self._tokens.completion_tokens

    @property
    def content(self) -> str:
        """Return the reply's text. Raises :class:`ReplyInvalid` when it was refused or is empty."""
        choice = self.choices[0]
        if choice.message.refusal:
            raise ContentRefused("the model refuses to answer", by_chance=True)
        if choice.is_filtered:
            raise ContentRefused("the model's reply was filtered")
        if self.is_cut_off and not (choice.message.content or "").strip():
            raise CutOff(in_thoughts=True)
        if not choice.message.answer:
            raise ReplyInvalid("the model's reply is empty")
        return choice.message.answer

    @property
    def is_counted(self) -> bool:
        """Return whether the server says how many tokens the call took."""
        return None not in (self._tokens.prompt_tokens, self._tokens.completion_tokens)

    def cost(self, model: str) -> Usage:
        """Return the usage of this one call to ``model``, as its server counted it."""
        prompt_tokens = self._tokens.prompt_tokens or 0
        details = self._tokens.prompt_tokens_details or _PromptDetails()
        return Usage(
            model=model,
            prompt_tokens=prompt_tokens,
            cached_tokens=min(details.cached_tokens or 0, prompt_tokens),
            completion_tokens=self._tokens.completion_tokens or 0,
            calls=1,
        )

    @property
    def _tokens(self) -> _Tokens:
        return self.usage or _Tokens()


def _says_filtered(said: Any) -> bool:
    """Return whether an answer without a choice gives a filter as the reason; verdicts of a filter come with any."""
    if isinstance(said, list):
        return any(map(_says_filtered, said))
    if not isinstance(said, dict):
        return False
    details = said.get("finish_details")
    reasons = [said.get(key) for key in (*_REASONS[:2], "finishReason", "blockReason", "block_reason")]
    reasons.append(details.get("type") if isinstance(details, dict) else details)
    if said.get("filtered") is True or any(_FILTERED.search(str(one).casefold()) for one in reasons if one):
        return True
    return any(map(_says_filtered, said.values()))


def _is_withheld(said: Any) -> bool:
    """Return whether this is a completion whose choices, or their message, are missing or null."""
    if not isinstance(said, dict):
        return False
    choices = said.get("choices")
    if choices:
        first = choices[0] if isinstance(choices, list) else None
        return isinstance(first, dict) and first.get("message") is None and not first.keys().isdisjoint(_REASONS)
    is_one = str(said.get("object")).startswith("chat.completion") or "usage" in said or "promptFeedback" in said
    return (is_one or "choices" in said) and choices in (None, [])


def _error_in(said: Any, completion: Completion | None) -> Any:
    """Return the error that came in place of an answer, or in it."""
    body = said[0] if isinstance(said, list) and said else said
    if not isinstance(body, dict) or (completion is not None and completion.choices[0].message.answer):
        return None
    if body.get("error"):
        return body
    if completion is not None:
        return completion.choices[0].error or None
    tells = ("message", "msg", "detail", "base_resp")
    return body if "choices" not in body and any(body.get(name) for name in tells) else None
