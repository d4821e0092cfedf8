"""Exports of chats: each message once, with its last text, by people's names."""

from __future__ import annotations

import io
import json
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from context_builder.errors import TranscriptError
from context_builder.transcript import Utterance, read_transcript
from tests.transcript.reading import heard, transcript


def read(tmp_path: Path, document: object) -> list[Utterance]:
    return transcript(tmp_path, "room.json", document).utterances


def test_a_channel_of_a_slack_export(tmp_path: Path) -> None:
    users = [{"id": "U1", "name": "ann", "profile": {"display_name": "Ann"}}, {"id": "U2", "real_name": "Bob B."}]
    (tmp_path / "users.json").write_text(json.dumps(users))
    channel = tmp_path / "general"
    channel.mkdir()
    later = [
        {"type": "message", "user": "U2", "ts": "1700000010.5", "text": "See <https://x.org|the page> &amp; <@U1>"},
        {"type": "message", "subtype": "channel_join", "user": "U1", "ts": "1700000011", "text": "joined"},
    ]
    first = [
        {"type": "message", "user": "U1", "ts": "1700000000.5", "text": "Hello in <#C1|general>"},
        {"type": "message", "user": "U9", "user_profile": {"real_name": "Guest"}, "ts": "1700000001", "text": "Hi"},
    ]
    (channel / "2025-02-01.json").write_text(json.dumps(later))
    (channel / "2025-01-31.json").write_text(json.dumps(first))
    assert read_transcript(channel).utterances == [
        Utterance("Ann", "Hello in #general", 0.0),
        Utterance("Guest", "Hi", 0.5),
        Utterance("Bob B.", "See the page & @Ann", 10.0),
    ]
    assert [one.speaker for one in read_transcript(channel / "2025-01-31.json").utterances] == ["U1", "Guest"]


def test_an_export_of_a_matrix_room(tmp_path: Path) -> None:
    messages = [
        {"type": "m.room.member", "sender": "@ann:x.org", "origin_server_ts": 1, "content": {"membership": "join"}},
        {
            "type": "m.room.message",
            "sender": "@ann:x.org",
            "origin_server_ts": 1_700_000_000_000,
            "content": {"msgtype": "m.text", "body": "Hello"},
        },
        {
            "type": "m.room.message",
            "sender": "@bob:x.org",
            "origin_server_ts": 1_700_000_002_500,
            "content": {"msgtype": "m.text", "body": "Hi"},
        },
    ]
    said = read(tmp_path, {"room_name": "Lab", "messages": messages})
    assert said == [Utterance("ann", "Hello", 0.0), Utterance("bob", "Hi", 2.5)]


def event(number: int, sender: str, at: int = 0, **content: Any) -> dict[str, Any]:
    """Return an event of Matrix, so many seconds after the first."""
    told = {"msgtype": "m.text", **content}
    if "relates" in told:
        told["m.relates_to"] = told.pop("relates")
    return {
        "type": "m.room.message",
        "event_id": f"${number}",
        "sender": f"@{sender}:x.org",
        "origin_server_ts": 1_700_000_000_000 + 1000 * at,
        "content": told,
    }


def replacing(number: int, target: int, sender: str, at: int, text: str, **more: Any) -> dict[str, Any]:
    relation = {"rel_type": "m.replace", "event_id": f"${target}"}
    return event(
        number,
        sender,
        at,
        body=f"* {text}",
        **{"m.new_content": {"msgtype": "m.text", "body": text, **more}, "m.relates_to": relation},
    )


def test_matrix_an_edited_message_is_heard_once_with_its_last_text(tmp_path: Path) -> None:
    messages = [
        event(1, "ida", 0, body="Tusday"),
        event(2, "bo", 5, body="Well"),
        replacing(3, 1, "ida", 10, "Tuesdey"),
        replacing(4, 1, "ida", 20, "Tuesday"),
        replacing(5, 1, "bo", 30, "Never"),
        replacing(6, 99, "bo", 40, "Alone"),
    ]
    said = read(tmp_path, {"room_name": "Lab", "messages": messages})
    assert [(one.speaker, one.text, one.at) for one in said] == [
        ("ida", "Tuesday", 0.0),
        ("bo", "Well", 5.0),
        ("bo", "Alone", 40.0),
    ]
    bundled = event(1, "ida", 0, body="Tusday") | {
        "unsigned": {"m.relations": {"m.replace": {"content": {"m.new_content": {"body": "Tuesday"}}}}}
    }
    assert heard(tmp_path, "room.json", {"chunk": [bundled]}) == ["ida | Tuesday"]


def test_matrix_what_nobody_said_is_not_heard(tmp_path: Path) -> None:
    reply = {"m.in_reply_to": {"event_id": "$1"}}
    messages = [
        {
            "type": "m.room.member",
            "state_key": "@ida:x.org",
            "sender": "@ida:x.org",
            "origin_server_ts": 1,
            "content": {"membership": "join", "displayname": "Ida Lind"},
        },
        event(1, "ida", body="We ship\n> not me"),
        event(2, "bo", body="> <@ida:x.org> We ship\n> not me\n\nToo early\n> indeed", relates=reply),
        event(3, "bo", body="plain reply", relates=reply),
        event(4, "bo", msgtype="m.image", body="IMG_1.jpg"),
        event(5, "bo", msgtype="m.image", body="The pump", filename="IMG_2.jpg"),
        event(6, "bo", msgtype="m.bad.encrypted", body="** Unable to decrypt **"),
        {
            "type": "m.room.encrypted",
            "event_id": "$7",
            "sender": "@bo:x.org",
            "origin_server_ts": 1_700_000_000_001,
            "content": {"ciphertext": "x"},
        },
        {
            "type": "m.reaction",
            "event_id": "$8",
            "sender": "@bo:x.org",
            "origin_server_ts": 1_700_000_000_001,
            "content": {"m.relates_to": {"key": "👍"}},
        },
        event(9, "ci", msgtype="m.notice", body="Build 4 passed"),
        event(10, "ida", msgtype="m.emote", body="waves"),
        {**event(11, "bo"), "content": {}},
        {**event(12, "bo", body="no time"), "origin_server_ts": "soon"},
    ]
    found = transcript(tmp_path, "room.json", {"messages": messages})
    assert [f"{one.speaker} | {one.text}" for one in found.utterances] == [
        "Ida Lind | We ship > not me",
        "bo | Too early > indeed",
        "bo | plain reply",
        "bo | The pump",
        "ci | Build 4 passed",
        "Ida Lind | waves",
    ]
    assert len(found.problems) == 1


def test_events_of_matrix_a_line_each(tmp_path: Path) -> None:
    lines = "\n".join(json.dumps(one) for one in (event(1, "ida", body="Tusday"), replacing(2, 1, "ida", 5, "Tuesday")))
    assert heard(tmp_path, "events.jsonl", lines) == ["ida | Tuesday"]
    assert heard(tmp_path, "events.json", lines) == ["ida | Tuesday"]


def slack_message(ts: str, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "ts": ts, **fields}


def test_slack_bots_speak_in_attachments_and_blocks(tmp_path: Path) -> None:
    rich = [
        {
            "type": "rich_text",
            "elements": [
                {
                    "type": "rich_text_section",
                    "elements": [
                        {"type": "text", "text": "See "},
                        {"type": "user", "user_id": "U1"},
                        {"type": "link", "url": "https://x.org", "text": "here"},
                    ],
                },
                {
                    "type": "rich_text_list",
                    "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": "one"}]}],
                },
            ],
        }
    ]
    messages = [
        slack_message(
            "1.1",
            subtype="bot_message",
            username="Alerts",
            text="",
            attachments=[
                {
                    "fallback": "[x] deep",
                    "title": "Queue",
                    "text": "deep",
                    "fields": [{"title": "Zone", "value": "eu-1"}],
                }
            ],
        ),
        slack_message(
            "2.1",
            bot_id="B2",
            bot_profile={"name": "Deploys"},
            blocks=[
                {"type": "header", "text": {"type": "plain_text", "text": "Live"}},
                {"type": "section", "fields": [{"type": "mrkdwn", "text": "4.2"}]},
                {"type": "actions", "elements": [{"type": "button", "text": {"text": "Undo"}}]},
            ],
        ),
        slack_message("3.1", user="U1", text="", blocks=rich),
        slack_message(
            "4.1",
            user="U1",
            text="Look <https://x.org>",
            attachments=[{"from_url": "https://x.org", "title": "A page", "text": "long"}],
        ),
        slack_message("5.1", subtype="bot_message", username="Only", attachments=[{"fallback": "told so"}]),
        slack_message("6.1", user="U1", text="", files=[{"name": "a.png"}]),
        slack_message("7.1", user="U1", subtype="tombstone", text="This message was deleted."),
        slack_message("8.1", user="U1", subtype="channel_topic", text="set the topic"),
    ]
    assert heard(tmp_path, "day.json", messages) == [
        "Alerts | Queue deep Zone: eu-1",
        "Deploys | Live 4.2",
        "U1 | See @U1here one",
        "U1 | Look https://x.org",
        "Only | told so",
    ]


def test_slack_changes_and_deletions_as_messages(tmp_path: Path) -> None:
    messages = [
        slack_message("1.1", user="U1", text="Tusday"),
        slack_message("2.1", user="U2", text="Never mind"),
        slack_message("3.1", subtype="message_changed", message=slack_message("1.1", user="U1", text="Tuesday")),
        slack_message("4.1", subtype="message_deleted", deleted_ts="2.1"),
        slack_message("5.1", text="odd", user="U1", ts2=1) | {"ts": "soon"},
    ]
    found = transcript(tmp_path, "day.json", messages)
    assert [one.text for one in found.utterances] == ["Tuesday"]
    assert len(found.problems) == 1


def test_slack_marks_become_what_they_show(tmp_path: Path) -> None:
    text = "<!here> <!subteam^S1|@ops> <!date^1^{date}|May 3> <mailto:a@x.org|a@x.org> <@U9|kim> &lt;b&gt; <!channel>"
    assert heard(tmp_path, "day.json", [slack_message("1.1", user="U1", text=text)]) == [
        "U1 | @here @ops May 3 a@x.org @kim <b> @channel"
    ]


def zipped(**files: object) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content if isinstance(content, str | bytes) else json.dumps(content))
    return written.getvalue()


SLACK = {
    "org_users.json": [{"id": "W1", "profile": {"real_name": "Ida Lind"}}],
    "users.json": [{"id": "U2", "name": "bo"}],
    "channels.json": [{"id": "C1", "name": "ops"}],
    "ops/2026-03-02.json": [slack_message("1772445600.1", user="W1", text="Hello <@U2>")],
    "ops/2026-03-03.json": [slack_message("1772532000.1", user="U2", text="Hi")],
    "ops/canvas_in_the_conversation.json": {},
}


def test_a_zip_of_a_slack_export(tmp_path: Path) -> None:
    assert heard(tmp_path, "export.zip", zipped(**SLACK)) == ["Ida Lind | Hello @bo", "bo | Hi"]
    inside = {f"My Slack export/{name}": content for name, content in SLACK.items()}
    assert heard(tmp_path, "export.zip", zipped(**inside)) == ["Ida Lind | Hello @bo", "bo | Hi"]
    two = {**SLACK, "general/2026-03-02.json": [slack_message("1772445601.1", user="W1", text="Elsewhere")]}
    found = transcript(tmp_path, "export.zip", zipped(**two))
    assert [one.text for one in found.utterances] == ["Hello @bo", "Elsewhere", "Hi"]
    assert "2 channels" in found.notes[0]
    assert [one.text for one in read_transcript(tmp_path / "export.zip", channel="general").utterances] == ["Elsewhere"]
    with pytest.raises(TranscriptError, match=r"has no channel 'x'; it has: general, ops"):
        read_transcript(tmp_path / "export.zip", channel="x")


def test_a_folder_of_a_whole_slack_export(tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(zipped(**SLACK))) as archive:
        archive.extractall(tmp_path)
    assert [one.speaker for one in read_transcript(tmp_path).utterances] == ["Ida Lind", "bo"]
    assert [one.speaker for one in read_transcript(tmp_path / "ops").utterances] == ["Ida Lind", "bo"]


def test_a_zip_of_one_chat_beside_its_files(tmp_path: Path) -> None:
    room = {"messages": [event(1, "ida", body="Hello")]}
    assert heard(
        tmp_path, "room.zip", zipped(**{"matrix - Lab/export.json": room, "matrix - Lab/images/a.png": b"x"})
    ) == ["ida | Hello"]
    chat = "[03.05.23, 09:00:12] Ida: Hello\n"
    assert heard(
        tmp_path, "chat.zip", zipped(**{"_chat.txt": chat, "notes.txt": "x", "__MACOSX/._chat.txt": b"x"})
    ) == ["Ida | Hello"]
    with pytest.raises(TranscriptError, match=r"holds 2 transcripts; unpack it and name one: a.txt, b.txt"):
        transcript(tmp_path, "two.zip", zipped(**{"a.txt": "x", "b.txt": "y"}))
    with pytest.raises(TranscriptError, match="holds no transcript"):
        transcript(tmp_path, "none.zip", zipped(**{"a.png": b"x"}))


def test_a_zip_writes_nothing_and_is_read_up_to_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chat = "[03.05.23, 09:00:12] Ida: Hello\n"
    assert heard(tmp_path, "paths.zip", zipped(**{"../../../_chat.txt": chat})) == ["Ida | Hello"]
    assert [path.name for path in tmp_path.iterdir()] == ["paths.zip"]
    monkeypatch.setattr("context_builder.transcript.archive.LARGEST", 1000)
    with pytest.raises(TranscriptError, match="unpacks to more than"):
        transcript(tmp_path, "bomb.zip", zipped(**{"ops/2026-03-02.json": b" " * 5000}))
    with pytest.raises(TranscriptError, match=r"not a \.zip, or one that is cut off"):
        transcript(tmp_path, "cut.zip", zipped(**SLACK)[:200])


def test_discord(tmp_path: Path) -> None:
    def message(number: int, content: str, kind: str = "Default", **more: Any) -> dict[str, Any]:
        author = {"id": "7", "name": "ida", "nickname": "Ida Lind", "isBot": False}
        return {
            "id": str(number),
            "type": kind,
            "timestamp": f"2023-05-03T09:00:{number:02}.123+00:00",
            "timestampEdited": None,
            "content": content,
            "author": author,
            "attachments": [],
            "embeds": [],
            "mentions": [],
            **more,
        }

    bot = {"id": "8", "name": "Alerts", "nickname": "", "isBot": True}
    messages = [
        message(1, "Is it <@5> here?", mentions=[{"id": "5", "name": "bo", "nickname": "Bo"}]),
        message(2, "Yes", "Reply"),
        message(3, "Joined the server.", "GuildMemberJoin"),
        message(4, "", attachments=[{"fileName": "a.png"}]),
        message(
            5,
            "",
            author=bot,
            embeds=[{"title": "Deep", "description": "9,000", "fields": [{"name": "Zone", "value": "eu"}]}],
        ),
        message(6, "Pinned a message.", "ChannelPinnedMessage"),
        message(7, "x") | {"timestamp": "soon"},
    ]
    found = transcript(tmp_path, "channel.json", {"guild": {}, "channel": {}, "messages": messages})
    assert [f"{one.speaker} | {one.text}" for one in found.utterances] == [
        "Ida Lind | Is it @Bo here?",
        "Ida Lind | Yes",
        "Alerts | Deep 9,000 Zone: eu",
    ]
    assert len(found.problems) == 1


def test_folders_and_files_that_are_no_export_are_named(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="holds no file of a Slack export"):
        read_transcript(tmp_path)
    (tmp_path / "2025-01-31.json").write_text("[")
    with pytest.raises(TranscriptError, match=r"2025-01-31.json: not JSON"):
        read_transcript(tmp_path)


def test_a_zip_of_conversations_names_what_else_it_holds(tmp_path: Path) -> None:
    parts = [{"asset_pointer": "file-1"}, "Which plant?"]
    node = {"message": {"author": {"role": "user"}, "create_time": 1.0, "content": {"parts": parts}}, "parent": None}
    chats = [{"mapping": {"a": node}, "current_node": "a"}]
    found = transcript(
        tmp_path, "chats.zip", zipped(**{"conversations.json": chats, "user.json": {}, "chat.html": b"<html>"})
    )
    assert [one.text for one in found.utterances] == ["Which plant?"]
    assert found.notes == ("read conversations.json; not read: chat.html, user.json",)


def test_a_name_of_one_syllable_is_a_name_also_in_a_table(tmp_path: Path) -> None:
    table = "Date,User,Message\n2023-05-03 09:00:12,보,네.\n2023-05-03 09:00:40,林,好。\n2023-05-03 09:01:05,A,Yes.\n"
    assert heard(tmp_path, "a.csv", table) == ["보 | 네.", "林 | 好。", "Speaker A | Yes."]


def test_slacks_threads_that_are_kept_within_a_message_are_read_once(tmp_path: Path) -> None:
    shared = {"user": "U1", "text": "The small one.", "ts": "1683104460.1", "subtype": "thread_broadcast"}
    replies = [{"user": "U2", "text": "Which one?", "ts": "1683104430.1"}, shared]
    first = {"user": "U1", "text": "The pump came.", "ts": "1683104400.1"}
    for key in ("slackdump_thread_replies", "thread_replies", "replies"):
        found = heard(tmp_path, "a.json", {"messages": [{**first, key: replies}, shared]})
        assert found == ["U1 | The pump came.", "U2 | Which one?", "U1 | The small one."]
    named = [{"user": "U2", "ts": "1683104430.1"}]  # as Slack itself names them
    assert heard(tmp_path, "a.json", [{**first, "replies": named}]) == ["U1 | The pump came."]


def test_slacks_mentions_are_by_the_names_that_messages_carry(tmp_path: Path) -> None:
    def day(user: str, name: str, text: str, ts: str) -> str:
        return json.dumps([{"user": user, "text": text, "ts": ts, "user_profile": {"real_name": name}}])

    with zipfile.ZipFile(tmp_path / "a.zip", "w") as export:
        export.writestr("users.json", "[]")
        export.writestr("D1/2023-05-03.json", day("U1", "Ida Lind", "<@U2>, the pump came, @USA.", "1683104400.1"))
        export.writestr("D1/2023-05-04.json", day("U2", "Bo Dahl", "Which one, <@U1>?", "1683190800.1"))
    said = [f"{one.speaker} | {one.text}" for one in read_transcript(tmp_path / "a.zip").utterances]
    assert said == ["Ida Lind | @Bo Dahl, the pump came, @USA.", "Bo Dahl | Which one, @Ida Lind?"]


def _event(name: str, second: int, **fields: Any) -> dict[str, Any]:
    content = {"msgtype": "m.text", "body": f"text of {name}"}
    told = {"type": "m.room.message", "event_id": name, "sender": "@ida:a.org", "content": content, **fields}
    return {"origin_server_ts": 1683104400000 + second * 1000, **told}


@pytest.mark.parametrize(
    ("original", "redaction"),
    [
        ({}, [_event("$r", 9, type="m.room.redaction", redacts="$2", content={})]),
        ({}, [_event("$r", 9, type="m.room.redaction", content={"redacts": "$2"})]),
        ({"content": {}, "unsigned": {"redacted_because": {}}}, []),
        ({"content": {}}, []),
    ],
)
def test_what_was_edited_and_then_redacted_in_a_room_is_not_said(
    tmp_path: Path, original: dict[str, Any], redaction: list[dict[str, Any]]
) -> None:
    relation = {"rel_type": "m.replace", "event_id": "$2"}
    edit = {"msgtype": "m.text", "body": "* new", "m.new_content": {"body": "new"}, "m.relates_to": relation}
    events = [_event("$1", 1), _event("$2", 2, **original), _event("$3", 3, content=edit), *redaction, _event("$4", 8)]
    assert heard(tmp_path, "a.json", {"messages": events}) == ["ida | text of $1", "ida | text of $4"]


def test_an_edit_whose_message_is_not_in_the_export_is_said(tmp_path: Path) -> None:
    relation = {"rel_type": "m.replace", "event_id": "$0"}
    edit = {"msgtype": "m.text", "body": "* new", "m.new_content": {"body": "new"}, "m.relates_to": relation}
    assert heard(tmp_path, "a.json", {"messages": [_event("$3", 3, content=edit)]}) == ["ida | new"]


def test_elements_page_names_the_first_of_a_run(tmp_path: Path) -> None:
    def tile(name: str, time: str, text: str, before: str = "") -> str:
        who = f'<span class="mx_DisambiguatedProfile_displayName">{name}</span>' if name else ""
        return (
            f'<li class="mx_EventTile">{who}<span class="mx_MessageTimestamp" title="Wed, May 3 2023 {time}">9</span>'
            f'{before}<span class="mx_EventTile_body">{text}</span></li>'
        )

    quoted = '<blockquote class="mx_ReplyChain">' + tile("ida", "08:00:00", "quoted") + "</blockquote>"
    edited = 'Since Monday. <span class="mx_EventTile_edited">(edited)</span>'
    page = (
        "<!DOCTYPE html><html><body><h1>Room</h1><p>created by ida</p>"
        '<div class="mx_EventTile mx_EventTile_info"><span class="mx_TextualEvent">bo joined the room</span></div>'
        + tile("ida", "09:00:00", "The pump came.")
        + tile("", "09:00:30", edited)
        + tile("bo", "09:01:00", "Which one?", quoted)
        + "</body></html>"
    )
    found = transcript(tmp_path, "messages.html", page)
    assert [(one.speaker, one.text, one.at) for one in found.utterances] == [
        ("ida", "The pump came.", 0.0),
        ("ida", "Since Monday.", 30.0),
        ("bo", "Which one?", 60.0),
    ]


def test_whatsapp_chat_exporters_json_names_chats_and_senders(tmp_path: Path) -> None:
    def message(second: int, text: str, **fields: object) -> dict[str, object]:
        told = {"from_me": False, "timestamp": 1683104400 + second, "data": text, "key_id": "k", "meta": False}
        return {**told, "media": False, "sender": None, "caption": None, **fields}

    messages = {
        "1": message(0, "The pump<br>came."),
        "2": message(5, "Which one?", from_me=True),
        "3": message(6, "a left", meta=True),
        "4": message(7, "IMG-1.jpg", media=True, caption="This one."),
        "5": message(8, "IMG-2.jpg", media=True),
        "6": message(9, "Good.", sender="Bo Dahl"),
    }
    chat = {"49170@s.whatsapp.net": {"name": "Ida Lind", "messages": messages}}
    expected = ["Ida Lind | The pump came.", "Me | Which one?", "Ida Lind | This one.", "Bo Dahl | Good."]
    assert heard(tmp_path, "result.json", chat) == expected
    chat["49170@s.whatsapp.net"]["name"] = None  # type: ignore[assignment]
    assert heard(tmp_path, "result.json", chat)[0] == "49170 | The pump came."


def test_the_bot_frameworks_activities_are_read_as_they_were_left(tmp_path: Path) -> None:
    def activity(kind: str, name: str, text: str, who: str = "ida") -> dict[str, object]:
        return {"type": kind, "id": name, "timestamp": "2023-05-03T09:00:00Z", "from": {"name": who}, "text": text}

    activities = [
        activity("message", "1", "The pump came."),
        activity("message", "2", "Secret."),
        {**activity("typing", "9", ""), "id": {"not": "hashable"}},
        activity("messageUpdate", "1", "It is here."),
        activity("messageDelete", "2", ""),
        activity("message", "3", "Which one?", "bo"),
    ]
    assert heard(tmp_path, "a.transcript", activities) == ["ida | It is here.", "bo | Which one?"]


def test_threemas_export_says_what_was_sent_and_received(tmp_path: Path) -> None:
    text = (
        "<<< 3. May 2023 at 09:00:12 CEST: The pump came:\r\n\r\nat last.\r\n"
        ">>> 3. May 2023 at 09:00:40 CEST: Which one?\r\n<<< 3. May 2023 at 09:01:05 CEST: Image (a.jpg)\r\n"
    )
    found = transcript(tmp_path, "messages-ida.txt", text)
    assert [(one.speaker, one.text, one.at) for one in found.utterances] == [
        ("ida", "The pump came: at last.", 0.0),
        ("Me", "Which one?", 28.0),
    ]
    assert found.started is not None
    assert found.started == datetime.fromisoformat("2023-05-03T09:00:12+02:00")
    assert heard(tmp_path, "a.txt", ">>> ida: The pump came.\n>>> bo: Which one?\n") == [
        "ida | The pump came.",
        "bo | Which one?",
    ]
