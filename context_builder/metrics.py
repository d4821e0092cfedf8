"""Every metric of the live side. Names end in their unit; labels never hold what people said or who they are."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

_LATENCY = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_MODEL_LATENCY = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)

MESSAGES = Counter("context_builder_messages_total", "Deliveries read, by what became of them.", ["outcome"])
TIMESTAMPS_AHEAD = Counter(
    "context_builder_timestamps_ahead_total", "Messages whose timestamp was more than a day ahead, and counted as now."
)
COMMIT_SECONDS = Histogram(
    "context_builder_commit_seconds", "One commit, from its first try until Redis took it.", buckets=_LATENCY
)
STORE_FAILURES = Counter(
    "context_builder_store_failures_total", "Commands that Redis did not carry out for being away, slow or unwilling."
)
ANALYSIS = Counter("context_builder_analysis_total", "Work given to an analyst.", ["task", "outcome"])
ANALYSIS_SECONDS = Histogram(
    "context_builder_analysis_seconds", "One piece of analysis.", ["task"], buckets=_MODEL_LATENCY
)
REJECTED_POINTS = Counter(
    "context_builder_rejected_points_total", "Points of models that their quotes do not bear out."
)
POINT_REJECTIONS = Counter(
    "context_builder_point_rejections_total", "Points that the check of their quotes rejected.", ["reason"]
)
TOKENS = Counter("context_builder_tokens_total", "Tokens of model calls.", ["task", "model", "kind"])
CALLS = Counter("context_builder_model_calls_total", "Model calls that were answered.", ["task", "model"])
COST_DOLLARS = Counter("context_builder_cost_dollars_total", "Model calls by their list price.", ["task", "model"])
SESSION_TOKENS = Gauge(
    "context_builder_session_tokens",
    "Tokens of the model calls of a session that runs here, over all of its runs.",
    ["session", "task", "kind"],
)
SESSION_COST_DOLLARS = Gauge("context_builder_session_cost_dollars", "The same by list price.", ["session", "task"])
DOMAIN_CALLS_SKIPPED = Counter(
    "context_builder_domain_calls_skipped_total", "Domain inferences that needed no model, nothing having changed."
)
OVER_BUDGET = Counter("context_builder_over_budget_total", "Model calls refused by the hourly budget.", ["task"])
SUMMARIES_ARCHIVED = Counter("context_builder_summaries_archived_total", "Deliveries to the archive.", ["outcome"])
MEMORY_FED = Counter("context_builder_memory_fed_total", "Deliveries to the long-term memory.", ["outcome"])
MESSAGES_FED = Counter(
    "context_builder_messages_fed_total",
    "Messages given to the long-term memory before they are summarized.",
    ["outcome"],
)
QUEUE_LENGTH = Gauge("context_builder_input_length", "Deliveries waiting at the last commit, all sessions.")
LOOP_LAG_SECONDS = Gauge("context_builder_loop_lag_seconds", "How late a fleet worker's event loop is, over 5 seconds.")
OVERLOADED = Gauge("context_builder_overloaded", "1 while a worker has too much to do to take more sessions.")
SESSIONS = Gauge("context_builder_sessions", "Sessions this process runs.")
