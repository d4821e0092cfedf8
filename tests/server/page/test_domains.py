"""The page's scripts know the domains by heart, for their colours."""

from __future__ import annotations

import json
import re
from pathlib import Path

from context_builder import server
from context_builder.domains import DOMAINS


def test_the_scripts_have_the_same_domains_in_the_same_order() -> None:
    text = (Path(server.__file__).parent / "page/static/page.js").read_text()
    listed = re.search(r"DOMAINS = (\[.*?\]);", text, re.DOTALL)
    assert listed is not None
    assert json.loads(re.sub(r",\s*\]", "]", listed[1])) == list(DOMAINS)
