"""The weights of a package's ranking signals are settings."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from context_builder.config import CONFIG, setting

Weight = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Days = Annotated[float, Field(gt=0, le=36_500, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True, config=CONFIG)
class PackageWeights:
    """Tells how much each signal counts, and the age in days at which recency is down to 0.37 (1/e).

    How much the graph counts beside similarity is from ``./scripts/bench packages``: walks in it begin at likeness.
    """

    semantic: Weight = setting(
        0.23, "PACKAGE_WEIGHT_SEMANTIC", "Weight of likeness to the intent, by words and meaning, in packages. number"
    )
    graph: Weight = setting(
        0.57,
        "PACKAGE_WEIGHT_GRAPH",
        "Weight of nearness in the graph to what is like the intent, pinned or of the scope. number",
    )
    recency: Weight = setting(
        0.05, "PACKAGE_WEIGHT_RECENCY", "Weight of how new a source is, and whether it still holds. number"
    )
    quality: Weight = setting(
        0.1, "PACKAGE_WEIGHT_QUALITY", "Weight of assessments of a source, and of how often it helped. number"
    )
    reuse: Weight = setting(
        0.05, "PACKAGE_WEIGHT_REUSE", "Weight of how often a source helped in packages with feedback. number"
    )
    days: Days = setting(90.0, "PACKAGE_RECENCY_DAYS", "Age at which the recency of a source is down to 0.37. days")
