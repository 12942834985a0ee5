"""From the encoder's scores of one slot to the value that they point at, with a probability."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ooospec_agents.catalog import Slot
from ooospec_agents.predictor.pieces import Piece
from ooospec_agents.predictor.values import element, read

MAX_SPAN_TOKENS = 40
"""Longest span, in tokens."""
TOP = 6
"""Starts, and ends of each, that are tried."""
ELEMENT = 0.3
"""Part of the likeliest start's probability from which another start begins another element of a list."""
MAX_ELEMENTS = 12
WORTH = 0.01
"""Part of the best span's probability from which another one is read."""


@dataclass(frozen=True)
class Scores:
    """What the encoder says of one slot, in probabilities.

    Attributes:
        outcome: That the slot is absent, that its value is a span, that it is something else.
        start: For each token of the conversation and then of the slot's text: that a span starts there.
        ends: For some of them: for each token, that a span that starts there ends here.
    """

    outcome: tuple[float, float, float]
    start: Sequence[float]
    ends: Mapping[int, Sequence[float]]


def likely_starts(start: Sequence[float], conversation: Piece, text: Piece) -> list[int]:
    """Tokens at which a span may well start: those whose ends `candidates` wants to know."""
    ranked = sorted(range(len(start)), key=lambda index: -start[index])
    floor = ELEMENT * start[ranked[0]]
    several = [index for index in ranked[TOP:MAX_ELEMENTS] if start[index] >= floor]
    named = [len(conversation.ids) + first for _, first, _ in text.options]
    return list(dict.fromkeys([*ranked[:TOP], *several, *named]))


@dataclass(frozen=True)
class Found:
    """The best value of a slot: None where nothing could be read, with the probability that it is right."""

    value: Any
    probability: float


def candidates(scores: Scores, slot: Slot, conversation: Piece, text: Piece) -> list[Found]:
    """Values with their probabilities, the likeliest first. Places that read as the same value count together."""
    tried = _options(scores, slot, conversation, text) if text.options else []
    found = _sum(tried or _spans(scores, slot, conversation, text))
    if "array" in slot.types and (not found or found[0].probability < 0.5):
        listed = _elements(scores, slot, conversation, text)
        found = [*found, listed] if listed is not None else found
    return sorted(found, key=lambda one: -one.probability)


def mix(pointed: Sequence[Found], guessed: Sequence[Found], weight: float) -> Found:
    """The best value of what was pointed at and what was guessed otherwise; one that both name counts twice.

    Args:
        pointed: Values that the encoder points at.
        guessed: Values of another guesser.
        weight: What its probabilities count beside the encoder's.
    """
    said = [(one.value, one.probability) for one in pointed]
    said += [(one.value, weight * one.probability) for one in guessed if weight]
    best = max(_sum(said, 1.0 + weight), key=lambda one: one.probability, default=None)
    return Found(best.value, best.probability / (1.0 + weight)) if best else Found(None, 0.0)


def _options(scores: Scores, slot: Slot, conversation: Piece, text: Piece) -> list[tuple[Any, float]]:
    """Options by where the text names them, and by what the conversation says."""
    if "array" in slot.types:
        return []
    shift = len(conversation.ids)
    named = [(option, _both(scores, shift + first, shift + last)) for option, first, last in text.options]
    return named + list(_read(scores, slot, conversation, text, range(shift)))


def _spans(scores: Scores, slot: Slot, conversation: Piece, text: Piece) -> list[tuple[Any, float]]:
    return list(_read(scores, slot, conversation, text, range(len(scores.start))))


def _read(scores: Scores, slot: Slot, conversation: Piece, text: Piece, where: range) -> Iterator[tuple[Any, float]]:
    """The likeliest spans that can be read as the slot's type, with their probabilities."""
    cut, best = len(conversation.ids), 0.0
    known = (index for index in scores.ends if index in where)
    for start in sorted(known, key=lambda index: -scores.start[index])[:TOP]:
        ends = scores.ends[start]
        last = min(start + MAX_SPAN_TOKENS, cut if start < cut else len(scores.start))
        for end in sorted(range(start, last), key=lambda index: -ends[index])[:TOP]:
            share = _both(scores, start, end)
            if share < best * WORTH:
                break
            best = max(best, share)
            piece, shift = (conversation, 0) if start < cut else (text, cut)
            value = read(piece.between(start - shift, end - shift), slot)
            if value is not None:
                yield value, share


def _elements(scores: Scores, slot: Slot, conversation: Piece, text: Piece) -> Found | None:
    """A list of all spans whose starts are likely enough beside the likeliest one."""
    of, cut = element(slot), len(conversation.ids)
    top = max(scores.start)
    starts = sorted(index for index in scores.ends if scores.start[index] >= ELEMENT * top)[:MAX_ELEMENTS]
    values: list[Any] = []
    mass, sure = 0.0, 1.0
    for start, following in zip(starts, [*starts[1:], len(scores.start)], strict=True):
        last = min(following, start + MAX_SPAN_TOKENS, cut if start < cut else len(scores.start))
        ends = scores.ends[start]
        end = max(range(start, last), key=lambda index: ends[index])
        piece, shift = (conversation, 0) if start < cut else (text, cut)
        value = read(piece.between(start - shift, end - shift), of)
        if value is not None and value not in values:
            values.append(value)
            mass += scores.start[start]
            sure *= ends[end]
    return Found(values, min(mass, 1.0) * math.sqrt(sure)) if values else None


def _sum(tried: Sequence[tuple[Any, float]], most: float = 1.0) -> list[Found]:
    shares: dict[str, tuple[Any, float]] = {}
    for value, share in tried:
        key = json.dumps(value, sort_keys=True, default=str)
        shares[key] = (value, share + shares.get(key, (None, 0.0))[1])
    return [Found(value, min(share, most)) for value, share in shares.values()]


def _both(scores: Scores, start: int, end: int) -> float:
    ends = scores.ends.get(start)
    return scores.start[start] * ends[end] if ends is not None else 0.0
