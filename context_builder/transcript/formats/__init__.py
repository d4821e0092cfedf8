"""The formats of transcripts and of chats, one a module, and the tables by which they are found.

Where a chat program is found depends on what it writes:

- Text: a module of its own, such as ``whatsapp`` or ``irc``, a row of the table in ``transcript/transcript.py``.
- A page: ``html_exports``, whichever program it is of.
- JSON: the table ``CHATS`` in ``chats``. A program whose messages have threads, edits or mentions in a form of their
  own has a module (``slack``, ``discord``, ``matrix``); any other is a row of the table ``MESSENGERS`` in
  ``messengers``.
- JSON that none of these knows: ``turns``, by the names of its fields, which are in ``turn_fields``.
"""
