"""Chats and logs as text are heard with who wrote what and when; what their programs say besides is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transcript.reading import heard, transcript

IDA, BO = "ida | The pump came.", "bo | Which one?"

LOGS = {
    "irssi.log": (
        "--- Log opened Wed May 03 08:59:00 2023\n08:59 -!- ida [~i@h] has joined #p\n09:00 <@ida> The pump came.\n"
        "09:01 < bo> Which one?\n09:02  * bo waits\n--- Day changed Thu May 04 2023\n00:01 <ida> \x02Both\x02.\n",
        [IDA, BO, "bo | waits", "ida | Both."],
        [0, 60, 120, 54060],
    ),
    "p.weechatlog": (
        "2023-05-03 08:59:00\t-->\tida (~i@h) has joined #p\n2023-05-03 09:00:00\t@ida\tThe pump came.\n"
        "2023-05-03 09:01:00\tbo\tWhich one?\n2023-05-03 09:02:00\t *\tbo waits\n",
        [IDA, BO, "bo | waits"],
        [0, 60, 120],
    ),
    "2023-05-03.log": (
        "[08:59:00] *** Joins: ida (~i@h)\n[09:00:00] <ida> The pump came.\n[09:01:00] <bo> Which one?\n",
        [IDA, BO],
        [0, 60],
    ),
    "hexchat.txt": (
        "**** BEGIN LOGGING AT Wed May  3 08:59:00 2023\n\nMay 03 08:59:00 *\tida (~i@h) has joined\n"
        "May 03 09:00:00 <ida>\tThe pump came.\nMay 04 00:00:00 <bo>\tWhich one?\n",
        [IDA, BO],
        [0, 54000],
    ),
    "line.txt": (
        "[LINE] Chat with bo\nSaved on: 2023/06/01 10:00\n\n2023/05/03(Wed)\n09:00\tida\tThe pump came.\n"
        "09:01\tbo\tWhich one?\n",
        [IDA, BO],
        [0, 60],
    ),
    "kakao.txt": (
        "ida 님과 카카오톡 대화\n\n--------------- 2023년 5월 3일 수요일 ---------------\n"
        "[ida] [오전 9:00] The pump came.\n[bo] [오후 1:01] Which one?\n",
        [IDA, BO],
        [0, 14460],
    ),
    "lounge.log": (
        "[2023-05-03T09:00:00.000Z] <ida> The pump came.\n[2023-05-03T09:01:00.000Z] <bo> Which one?\n",
        [IDA, BO],
        [0, 60],
    ),
    "wechat.txt": (
        "ida 2023-05-03 09:00:00\nThe pump came.\n\nbo 2023-05-03 09:01:00\nWhich one?\n",
        [IDA, BO],
        [0, 60],
    ),
    "posts.csv": (
        "Post Creation Time,Channel Name,Username,Post Message\n1683104400000,p,ida,The pump came.\n"
        "1683104460000,p,bo,Which one?\n",
        [IDA, BO],
        [0, 60],
    ),
    "telegram.html": (
        '<!DOCTYPE html><html><body><div class="message default" id="1"><div class="date details" '
        'title="03.05.2023 09:00:00 UTC+00:00">09:00</div><div class="from_name">ida</div><div class="forwarded body">'
        '<div class="from_name">eve</div><div class="text">Not hers.</div></div><div class="text">The '
        "<b>pump</b><br>came."
        '</div></div><div class="message default joined"><div class="date" title="03.05.2023 09:01:00 UTC+00:00"></div>'
        '<div class="text">At last.</div></div></body></html>',
        [IDA, "ida | At last."],
        [0, 60],
    ),
    "discord.html": (
        '<!doctype html><html><body><div class="chatlog__message-container"><div class="chatlog__message"><div '
        'class="chatlog__reply">eve: Where?</div><span class="chatlog__author">ida</span><span '
        'class="chatlog__timestamp" '
        'title="Wednesday, May 3, 2023 9:00 AM">x</span><div class="chatlog__content">The pump came.</div></div></div>',
        [IDA],
        [0],
    ),
    "discord.txt": (
        f"{'=' * 62}\nGuild: Plan\nChannel: Text / general\n{'=' * 62}\n\n[03/05/2023 09:00] ida\nThe pump\ncame.\n\n"
        "{Reactions}\n:ok: (2)\n\n[03/05/2023 09:00] eve\nJoined the server.\n\n[13/05/2023 09:01] bo (pinned)\n"
        f"Which one?\n\n{{Attachments}}\nhttps://x.org/a.png\n\n{'=' * 62}\nExported 3 message(s)\n{'=' * 62}\n",
        [IDA, BO],
        [0, 864060],
    ),
    "teams.txt": (
        "[5/3/2023 9:00 AM] ida\nThe pump came.\n\n[5/13/2023 9:01 AM] bo\nWhich one?\n",
        [IDA, BO],
        [0, 864060],
    ),
    "teams-copied.txt": (
        "[09:00 • 03/05/2023] ida:\nThe pump came.\n[09:01 • 13/05/2023] bo:\nWhich one?\n",
        [IDA, BO],
        [0, 864060],
    ),
    "telegram.txt": (
        "ida, [03.05.2023 09:00]\nThe pump came.\n\nbo, [03.05.2023 09:01]\nWhich one?\n",
        [IDA, BO],
        [0, 60],
    ),
    "imessage.txt": (
        "May 03, 2023  9:00:00 AM\nida\nThe pump came.\n\nMay 03, 2023  9:01:00 AM (Read by you)\nbo\nWhich one?\n",
        [IDA, BO],
        [0, 60],
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_who_wrote_what_and_when(tmp_path: Path, name: str) -> None:
    text, lines, offsets = LOGS[name]
    found = transcript(tmp_path, name, text)
    assert [f"{one.speaker} | {one.text}" for one in found.utterances] == lines
    assert [one.at for one in found.utterances] == offsets
    assert found.started is not None
    assert found.started.astimezone().strftime("%Y-%m-%d %H:%M") == "2023-05-03 09:00"


@pytest.mark.parametrize(
    "text",
    [
        "Talk with bo at Wed 03 May 2023 on ida (jabber)\n(09:00:00) ida: The pump came.\n(09:01:00) bo: Which one?\n",
        "[ida] 09:00:00\nThe pump came.\n\n[bo] 09:00:05\nWhich one?\n",
        "ida\n  9:00 AM\nThe pump\n9:02\ncame.\n\nbo\n  9:05 AM\nWhich one?\n",
        "ida [0.00s - 2.50s]: The pump came.\nbo [2.50s - 4.00s]: Which one?\n",
        "ida: [00:00:02] The pump came.\n\nbo: [00:00:04] Which one?\n",
        "ida [00:00:02] The pump came.\n\nbo [00:00:04] Which one?\n",
        "ida (00:02): The pump came.\nbo (00:04): Which one?\n",
        "ida:\t00:02\tThe pump came.\nbo:\t00:04\tWhich one?\n",
        "ida\n00:02 - 00:04\nThe pump came.\n\nbo\n00:04 - 00:06\nWhich one?\n",
        "[Monday 09:00] ida\nThe pump came.\n[Monday 09:01] bo\nWhich one?\n",
        "Talk of 3 May\nbegan at 9:00:00 AM:\n__\n<9:00:03 AM> ida: The pump came.\n\n<9:00:09 AM> bo: Which one?\n",
    ],
)
def test_names_and_times_in_other_places_of_a_line(tmp_path: Path, text: str) -> None:
    assert heard(tmp_path, "a.txt", text) == [IDA, BO]


def test_a_log_without_a_day_counts_from_its_first_message(tmp_path: Path) -> None:
    found = transcript(tmp_path, "a.log", "[23:59:50] <ida> The pump came.\n[00:00:10] <bo> Which one?\n")
    assert ([one.at for one in found.utterances], found.started) == ([0, 20], None)


def test_labels_alone_and_in_brackets(tmp_path: Path) -> None:
    assert heard(tmp_path, "a.txt", "Talk of May\n\nSPEAKER_00\nHere.\n\nSPEAKER_01\nWho?\n") == [
        "SPEAKER_00 | Here.", "SPEAKER_01 | Who?"
    ]  # fmt: skip
    lines = ["[Ida] Here.", "(Bo) Who?", "[Ida] The pump (laughs)."]
    assert heard(tmp_path, "b.txt", "\n".join(lines)) == ["Ida | Here.", "Bo | Who?", "Ida | The pump (laughs)."]
    assert heard(tmp_path, "c.txt", "[music] Here.\n(laughs) Who?\n[music] On.\n")[0] == "Unknown | [music] Here."


def test_names_before_tabs_and_other_names_of_fields(tmp_path: Path) -> None:
    assert heard(tmp_path, "a.txt", "ida\tHere.\nbo\tWho?\nida\tI.\n") == ["ida | Here.", "bo | Who?", "ida | I."]
    assert heard(tmp_path, "a.jsonl", '{"name": "ida", "content": "Here."}\n{"role": "bo", "text": "Who?"}\n') == [
        "ida | Here.", "bo | Who?"
    ]  # fmt: skip
    assert heard(tmp_path, "a.csv", "date,sender,body\n2024-01-15 10:42:00,ida,Here.\n") == ["ida | Here."]


def test_bold_names_in_markdown_among_headings(tmp_path: Path) -> None:
    text = "# Monday\n\n**Ida:** The pump came.\n\nIt works.\n\n**Bo:** Which one?\n\n## Later\n"
    assert heard(tmp_path, "a.md", text) == ["Ida | The pump came. It works.", "Bo | Which one?"]


@pytest.mark.parametrize(
    ("text", "said", "seconds"),
    [
        (
            "\u200f٢٥/٣/٢٠٢٤، ٩:٠٢ م - ida: The pump came.\n\u200f٢٥/٣/٢٠٢٤، ٩:٠٣ م - bo: Which one?\n",
            [IDA, BO],
            [0, 60],
        ),
        ("۲۵/۳/۲۰۲۴، ۲۱:۰۲ - ida: The pump came.\n۲۵/۳/۲۰۲۴، ۲۱:۰۳ - bo: Which one?\n", [IDA, BO], [0, 60]),
        ("24/3/14, 13:59:59: ida: The pump came.\n24/3/14, 14:00:09: bo: Which one?\n", [IDA, BO], [0, 10]),
    ],
    ids=["arabic", "persian", "older iOS"],
)
def test_whatsapp_with_other_digits_and_colons(
    tmp_path: Path, text: str, said: list[str], seconds: list[float]
) -> None:
    assert heard(tmp_path, "chat.txt", text) == said
    assert [one.at for one in transcript(tmp_path, "chat.txt", text).utterances] == seconds


def test_what_stands_below_a_file_in_whatsapp_is_said(tmp_path: Path) -> None:
    text = "[03.05.23, 09:00:12] ida: \u200eimage omitted\nThe pump came.\n[03.05.23, 09:01:12] bo: Which one?\n"
    assert heard(tmp_path, "_chat.txt", text) == [IDA, BO]


@pytest.mark.parametrize("day", ["Wed, May 3, 2023,", "Mi., 3. Mai 2023,", "mer. 3 mai 2023 à", "st 3. 5. 2023"])
def test_elements_text_has_what_was_said_alone(day: str, tmp_path: Path) -> None:
    text = (
        f"{day} 09:00:01 - Ida joined the room\n{day} 09:00:05 - Ida: It costs\nnote: fifteen.\n"
        f'{day} 09:00:20 - Bo: <@ida:example.org "It costs ..."> Sure?\n'
        f"{day} 09:00:31 - Ida sent an image.\n(Media omitted)\n{day} 09:01:00 - * Ida nods\n"
    )
    found = transcript(tmp_path, "a.txt", text)
    assert [(one.speaker, one.text, str(found.said_at(one))[:19]) for one in found.utterances] == [
        ("Ida", "It costs note: fifteen.", "2023-05-03 09:00:05"),
        ("Bo", "Sure?", "2023-05-03 09:00:20"),
        ("Ida", "nods", "2023-05-03 09:01:00"),
    ]


@pytest.mark.parametrize("day", ["Wed, May 3, 2023,", "5/3/2023,"])
def test_elements_text_with_quotes_and_brackets_in_what_is_said(day: str, tmp_path: Path) -> None:
    at = f"{day} 9:00:05 AM -"
    text = (
        f'{at} Ida "Cap" Lind: They wrote (Media omitted)\n{at} Bo changed the topic to "Pump: old".\n'
        f'{at} Bo: <@ida:example.org "They ..."> Who?\n{at} Bo: plan.pdf (Media omitted)\n{at} Ida "Cap" Lind: They.\n'
    )
    found = transcript(tmp_path, "a.txt", text)
    assert [f"{one.speaker} | {one.text}" for one in found.utterances] == [
        'Ida "Cap" Lind | They wrote (Media omitted)',
        "Bo | Who?",
        'Ida "Cap" Lind | They.',
    ]
    assert str(found.started)[:19] == "2023-05-03 09:00:05"


def test_what_is_copied_of_discord_has_a_dash_before_its_time(tmp_path: Path) -> None:
    text = "ida_l — 5/3/2023 9:00 AM\nThe pump came. (edited)\nbo_d — 5/3/2023 9:01 AM\nWhich (edited) one?\n"
    found = transcript(tmp_path, "a.txt", text)
    assert [(one.speaker, one.text) for one in found.utterances] == [
        ("ida_l", "The pump came."),
        ("bo_d", "Which (edited) one?"),
    ]
    assert found.started is not None
    assert found.started.strftime("%m-%d") == "05-03"
    today = "ida_l — Today at 9:00 AM\nThe pump came.\nbo_d — Today at 9:01 AM\nWhich one?\n"
    assert heard(tmp_path, "a.txt", today) == ["ida_l | The pump came.", "bo_d | Which one?"]


def test_slacks_remark_that_a_message_was_edited_is_not_said(tmp_path: Path) -> None:
    text = "ida\n  9:00 AM\nThe pump came. (edited)\n\nbo\n  9:05 AM\nWhich one? (bearbeitet)\n"
    assert heard(tmp_path, "a.txt", text) == ["ida | The pump came.", "bo | Which one?"]
