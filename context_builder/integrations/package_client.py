"""Context packages for an agent elsewhere, from a server that ``context-builder serve`` runs."""

from __future__ import annotations

from typing import Any, Final, Self

import httpx

from context_builder.errors import DatabaseRejected, DatabaseUnavailable
from context_builder.storage.bounded_http import trusted_authorities
from context_builder.storage.urls import printable, refuse_redirects

TIMEOUT: Final = 10.0
"""Seconds; a build takes a fraction of one."""


class PackageClient:
    """Asks the server at ``url`` for packages with ``key``, an API key or a JWT, which decides what may be seen.

    ``transport`` is httpx's, by default over the network. Open it with ``async with``, or :meth:`close` it.
    """

    def __init__(self, url: str, key: str, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._server = printable(url)
        self._http = httpx.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {key}"},
            timeout=TIMEOUT,
            verify=trusted_authorities(),
            transport=transport,
            event_hooks=refuse_redirects(self._server, "the client's url", DatabaseRejected),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def prompt(
        self, intent: str, *, token_budget: int = 4_000, project_id: str = "", session_ids: tuple[str, ...] = ()
    ) -> str:
        """Return what fits the intent as text for a prompt, which says that it is a record and no instructions.

        Empty when nothing is found that may be seen. Raises :class:`DatabaseUnavailable` when the server does not
        answer and :class:`DatabaseRejected`, in the server's words, when it refuses.
        """
        body = {
            "intent": intent,
            "tokenBudget": token_budget,
            "scope": {"projectId": project_id, "sessionIds": list(session_ids)},
        }
        built = await self._answered("POST", "/knowledge/context/build", json=body)
        try:
            package = str(built.json()["contextPackageId"])
        except (ValueError, KeyError, TypeError):
            raise DatabaseUnavailable(f"{self._server}: answers, but with no context package") from None
        return (await self._answered("GET", f"/knowledge/context/{package}", params={"format": "prompt"})).text

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _answered(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            answer = await self._http.request(method, path, **options)
        except httpx.TransportError as error:
            raise DatabaseUnavailable(f"{self._server}: {type(error).__name__}") from None
        if answer.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
            raise DatabaseUnavailable(f"{self._server}: {_detail(answer)}")
        if answer.is_error:
            raise DatabaseRejected(_detail(answer))
        return answer


def _detail(answer: httpx.Response) -> str:
    """Return what a problem document (RFC 9457) tells; the status of anything else."""
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return f"answered {answer.status_code}"
