"""Embeddings from OpenAI, or from any server that speaks its API."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import batched
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from context_builder.errors import MemoryRejected, MemoryUnavailable
from context_builder.memory.embedder import Embedding

if TYPE_CHECKING:
    from openai import AsyncOpenAI
