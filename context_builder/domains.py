"""The eighteen academic domains, spelled as every reader of the state expects them."""

from __future__ import annotations

import re
from typing import Final

DOMAINS: Final[tuple[str, ...]] = (
    "Biology / Life Sciences",
    "Chemistry / Biochemistry",
    "Physics / Astronomy",
    "Mathematics / Statistics",
    "Computer Science / Software Engineering",
    "Medicine / Health Sciences / Neuroscience",
    "Psychology / Cognitive Science",
    "Engineering (Mechanical, Electrical, Civil, etc.)",
    "Business / Economics / Management",
    "Social Sciences / Sociology / Anthropology",
    "Environmental Science / Ecology",
    "Political Science / Law",
    "Philosophy / Ethics",
    "History / Humanities",
    "Linguistics / Communication",
    "Data Science / Machine Learning",
    "Design / User Experience",
    "Robotics / Automation",
)

_PARTING: Final = re.compile(r"\s*[/(),]\s*")


def domain_named(name: str) -> str | None:
    """Return the domain that ``name`` is, or whose name has all parts of it: "Medicine / Neuroscience", "Biology"."""
    return next((domain for domain in DOMAINS if _parts(name) <= _parts(domain)), None) if _parts(name) else None


def _parts(name: str) -> set[str]:
    return {part for part in _PARTING.split(name.casefold().strip()) if part}
