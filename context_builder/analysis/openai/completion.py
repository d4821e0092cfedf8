"""A chat completion as it came back: its content, if it is one, and what it cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from context_builder import metrics
from context_builder.costs import Budget, Prices, Reservation, Usage
from context_builder.errors import OverBudget, ReplyInvalid


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
    form = request["response_format"].get("json_schema")
    schema = json.dumps(form["schema"], separators=(",", ":")) if form else ""
    framing = 3 + 4 * len(request["messages"])
    return framing + count(schema) + sum(count(message["content"]) for message in request["messages"])


MOST_TOKENS: Final = 10_000_000
"""More than any model's window: a server that says that a call took more does not know."""


def _none_if_odd(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    try:
        return validate(value)
    except ValidationError:
        return None


def _first(value: Any) -> Any:
    return value[:1] if isinstance(value, list) else value


_NoneIfOdd = WrapValidator(_none_if_odd)
_Text = Annotated[str | None, _NoneIfOdd]
_Count = Annotated[int | None, Field(strict=True, ge=0, le=MOST_TOKENS), _NoneIfOdd]


class _Message(BaseModel):
    content: _Text = None
    refusal: _Text = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: _Text = None


class _PromptDetails(BaseModel):
    cached_tokens: _Count = None


class _Tokens(BaseModel):
    prompt_tokens: _Count = None
    completion_tokens: _Count = None
    prompt_tokens_details: Annotated[_PromptDetails | None, _NoneIfOdd] = None


class Completion(BaseModel):
    """Holds a completion's first choice and its plausible figures. Servers differ in the rest."""

    choices: Annotated[list[_Choice], Field(min_length=1), BeforeValidator(_first)]
    usage: Annotated[_Tokens | None, _NoneIfOdd] = None

    @classmethod
    def of(cls, body: bytes) -> Completion:
        """Return the completion in a response's body. Raises :class:`ReplyInvalid` if there is none."""
        try:
            return cls.model_validate_json(body)
        except ValidationError:
            raise ReplyInvalid("the model's answer is no chat completion") from None

    @property
    def content(self) -> str:
        """Return the reply's text. Raises :class:`ReplyInvalid` when it was refused, cut off or empty."""
        choice = self.choices[0]
        if choice.message.refusal or choice.finish_reason == "content_filter":
            raise ReplyInvalid("the model refuses to answer")
        if choice.finish_reason == "length":
            raise ReplyInvalid("the model's reply was cut off at its token limit")
        if not (choice.message.content or "").strip():
            raise ReplyInvalid("the model's reply is empty")
        return choice.message.content or ""

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
