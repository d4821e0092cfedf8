"""``serve``: the HTTP API, and the services of context packages over gRPC."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from context_builder.cli.command import quick_loop, run, settings_in_force
from context_builder.cli.run import serving_health
from context_builder.cli.signals import stopping_signals
from context_builder.concurrency import SWITCH_INTERVAL
from context_builder.errors import require_extra

if TYPE_CHECKING:
    from context_builder.settings.settings import Settings
    from context_builder.wiring.server import OpenServices


def serve(
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on; default: SERVE_HOST.")] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=1, max=65535, help="Port to listen on; default: SERVE_PORT (8642).")
    ] = None,
    grpc: Annotated[
        int | None,
        typer.Option("--grpc", min=1, max=65535, help="Port of the services over gRPC; default: SERVE_GRPC_PORT."),
    ] = None,
) -> None:
    """Serve sessions, memories and knowledge over HTTP until Ctrl-C; /docs lists the calls, and / is the page.

    By default, the server listens on this machine only, and your own programs use the token in serve.token of the data
    folder. Other callers need an API key (`context-builder keys create`) or a JWT (AUTH_JWKS_URL). Without either, the
    server refuses to listen on an address that others can reach. The exit status is 2 for a wrong setting, including a
    port that is taken.

    Examples:

        context-builder serve

        context-builder serve --host 0.0.0.0 --port 80

        context-builder serve --grpc 8643
    """
    run(_serve(host, port, grpc), interrupted=0, loop_factory=quick_loop())


async def _serve(host: str | None, port: int | None, grpc: int | None) -> None:
    from context_builder import log

    settings = settings_in_force(serve_host=host, serve_port=port, serve_grpc_port=grpc)
    for module in ("fastapi", "uvicorn", "cedarpy", "jwt", "ulid", "jsonpatch", "fastapi_offline", "jinja2"):
        require_extra("server", module, "serve")
    if settings.server.grpc_port is not None:
        require_extra("grpc", "grpc", "serve --grpc")
    from context_builder.wiring.server import open_services
    from context_builder.wiring.tracing import sending_spans

    log.configure(settings.process.log_level, settings.process.log_format)
    sys.setswitchinterval(SWITCH_INTERVAL)
    stop = asyncio.Event()
    with stopping_signals(stop.set):
        async with (
            sending_spans(settings, "serve"),
            serving_health(settings, lambda: not stop.is_set()),
            open_services(settings) as opened,
            _hosting(settings, opened),
        ):
            from context_builder.server.app import create_app
            from context_builder.server.page.app import logins_of
            from context_builder.server.serving import serve_app

            app = create_app(opened.services)
            code = await logins_of(opened.services).new_code() if sys.stdout.isatty() else None  # a log is read by many
            await serve_app(
                app,
                settings.server.host,
                settings.server.port,
                stop=stop,
                stopping=opened.services.stopping,
                started=lambda: typer.echo(banner(settings, opened, code)),
            )


@asynccontextmanager
async def _hosting(settings: Settings, opened: OpenServices) -> AsyncIterator[None]:
    """Answer over gRPC too, where a port is set for that."""
    services, host, port = opened.services, settings.server.host, settings.server.grpc_port
    if port is None:
        yield
        return
    from context_builder.server.grpc.serving import serving_grpc

    async with serving_grpc(opened.hosted, services.authenticator, services.shares, host, port):
        yield


def banner(settings: Settings, opened: OpenServices, code: str | None = None) -> str:
    """Return where the server is, how to show it who one is, and where its calls are described.

    ``code`` lets the person who opens the page's address first in.
    """
    host = f"[{settings.server.host}]" if ":" in settings.server.host else settings.server.host
    url = f"http://{host}:{settings.server.port}"
    credential = f"$(cat {opened.local_token_file})" if opened.local_token_file else "KEY"
    kinds = "an API key (`context-builder keys create`)" + (", a JWT" if opened.services.authenticator.tokens else "")
    lines = [
        f"context-builder serves {url} · Ctrl-C stops",
        f"  {'Page':<8} {page_address(url, code)}",
        f"  {'Docs':<8} {url}/docs",
        f'  {"Ask":<8} curl -H "Authorization: Bearer {credential}" {url}/sessions',
        f"  {'With':<8} {kinds}{', or the local token' if opened.local_token_file else ''}",
        f"  {'Tenant':<8} {settings.memory.tenant_id} has the sessions of this Redis",
        f"  {'Memory':<8} {opened.memory_is.what}",
    ]
    if settings.server.grpc_port is not None:
        lines.append(f"  {'gRPC':<8} grpc://{host}:{settings.server.grpc_port} (KNOWLEDGE_GRAPH_URL and the like)")
    return "\n".join(lines)


def page_address(url: str, code: str | None) -> str:
    """Return where the page is; with a code it can be opened once without a login."""
    return f"{url}/ui/login?code={code} (lets you in once, for 15 minutes)" if code else f"{url}/ui/"
