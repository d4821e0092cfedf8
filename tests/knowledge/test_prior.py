"""What records a project's changes, and passages of a few words, are less likely answers than others."""

from __future__ import annotations

import pytest

from context_builder.knowledge.prior import BRIEF, RECORD, UNNAMED, naming, prior
from context_builder.memory.memory import Memory

LONG = "The hydrophone is calibrated against a reference before every cruise. " * 4


def passage(file: str, title: str, text: str = LONG, position: int = 3) -> Memory:
    return Memory(f"{file}#{position}", text, speaker=f"{title} › Any", position=position, metadata={"ref": file})


@pytest.mark.parametrize(
    ("file", "title"),
    [
        ("artifact:kelp/CHANGELOG.md", "2.0"),
        ("artifact:kelp/docs/release-notes.rst", "2.0"),
        ("artifact:kelp/CODE_OF_CONDUCT.md", "Our pledge"),
        ("artifact:changes", "What’s new"),
        ("artifact:x", "Contributing"),
        ("CHANGES-2.txt", ""),
        ("artifact:kelp/SECURITY.md", "Reporting"),
        ("artifact:kelp/docs/history/sonar.md", "Sonar’s past"),
        ("artifact:kelp/docs/releases/3.txt", "Kelp 3"),
    ],
)
def test_records_of_a_project_answer_less_unless_they_are_asked_for(file: str, title: str) -> None:
    assert prior(passage(file, title), "calibrate the hydrophone") == RECORD
    assert prior(passage(file, title), "what changed in calibration") == 1
    assert prior(passage(file, title), "calibration since 2.1") == 1


@pytest.mark.parametrize(
    ("file", "title"),
    [
        ("artifact:kelp/docs/changing-batteries.md", "Changing batteries"),
        ("artifact:kelp/historyless.md", "Licensing a vessel"),
        ("artifact:kelp/.md", ""),
        ("artifact:kelp/docs/topics/security.rst", "Security"),
        ("artifact:history/docs/sonar.md", "Sonar"),
        ("", ""),
    ],
)
def test_other_documents_do_not(file: str, title: str) -> None:
    assert prior(passage(file, title), "calibrate the hydrophone") == 1


def test_a_program_is_no_record_whatever_its_name() -> None:
    code = Memory("a#3", LONG, kind="code", speaker="", position=3, metadata={"ref": "artifact:kelp/src/history.py"})
    assert prior(code, "calibrate the hydrophone") == 1


@pytest.mark.parametrize("intent", ["change the sample rate", "remove a hydrophone"])
def test_to_change_something_does_not_ask_what_was_changed(intent: str) -> None:
    assert prior(passage("artifact:kelp/CHANGELOG.md", "2.0"), intent) == RECORD


def test_a_few_words_answer_less_but_where_they_may_be_the_whole_document() -> None:
    assert prior(passage("a", "", "demos/"), "demos") == pytest.approx(BRIEF + (1 - BRIEF) / 25)
    assert prior(passage("a", "", "Krill.", position=0), "krill") == 1
    assert (
        prior(
            passage("a", "", "水中マイクは航海のたびに基準器で校正される。毎回記録を残し、次の航海で比較する。"), "校正"
        )
        > 0.8
    )


@pytest.mark.parametrize(
    ("intent", "text"),
    [
        ("use filter_by_level as first processor", "`structlog.stdlib.filter_by_level`: checks the level"),
        ("what AsyncClient.stream returns", "Call asyncclient.stream() in a block"),
        ("define __call__", "def __call__(self)"),
        ("sendAll and its errors", "sendAll(data)"),
    ],
)
def test_names_of_an_intent_count_as_they_stand(intent: str, text: str) -> None:
    assert naming(intent, ["Filtering by a level, streams, a call, to send all.", text]) == [UNNAMED, 1.0]


@pytest.mark.parametrize(
    "intent", ["", "filter by level", "e.g. levels", "filter_by_colour", "the U.S. and e.g. Mr. H.", "3.14"]
)
def test_without_names_that_are_found_all_texts_are_alike(intent: str) -> None:
    assert naming(intent, ["Filters by level in the U.S., e.g. H.", "filter_by_level", ""]) == [1.0, 1.0, 1.0]
