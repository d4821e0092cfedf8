"""The eighteen academic domains, spelled as every reader of the state expects them."""

from __future__ import annotations

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
