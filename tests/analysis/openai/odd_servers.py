"""Ways in which servers of OpenAI's API answer otherwise than OpenAI, as their users report them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from starlette.responses import HTMLResponse, JSONResponse, Response

Oddity = Callable[[dict[str, Any], str], Response | None]

DRAFT = '{"keywords": ["draft"], "domains": [], "points": [], "chatter": true}'


def completion(message: Mapping[str, Any], finish: str = "stop") -> Response:
    return JSONResponse(
        {"choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}]}
    )


def error(status: int, message: str, code: object = None, **more: object) -> Response:
    return JSONResponse({"error": {"message": message, "type": "invalid_request_error", "code": code, **more}}, status)


def form_of(asked: Mapping[str, Any]) -> str:
    return str(asked.get("response_format", {}).get("type", ""))


def limit_of(asked: Mapping[str, Any]) -> int:
    return int(asked.get("max_completion_tokens") or asked["max_tokens"])


def once(oddity: Oddity) -> Oddity:
    """The oddity, but for each prompt only at the first try."""
    seen: set[str] = set()

    def answered(asked: dict[str, Any], content: str) -> Response | None:
        prompt = str(asked["messages"][-1]["content"])
        if prompt in seen:
            return None
        seen.add(prompt)
        return oddity(asked, content)

    return answered


def content(change: Callable[[str], Any]) -> Oddity:
    return lambda asked, text: completion({"content": change(text)})


def thinks(needed: int, *, takes_effort: bool) -> Oddity:
    """A model that thinks for ``needed`` tokens, which are charged to the limit, unless it is asked for less effort."""

    def answered(asked: dict[str, Any], text: str) -> Response | None:
        if "reasoning_effort" in asked and not takes_effort:
            return error(400, "Unrecognized request argument supplied: reasoning_effort")
        thoughts = 0 if asked.get("reasoning_effort") == "low" else needed
        return None if limit_of(asked) > thoughts else completion({"content": ""}, "length")

    return answered


def streamed(text: str) -> Response:
    """The text as events, in pieces, as a server that streams sends it."""
    pieces = [text[at : at + 20] for at in range(0, len(text), 20)]
    chunks: list[dict[str, Any]] = [{"choices": []}]
    chunks += [{"choices": [{"delta": {"content": piece}, "finish_reason": None}]} for piece in pieces]
    chunks += [{"choices": [{"delta": {}, "finish_reason": "stop"}]}]
    chunks += [{"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}]
    events = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
    return Response(f": keep-alive\n\n{events}data: [DONE]\n\n", media_type="text/event-stream")


def only_streams(asked: dict[str, Any], text: str) -> Response:
    return streamed(text) if asked.get("stream") else error(400, "This model only supports stream mode")


def takes_no_form(*forms: str, status: int = 400, said: str = "'response_format.type' must be 'text'") -> Oddity:
    return lambda asked, text: JSONResponse({"error": said}, status) if form_of(asked) in forms else None


def unknown_to_fastapi(name: str, status: int = 422) -> Oddity:
    """Refuses a field as servers of FastAPI do: where it is stands in a list."""

    def answered(asked: dict[str, Any], text: str) -> Response | None:
        told = [{"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}]
        return JSONResponse({"object": "error", "detail": told}, status) if name in asked else None

    return answered


def no_system(status: int, said: str) -> Oddity:
    return lambda asked, text: error(status, said) if asked["messages"][0]["role"] == "system" else None


def small_window(prompt: int, said: str) -> Oddity:
    """A window in which a prompt of so many tokens leaves room for 300."""

    def answered(asked: dict[str, Any], text: str) -> Response | None:
        limit, window = limit_of(asked), prompt + 300
        told = said.format(window=window, prompt=prompt, limit=limit, sum=prompt + limit)
        return error(400, told, 400) if limit > window - prompt else None

    return answered


def ignores(name: str) -> Oddity:
    """Cuts replies off after some tokens, as without a limit, where this is how the limit is called."""
    counted = {"prompt_tokens": 9, "completion_tokens": 20}

    def answered(asked: dict[str, Any], text: str) -> Response | None:
        if name not in asked:
            return None
        choice = {"message": {"role": "assistant", "content": text[:60]}, "finish_reason": "length"}
        return JSONResponse({"choices": [choice], "usage": counted})

    return answered


_PROXIED = (
    'litellm.BadRequestError: GroqException - {"error": {"code": "json_validate_failed", "failed_generation": "{"}}'
)
_CUT_OFF = JSONResponse(
    {
        "error": {
            "message": "Failed to generate JSON. See 'failed_generation' for more details.",
            "code": "json_validate_failed",
            "failed_generation": "max completion tokens reached before generating a valid document",
        }
    },
    400,
)
_STATES = [
    {"error": {"code": 400, "message": "The schema has too many states for serving.", "status": "INVALID_ARGUMENT"}}
]
_PARTS = [{"type": "thinking", "thinking": [{"type": "text", "text": f"Perhaps {DRAFT}"}]}]

_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


def _in_single_marks(found: re.Match[str]) -> str:
    return "'" + found[1].replace("'", "\\'") + "'"


def _objects(items: list[Any]) -> int:
    return sum(isinstance(item, dict) for item in items)


ODDITIES: Mapping[str, Callable[[], Oddity]] = {
    "vLLM, thoughts in tags": lambda: content(lambda text: f"<think>\nSo {DRAFT} {{or}} not?\n</think>\n\n{text}"),
    "thoughts with the last tag only": lambda: content(lambda text: f"First {DRAFT} {{so}}\n</think>\n{text}"),
    "thoughts that do not end": lambda: content(lambda text: f"<think>\nFirst {DRAFT}, no: {text}"),
    "Magistral, thoughts in brackets": lambda: content(lambda text: f"[THINK]So {{DRAFT}}[/THINK]{text}"),
    "Mistral, parts": lambda: content(lambda text: [*_PARTS, {"type": "text", "text": text}]),
    "Mistral, text in two parts": lambda: content(
        lambda text: [{"type": "text", "text": text[:9]}, *_PARTS, {"type": "text", "text": text[9:]}]
    ),
    "an object as content": lambda: content(json.loads),
    "vLLM, answer among the thoughts": lambda: lambda _, text: completion({"content": None, "reasoning_content": text}),
    "OpenRouter, answer among the thoughts": lambda: lambda _, text: completion({"content": "", "reasoning": text}),
    "LiteLLM, answer as a tool's arguments": lambda: (
        lambda _, text: completion(
            {"content": None, "tool_calls": [{"function": {"name": "json_tool_call", "arguments": text}}]}
        )
    ),
    "OpenAI, thoughts that use up the limit": lambda: thinks(900, takes_effort=True),
    "Ollama, thoughts that use up the limit": lambda: thinks(4_000, takes_effort=False),
    "Groq, JSON that it finds invalid": lambda: once(lambda *_: error(400, "Generated JSON", "json_validate_failed")),
    "OpenAI, thoughts that do not fit the limit": lambda: (
        lambda asked, _: (
            error(400, "Could not finish the message because max_tokens or model output limit was reached.")
            if limit_of(asked) < 1_500
            else None
        )
    ),
    "Databricks, a limit that is too large": lambda: (
        lambda asked, _: (
            error(400, "max_tokens cannot exceed 90. Please reduce the length of max output tokens generated.")
            if limit_of(asked) > 90
            else None
        )
    ),
    "TGI, a generation that failed": lambda: once(
        lambda *_: JSONResponse({"error": "Request failed during generation", "error_type": "generation"}, 424)
    ),
    "a byte order mark": lambda: (
        lambda _, text: Response(
            b"\xef\xbb\xbf" + bytes(completion({"content": text}).body), media_type="application/json"
        )
    ),
    "the text of the older API": lambda: (
        lambda _, text: JSONResponse({"choices": [{"index": 0, "text": text, "finish_reason": "stop"}]})
    ),
    "Groq, a limit too small for JSON": lambda: (
        lambda asked, _: _CUT_OFF if form_of(asked) and limit_of(asked) < 1_500 else None
    ),
    "LiteLLM before Groq": lambda: once(lambda *_: error(400, _PROXIED, "400")),
    "Gemini, too many states": lambda: (
        lambda asked, _: JSONResponse(_STATES, 400) if form_of(asked) == "json_schema" else None
    ),
    "an unexplained 400 for a schema": lambda: takes_no_form("json_schema", said="Bad request"),
    "a parameter that nobody knows": lambda: (
        lambda asked, _: error(422, "Extra inputs are not permitted: body.widgets") if "temperature" in asked else None
    ),
    "LM Studio, text alone": lambda: takes_no_form("json_schema", "json_object"),
    "llama.cpp, no grammar": lambda: takes_no_form("json_schema", status=500, said="failed to parse grammar"),
    "no response_format, unexplained": lambda: takes_no_form("json_schema", "json_object", status=422, said="no"),
    "DashScope, streams alone": lambda: only_streams,
    "streams unasked": lambda: lambda _, text: streamed(text),
    "OpenRouter, an error in 200": lambda: once(
        lambda *_: JSONResponse({"error": {"message": "Provider returned error", "code": 429}})
    ),
    "OpenRouter, an error in a choice": lambda: once(
        lambda *_: JSONResponse(
            {
                "choices": [
                    {"message": {"content": ""}, "finish_reason": "error", "error": {"code": 502, "message": "no"}}
                ]
            }
        )
    ),
    "a proxy's page": lambda: once(lambda *_: HTMLResponse("<html><h1>Service Unavailable</h1></html>", 503)),
    "DeepSeek, no schema": lambda: takes_no_form(
        "json_schema", status=422, said="This response_format type is unavailable now"
    ),
    "DeepSeek, empty once": lambda: once(lambda *_: completion({"content": ""})),
    "Anthropic, a fence and a word before it": lambda: content(
        lambda text: f"Here it is:\n```json\n{text}\n```\nDone."
    ),
    "Mistral, an argument that it does not know": lambda: unknown_to_fastapi("max_completion_tokens"),
    "vLLM, an argument that it does not know": lambda: unknown_to_fastapi("response_format", status=400),
    "Gemma, no system role": lambda: no_system(500, "Jinja Exception: System role not supported"),
    "o1-mini, no system role": lambda: no_system(
        400, "Unsupported value: 'messages[0].role' does not support 'system' with this model."
    ),
    "vLLM, a small window": lambda: small_window(
        1_000,
        "This model's maximum context length is {window} tokens. However, you requested {sum} tokens ({prompt} in the "
        "messages, {limit} in the completion). Please reduce the length of the messages or completion.",
    ),
    "vLLM of late, a small window": lambda: small_window(
        1_000,
        "'max_tokens' or 'max_completion_tokens' is too large: {limit}. This model's maximum context length is "
        "{window} tokens and your request has {prompt} input tokens ({limit} > {window} - {prompt}).",
    ),
    "TGI, a small window": lambda: small_window(
        1_000,
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= {window}. Given: {prompt} `inputs` "
        "tokens and {limit} `max_new_tokens`",
    ),
    "OpenRouter, blank lines before the answer": lambda: (
        lambda _, text: Response(b"\n \n\n" + completion({"content": text}).body, media_type="application/json")
    ),
    "gpt-oss, channels": lambda: content(
        lambda text: f"<|channel|>analysis<|message|>Perhaps {DRAFT}<|end|><|channel|>final<|message|>{text}"
    ),
    "llama.cpp, a model that is being loaded": lambda: once(
        lambda *_: error(503, "Loading model", 503, type="unavailable_error")
    ),
    "Together, overloaded": lambda: once(
        lambda *_: JSONResponse({"id": "x", "error": {"message": "try again", "type": "server_error"}}, 529)
    ),
    "an answer as a function's arguments": lambda: (
        lambda _, text: completion({"content": None, "function_call": {"name": "reply", "arguments": text}})
    ),
    "a comma too much": lambda: content(lambda text: f"{text[:-1]},}}"),
    "line ends in texts": lambda: content(lambda text: text.replace(" ", "\n")),
    "a literal of Python's": lambda: content(lambda text: repr(json.loads(text))),
    "JSON in a JSON text": lambda: content(json.dumps),
    "JSON in a JSON text, in a fence": lambda: content(lambda text: f"\n```json\n{json.dumps(text)}\n```"),
    "comments": lambda: content(lambda text: f"{{ // the answer\n{text[1:-1]}, /* that is all */ }}"),
    "curly quotation marks": lambda: content(lambda text: _TEXT.sub(r"“\1”", text)),
    "single quotation marks": lambda: content(lambda text: _TEXT.sub(_in_single_marks, text)),
    "keys without quotation marks": lambda: content(lambda text: re.sub(r'"(\w+)":', r"\1:", text)),
    "keys in another case": lambda: content(lambda text: re.sub(r'"(\w+)":', lambda key: key[0].title(), text)),
    "the answer within the schema": lambda: content(
        lambda text: json.dumps({"type": "object", "properties": json.loads(text)})
    ),
    "a list in place of the object": lambda: content(
        lambda text: json.dumps(max((one for one in json.loads(text).values() if isinstance(one, list)), key=_objects))
    ),
    "gpt-oss, an answer as a call": lambda: content(
        lambda text: (
            f"<|channel|>analysis<|message|>Perhaps {DRAFT}<|end|><|start|>assistant<|channel|>commentary "
            f"to=functions.reply <|constrain|>json<|message|>{text}<|call|>"
        )
    ),
    "gpt-oss, channels without markers": lambda: content(lambda text: f"analysisPerhaps {DRAFT}.assistantfinal{text}"),
    "gpt-oss, cut off in its thoughts": lambda: (
        lambda asked, _: (
            completion({"content": f"<|start|>assistant<|channel|>analysis<|message|>Perhaps {DRAFT}"}, "length")
            if limit_of(asked) < 1_500
            else None
        )
    ),
    "Gemini, cancelled": lambda: once(lambda *_: error(499, "The operation was cancelled.", status="CANCELLED")),
    "TGI, a limit by its newer name is not seen": lambda: ignores("max_completion_tokens"),
    "a limit that is too large": lambda: (
        lambda asked, _: (
            error(400, "max_completion_tokens must be less than or equal to 90") if limit_of(asked) > 90 else None
        )
    ),
}
