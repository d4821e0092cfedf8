"""An analyst that asks a model over OpenAI's API: OpenAI itself, or any server that speaks it."""

from context_builder.analysis.openai.analyst import OpenAIAnalyst
from context_builder.analysis.options import CallOptions, Endpoint, TaskConfig

__all__ = ["CallOptions", "Endpoint", "OpenAIAnalyst", "TaskConfig"]
