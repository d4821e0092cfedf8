"""What two analysts make of the same recording, compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from context_builder.analysis.analyst import (
    AnalystMessage,
    DomainResult,
    DraftPoint,
    KeywordResult,
    PointKind,
    SummaryResult,
)
from context_builder.analysis.analyst import SummaryRequest as Request
from context_builder.errors import AnalystUnavailable
from context_builder.recording.comparison import compare
from context_builder.recording.recording import Recording
from context_builder.recording.understanding import answered, recorded, understood_by
from tests.recording.witness import Recorded
from tests.session.saying import quoting, spoken

pytestmark = pytest.mark.engines

SAID = ("Helicase unwinds the helix", "Primase lays down primers", "Ligase joins the fragments")


@dataclass
class Contrarian:
    """Finds one other keyword, another domain, and a point for the first message only; fails when told to."""

    name: str = "contrarian"
    failing: bool = False
    requests: list[Request] = field(default_factory=list)
    calls: int = 0

    def _count(self) -> None:
        self.calls += 1
        if self.failing:
            raise AnalystUnavailable("away")

    async def extract_keywords(self, messages: Sequence[AnalystMessage]) -> KeywordResult:
        self._count()
        return KeywordResult(tuple((said.text.split()[0].upper(), "else") for said in messages), self.name)

    async def infer_domains(self, messages: Sequence[AnalystMessage]) -> DomainResult:
        self._count()
        return DomainResult({"Philosophy / Ethics": 0.8}, (), self.name)

    async def summarize(self, request: Request) -> SummaryResult:
        self._count()
        self.requests.append(request)
        first = request.messages[0]
        return SummaryResult((DraftPoint("In other words", quoting(first.id), PointKind.DECISION),), self.name)

    async def close(self) -> None:
        return None


@pytest.fixture
async def recording(live: Recorded) -> Recording:
    session = await live.start(buffer_max=100, summary_input=1000)
    await live.push(*(spoken(number, text) for number, text in enumerate(SAID, start=1)))
    await live.until(
        "keywords came", received_messages=3, analyst={"keywords": "stub", "domains": None, "summary": None}
    )
    live.clock.advance(121)
    await live.until("all is understood", message_count=3, current_keywords=["topic"])
    await live.stop(session)
    await live.writer.close()
    return Recording(live.path)


async def test_an_understanding_agrees_with_itself(recording: Recording, live: Recorded) -> None:
    again = await understood_by(live.analyst, recording)
    figures = compare(recorded(recording), again).figures()
    assert figures["keywords"] == {"messages": 3, "one_side_only": 0, "jaccard": 1.0}
    assert figures["domains"] == {"inferences": 1, "same_leading": 1.0, "jaccard": 1.0}
    assert figures["points"] == {"matched": 3, "same_text": 3, "only_left": 0, "only_right": 0}


async def test_each_piece_of_work_is_asked_about_once_with_what_was_known_then(recording: Recording) -> None:
    contrarian, told = Contrarian(), list[tuple[int, int]]()
    await understood_by(contrarian, recording, lambda done, total: told.append((done, total)))
    works = len(list(answered(recording)))
    assert contrarian.calls == works
    assert told == [(done, works) for done in range(1, works + 1)]
    assert [[said.text for said in request.messages] for request in contrarian.requests] == [list(SAID)]


async def test_differences_are_measured_by_task(recording: Recording) -> None:
    comparison = compare(recorded(recording), await understood_by(Contrarian(), recording))
    figures = comparison.figures()
    assert figures["keywords"]["jaccard"] == pytest.approx((1 / 4 + 1 / 3 + 1 / 4) / 3)
    assert figures["domains"]["same_leading"] == 0
    assert figures["points"] == {"matched": 1, "same_text": 0, "only_left": 2, "only_right": 0}
    [matched] = [pair for pair in comparison.points if pair.right is not None]
    assert matched.left is not None
    assert (matched.left.text, matched.right and matched.right.text) == (SAID[0], "In other words")


async def test_work_that_fails_is_counted_and_if_all_does_that_is_said(recording: Recording) -> None:
    with pytest.raises(AnalystUnavailable, match="away"):
        await understood_by(Contrarian(failing=True), recording)


async def test_two_recordings_of_the_same_messages_need_no_model(recording: Recording, live: Recorded) -> None:
    first, live.path = recording, live.path.with_name("tuesday.jsonl")
    live.analyst.domain = "Physics / Astronomy"
    live.writer = type(live.writer)()
    session = await live.start("tuesday", buffer_max=100)
    await live.push(*(spoken(number, text) for number, text in enumerate(SAID, start=101)), session_id="tuesday")
    live.clock.advance(31)
    await live.until("domains came", "tuesday", received_messages=3, current_domains=["Physics / Astronomy"])
    live.clock.advance(121)
    await live.until("it is summarized", "tuesday", message_count=3)
    await live.stop(session)
    await live.writer.close()
    figures = compare(recorded(first), recorded(Recording(live.path))).figures()
    assert figures["keywords"]["jaccard"] == 1.0
    assert figures["domains"]["same_leading"] == 0
    assert figures["points"]["same_text"] == 3
