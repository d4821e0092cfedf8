"""A chat completion as it came back: its content, if it is one, and what it cost."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from context_builder.analysis.analyst import Usage
from context_builder.errors import ReplyInvalid


class _Part(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class _Message(_Part):
    content: str | None = None
    refusal: str | None = None


class _Choice(_Part):
    message: _Message
    finish_reason: str | None = None


class _PromptDetails(_Part):
    cached_tokens: int | None = None


class _Tokens(_Part):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None


class Completion(_Part):
    """What is read of a completion; servers differ in the rest."""

    choices: Annotated[list[_Choice], Field(min_length=1)]
    usage: _Tokens | None = None

    @classmethod
    def of(cls, answer: object) -> Completion:
        """The completion in whatever the client returned. Raises :class:`ReplyInvalid` if it is none."""
        try:
            return cls.model_validate(answer)
        except ValidationError:
            raise ReplyInvalid("the model's answer is no chat completion") from None

    @property
    def content(self) -> str:
        """The text of the reply. Raises :class:`ReplyInvalid` when it was refused, cut off or empty."""
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
        """Whether the server says how many tokens it took."""
        return self.usage is not None and self.usage.prompt_tokens is not None

    def cost(self, model: str) -> Usage:
        """The tokens of this one call to ``model``, as its server counted them."""
        tokens = self.usage or _Tokens()
        details = tokens.prompt_tokens_details or _PromptDetails()
        return Usage(
            model=model,
            prompt_tokens=tokens.prompt_tokens or 0,
            cached_tokens=details.cached_tokens or 0,
            completion_tokens=tokens.completion_tokens or 0,
            calls=1,
        )
