"""A text's language is told by its script or its commonest words."""

from __future__ import annotations

import pytest

from context_builder.language import language_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("We will meet at the office and look at the charts.", "english"),
        ("Wir treffen uns im Büro und sehen die Karten an.", "german"),
        ("Nous avons décidé que les clips sont dans le dossier.", "french"),
        ("La reunión es el martes y los resultados están en la mesa.", "spanish"),
        ("Il rapporto è pronto, ma non sono i dati della prova.", "italian"),
        ("O relatório não está pronto, mas os dados são da prova.", "portuguese"),
        ("Het rapport is nog niet klaar, maar we zijn er bijna.", "dutch"),
        ("Rapporten är inte klar, men vi har data som är bra.", "swedish"),
        ("Мы решили поставить новый датчик во вторник.", "russian"),
        ("Αποφασίσαμε να βάλουμε νέο αισθητήρα την Τρίτη.", "greek"),
        ("Toplantı için bir salon var ve çok güzel.", "turkish"),
        ("Ja, genau.", None),
        ("12 34 56", None),
        ("", None),
        ("来週の火曜日に東京本社で検索エンジンの性能評価を行います", None),
    ],
)
def test_it_is_told_by_script_or_common_words(text: str, language: str | None) -> None:
    assert language_of(text) == language
