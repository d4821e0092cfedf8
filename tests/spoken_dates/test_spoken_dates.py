"""Words such as "yesterday" carry the date that they mean, in several languages, and stay as they are."""

from __future__ import annotations

from datetime import date

import pytest

from context_builder.spoken_dates import dated, spoken_dates, undated
from tests.growth import is_linear

WEDNESDAY = date(2023, 5, 3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It was yesterday, not today.", "It was yesterday (2023-05-02), not today (2023-05-03)."),
        ("We start next Monday.", "We start next Monday (2023-05-08)."),
        ("next Wednesday, last Wednesday", "next Wednesday (2023-05-10), last Wednesday (2023-04-26)"),
        ("This Wednesday or this Friday?", "This Wednesday (2023-05-03) or this Friday (2023-05-05)?"),
        ("the day before yesterday", "the day before yesterday (2023-05-01)"),
        ("three days ago; in two weeks", "three days ago (2023-04-30); in two weeks (2023-05-15 – 2023-05-21)"),
        ("next week, this year", "next week (2023-05-08 – 2023-05-14), this year (2023)"),
        ("last month", "last month (2023-04)"),
        ("yesterday's report", "yesterday's (2023-05-02) report"),
        ("Gestern, morgen, übermorgen.", "Gestern (2023-05-02), morgen (2023-05-04), übermorgen (2023-05-05)."),
        ("Am nächsten Freitag.", "Am nächsten Freitag (2023-05-05)."),
        ("Vor zwei Wochen.", "Vor zwei Wochen (2023-04-17 – 2023-04-23)."),
        ("On part demain, pas vendredi prochain.", "On part demain (2023-05-04), pas vendredi prochain (2023-05-05)."),
        ("Hier, nous avons vu la pompe.", "Hier (2023-05-02), nous avons vu la pompe."),
        ("il y a trois jours", "il y a trois jours (2023-04-30)"),
        ("Llegó ayer; el próximo lunes.", "Llegó ayer (2023-05-02); el próximo lunes (2023-05-08)."),
        ("La semana que viene", "La semana que viene (2023-05-08 – 2023-05-14)"),
        ("hace tres días", "hace tres días (2023-04-30)"),
        ("Ieri e domani; venerdì scorso", "Ieri (2023-05-02) e domani (2023-05-04); venerdì scorso (2023-04-28)"),
        ("Ontem; na próxima sexta-feira", "Ontem (2023-05-02); na próxima sexta-feira (2023-05-05)"),
        ("Gisteren; volgende maandag", "Gisteren (2023-05-02); volgende maandag (2023-05-08)"),
        ("вчера, в следующую пятницу", "вчера (2023-05-02), в следующую пятницу (2023-05-05)"),
        ("昨日届いた", "昨日 (2023-05-02)届いた"),
        ("By today, Wednesday at 3.", "By today (2023-05-03), Wednesday at 3."),
        ("today, Wednesday the fourth shift begins", "today (2023-05-03), Wednesday the fourth shift begins"),
        ("The loan (until the thirtieth of June) leaves tomorrow, Thursday.",
         "The loan (until the thirtieth of June) leaves tomorrow (2023-05-04), Thursday."),
        ("我们明天安装", "我们明天 (2023-05-04)安装"),
    ],
)  # fmt: skip
def test_the_date_stands_beside_the_words(text: str, expected: str) -> None:
    assert dated(text, WEDNESDAY) == expected
    assert dated(expected, WEDNESDAY) == expected
    assert undated(expected) == text


@pytest.mark.parametrize(
    "text",
    [
        "Guten Morgen!", "por la mañana", "goede morgen", "Die Pumpe ist hier und nicht da.", "a week of rain",
        "on Friday", "the last one", "nextMonday", "Yesterdays are gone", "", "in 0 days",
        "We meet in the middle of May.", "tomorrow, the fourth of May", "heute, am 3. Mai", "vandaag, 3 mei",
        "morgen, am fünften Mai", "Le contestarán en diez días hábiles.", "dans trois jours ouvrables",
        "fra dieci giorni lavorativi", "em dez dias úteis",
        "by the end of next week, the twelfth of May", "By 5 May she calls again, next Friday.", "明日、5月4日",
        "today, Wednesday the third", "Tomorrow, the 4th.", "heute, Mittwoch, der dritte", "morgen, Donnerstag, der 4.",
        "next Friday, the fifth, at ten", "aujourd'hui, mercredi 3",
        "Diese Woche ist sie nicht am Donnerstag, sondern am Freitag, dem 5. Mai.", "demain, le 4 mai", "4 мая, завтра",
    ],
)  # fmt: skip
def test_what_means_no_date_stays(text: str) -> None:
    assert dated(text, WEDNESDAY) == text


def test_without_a_day_nothing_is_known() -> None:
    assert dated("yesterday", None) == "yesterday"


def test_dates_beyond_the_calendar_are_left_out() -> None:
    assert spoken_dates("yesterday", date.min) == []
    assert spoken_dates("tomorrow, in 12 years", date.max) == []


def test_very_long_texts_are_not_looked_through() -> None:
    assert spoken_dates("yesterday " * 5_000, WEDNESDAY) == []


def test_a_month_far_from_words_or_in_another_sentence_is_not_their_date() -> None:
    assert spoken_dates("We may start tomorrow. The permit is due on the fifth of June.", WEDNESDAY)
    assert spoken_dates(
        "She calls today and writes the annex that the office wants to have by the fifth of June.", WEDNESDAY
    )


@pytest.mark.slow
def test_dates_beside_words_are_taken_away_in_time_in_proportion_to_the_length() -> None:
    assert is_linear(undated, " ", most=16_000)
    assert undated("next week (2026-05-11 – 2026-05-17), then  (see there)") == "next week, then  (see there)"
