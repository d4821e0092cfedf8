"""Plain text analysis: keywords, domains and summaries without a model or an account."""

from context_builder.analysis.text.analyst import TextAnalyst

__all__ = ["TextAnalyst"]
