"""The real small model, for messages that try to instruct it."""

from tests.analysis.conftest import small_model

__all__ = ["small_model"]
