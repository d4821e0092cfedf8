"""A builder ranks by the signals that it is given, those of context packages among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from context_builder.assembly import ContextBuilder
from context_builder.assembly.candidate import Candidate
from context_builder.assembly.config import AssemblyConfig
from context_builder.assembly.select import ranking_signals
from context_builder.assembly.sources import RetrievalQuery
from context_builder.knowledge.node import KnowledgeNode
from context_builder.knowledge.signals import Quality, Reuse, package_signals
from context_builder.knowledge.weights import PackageWeights

CONFIG = AssemblyConfig()


class Documents:
    """A memory, and a document that is less alike but was assessed as good and has helped before."""

    name = "documents"

    async def find(self, query: RetrievalQuery) -> Sequence[Candidate]:
        node = KnowledgeNode("artifact:a", "document", "Clips", "Clips are labelled.", quality=1.0, reuse=1.0)
        return [
            Candidate("said", "Clips are loud.", base_score=0.8),
            Candidate(node.ref, "Clips are labelled.", base_score=0.7, metadata={"node": node}),
        ]

    async def warm_up(self) -> None:
        """Nothing is to be done."""


@pytest.mark.parametrize(
    ("signals", "first", "named"),
    [
        ((), "said", {"similarity", "recency"}),
        (
            (*ranking_signals(CONFIG), Quality(0.3), Reuse(0.2)),
            "artifact:a",
            {"similarity", "recency", "quality", "reuse"},
        ),
        (package_signals(PackageWeights()), "artifact:a", {"semantic", "graph", "recency", "quality", "reuse"}),
    ],
)
async def test_a_turn_is_ranked_by_given_signals(
    builder: Callable[..., ContextBuilder], signals: tuple[object, ...], first: str, named: set[str]
) -> None:
    made = builder(sources=[Documents()], signals=signals, config=AssemblyConfig(threshold=0.0))
    built = await made.build_for_turn({"user_message": "Which clips?"})
    assert built.snippets[0]["id"] == first
    assert set(built.snippets[0]["signals"]) == named
