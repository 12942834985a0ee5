"""What a slot's right answer is in terms of spans: for training and for counting what can be reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ooospec_agents.catalog import Slot
from ooospec_agents.predictor.pieces import Piece
from ooospec_agents.predictor.values import element, places, same_value

Place = tuple[int, int]
"""A span's first and last token. Tokens of the slot's text are counted on from the conversation's."""


@dataclass(frozen=True)
class Label:
    """The right answer of one slot.

    Attributes:
        kind: Index into `CLASSES`: 0 absent, 1 span, 2 other.
        parts: For each element of the value (one, unless it is a list): the places that are right.
    """

    kind: int
    parts: tuple[tuple[Place, ...], ...] = ()


def label(value: Any, slot: Slot, conversation: Piece, text: Piece) -> Label:
    """The label of a value; None is an absent one."""
    if value is None:
        return Label(0)
    whole = _find(value, slot, conversation, text)
    if whole:
        return Label(1, (whole,))
    if isinstance(value, list) and value:
        of = element(slot)
        parts = tuple(_find(one, of, conversation, text) for one in value)
        if all(parts):
            return Label(1, parts)
    return Label(2)


def _find(value: Any, slot: Slot, conversation: Piece, text: Piece) -> tuple[Place, ...]:
    offset = len(conversation.ids)
    options = [(offset + first, offset + last) for option, first, last in text.options if same_value(option, value)]
    if options:
        return tuple(options)
    if slot.options:
        return ()
    found: list[Place] = []
    for piece, shift in ((conversation, 0), (text, offset)):
        for start, end in places(value, piece.text, slot):
            if (tokens := piece.tokens(start, end)) is not None:
                found.append((shift + tokens[0], shift + tokens[1]))
    return tuple(dict.fromkeys(found))
