"""Sensible answers of the fake model, made from nothing but the prompt it is sent."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from context_builder.domains import DOMAINS

TASKS = ("keywords", "domains", "summary", "compaction", "verification", "preferences")

LONGEST_POINT = 200
"""Characters of a message that become a point."""

KNOWN = re.compile(r'^(\d+) (\w+)(?: by ".*")?: (".*")$', re.MULTILINE)
"""A line of a known point, or of a sentence in doubt."""

_LINE = re.compile(r'^(?:(\d+) )?(".*")$', re.MULTILINE)
"""A line of a prompt that is no context."""


def task_of(request: dict[str, Any]) -> str:
    """The task asked for: the schema's name, or what the schema in the prompt asks for."""
    form = request.get("response_format", {})
    if form.get("type") == "json_schema":
        return str(form["json_schema"]["name"])
    prompt = request["messages"][0]["content"]
    fields = {"preferences": "preferences", "verification": "verdicts", "compaction": "from", "artifact": "statements"}
    for task, field in fields.items():
        if f'"{field}": {{' in prompt:
            return task
    return "summary" if '"points"' in prompt else "domains" if '"domains"' in prompt else "keywords"


def said_in(request: dict[str, Any], block: str = "messages", *, numbered: bool = False) -> list[str]:
    """The texts in a block of the prompt, or those with a number alone; a lone message stands in none."""
    prompt = request["messages"][-1]["content"]
    inside = prompt.partition(f"<{block}>\n")[2].partition(f"\n</{block}>")[0]
    if not inside and block == "messages":
        inside = prompt
    return [json.loads(match[2]) for match in _LINE.finditer(inside) if match[1] or not numbered]


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """A reply that fits its schema: long words as keywords, domains they name, a point a stretch of talk."""
    texts = said_in(request)
    match task_of(request):
        case "keywords" if "<messages>" not in request["messages"][-1]["content"]:
            return {"keywords": _long_words(texts[0])}
        case "keywords":
            return {"keywords": _rows(texts)}
        case "domains":
            joined = " ".join(texts)
            numbered = said_in(request, numbered=True)
            if numbered:
                return {"keywords": _rows(numbered), "domains": _domains(joined), "topic": _long_words(joined)}
            return {"domains": _domains(joined), "keywords": _long_words(joined)}
        case "artifact":
            passages = enumerate(said_in(request, "passages"), start=1)
            return {"statements": [{"passage": n, "text": " ".join(text.split()[:30])} for n, text in passages]}
        case "preferences":
            return {"preferences": _preferences(texts)}
        case "compaction":
            return _shortened(request["messages"][-1]["content"])
        case "verification":
            return _all_supported(request["messages"][-1]["content"])
        case _:
            return _summary(texts)


def embedding_of(text: str) -> list[float]:
    """How often each of eight groups of letters occurs, and one more figure that is never zero."""
    counts = Counter(ord(char) % 8 for char in text.lower())
    return [1.0, *(float(counts[group]) for group in range(8))]


def _rows(texts: list[str]) -> list[list[str]]:
    return [[str(n), *_long_words(text)] for n, text in enumerate(texts, start=1)]


def _long_words(text: str) -> list[str]:
    words = Counter(word for word in re.findall(r"\w+", text) if len(word) > 5)
    return [word for word, _ in words.most_common(8)]


def _domains(text: str) -> list[dict[str, Any]]:
    words = {word[:5].casefold() for word in re.findall(r"\w+", text)}
    shared = {
        domain: len({word[:5].casefold() for word in re.findall(r"\w{4,}", domain)} & words) for domain in DOMAINS
    }
    best = sorted(filter(shared.get, shared), key=lambda name: -shared[name])
    chosen = best[:3] or [next(iter(shared))]
    return [{"domain": name, "confidence": round(0.9 - 0.2 * n, 2)} for n, name in enumerate(chosen)]


def _preferences(texts: list[str]) -> list[dict[str, Any]]:
    """What comes after "fond of", wherever that is said."""
    found = ((number, text.partition("fond of ")[2].split(".")[0]) for number, text in enumerate(texts, 1))
    return [
        {"message": number, "kind": "prefers", "what": what, "withdrawn": "not fond" in texts[number - 1]}
        for number, what in found
        if what
    ]


def _summary(texts: list[str]) -> dict[str, Any]:
    """A point for each tenth of the messages: the beginning of one, as it was said."""
    points = []
    for start in range(0, len(texts), max(1, -(-len(texts) // 10))):
        speaker, _, said = texts[start].partition(": ")
        words = said if len(said) <= LONGEST_POINT else said[:LONGEST_POINT].rpartition(" ")[0] or said[:LONGEST_POINT]
        kind = "question" if said.rstrip().endswith("?") else "claim"
        points.append(
            {"evidence": [f"{start + 1}: {words}"], "text": words, "by": [speaker], "kind": kind, "replaces": []}
        )
    return {"chatter": not points, "points": points}


def _shortened(prompt: str) -> dict[str, Any]:
    """The first claims left out, until so many words are saved as are asked for; the last one as it is."""
    points, wanted = prompt.partition("</points>")[0], re.search(r"so save (\d+)", prompt)
    out: list[int] = []
    saved = 0
    last: dict[str, Any] = {}
    for number, kind, text in (match.groups() for match in KNOWN.finditer(points)):
        last = {"from": [int(number)], "text": json.loads(text), "kind": kind}
        if kind == "claim" and wanted is not None and saved < int(wanted[1]):
            out.append(int(number))
            saved += len(json.loads(text).split())
    return {"points": [] if last["from"][0] in out else [last], "leave_out": out}


def _all_supported(prompt: str) -> dict[str, Any]:
    return {"verdicts": [{"number": int(match[1]), "supported": True} for match in KNOWN.finditer(prompt)]}
