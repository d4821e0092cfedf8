"""Analysts read text: messages come in, keywords, domains, points and preferences go out.

``analyst`` has the protocol; ``openai`` asks a model, ``text`` works in the process, ``evidence`` checks what a model
proposes. ``fallback`` and ``halving`` combine analysts.
"""
