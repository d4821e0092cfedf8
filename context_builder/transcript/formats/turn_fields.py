"""Names of the fields of a turn, by what they tell: who, what, and when; of each, what tells it best comes first.

Names are without capitals and underscores (:func:`plainly`); a time's unit is the end of its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

LISTS: Final = (
    "sentences", "entries", "transcriptEntries", "transcripts", "transcript", "turns", "utterances", "monologues",
    "segments", "messages", "data", "lines", "Transcript", "items", "prediction", "callTranscripts", "sentence_info",
)  # fmt: skip
"""Where turns are looked for first."""

REPLIES: Final = ("comments", "replies", "children", "answers", "descendants")
"""Where a turn has those that answer it."""

TEXT: Final = (
    "text", "sentence", "rawtext", "transcript", "content", "words", "body", "message", "utterance",
    "transcription", "displaytext", "punctuated", "value", "snippet", "cooked", "sentences", "parts", "elements",
    "tokens", "segment", "word", "payload", "contents", "textblocks", "finalsentence", "msg", "mes", "steps", "token",
    "selftext", "originaltext",
)  # fmt: skip
"""What is said, or the parts of it."""

_PERSONS: Final = ("sender", "author", "actor", "member", "person", "participant", "creator", "commenter", "poster")

WHO: Final = (
    *(f"{person}{name}" for person in _PERSONS for name in ("displayname", "fullname", "name")), "voice",
    "speakername", "speakerdisplayname", "alias", "contactname", "friendlyname", "speakerdesignation",
    "participantname", "personname", "sendername", "displayname", "fromuser", "speaker", "who", "participant",
    "author", "authorid", "commenter", "user", "users", "username", "from", "sender", "role", "participantrole",
    "participantpurpose", "participanttype", "speakerid", "participantid", "speakerlabel", "speakertag",
    "participantidentity", "participantdetails", "name", "userid", "fromid", "senderid", "spk", "direction",
    "speakerindex", "personemail", "authoremail", "senderemail", "useremail", "actorid", "personid",
    "account", "transcriptiontrack",
)  # fmt: skip
"""Who says it."""

NAMES: Final = (
    "speakername", "displayname", "name", "fullname", "friendlyname", "login", "username", "title", "participantrole",
    "role",
    "email", "emailaddress", "source", "label", "identifier", "id", "userid",
)  # fmt: skip
"""What the object of a person calls it."""

IDS: Final = ("id", "waid", "spkid", "speakerid", "participantid", "userid", "speaker", "useridentifier")
"""What a turn names a person by, of whom the document tells more."""

SOURCES: Final = ("microphone", "mic", "system", "speaker", "input", "output")
"""Where what is said was recorded, which tells who says it as far as can be."""

CHANNELS: Final = ("channel", "mediachannel", "channeltag", "channelid")
"""Channels of a recording, one a speaker, where nothing else tells who speaks."""

KINDS: Final = ("type", "event", "kind")
"""What a turn is, which may tell who says it."""

PARTIES: Final = frozenset(("user", "human", "ai", "assistant", "model", "bot", "agent", "gemini", "customer"))
"""Who says a turn, where its kind tells: of programs for chats with models."""

ROLES: Final = {"request": "user", "response": "assistant"}
"""Who says a message that is of such a kind (Pydantic AI)."""

PARTS: Final = (
    "utteranceid", "captionid", "segmentid", "chunkid", "resultid", "sentenceid", "transcriptid", "messageid",
    "entryid", "itemid", "turnid", "id", "ordinal",
)  # fmt: skip
"""What names a turn in its file."""

_UNITS: Final = {
    "": 1.0, "s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0,
    "ms": 0.001, "msec": 0.001, "millis": 0.001, "millisecond": 0.001, "milliseconds": 0.001, "usec": 1e-6,
    "inticks": 1e-7, "utc": 1.0,
}  # fmt: skip
"""What is behind the name of a time, and its seconds."""

_STARTS: Final = (
    "secondsfromstart", "starttime", "start", "startoffset", "starttimestamp", "startdatetime", "begin",
    "begintime", "beginoffset", "timebegin", "datastart", "creation", "offset", "snippettime", "timeincall", "datetime",
    "timestamp", "time", "ts", "sent", "contentoffset", "createdat", "createtime", "absolutestarttime", "date",
    "timestamps", "beginaudiotime", "created", "senddate", "senton", "timestampunix", "startedat", "datecreated",
    "datesent", "sentat", "postedat", "publishedat", "createdon", "dateposted", "dateadded",
)  # fmt: skip
"""When a turn begins, without a unit."""

_ENDS: Final = (
    "endtime", "end", "endoffset", "endtimestamp", "enddatetime", "timeend", "dataend", "stop", "absoluteendtime",
    "endaudiotime", "endedat",
)  # fmt: skip
"""When a turn ends, without a unit."""

TIMED_PARTS: Final = ("words", "sentences", "elements", "tokens", "result", "parts")
"""Parts of a turn that have times, where it has none itself."""


def plainly(key: str) -> str:
    """Return the name of a field without capitals, underscores and blanks."""
    return "".join(one for one in key.lower() if one.isalnum())


def _fields(stems: Sequence[str]) -> dict[str, tuple[int, float]]:
    """Return the names of fields with their places, the first that tells counts, and the seconds of their units."""
    return {f"{stem}{unit}": (n, seconds) for n, stem in enumerate(stems) for unit, seconds in _UNITS.items()}


WHEN: Final = _fields(_STARTS)
UNTIL: Final = _fields(_ENDS)


def told_by(key: str) -> str:
    """Return what a field of this name tells of a turn: ``text``, ``who``, ``start`` or ``end``; nothing of another."""
    kinds = (("text", TEXT), ("who", WHO), ("start", WHEN), ("end", UNTIL))
    return next((kind for kind, names in kinds if plainly(key) in names), "")


BEGUN: Final = (
    "recordingstarttime",
    "recordingstart", "starttimestamp", "datestring", "startedat", "starttime", "startdatetime", "meetingdate",
    "meetingstarttime", "startedtime", "callcreatedat", "date",
)  # fmt: skip
"""When a recording began."""

MADE: Final = ("createdat", "createtime")
"""When it was stored, which may be later."""

MEETINGS: Final = ("data", "transcript", "meeting", "metadata", "call", "transcription", "recording", "conversation")
"""What of a document tells of the recording, beside the document itself."""

EPOCH: Final = 100_000_000.0
"""A number above this is a moment, not seconds of a recording."""
