"""An analyst that asks a model over OpenAI's API: OpenAI itself, or any server that speaks it."""

from context_builder.analysis.call_options import CallOptions
from context_builder.analysis.openai.analyst import OpenAIAnalyst
from context_builder.analysis.openai.options import Endpoint, TaskOptions, Tasks

__all__ = ["CallOptions", "Endpoint", "OpenAIAnalyst", "TaskOptions", "Tasks"]
