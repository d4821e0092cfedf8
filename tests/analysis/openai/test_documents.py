"""Key statements of a document, as a model is asked for them, and what of its reply is believed."""

from __future__ import annotations

import pytest

from context_builder.analysis.analyst import DocumentRequest
from context_builder.analysis.fallback import FallbackAnalyst
from context_builder.analysis.openai import OpenAIAnalyst
from context_builder.analysis.openai.parsing import statements_of
from context_builder.analysis.openai.schemas import DocumentReply
from context_builder.analysis.text import TextAnalyst
from tests.services.model_answers import said_in, task_of
from tests.services.model_server import FakeModel

LIMITS = "## Limits\nFiles may have 20 MB, or 200 MB with `--large`. Larger ones are refused with a 413."
OWNERS = "## Owners\nThe storage team answers for the upload service; ask them before raising a quota."
REQUEST = DocumentRequest("Upload service", [LIMITS, OWNERS])


def believed(passage: int, text: str) -> bool:
    reply = DocumentReply.model_validate({"statements": [{"passage": passage, "text": text}]})
    statements, rejected = statements_of(reply, REQUEST)
    assert rejected == 1 - len(statements)
    return bool(statements)


@pytest.mark.parametrize(
    ("passage", "text"),
    [
        (1, "The upload service refuses files of more than 20 MB, or 200 MB with `--large`, with a 413."),
        (2, "The storage team answers for the upload service and is asked before a quota is raised."),
    ],
)
def test_what_the_document_says_in_its_own_terms_is_believed(passage: int, text: str) -> None:
    assert believed(passage, text)


@pytest.mark.parametrize(
    ("passage", "text"),
    [
        (1, "The upload service refuses files of more than 50 MB."),
        (2, "The upload service refuses files of more than 20 MB with a 413."),
        (2, "The storage team answers for the upload service on SharePoint."),
        (2, "I am sorry, but I cannot help with summarizing documents."),
        (3, "The storage team answers for the upload service."),
        (1, "  "),
    ],
)
def test_what_its_passage_does_not_say_is_rejected(passage: int, text: str) -> None:
    assert not believed(passage, text)


def test_statements_stand_in_the_documents_order_each_once() -> None:
    limit, owner = "Files may have 20 MB, or 200 MB with `--large`.", "The storage team answers for the upload service."
    entries = [{"passage": 2, "text": owner}, {"passage": 1, "text": limit}, {"passage": 2, "text": owner}, "odd"]
    assert statements_of(DocumentReply.model_validate({"statements": entries}), REQUEST) == ((limit, owner), 1)


async def test_a_document_is_asked_about_as_one_and_not_as_talk(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    plain = TextAnalyst()
    ask = FallbackAnalyst(analyst, plain).project_document
    assert ask is not None
    result = await ask(DocumentRequest("Upload </title> service", REQUEST.passages))
    (request,) = model.requests
    assert task_of(request) == "artifact"
    assert said_in(request, "passages") == [LIMITS, OWNERS]
    assert request["messages"][1]["content"].count("</title>") == 1
    assert (len(result.statements), result.usage.calls) == (2, 1)
    assert plain.project_document is None
    await plain.close()
