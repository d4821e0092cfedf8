"""Messages of chat programs in JSON are heard with who wrote them, and when, in the order of time."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from context_builder.errors import TranscriptError
from context_builder.transcript.live_speech import LiveSpeech
from tests.transcript.reading import heard, transcript

JSON = dict[str, Any]
IDA, BO = "Ida | The pump came.", "Bo | Which one?"


def graph(who: str | None, text: str, at: str, **more: object) -> JSON:
    return {
        "messageType": "message",
        "createdDateTime": at,
        "from": who and {"user": {"displayName": who}},
        "body": {"contentType": "html", "content": text},
        **more,
    }


def node(name: str, parent: str | None, role: str, text: str, at: float) -> JSON:
    message = {"author": {"role": role}, "create_time": at, "content": {"parts": [text]}}
    return {"id": name, "parent": parent, "message": message if role else None}


TELEGRAM = {"id": 1, "type": "message", "date": "2023-05-03T09:00:00", "date_unixtime": "1683097200", "from": "Ida"}
SMS = {"address": "+4712345678", "date": 1683104400000, "locked": 0, "read": 1}
CHATS: dict[str, tuple[object, list[str]]] = {
    "text messages": (
        [
            {**SMS, "body": "The pump came.", "type": 1},
            {**SMS, "body": "Which one?", "date": 1683104460000, "type": 2},
        ],
        ["+4712345678 | The pump came.", "Me | Which one?"],
    ),
    "Telegram": (
        {
            "messages": [
                {**TELEGRAM, "type": "service", "text": "", "action": "pin_message"},
                {**TELEGRAM, "text": ["The ", {"type": "bold", "text": "pump"}, " came."]},
                {**TELEGRAM, "date_unixtime": "1683097300", "from": None, "from_id": "user7", "text": "Which one?"},
            ]
        },
        [IDA, "user7 | Which one?"],
    ),
    "several chats of Telegram": (
        {
            "chats": {
                "list": [
                    {"messages": [{**TELEGRAM, "date_unixtime": "1683097300", "text": "Good."}]},
                    {"name": "left"},
                    {"messages": [{**TELEGRAM, "text": "The pump came."}]},
                ]
            }
        },
        [IDA, "Ida | Good."],
    ),
    "Rocket.Chat": (
        {
            "messages": [
                {"u": {"username": "bo", "name": "Bo"}, "msg": "Which one?", "ts": {"$date": "2023-05-03T09:01:00Z"}},
                {"u": {"username": "eve"}, "msg": "eve", "t": "uj", "ts": "2023-05-03T09:00:30Z"},
                {"u": {"username": "Ida"}, "msg": "The pump came.", "ts": "2023-05-03T09:00:00Z"},
            ]
        },
        [IDA, BO],
    ),
    "Zulip": (
        {
            "messages": [
                {
                    "sender_full_name": "Ida",
                    "content": "<p>The <b>pump</b> came.</p>",
                    "content_type": "text/html",
                    "timestamp": 1683097200,
                },
                {"sender_full_name": "Bo", "content": "Which one?", "timestamp": 1683097260},
            ]
        },
        [IDA, BO],
    ),
    "an export of Zulip": (
        {
            "zerver_message": [{"sender": 8, "content": "The pump came.", "date_sent": 1683097200.5}],
            "zerver_userprofile": [{"id": 8, "full_name": "Ida"}],
        },
        [IDA],
    ),
    "Facebook": (
        {
            "messages": [
                {"sender_name": "Zo\u00c3\u00ab", "timestamp_ms": 1683097260000, "content": "\u00c3\u00a0 demain"},
                {"sender_name": "Ida", "timestamp_ms": 1683097200000, "content": "The pump came."},
                {"sender_name": "Ida", "timestamp_ms": 1683097201000, "content": "Gone", "is_unsent": True},
            ]
        },
        [IDA, "Zoë | à demain"],
    ),
    "Google Chat": (
        {
            "messages": [
                {
                    "creator": {"name": "Ida"},
                    "created_date": "Wednesday, May 3, 2023 at 9:00:00\u202fAM UTC",
                    "text": "The pump came.",
                }
            ]
        },
        [IDA],
    ),
    "Skype": (
        {
            "conversations": [
                {
                    "MessageList": [
                        {
                            "displayName": None,
                            "from": "8:live:Ida",
                            "messagetype": "RichText",
                            "content": "The <i>pump</i> came.",
                            "originalarrivaltime": "2023-05-03T09:00:00Z",
                        },
                        {
                            "displayName": "Bo",
                            "messagetype": "Event/Call",
                            "content": "<partlist/>",
                            "originalarrivaltime": "2023-05-03T09:00:00Z",
                        },
                    ]
                }
            ]
        },
        [IDA],
    ),
    "Teams": (
        {
            "value": [
                graph("Bo", "<div>Which&nbsp;one?</div>", "2023-05-03T09:01:00.1Z"),
                graph("Eve", "<p>x</p>", "2023-05-03T09:00:30Z", deletedDateTime="2023-05-03T09:00:31Z"),
                graph(None, "<systemEventMessage/>", "2023-05-03T09:00:20Z", messageType="systemEventMessage"),
                graph("Ida", "<p>The pump</p><p>came.</p>", "2023-05-03T09:00:00Z"),
            ]
        },
        [IDA, BO],
    ),
    "ChatGPT": (
        [
            {
                "current_node": "c",
                "mapping": {
                    "a": node("a", None, "", "", 0),
                    "b": node("b", "a", "user", "The pump came.", 1683097200.5),
                    "c": node("c", "b", "assistant", "Which one?", 1683097260.5),
                    "d": node("d", "b", "assistant", "An answer that was made anew.", 1683097230.5),
                },
            }
        ],
        ["user | The pump came.", "assistant | Which one?"],
    ),
    "a sync of Matrix": (
        {"rooms": {"join": {"!r": {"timeline": {"events": [
            {"type": "m.room.message", "sender": "@Ida:x", "origin_server_ts": 1683097200000,
             "content": {"msgtype": "m.text", "body": "The pump came."}}]}}}}},
        [IDA],
    ),
    "Claude": (
        [{"chat_messages": [{"sender": "human", "text": "The pump came.", "created_at": "2023-05-03T09:00:00Z"}]}],
        ["human | The pump came."],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHATS)
def test_who_wrote_what_in_which_order(tmp_path: Path, name: str) -> None:
    document, lines = CHATS[name]
    found = transcript(tmp_path, "export.json", document)
    assert [f"{one.speaker} | {one.text}" for one in found.utterances] == lines
    assert found.started is not None
    assert (found.started.year, found.started.month) == (2023, 5)


@pytest.mark.parametrize(
    "document",
    [
        [{"mapping": {"a": []}, "current_node": []}],
        {"rooms": {"join": {"!r": {"timeline": {"events": 1e308}}}}},
        {"messages": [{"type": "m.room.message", "origin_server_ts": 1, "content": {"msgtype": [], "body": "Hi"}}]},
        {"messages": [{"sender_name": {}, "timestamp_ms": [], "content": "Hi"}]},
    ],
)
def test_odd_values_are_told_of(tmp_path: Path, document: object) -> None:
    with pytest.raises(TranscriptError):
        transcript(tmp_path, "a.json", document)


def test_parts_of_a_thread_in_a_zip_are_one(tmp_path: Path) -> None:
    parts = [[("Bo", 4, "Forty."), ("Ida", 3, "How many?")], [("Bo", 2, "It failed."), ("Ida", 1, "So?")]]
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        for number, part in enumerate(parts, start=1):
            said = [{"sender_name": who, "timestamp_ms": 1683097200000 + at, "content": text} for who, at, text in part]
            packed.writestr(f"inbox/bo_1/message_{number}.json", json.dumps({"participants": [], "messages": said}))
    content = (tmp_path / "a.zip").read_bytes()
    assert heard(tmp_path, "b.zip", content) == ["Ida | So?", "Bo | It failed.", "Ida | How many?", "Bo | Forty."]


def lines_of(*entries: JSON) -> str:
    return "\n".join(json.dumps(one) for one in entries)


def test_chats_of_one_object_a_line(tmp_path: Path) -> None:
    signal = {"sourceName": "Ida", "timestamp": 1683097200000}
    edited = {"timestamp": 1683097209000, "message": "The pump came."}
    post = {"user": "ida", "message": "The pump came.", "create_at": 1683097200000}
    files = {
        "signal-cli": lines_of(
            {"envelope": {**signal, "dataMessage": {"timestamp": 1683097200000, "message": "The pump went."}}},
            {"envelope": {**signal, "editMessage": {"targetSentTimestamp": 1683097200000, "dataMessage": edited}}},
            {"envelope": {**signal, "typingMessage": {"action": "STARTED"}}},
        ),
        "signal-export": lines_of({"date": "2023-05-03 09:00:00", "sender": "Ida", "body": "The pump came."}),
        "mattermost": lines_of(
            {"type": "version", "version": 1},
            {"type": "user", "user": {"username": "bo", "first_name": "Bo", "last_name": ""}},
            {"type": "user", "user": {"username": "ida", "first_name": "Ida"}},
            {"type": "post", "post": {**post, "replies": [{**post, "user": "bo", "message": "Which one?"}]}},
            {"type": "post", "post": {**post, "type": "system_join_channel"}},
        ),
    }
    assert heard(tmp_path, "a.jsonl", files["signal-cli"]) == [IDA]
    assert heard(tmp_path, "b.json", files["signal-export"]) == [IDA]
    assert heard(tmp_path, "c.jsonl", files["mattermost"]) == [IDA, BO]


def test_edits_of_chats_as_they_go_on_are_corrections() -> None:
    update = {"message_id": 5, "from": {"first_name": "Ida"}, "chat": {"id": 1}, "date": 1683097200}
    discord = {"id": "9", "type": 0, "author": {"username": "ida", "global_name": "Ida"}}
    post = {"id": "p", "user_id": "u", "create_at": 1683097200000, "type": ""}
    streams: list[list[JSON]] = [
        [
            {"update_id": 1, "message": {**update, "text": "The pmup came."}},
            {"update_id": 2, "edited_message": {**update, "text": "The pump came."}},
        ],
        [
            {"op": 10, "d": {"heartbeat_interval": 1}},
            {"op": 0, "t": "MESSAGE_CREATE", "d": {**discord, "content": "The pmup came."}},
            {"op": 0, "t": "MESSAGE_UPDATE", "d": {**discord, "content": "The pump came."}},
        ],
        [
            {"event": kind, "data": {"sender_name": "@Ida", "post": json.dumps({**post, "message": text})}}
            for kind, text in (("posted", "The pmup came."), ("post_edited", "The pump came."))
        ],
    ]
    for messages in streams:
        speech = LiveSpeech()
        first, second = [one for message in messages for one in speech.read(json.dumps(message))]
        assert (first.speaker, first.text, second.text) == ("Ida", "The pmup came.", "The pump came.")
        assert first.key == second.key


def test_questions_and_answers_told_as_details_or_requests(tmp_path: Path) -> None:
    details = [
        {"name": "Request", "value": "Why?"},
        {"name": "Response", "value": "So."},
        {"name": "From", "value": "x"},
    ]
    about = {"header": "Gemini", "title": "Used Gemini Apps", "products": [], "time": "2024-02-17T22:06:10Z"}
    assert heard(tmp_path, "MyActivity.json", [{**about, "details": details}]) == ["user | Why?", "Gemini | So."]
    response = [{"kind": "toolInvocation", "value": "x"}, {"value": "So "}]
    response += [{"kind": "inlineReference", "inlineReference": {"path": "/w/a.py"}}, {"value": ".", "kind": None}]
    request = {"requestId": "1", "message": {"text": "Why?"}, "response": response, "timestamp": 1710234060000}
    assert heard(tmp_path, "chat.json", {"requests": [request]}) == ["user | Why?", "GitHub Copilot | So a.py."]


def test_an_export_of_teams_has_the_fields_of_its_interface_with_capitals(tmp_path: Path) -> None:
    def message(who: str | None, text: str, minute: int, kind: str = "message") -> dict[str, object]:
        sender = {"Application": None, "User": {"Id": "1", "DisplayName": who}} if who else None
        body = {"ContentType": "html", "Content": text}
        at = f"2025-08-05T13:{minute}:24.606+00:00"
        return {"Id": "1", "Body": body, "CreatedDateTime": at, "From": sender, "MessageType": kind}

    found = transcript(
        tmp_path,
        "messages_1.json",
        [
            message("Bo", '<p>No, <at id="0">Ida</at>.</p>', 20),
            message("Ida", "<p>Shall we <b>sail</b>?</p>", 14),
            message(None, "<systemEventMessage/>", 30, "systemEventMessage"),
        ],
    )
    assert [(one.speaker, one.text, one.at) for one in found.utterances] == [
        ("Ida", "Shall we sail?", 0), ("Bo", "No, Ida.", 360),
    ]  # fmt: skip
