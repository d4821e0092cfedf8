"""A session as it could be published, made from the bundled conversation."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from context_builder.demo import load_demo
from context_builder.session.client import JsonObject, Snapshot

NOW = datetime(2025, 10, 2, 10, 36, 12).timestamp()
"""The moment at which the sample session is looked at."""

ECOLOGY = "Environmental Science / Ecology"
LEARNING = "Data Science / Machine Learning"
ROBOTICS = "Robotics / Automation"
STATISTICS = "Mathematics / Statistics"

KEYWORDS = {
    "recall": ["recall", "precision", "surf noise"],
    "labelled": ["training data", "learning curve", "labelled clips"],
    "battery": ["battery", "lithium pack"],
    "urchin": ["purple sea urchins", "urchin barren", "grazing"],
    "model": ["classifier", "domain shift", "unseen site"],
}

POINTS = [
    ("claim", "Kelp canopy off Point Arlen fell by about forty percent since the 2023 heatwave.", ["Ines"]),
    ("disagreement", "Whether grazing or low nitrate came first in the decline of the kelp.", ["Kai", "Ines"]),
    ("consilience", "Daily nitrate and temperature at each plot would separate the two causes.", ["Consilience"]),
    ("action", "Get a quote for two nutrient sensors by Friday.", ["Kai"]),
    ("decision", "Weekly surveys of both coves from March: urchin density and canopy cover.", ["Ines"]),
    ("claim", "The classifier reaches a precision of 0.91 and a recall of 0.64.", ["Tomasz"]),
    ("question", "Does the model generalize to another site?", ["Ines"]),
]


def entries(first: int, last: int) -> list[JsonObject]:
    """Messages ``first`` up to ``last`` of the bundled conversation as buffer entries."""
    published = []
    for index, said in enumerate(load_demo()[first:last], start=first):
        at = NOW - (last - index) * 5.5 + 3.5
        found = [word for key, words in KEYWORDS.items() if key in said.text.lower() for word in words]
        published.append(
            {
                "id": index,
                "message_number": index + 1,
                "speaker": said.speaker,
                "text": said.text,
                "timestamp": datetime.fromtimestamp(at).isoformat(),
                "buffer_entry_time": at,
                "confidence": 1.0,
                "type": "user" if said.contribution is None else "consilience",
                "keywords": found[:6],
                "domains": [LEARNING] if found and index < last - 2 else [],
                "domain_confidence": {LEARNING: 0.9},
                "analyst": "text",
            }
        )
    return published


def sample_state(**changes: Any) -> JsonObject:
    """A state in the middle of the conversation."""
    points = [
        {"id": i, "text": text, "kind": kind, "speakers": speakers, "messages": [i], "ids": [i], "time": NOW - 200 + i}
        for i, (kind, text, speakers) in enumerate(POINTS)
    ]
    state: JsonObject = {
        "session_id": "point-arlen",
        "schema_version": 1,
        "revision": 212,
        "updated_at": NOW - 0.3,
        "rolling_summary": {
            "text": "\n".join(f"- {point['text']}" for point in points),
            "points": points,
            "covers_messages": [1, 28],
            "message_count": 29,
            "summary_seq": 3,
            "time_range_start": datetime.fromtimestamp(NOW - 252).isoformat(),
            "time_range_end": datetime.fromtimestamp(NOW - 90).isoformat(),
            "last_updated": None,
        },
        "raw_recent_buffer": entries(29, 43),
        "consilience_responses": [],
        "current_domains": [LEARNING, ECOLOGY, STATISTICS],
        "domain_confidence": {LEARNING: 0.88, ECOLOGY: 0.46, STATISTICS: 0.31},
        "current_keywords": [
            "training data",
            "recall",
            "domain shift",
            "labelled clips",
            "active learning",
            "audio transformer",
        ],
        "last_message_time": NOW - 1.6,
        "last_summary_time": NOW - 60,
        "last_domain_inference_time": NOW - 4,
        "messages_since_summary": 14,
        "messages_since_domain_inference": 2,
        "highest_message_number": 42,
        "received_messages": 43,
        "pending_messages": 0,
        "dead_letters": 0,
        "undeliverable": {"archive": 0, "memory": 0},
        "analyst": {"keywords": "text", "domains": "text", "summary": "text"},
    }
    return state | changes


def sample_conversation(**changes: Any) -> JsonObject:
    return {
        "session_id": "point-arlen",
        "silence": False,
        "time_since_last_message": 1.6,
        "active_domains": [LEARNING],
        "domain_confidence": {LEARNING: 0.88},
        "current_keywords": ["recall"],
        "last_message_time": NOW - 1.6,
    } | changes


def sample(**changes: Any) -> Snapshot:
    """A running session; ``changes`` replace fields of the snapshot."""
    parts: dict[str, Any] = {
        "session_id": "point-arlen",
        "state": sample_state(),
        "conversation": sample_conversation(),
        "waiting": 0,
        "owner": {"token": 7, "host": "field-station", "pid": 4123, "since": NOW - 252},
    }
    return Snapshot(**(parts | changes))


Change = Callable[[JsonObject], None]
