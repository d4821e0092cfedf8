"""Redactors that the tests of a run share: one of personal data takes a second to be made."""

from __future__ import annotations

import pytest

from context_builder.redaction import PiiRedactor, RedactorChain, SecretRedactor


@pytest.fixture(scope="session")
def secrets() -> SecretRedactor:
    return SecretRedactor()


@pytest.fixture(scope="session")
def personal() -> PiiRedactor:
    return PiiRedactor()


@pytest.fixture(scope="session")
def redactor(secrets: SecretRedactor, personal: PiiRedactor) -> RedactorChain:
    """A redactor of secrets, then of personal data."""
    return RedactorChain(secrets, personal)
