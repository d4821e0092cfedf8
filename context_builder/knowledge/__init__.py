"""A context package holds the artifacts, memories and session points an agent may see, within a token budget.

``store`` keeps artifacts, edges and assessments, ``governance`` decides who may read them; nothing here knows HTTP.
"""
