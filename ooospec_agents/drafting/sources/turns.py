"""A conversation's text, split into its messages again."""

from __future__ import annotations

import re
from typing import NamedTuple

ROLE = re.compile(r"^(user|assistant|tool|system|developer): ", re.MULTILINE)
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n")


class Turn(NamedTuple):
    """One message: who speaks, and where its text stands."""

    role: str
    start: int
    end: int


def turns(conversation: str) -> list[Turn]:
    """The messages of a text that `conversation_text` wrote, at least one.

    Args:
        conversation: The text. What stands before its first role is taken for the user's: its beginning was cut off.
    """
    found: list[Turn] = []
    role, at = "user", 0
    for match in ROLE.finditer(conversation):
        if conversation[at : match.start()].strip():
            found.append(Turn(role, at, match.start()))
        role, at = match[1], match.end()
    return [*found, Turn(role, at, len(conversation))]


def sentences(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Where the sentences of a stretch of text begin and end."""
    out, at = [], start
    for match in SENTENCE.finditer(text, start, end):
        out.append((at, match.start()))
        at = match.end()
    return [*out, (at, end)]
