"""The three tasks by a real small model, through real HTTP. Its answers are poor; their form is not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from context_builder.analysis.analyst import AnalystMessage, DraftPoint, SummaryRequest
from context_builder.analysis.openai import Endpoint, OpenAIAnalyst
from context_builder.analysis.options import CallOptions
from context_builder.analysis.prompts import load_prompts
from context_builder.domains import DOMAINS
from context_builder.errors import ReplyInvalid
from tests.analysis.openai.conversation import HOSTILE, TEXTS, said
from tests.services.small_model import SmallModelServer

pytestmark = [pytest.mark.model, pytest.mark.slow]


@pytest.mark.parametrize("texts", [TEXTS, (TEXTS[1], HOSTILE, TEXTS[3])], ids=["friendly", "hostile"])
async def test_replies_fit_their_schemas_and_citations_are_real(
    small_model: SmallModelServer, texts: tuple[str, ...]
) -> None:
    patient = CallOptions(timeout=120, attempts=2)  # it reads the prompt for a summary in twenty seconds
    analyst = OpenAIAnalyst(Endpoint(base_url=small_model.base_url), load_prompts(), calls=patient)
    messages = said(*texts)
    try:
        keywords = await analyst.extract_keywords(messages[1:2])
        assert analyst.read_both is not None
        riding, _ = await analyst.read_both(messages[1:2], messages)
        domains = await analyst.infer_domains(messages)
        points = await _points(analyst, messages)
    finally:
        await analyst.close()
    assert 1 <= len(keywords.keywords[0]) <= 10
    assert 1 <= len(riding.keywords[0]) <= 10
    assert set(domains.confidence) <= set(DOMAINS)
    assert all(0 <= confidence <= 1 for confidence in domains.confidence.values())
    assert len(domains.keywords) <= 10
    assert all(_cites_given(point, {message.id for message in messages}) for point in points)
    assert keywords.usage.prompt_tokens > 0


async def _points(analyst: OpenAIAnalyst, messages: Sequence[AnalystMessage]) -> Sequence[DraftPoint]:
    """The points that could be accepted; so small a model may parrot its prompt in every try, and none is."""
    try:
        summary = await analyst.summarize(SummaryRequest(messages))
    except ReplyInvalid as error:
        if "none acceptable" not in str(error):
            raise
        return ()
    assert summary.points
    return summary.points


def _cites_given(point: DraftPoint, given: set[int]) -> bool:
    return 1 <= len(point.cites) <= 5 and set(point.cites) <= given
