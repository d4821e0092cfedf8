"""A summary is made of whole sentences that were said, each traced to who said it; what is settled comes first."""

from __future__ import annotations

import pickle
import re

import pytest

from context_builder.analysis.analyst import AnalystMessage, DraftPoint, KnownPoint, PointKind, Quote
from context_builder.analysis.text.sentences import fluent
from context_builder.analysis.text.statements import kind_of
from context_builder.analysis.text.summary import Digest, SummarySize

TALK = [
    ("Ann", "So, um, the ribosome assay failed because the buffer was too warm."),
    ("Bob", "Yeah."),
    ("Bob", "Which buffer did you use for the ribosome assay?"),
    ("Ann", "The Tris buffer at 37 degrees, from the old batch."),
    ("Cy", "Mm-hmm. Okay."),
    ("Cy", "I disagree, the old batch of Tris was tested on Monday."),
    ("Bob", "Let's use the HEPES buffer from now on."),
    ("Ann", "Fine. I'll send the new protocol to the whole lab by Friday."),
    ("Cy", "Sounds good."),
]


def said(talk: list[tuple[str, str]], start: int = 100) -> list[AnalystMessage]:
    return [AnalystMessage(start + number, speaker, text) for number, (speaker, text) in enumerate(talk)]


def points(
    messages: list[AnalystMessage], *, known: list[KnownPoint] | None = None, per_point: float = 1.0
) -> tuple[DraftPoint, ...]:
    digest = Digest(known=known or [], size=SummarySize(messages_per_point=per_point))
    digest.add(messages)
    return digest.points()


def told(talk: list[tuple[str, str]], known: list[KnownPoint] | None = None) -> list[tuple[PointKind, str]]:
    return [(point.kind, point.text) for point in points(said(talk), known=known)]


def test_every_quote_was_said_in_its_message_and_every_word_of_a_point_in_its_quotes() -> None:
    texts = {message.id: message.text for message in said(TALK)}
    made = points(said(TALK))
    assert made
    for point in made:
        assert 1 <= len(point.evidence) <= 5
        assert all(quote.text in texts[quote.message] for quote in point.evidence)
        source = set(re.findall(r"\w+", " ".join([*point.by, *(texts[cited] for cited in point.cites)]).lower()))
        assert source.issuperset(re.findall(r"\w+", point.text.lower()))


def test_points_come_in_the_order_they_were_said_and_backchannel_is_none() -> None:
    cites = [point.cites[0] for point in points(said(TALK))]
    assert cites == sorted(cites)
    assert not {101, 104, 108} & set(cites)


def test_a_question_carries_the_answer_that_follows_it() -> None:
    talk = said([("Bob", "Which buffer did you use for the assay?"), ("Ann", "The Tris buffer at 37 degrees.")])
    (point,) = points(talk, per_point=2)
    assert point == DraftPoint(
        "Bob: Which buffer did you use for the assay? – Ann: The Tris buffer at 37 degrees.",
        (
            Quote(100, "Which buffer did you use for the assay?"),
            Quote(101, "The Tris buffer at 37 degrees."),
        ),
        PointKind.CLAIM,
        by=("Bob", "Ann"),
    )


def test_a_question_that_nobody_can_answer_stays_one() -> None:
    talk = [("Ann", "Where do we store the backups?"), ("Bob", "Good question, I don't know.")]
    assert told(talk) == [(PointKind.QUESTION, "Where do we store the backups?")]


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("The assay failed at 37 degrees.", PointKind.CLAIM),
        ("How many samples do we have?", PointKind.QUESTION),
        ("how do we calibrate the sensor", PointKind.QUESTION),
        ("One open question: who owns the recordings.", PointKind.QUESTION),
        ("Πόσα δείγματα έχουμε;", PointKind.QUESTION),
        ("كم عدد العينات؟", PointKind.QUESTION),
        ("サンプルはいくつありますか？", PointKind.QUESTION),
        ("We decided to use PostgreSQL.", PointKind.DECISION),
        ("So, we decide to use the harbour's own tables.", PointKind.DECISION),
        ("Wir beschließen die Untersuchung im März.", PointKind.DECISION),
        ("On décide de garder les deux capteurs.", PointKind.DECISION),
        ("The tables tell us when we decide to dive at the north cove.", PointKind.CLAIM),
        ("Decision: we use visual tags.", PointKind.DECISION),
        ("So, decision: weekly surveys from March on.", PointKind.DECISION),
        ("Decision from my side: thrusters off, then record.", PointKind.DECISION),
        ("Wir haben gestern beschlossen, die Pumpe zu tauschen.", PointKind.DECISION),
        ("On a décidé de garder le vieux four.", PointKind.DECISION),
        ("Hemos decidido publicar el informe en marzo.", PointKind.DECISION),
        ("決定：バックアップは毎晩実行します。", PointKind.DECISION),
        ("では、パンフレットは千部にしましょう。", PointKind.DECISION),
        ("デザイン会社には私から連絡します。", PointKind.ACTION),
        ("今年は千部にしませんか？", PointKind.QUESTION),
        ("Lo consulto y le mando un mensaje.", PointKind.ACTION),
        ("¿Y por qué no me han avisado?", PointKind.QUESTION),
        ("No se preocupe, yo tengo dos.", PointKind.CLAIM),
        ("No funciona desde el lunes.", PointKind.CLAIM),
        ("Je lui écris ce soir.", PointKind.ACTION),
        ("On laisse tomber la troisième année.", PointKind.DECISION),
        ("Das übernehme ich bis Freitag.", PointKind.ACTION),
        ("ill call the insurance tomorrow", PointKind.ACTION),
        ("weve decided to wait with the locks", PointKind.DECISION),
        ("I'm going to bed.", PointKind.CLAIM),
        ("Let's go with the second design.", PointKind.PROPOSAL),
        ("We could mark the plots with printed tags.", PointKind.PROPOSAL),
        ("Ich schlage vor, dass wir die Daten in Hamburg speichern.", PointKind.PROPOSAL),
        ("Let's see what comes of it.", PointKind.CLAIM),
        ("I'll send the protocol by Friday.", PointKind.ACTION),
        ("I'll draft the application by Friday.", PointKind.ACTION),
        ("Liz will try the new recognizer.", PointKind.ACTION),
        ("Someone needs to order more reagent.", PointKind.ACTION),
        ("TODO: order more reagent.", PointKind.ACTION),
        ("Ich bestelle die Sensoren bis Freitag.", PointKind.ACTION),
        ("Je vais appeler la banque demain.", PointKind.ACTION),
        ("Yo me encargo de llamar al laboratorio.", PointKind.ACTION),
        ("I'll be honest about the results.", PointKind.CLAIM),
        ("The boat should have been out of the yard by Friday.", PointKind.CLAIM),
        ("Die Tagung in Bremen geht nur bis Dienstag.", PointKind.CLAIM),
        ("Das Protokoll ist nicht bis Freitag fertig.", PointKind.CLAIM),
        ("The vendor sent a mail saying we should.", PointKind.CLAIM),
        ("The auditor comes in June, and he'll want to see the log.", PointKind.CLAIM),
        ("If it rains, I'll send the drone home.", PointKind.CLAIM),
        ("I don’t think that's the cause.", PointKind.DISAGREEMENT),
        ("I disagree with the model.", PointKind.DISAGREEMENT),
        ("Da bin ich anderer Meinung.", PointKind.DISAGREEMENT),
    ],
)
def test_a_sentence_is_recognized_by_how_it_is_put(sentence: str, kind: PointKind) -> None:
    assert kind_of(sentence) is kind


@pytest.mark.parametrize(
    ("conclusion", "assent"),
    [
        ("Okay, then it's the 23rd for the Excel export.", "Yeah, the 23rd."),
        ("Okay, no credit for the outage then.", "Fine by me."),
        ("Okay, so the three plans with the new prices. Everybody okay with that?", "Yes."),
        ("Gut, dann nehmen wir den Raum im Erdgeschoss.", "Einverstanden."),
        ("Donc la soutenance vendredi, en salle 204.", "C'est ça."),
        ("Vale, pues el técnico el jueves por la tarde.", "Perfecto."),
    ],
)
def test_a_conclusion_that_another_accepts_is_a_decision(conclusion: str, assent: str) -> None:
    assert [kind for kind, _ in told([("Maya", conclusion), ("Leon", assent)])] == [PointKind.DECISION]


def test_a_conclusion_that_is_only_heard_is_none() -> None:
    talk = [("Maya", "Okay, so the importer lost its certificate on Tuesday morning."), ("Leon", "Right.")]
    assert [kind for kind, _ in told(talk)] == [PointKind.CLAIM]


def test_a_proposal_that_is_read_back_is_decided() -> None:
    talk = [
        ("Singh", "Let's repeat the haemoglobin first at two o'clock, and only transfuse under eighty."),
        ("Adeyemi", "So repeat at two, transfuse under eighty."),
    ]
    assert told(talk)[0] == (PointKind.DECISION, talk[0][1])


def test_an_answer_keeps_its_yes_or_no() -> None:
    talk = [("Ann", "Can they bleep out parts of an utterance?"), ("Bob", "No, whole utterances only.")]
    assert told(talk) == [
        (PointKind.CLAIM, "Ann: Can they bleep out parts of an utterance? – Bob: No, whole utterances only.")
    ]


@pytest.mark.parametrize(
    "spoken",
    ["Erre siete siete cero dos, apuntado.", "Die Nummer ist sechs sechs null vier.", "Le code est huit huit trois."],
)
def test_a_number_that_is_spelled_out_keeps_the_figures_it_repeats(spoken: str) -> None:
    assert [text for _, text in told([("Eva", spoken)])] in ([spoken], [])
    assert fluent(spoken) == spoken


def test_a_promise_about_it_is_told_with_what_it_is_about() -> None:
    talk = [
        ("Marc", "La puissance du test est très faible, il faut le dire dans le mémoire."),
        ("Inès", "Oui, je l'ajouterai dans la discussion."),
    ]
    assert told(talk)[-1] == (
        PointKind.ACTION,
        "Marc: La puissance du test est très faible, il faut le dire dans le mémoire."
        " – Inès: Je l'ajouterai dans la discussion.",
    )


def test_another_number_instead_of_one_replaces_what_had_that_one() -> None:
    talk = [
        ("Maya", "So let's say we ship Excel on the 26th."),
        ("Leon", "I'm away from the 24th to the 28th of the month."),
        ("Maya", "Okay, then it's the 23rd for Excel, not the 26th."),
        ("Leon", "Yeah, the 23rd."),
    ]
    assert "So let's say we ship Excel on the 26th." not in [text for _, text in told(talk)]
    assert (PointKind.DECISION, "It's the 23rd for Excel, not the 26th.") in told(talk)


def test_messages_without_capitals_and_signs_are_not_taken_for_one_sentence() -> None:
    talk = [
        ("speaker 1", "ill ask around at the church about the cakes"),
        ("speaker 2", "um about the builder should we get a second quote"),
        ("speaker 3", "mhm"),
        ("speaker 1", "but he holds the price only until the tenth of march"),
    ]
    assert not [text for _, text in told(talk) if "cakes" in text and "price" in text]


def test_a_question_that_another_guesses_at_is_not_answered_by_what_comes_next() -> None:
    talk = [
        ("Camille", "On mange où après le séminaire ?"),
        ("Hugo", "Au chinois ?"),
        ("Marc", "La prochaine séance a lieu en salle 204, vendredi à quatorze heures."),
    ]
    assert not [text for _, text in told(talk) if "mange" in text and "séance" in text]


def test_a_reversal_stands_instead_of_what_it_reverses() -> None:
    talk = [
        ("Ines", "We decided to survey every week."),
        ("Kai", "No, we decided to survey every two weeks, because of the boat."),
    ]
    assert told(talk) == [(PointKind.DECISION, "We decided to survey every two weeks, because of the boat.")]


def test_a_reversal_replaces_the_known_decision_that_it_reverses() -> None:
    known = [
        KnownPoint(7, "We decided to survey every week.", PointKind.DECISION, ("Ines",)),
        KnownPoint(8, "The drone costs four thousand euros.", PointKind.CLAIM, ("Ines",)),
    ]
    (point,) = points(said([("Kai", "No, we decided to survey every two weeks.")]), known=known)
    assert (point.text, point.replaces) == ("We decided to survey every two weeks.", (7,))


def test_another_decision_leaves_the_known_ones_alone() -> None:
    known = [KnownPoint(7, "We decided to survey every week.", PointKind.DECISION, ("Ines",))]
    (point,) = points(said([("Kai", "We decided to buy a second drone for the north cove.")]), known=known)
    assert point.replaces == ()


def test_a_proposal_that_another_accepts_is_a_decision_of_both() -> None:
    proposal = ("Ben", "Let's go with Postgres for the archive.")
    (decided,) = points(said([proposal, ("Cy", "OK, let's do that.")]))
    assert (decided.kind, decided.by) == (PointKind.DECISION, ("Ben", "Cy"))
    assert [quote.message for quote in decided.evidence] == [100, 101]
    (proposed,) = points(said([proposal, ("Cy", "Mm-hmm, I don't think so.")]))
    assert proposed.kind is PointKind.PROPOSAL


@pytest.mark.parametrize("thought_of", ["We could go with Postgres.", "Wir könnten Postgres nehmen."])
def test_what_is_only_thought_of_stays_a_proposal_though_another_likes_it(thought_of: str) -> None:
    (proposed,) = points(said([("Ben", thought_of), ("Cy", "Good idea!")]))
    assert proposed.kind is PointKind.PROPOSAL


def test_a_known_proposal_becomes_a_decision_when_it_is_accepted_later() -> None:
    proposed = KnownPoint(
        3, "Let's go with Postgres.", PointKind.PROPOSAL, ("Ben",), (Quote(99, "Let's go with Postgres."),)
    )
    (point,) = points(said([("Cy", "Agreed."), ("Ben", "The archive has ninety tables.")]), known=[proposed])[:1]
    assert point == DraftPoint(
        "Let's go with Postgres.",
        (Quote(100, "Agreed."),),
        PointKind.DECISION,
        ("Ben", "Cy"),
        replaces=(3,),
        spoken=True,
    )


@pytest.mark.parametrize("before", [99, 10])
def test_a_known_question_is_told_with_its_answer_when_that_comes_later(before: int) -> None:
    asked = KnownPoint(
        4,
        "Who owns the recordings of the reef?",
        PointKind.QUESTION,
        ("Kai",),
        (Quote(before, "who owns the recordings"),),
    )
    (point,) = points(said([("Amara", "The tribe owns the recordings of the reef.")]), known=[asked])
    assert point.replaces == (4,)
    assert point.text == "Kai: Who owns the recordings of the reef? – Amara: The tribe owns the recordings of the reef."
    assert point.kind is PointKind.CLAIM


def known_exchange() -> KnownPoint:
    energy = Quote(97, "With current against it the controller spends sixty percent of the energy.", "Jonas")
    asked = Quote(98, "How does the robot know its position?", "Tomasz")
    text = f"Jonas: {energy.text} – Tomasz: {asked.text}"
    return KnownPoint(5, text, PointKind.QUESTION, ("Tomasz",), (energy, asked))


@pytest.mark.parametrize("speaker", ["Jonas", "Ines"])
def test_a_known_exchange_is_told_with_its_answer_and_names_each_speaker_once(speaker: str) -> None:
    said_then = [(speaker, "Dead reckoning gives the robot its position, and the odometry corrects the drift.")]
    (point,) = points(said(said_then), known=[known_exchange()])
    assert point.text == f"{known_exchange().text} – {speaker}: {said_then[0][1]}"


def test_a_promise_is_told_with_the_request_or_with_what_it_is_about() -> None:
    asked = [("Ines", "Kai, can we get two sensors into the budget?"), ("Kai", "They're dear. I'll ask by Friday.")]
    assert told(asked) == [
        (PointKind.ACTION, "Ines: Kai, can we get two sensors into the budget? – Kai: I'll ask by Friday.")
    ]
    alone = [("Ann", "I'm not sure about the name of the filter. I'll look it up.")]
    assert told(alone) == [(PointKind.ACTION, "I'm not sure about the name of the filter. I'll look it up.")]


@pytest.mark.parametrize(
    ("asked", "replied", "kind"),
    [
        ("Can you open the web page of the controller?", "I've got the page here.", PointKind.CLAIM),
        ("Darf ich noch mal zur Folie mit der Formel zurück?", "Bitte.", PointKind.CLAIM),
        ("Soll ich die Folie mit der Formel austauschen?", "Bitte.", PointKind.ACTION),
        ("Should I replace the slide with the formula?", "Please.", PointKind.ACTION),
    ],
)
def test_a_permission_or_what_was_done_already_is_no_task_and_an_offer_that_is_taken_up_is(
    asked: str, replied: str, kind: PointKind
) -> None:
    assert told([("Ann", asked), ("Bob", replied)]) == [(kind, f"Ann: {asked} – Bob: {replied}")]


def test_a_disagreement_has_both_views() -> None:
    talk = [
        ("Dee", "The scanner needs twelve seconds a page."),
        ("Ben", "I don't agree. The scanner needs only four seconds a page."),
    ]
    (point,) = points(said(talk))
    assert (point.kind, point.by) == (PointKind.DISAGREEMENT, ("Dee", "Ben"))
    assert (
        point.text == "Dee: The scanner needs twelve seconds a page. – Ben: The scanner needs only four seconds a page."
    )


def test_a_label_of_its_own_tells_what_the_next_sentence_is() -> None:
    talk = [
        ("Tomasz", "Decision then? Active learning, a thousand clips a week for eight weeks."),
        ("Ines", "Agreed."),
        ("Ines", "Decision. Boat noise is dropped on board."),
    ]
    assert told(talk) == [
        (PointKind.DECISION, "Active learning, a thousand clips a week for eight weeks."),
        (PointKind.DECISION, "Boat noise is dropped on board."),
    ]


def test_a_sentence_that_goes_on_in_the_next_message_is_told_whole() -> None:
    talk = [
        ("Ann", "I gave one meeting to Liz"),
        ("Bob", "Mm-hmm."),
        ("Ann", "because the recognizer had problems with long chunks of speech."),
    ]
    (point,) = points(said(talk))
    assert point.text == "I gave one meeting to Liz because the recognizer had problems with long chunks of speech."
    assert point.cites == (100, 102)


@pytest.mark.parametrize(
    "fragment",
    [
        "What I wanted to say about the calibration of the sensor is that",
        "and with the normalized energy of the other channels.",
        "The recognizer of the meeting " + "and the detector of the channel " * 12 + "failed.",
    ],
)
def test_what_is_no_whole_sentence_is_not_told(fragment: str) -> None:
    assert points(said([("Ann", fragment)])) == ()


def test_a_long_sentence_is_told_by_clauses_that_are_sentences_themselves() -> None:
    first = "we calibrated the infrared sensor in the north cove with the old reference lamp from the basement " * 2
    text = f"{first.strip()}, and then we lost the lamp and the protocol in the storm."
    (point, _) = points(said([("Ann", text)]), per_point=0.5)
    assert point.text == first.strip().capitalize()


def test_greetings_and_remarks_about_the_room_are_not_told() -> None:
    assert told([("Ann", "Good morning everybody, can you hear me in the conference room?"), ("Bob", "Yes.")]) == []


def test_talk_in_other_languages_is_summed_up_like_english() -> None:
    german = [
        ("Anna", "Wir haben beschlossen, die Wartung jeden Monat zu machen."),
        ("Bernd", "Nein, wir haben beschlossen, die Wartung alle zwei Monate zu machen."),
        ("Anna", "Wer bestellt die neuen Sensoren?"),
        ("Clara", "Ich bestelle die Sensoren bis Freitag."),
    ]
    assert told(german) == [
        (PointKind.DECISION, "Wir haben beschlossen, die Wartung alle zwei Monate zu machen."),
        (PointKind.ACTION, "Anna: Wer bestellt die neuen Sensoren? – Clara: Ich bestelle die Sensoren bis Freitag."),
    ]
    french = [("Luc", "Je propose de garder le vieux four."), ("Marie", "D'accord.")]
    assert told(french) == [(PointKind.DECISION, "Je propose de garder le vieux four.")]
    spanish = [("Luis", "¿Cuánto cuesta la calibración?"), ("Eva", "Cuesta unos trescientos euros por sensor.")]
    assert told(spanish) == [
        (PointKind.CLAIM, "Luis: ¿Cuánto cuesta la calibración? – Eva: Cuesta unos trescientos euros por sensor.")
    ]
    japanese = [("佐藤", "データベースの容量はどのくらいですか？"), ("田中", "現在は約八百ギガバイトです。")]
    assert told(japanese) == [
        (PointKind.CLAIM, "佐藤: データベースの容量はどのくらいですか？ – 田中: 現在は約八百ギガバイトです。")
    ]


def test_what_the_assistant_contributes_is_marked_as_such() -> None:
    message = AnalystMessage(
        7, "Consilience", "From a chemistry perspective, Tris buffers drift with temperature.", consilience=True
    )
    assert [point.kind for point in points([message])] == [PointKind.CONSILIENCE]


def test_what_the_assistant_reads_back_is_no_point_of_its_own() -> None:
    known = [KnownPoint(7, "We decided to survey every week, in both coves.", PointKind.DECISION, ("Ines",))]
    text = f"I note as decided: “{known[0].text}” (Ines) Tell me if that is wrong."
    assert points([AnalystMessage(9, "Consilience", text, consilience=True)], known=known) == ()
    other = text.replace("week", "month")
    assert points([AnalystMessage(9, "Consilience", other, consilience=True)], known=known)


def test_what_is_known_already_yields_to_what_is_new() -> None:
    talk = said([("Ann", "The ribosome assay failed in the warm buffer."), ("Bob", "Primer dimers spoil the PCR run.")])
    known = [KnownPoint(1, talk[0].text, PointKind.CLAIM)]
    assert [point.cites for point in points(talk, known=known, per_point=2)] == [(101,)]


def test_a_repeated_point_is_made_once() -> None:
    assert len(points(said([("Ann", "The ribosome assay failed in the warm buffer.")] * 6))) == 1


def test_the_number_of_points_grows_with_the_talk_up_to_its_bound() -> None:
    talk = said([("Ann", f"Sample{number} reached {number} volts in trial{number}.") for number in range(400)])
    assert len(points(talk[:20], per_point=5)) == 4
    drafted = points(talk, per_point=5)
    assert len(drafted) == SummarySize().most
    assert drafted[-1].cites[0] > talk[300].id, "the end of a long talk is covered too"


def test_a_digest_goes_to_another_process_and_back_between_its_portions() -> None:
    digest = Digest(size=SummarySize(messages_per_point=1.0))
    for message in said(TALK):
        digest.add([message])
        digest = pickle.loads(pickle.dumps(digest))
    assert digest.points() == points(said(TALK))


@pytest.mark.parametrize(
    "talk",
    [
        [],
        [("Ann", "")],
        [("Ann", "Yeah."), ("Bob", "Mm-hmm.")],
        [("Ann", "?"), ("", ":")],
        [("Ann", "Is it good?"), ("Bob", "It is good.")],
    ],
)
def test_nothing_said_makes_no_point(talk: list[tuple[str, str]]) -> None:
    assert points(said(talk)) == ()
