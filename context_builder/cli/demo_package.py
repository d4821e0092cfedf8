"""The package that the demo ends with, of the session and of a document that comes along."""

from __future__ import annotations

from typing import Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from context_builder.cli.view.package import package_table
from context_builder.demo import load_demo_document
from context_builder.knowledge.artifact import Artifact, ArtifactKind, Status
from context_builder.knowledge.package import ContextPackage
from context_builder.knowledge.request import ContextBuildRequest, Scope
from context_builder.server.access.caller import local_caller
from context_builder.settings.settings import Settings
from context_builder.tracing import TraceContext
from context_builder.wiring.knowledge import open_knowledge
from context_builder.wiring.packages import open_package_service

PROJECT: Final = "demo"
REF: Final = "artifact:demo/permits"
INTENT: Final = "What is needed before an acoustic beacon may be mounted in the cove?"
BUDGET: Final = 600


async def demo_package(settings: Settings, session_id: str) -> ContextPackage:
    """Store the document, and return a package of it and of the session."""
    tenant_id = settings.memory.tenant_id
    text = load_demo_document()
    title = text.partition("\n")[0].removeprefix("# ")
    document = Artifact(
        kind=ArtifactKind.DOCUMENT, title=title, content=text, project_id=PROJECT, status=Status.APPROVED
    )
    async with open_knowledge(settings) as knowledge:
        await knowledge.store.put(tenant_id, REF, document)
    scope = Scope(project_id=PROJECT, session_ids=(session_id,))
    request = ContextBuildRequest(intent=INTENT, token_budget=BUDGET, scope=scope)
    async with open_package_service(settings, tenant_id, INTENT) as service:
        return await service.build(local_caller(tenant_id).agent, request, TraceContext.new())


def package_view(package: ContextPackage) -> RenderableType:
    """Return the package for people: what it is for, its sources, and how to read all of it."""
    return Padding(
        Group(
            Text("A package of context, for an agent", style="bold"),
            Text(f"its task: {INTENT}", style="dim"),
            Text(),
            package_table(package),
            Text(f"context-builder package show {package.context_package_id} --prompt", style="bold"),
        ),
        (1, 2, 0, 2),
    )
