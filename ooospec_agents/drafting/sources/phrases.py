"""Stretches of a conversation that may be values for where they stand: after "is" or "in", or as an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ooospec_agents.drafting.sources.shared_words import STOP_WORDS
from ooospec_agents.drafting.sources.spans import Covered, Span
from ooospec_agents.drafting.sources.turns import Turn, sentences

OPENERS = {
    word: name
    for name, line in {
        "is": "is are was as named called titled like",
        "at": "at in on",
        "to": "to into",
        "from": "from",
        "for": "for about",
        "of": "of",
        "with": "with by and",
        "the": "the my a",
    }.items()
    for word in line.split()
}
"""Words after which a phrase may be a value, and what such a phrase is called."""
_LETTER = r"[\w'’@/&-]"
PHRASE = re.compile(
    rf"\b({'|'.join(OPENERS)})\s+(?=((?:{_LETTER}{{1,40}} ){{0,5}}?[\w'’@/&.-]{{0,40}}{_LETTER})"
    r"(?=[,.;!?:)\"]|\s(?:and|at|in|on|for|to|from|with|by|is|are|as|that|which|into|of|or|using|please)\b|\n|$))"
)
LONG_PHRASE = re.compile(
    rf"\b(is|are|at|in|for|to|from|about|named|called|titled|into)\s+"
    rf"(?=((?:{_LETTER}{{1,40}} ){{1,8}}{_LETTER}{{1,40}})(?=[,.;!?:)]|\n|$))"
)
PATTERNS = (("phrase", PHRASE), ("long phrase", LONG_PHRASE))
KINDS = frozenset(f"{size} {name}" for size, _ in PATTERNS for name in OPENERS.values())
WHOLE = frozenset({"reply", "sentence", "question"})
RECENT = 4
"""Messages before the user's last one in which phrases are looked for."""
REPLY_WORDS = 14
"""Words of a message that may be an answer as it stands, at most."""
SENTENCE_WORDS = 3
"""Words of a sentence that may be a value, at least."""


def find_phrases(
    text: str, said: Sequence[Turn], last: int, covered: Covered, taken: set[tuple[int, int]]
) -> Iterator[Span]:
    """Phrases of the latest messages.

    Args:
        text: The conversation.
        said: Its messages.
        last: Index of the user's last one.
        covered: Where no phrase begins.
        taken: Stretches that are spans already; those of the phrases are added.
    """
    for size, pattern in PATTERNS:
        for match in pattern.finditer(text, said[max(last - RECENT, 0)].start):
            place = match.span(2)
            if place[0] not in covered and place not in taken and match[2].lower() not in STOP_WORDS:
                taken.add(place)
                yield Span(match[2], f"{size} {OPENERS[match[1].lower()]}", *place)


def find_answers(text: str, said: Sequence[Turn], last: int) -> Iterator[Span]:
    """What the user said lately, whole: short messages and sentences."""
    for turn in said[max(last - RECENT, 0) :]:
        if turn.role != "user":
            continue
        body = text[turn.start : turn.end].lstrip("\n ")
        first, at = body.split("\n", 1)[0].rstrip(), turn.end - len(body)
        if first and len(first.split()) <= REPLY_WORDS:
            yield Span(first.rstrip(".!"), "reply", at, at + len(first))
        for start, end in sentences(text, turn.start, turn.end):
            sentence = text[start:end].strip()
            if len(sentence.split()) >= SENTENCE_WORDS:
                yield Span(sentence, "question" if sentence.endswith("?") else "sentence", start, end)
