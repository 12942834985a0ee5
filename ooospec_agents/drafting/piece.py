"""What a draft is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PieceKind = Literal["text", "fixed", "name", "key", "value", "end", "stop"]


@dataclass(frozen=True)
class Piece:
    """Expected text, who expects it, and the probability that all up to its end is right. "stop": the output ends."""

    kind: PieceKind
    text: str
    source: str
    confidence: float


class Stop(Exception):
    """Nothing more is expected."""
