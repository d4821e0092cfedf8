"""Settings of the prompts that a process builds, and of the process itself."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic.dataclasses import dataclass

from context_builder.config import CONFIG, ModelName, Seconds, setting
from context_builder.settings.types import Port


@dataclass(frozen=True, slots=True, config=CONFIG)
class PromptSettings:
    """Configures a builder of prompts; its limits and weights are an ``AssemblyConfig``."""

    model: ModelName | None = setting(
        None, "CONTEXT_MODEL", "Model that prompts are built for; its context window replaces CONTEXT_MAX_TOKENS. name"
    )
    summarizer: Literal["extract", "analyst"] = setting(
        "extract",
        "CONTEXT_SUMMARIZER",
        "What sums up messages that leave a prompt: extract quotes them, "
        "analyst asks the model that reads messages (OPENAI_…, LOCAL_MODEL_URL).",
    )
    preferences: Literal["patterns", "analyst"] = setting(
        "analyst",
        "CONTEXT_PREFERENCES",
        "What finds users' preferences in messages: patterns goes by their words, "
        "analyst asks the model (OPENAI_…) where there is one.",
    )
    preload: bool = setting(
        False,
        "CONTEXT_PRELOAD",
        "Load tokenizer, redactor and connections before the first prompt. true or false",
    )
    redact: Literal["none", "secrets", "personal", "all"] = setting(
        "none",
        "CONTEXT_REDACT",
        "What is masked in prompts and in all that is remembered; personal data needs the extra pii.",
    )


@dataclass(frozen=True, slots=True, config=CONFIG)
class ProcessSettings:
    """Tells what a process keeps on disk, serves over HTTP and logs."""

    home: Path | None = setting(
        None, "CONTEXT_BUILDER_HOME", "Data folder of the embedded Redis and PostgreSQL; default: the user's. path"
    )
    record_dir: Path | None = setting(
        None, "RECORD_DIR", "Folder in which every session is recorded, what people say included. path"
    )
    session_retention: Seconds = setting(
        604800.0, "SESSION_RETENTION", "Time that a finished session is kept in Redis. seconds"
    )
    http_port: Port | None = setting(
        None, "HTTP_PORT", "Port that serves /metrics, /livez and /readyz; none without it. port"
    )
    http_host: str = setting("127.0.0.1", "HTTP_HOST", "Address that HTTP_PORT listens on. address")
    log_level: Literal["debug", "info", "warning", "error"] = setting(
        "info", "LOG_LEVEL", "Least severe log events that are shown."
    )
    log_format: Literal["auto", "console", "json"] = setting(
        "auto", "LOG_FORMAT", "Format of the log; auto is readable in a terminal, else JSON."
    )
