"""What a draft is made of."""

from __future__ import annotations

from typing import Literal, NamedTuple

PieceKind = Literal["text", "fixed", "name", "key", "value", "end", "stop"]


class Piece(NamedTuple):
    """Expected text, who expects it, and the probability that all up to its end is right. "stop": the output ends."""

    kind: PieceKind
    text: str
    source: str
    confidence: float


class Stop(Exception):
    """Nothing more is expected."""
