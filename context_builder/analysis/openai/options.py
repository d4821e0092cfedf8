"""Where the model is."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Names a server that speaks OpenAI's API; OpenAI itself without a ``base_url``, which ``setting`` names."""

    api_key: str = field(default="", repr=False)
    base_url: str | None = field(default=None, repr=False)
    setting: str = "OPENAI_BASE_URL"

    @property
    def label(self) -> str:
        """Return the endpoint's name for people, free of credentials."""
        if self.base_url is None:
            return "OpenAI"
        parts = urlsplit(self.base_url)
        return f"the model server at {parts.netloc.rpartition('@')[2]}"
