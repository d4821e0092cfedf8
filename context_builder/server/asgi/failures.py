"""An unhandled exception is logged by its place and answered as a problem, without its text, which may quote input."""

from __future__ import annotations

from traceback import extract_tb

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from context_builder.errors import ContextBuilderError
from context_builder.server.problem import internal_error, problem_of, problem_response

log = structlog.get_logger(__name__)


class FailureMiddleware:
    """Answers 500 if the answer has not begun, and otherwise breaks it off."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = False

        async def noting(message: Message) -> None:
            nonlocal began
            began = began or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except Exception as error:  # of any kind: whoever asked gets a problem document
            is_ours = isinstance(error, ContextBuilderError)
            log.error(
                "http.failed", kind=type(error).__name__, at=_place(error), **({"error": str(error)} if is_ours else {})
            )
            if scope["type"] != "http":
                raise
            if not began:
                problem = problem_of(error) if isinstance(error, ContextBuilderError) else internal_error()
                await problem_response(problem)(scope, receive, send)


def _place(error: BaseException) -> str:
    """Return file and line where it was raised, and the last of ours before that."""
    frames = extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "context_builder" in frame.filename]
    named = dict.fromkeys(
        f"{one.filename.rpartition('context_builder/')[2]}:{one.lineno}" for one in (*ours[-1:], *frames[-1:])
    )
    return " ".join(named)
