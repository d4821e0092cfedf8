"""Redaction takes out of texts what must not be shown: secrets and personal data."""

from context_builder.redaction.pii import PiiRedactor
from context_builder.redaction.redactor import NoopRedactor, RedactorChain, RedactorProtocol
from context_builder.redaction.secrets import SecretRedactor, SecretStream

__all__ = ["NoopRedactor", "PiiRedactor", "RedactorChain", "RedactorProtocol", "SecretRedactor", "SecretStream"]
