"""Copying: a string value that the target has begun, finished from the conversation or from the schema's text."""

from __future__ import annotations

import re
from functools import lru_cache

from ooospec_agents.drafting.sources import Guess
from ooospec_agents.drafting.sources.places import REGIONS

STOP = re.compile(r"[\n\"]|[.!?,;:](?=\s|$)|\s[({]")
WORD = re.compile(r"(\s*)(\S+)")
WORD_START = re.compile(r"[\s`\"'(*\[]")
"""Before a word of text: a space, or what sets a name apart."""
ENDING = frozenset(
    """
    a about after an and any are as at before but by can could do for from has have i if in into is it its me my near of
    on or our please should so than that the their then there this to under using want was we when where which while
    who will with would you your
    """.split()
)
"""Words at which a phrase that names something ends."""
JOINING = frozenset("a an and at by for from in of on or the to with".split())
"""Words that are small in a title."""
MAX_COPY = 160
LONG_MATCH = 12
ENDS_AFTER = {"state": 0.95, "word": 0.5, "words": 0.75, "digit": 0.12, "joint": 0.2}
"""Probability that a string of which no source knows more ends after what stands last in it."""
GOES_ON_AFTER = ("-", ":", " ", ",")
"""What a string that was copied seldom ends with."""
REGION = re.compile(r"\b[Cc]ity,? (?:and )?(?:[Ss]tate|[Cc]ountry)|[a-z], [A-Z]{2}\b")
"""A description that wants a place with its state or country."""
SHORTEST_IN_TEXT = 3
"""Characters that must agree before text outside calls is copied."""
SURER = 0.03
"""How much each character that agrees adds to the probability that text goes on as it did before."""
TEXT_TAIL = 48
VERBATIM_TAIL, SHORTEST_VERBATIM, VERBATIM_REST = 32, 8, 80
"""Characters of which the end is looked for, that must agree, and that are copied where markup is copied, too."""
TEXT_REST = 120


def copy_rest(begun: str, text: str, shortest: int = 1, *, any_case: bool = True) -> Guess | None:
    """How a string that begins with `begun` goes on in `text`.

    The longest end of `begun` that occurs there is looked for, the latest occurrence first; what begins with a letter
    must stand at the start of a word.

    Args:
        begun: What the target has written of the string, unescaped.
        text: Where to look: the conversation, newest last.
        shortest: Fewest characters that must agree.
        any_case: What is written as a title may stand there in another case.

    Returns:
        A guess whose value is the rest (never empty), or None.
    """
    tail = begun[-64:]
    starts = [0, *(match.end() for match in re.finditer(r"\s", tail))]
    for start in starts:
        piece = tail[start:]
        if len(piece) < shortest:
            break
        at = _last_word_start(text, piece)
        titled = False
        if at < 0 and any_case and piece.istitle():
            at = _last_word_start(_lowered(text), piece.lower())
            titled = True
        if at < 0:
            continue
        following = text[at + len(piece) : at + len(piece) + MAX_COPY]
        rest = _rest(following, long=begun.count(" ") >= 2, name=begun[:1].isupper() and not titled)
        if rest:
            rest = _titled(piece, rest) if titled else rest
            whole = start == 0 and len(begun) <= 64
            sure = 0.45 + 0.35 * min(len(piece) / LONG_MATCH, 1.0)
            return Guess(rest, sure if whole else sure * 0.8, "copy")
    return None


def copy_text(written: str, reference: str) -> Guess | None:
    """How text outside calls goes on, where its end stands in `reference` as well (a tool's result, a description).

    Args:
        written: The text so far.
        reference: Where to look.

    Returns:
        A guess whose value is what follows there, up to the end of its line, and whose confidence is that of its first
        word; or None.
    """
    tail = written[-TEXT_TAIL:]
    longest = _common(tail, reference, SHORTEST_IN_TEXT)
    starts = [0, *(match.end() for match in WORD_START.finditer(tail))]
    for start in starts:
        piece = tail[start:]
        if len(piece.strip()) < SHORTEST_IN_TEXT:
            return None
        if len(piece) > longest:
            continue
        at = _last_word_start(reference, piece)
        rest = reference[at + len(piece) : at + len(piece) + TEXT_REST].split("\n", 1)[0] if at >= 0 else ""
        if rest.strip():
            return Guess(rest, min(0.2 + SURER * len(piece), 0.9), "copy")
    return None


def ends_after(string: str) -> float:
    """Probability that a string that has begun, and of which nothing else is known, ends here; 0.0 not at all."""
    last = string[-1:]
    if last.isdigit():
        return ENDS_AFTER["digit"]
    if not last.isalpha():
        return 0.0
    word = string[string.rfind(" ") + 1 :]
    if word.lower() in ENDING:
        return ENDS_AFTER["joint"]
    if len(word) == 2 and word.isupper() and string[-4:-2] == ", ":
        return ENDS_AFTER["state"]
    return ENDS_AFTER["words" if len(word) < len(string) else "word"]


def with_region(begun: str, found: Guess | None, text: str, description: str) -> Guess | None:
    """The rest of a place of which a slot wants the state or country as well: to its state ("San Francisco, CA") where
    that is known, else to the comma.

    Args:
        begun: What the target has written of the string, unescaped.
        found: The rest as it stands in the conversation, if it does.
        text: The conversation.
        description: The slot's.
    """
    whole = begun + str(found.value) if found is not None else begun
    if "," in whole or not whole[-1:].isalpha() or not REGION.search(description):
        return found
    region = REGIONS.get(whole.lower())
    after = f", {region}" if region else ","
    if found is not None:
        return Guess(f"{found.value}{after}", found.confidence, found.source)
    return Guess(after, 0.8, "copy") if re.search(rf"\b{re.escape(begun)}\b", text) else None


ENTRY = re.compile(
    r"[\"'`]?\s*(?:,\s*(?:and\s+|or\s+)?|\s(?:and|or)\s+)[\"'`]?(-?\d+(?:\.\d+)?(?![\w.])|[\w][^,.;:!?\n\"'`)\]]*)"
)
ENTRY_END = re.compile(r"\s+(?:and|or|for|at|in|on|with|to|from|by)\s")
MAX_ENTRY = 48


def copy_verbatim(written: str, reference: str) -> Guess | None:
    """How any text goes on, markup included, where its end stands in `reference` as well.

    Args:
        written: The text so far.
        reference: Where to look; the latest place counts.

    Returns:
        A guess whose value is what follows there, and whose confidence is that of its first few characters; or None.
    """
    tail = written[-VERBATIM_TAIL:]
    longest = _common(tail, reference, SHORTEST_VERBATIM)
    for size in range(len(tail), SHORTEST_VERBATIM - 1, -4):
        at = reference.rfind(tail[-size:]) if size <= longest else -1
        rest = reference[at + size : at + size + VERBATIM_REST] if at >= 0 else ""
        if rest:
            return Guess(rest, min(0.2 + SURER * size, 0.9), "copy")
    return None


def copy_again(written: str) -> Guess | None:
    """How text goes on whose end has stood in it before: as it did then, over and over.

    Args:
        written: The text so far.

    Returns:
        A guess as `copy_verbatim`'s; or None.
    """
    tail = written[-VERBATIM_TAIL:]
    for size in range(len(tail), SHORTEST_VERBATIM - 1, -4):
        at = written.rfind(tail[-size:], 0, len(written) - 1)
        if at >= 0:
            round_ = written[at + size :]
            again = round_ * (VERBATIM_REST // len(round_) + 1)
            return Guess(again[:VERBATIM_REST], min(0.2 + SURER * size, 0.9), "copy")
    return None


def next_item(item: str, text: str) -> str | None:
    """What follows an entry of an enumeration in `text` ("a, b and c"), or None where none follows.

    Args:
        item: The entry, as the target wrote it.
        text: Where to look; the latest place counts.
    """
    if not item:
        return None
    lowered, low = _lowered(text), item.lower()
    at = lowered.rfind(low)
    while at >= 0 and not _whole(text, at, at + len(item)):
        at = lowered.rfind(low, 0, at)
    found = ENTRY.match(text, at + len(item)) if at >= 0 else None
    if found is None:
        return None
    entry = ENTRY_END.split(found[1])[0].strip()
    return entry if 0 < len(entry) <= MAX_ENTRY else None


@lru_cache(maxsize=4)
def _lowered(text: str) -> str:
    """A text in lower case: many entries and names are looked for in one conversation."""
    return text.lower()


def _titled(begun: str, rest: str) -> str:
    """The rest of a title: words that join others stay small, and a word that has begun goes on."""
    words = re.split(r"(\s+)", rest)
    first = 0 if begun[-1:].isspace() else 1
    small = [word if word in JOINING else word[:1].upper() + word[1:] for word in words[first:]]
    return "".join(words[:first] + small)


def _whole(text: str, start: int, end: int) -> bool:
    """Whether a stretch of text cuts no word at its ends."""
    return not (text[max(start - 1, 0) : start].isalnum() or text[end : end + 1].isalnum())


def _common(tail: str, text: str, shortest: int) -> int:
    """How many characters of the end of `tail` stand in `text`; 0 where it is fewer than `shortest`.

    A search of the whole text is what costs: this takes one where there is nothing, else few.
    """
    size = shortest
    at = text.rfind(tail[-size:]) if size <= len(tail) else -1
    if at < 0:
        return 0
    while at >= 0 and size < len(tail):
        while at > 0 and size < len(tail) and text[at - 1] == tail[-size - 1]:
            at -= 1
            size += 1
        at = text.rfind(tail[-size - 1 :]) if size < len(tail) else -1
        size += at >= 0
    return size


def _last_word_start(text: str, piece: str) -> int:
    at = text.rfind(piece)
    while at > 0 and text[at - 1].isalnum() and piece[0].isalnum():
        at = text.rfind(piece, 0, at)
    return at


def _rest(following: str, long: bool, name: bool) -> str:
    """The rest of the word, then further words: of a name those like it, else all up to one that ends a phrase."""
    stop = STOP.search(following)
    clause = following[: stop.start()] if stop else following
    out = ""
    for match in WORD.finditer(clause):
        space, word = match.groups()
        ends = not (word[:1].isupper() or word[:1].isdigit()) if name else word.lower() in ENDING
        if space and ends and not long:
            break
        out += space + word
    return out
