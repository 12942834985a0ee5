"""Where guesses come from. A source says what it expects of a segment, and how sure it is."""

from __future__ import annotations

from typing import Any, NamedTuple


class Guess(NamedTuple):
    """An expected value (or name), the probability that it is exactly right, and the source's name."""

    value: Any
    confidence: float
    source: str


__all__ = ["Guess"]
