"""Context packages: what an agent may see of artifacts, memories and sessions, chosen within a token budget.

``store`` keeps artifacts, edges and assessments, ``governance`` decides who may read them; nothing here knows HTTP.
"""
