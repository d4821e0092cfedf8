"""What people say they want is found in their own words, and what they say later takes its place."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_builder.memory.preference_patterns import STATED, Pattern, may_state
from context_builder.memory.preferences import stated_preferences


@pytest.mark.parametrize(
    ("said", "topic", "text"),
    [
        ("Well, I prefer short answers.", "length", "Prefers short answers"),
        ("I’d really prefer it if you kept things brief, please.", "length", "Prefers it if you kept things brief"),
        ("Please call me Ann, thanks", "name", "Wants to be called Ann"),
        ("I said: just call me 'Ann'!", "name", "Wants to be called Ann"),
        ("please call me ann", "name", "Wants to be called ann"),
        ("Could you call me Dr. Ann Lee?", "name", "Wants to be called Dr. Ann Lee"),
        ("I prefer to be called Al.", "name", "Wants to be called Al"),
        ("please always cite the paper!", "cite the paper", "Always cite the paper"),
        ("From now on, answer in bullet points.", "form", "Always answer in bullet points"),
        ("Please never send me emails", "send them emails", "Never send them emails"),
        ("I don't like surprises, but it was fun", "surprises", "Dislikes surprises"),
        ("I love it when you explain my jokes", "you explain their jokes", "Likes it when you explain their jokes"),
        ("Could you reply in German?", "language", "Wants replies in German"),
        ("I prefer Python 3.12 and I mean it.", "python 3.12", "Prefers Python 3.12"),
        ("I prefer “tea”, Bob", "drink", "Prefers tea"),
        ("I prefer tea because I sleep badly", "drink", "Prefers tea"),
    ],
)  # fmt: skip
def test_a_stated_preference_is_found(said: str, topic: str, text: str) -> None:
    assert [(one.topic, one.text) for one in stated_preferences(said)] == [(topic, text)]


@pytest.mark.parametrize(
    "said",
    [
        "call me back tomorrow",
        "Please call me a taxi.",
        "CALL ME A TAXI",
        "please call me asap",
        "Call me Monday.",
        "They call me crazy.",
        "they always call me Al",
        "You can call me crazy, but it works.",
        "they preferred tea",
        "I preferred tea back then",
        "What do you prefer?",
        "Do I prefer tea?",
        "If I prefer tea, I get tea.",
        "The one I prefer is blue",
        "I prefer this one",
        "I answer in a minute",
        "They write in German",
        "I hate to interrupt",
        "I have never ever seen it",
        "From now on it rains",
        "My friend said: I prefer cats.",
        "She told me I prefer cats",
        'He wrote "I hate dogs. I prefer cats."',
        "'I'd prefer cats,' she said",
        "I prefer cats, said my friend",
        "> I prefer cats",
    ],
)
def test_talk_and_the_words_of_others_are_no_preference(said: str) -> None:
    assert stated_preferences(said) == []


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("I prefer coffee, ı think, over tea.", "Prefers coffee, ı think, over tea"),
        ("I prefer what İ said", "Prefers what İ said"),
        ("I dislike when ı'm late", "Dislikes when ı'm late"),
        ("I prefer what MYſELF said", "Prefers what MYſELF said"),
    ],
)
def test_a_letter_that_only_looks_like_a_pronoun_regardless_of_case_stays(said: str, text: str) -> None:
    assert [one.text for one in stated_preferences(said)] == [text]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("I prefer tea", "Actually, I prefer coffee"),
        ("I prefer short answers", "I now prefer detailed explanations"),
        ("I prefer vim over emacs", "I prefer emacs to vim"),
        ("I prefer German", "I prefer answers in French"),
        ("Call me Ann", "Please call me Annie"),
        ("Please always use metric units", "I prefer imperial"),
        ("I like it when you joke", "I don't like it when you joke"),
    ],
)
def test_what_is_stated_later_takes_the_place_of_the_earlier(earlier: str, later: str) -> None:
    (before,), (after,) = stated_preferences(earlier), stated_preferences(later)
    assert before.as_memory("ann").id == after.as_memory("ann").id != after.as_memory("bob").id
    assert stated_preferences(f"{earlier}. {later}.") == [after]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I prefer short answers", "I prefer long walks on the beach"),
        ("I prefer tea", "I prefer coffee in the morning"),
        ("I prefer tables", "I prefer a table by the window"),
        ("I prefer German", "I prefer German food"),
    ],
)
def test_what_is_about_something_else_stands_beside_it(one: str, other: str) -> None:
    assert len(stated_preferences(f"{one}. {other}.")) == 2


def test_several_come_in_the_order_stated() -> None:
    said = "I hate rain, and please call me Ann and I prefer tea."
    assert [one.text for one in stated_preferences(said)] == ["Dislikes rain", "Wants to be called Ann", "Prefers tea"]


@pytest.mark.hypothesis  # which marks by itself only what it decorates
@pytest.mark.parametrize("pattern", STATED, ids=lambda each: each.pattern.pattern[:40])
def test_whatever_a_pattern_matches_is_looked_at(pattern: Pattern) -> None:
    @given(st.from_regex(pattern.pattern))
    @settings(suppress_health_check=[*HealthCheck], deadline=None)
    def looked_at(text: str) -> None:
        assert may_state(text), text
        assert may_state(text.replace("'", "’").replace(" ", " \n ").upper())

    looked_at()


def test_most_talk_is_not_looked_at() -> None:
    assert not may_state("I would like to move the meeting to Tuesday, because people need the room.")
    assert may_state("With an old ſ: pleaſe alwayſ anſwer in Engliſh")
