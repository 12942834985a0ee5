"""What a draft is made of, and how it is put together."""

from __future__ import annotations

from typing import Literal, NamedTuple

MAX_TEXT = 240
"""Characters written at most: as many as a draft holds, and a few more."""
BEYOND = 12
"""Characters behind the last piece that the tokenizer is shown, since it may join what ends there to what follows."""
PieceKind = Literal["text", "fixed", "name", "key", "value", "end", "stop"]


class Piece(NamedTuple):
    """Expected text, who expects it, and the probability that all up to its end is right. "stop": the output ends."""

    kind: PieceKind
    text: str
    source: str
    confidence: float


class Stop(Exception):
    """Nothing more is expected."""


class PieceWriter:
    """Takes pieces, in order, until the joint probability falls under a floor.

    Args:
        floor: The joint probability under which a piece is no part of the draft.
        skip: Text that is written already: what comes must begin with it, and counts from there on.

    Attributes:
        beyond: How the text goes on behind the last piece, for the tokenizer alone.
    """

    def __init__(self, floor: float, skip: str) -> None:
        self._floor = floor
        self._write_anew(skip)

    def _write_anew(self, skip: str) -> None:
        self._skip = skip
        self._pieces: list[Piece] = []
        self.beyond = ""
        self._joint = 1.0
        self._length = 0

    def _emit(self, kind: PieceKind, text: str, source: str, confidence: float) -> None:
        if self._skip:
            if self._skip.startswith(text):
                self._skip = self._skip[len(text) :]
                return
            if not text.startswith(self._skip):
                raise Stop
            text, self._skip = text[len(self._skip) :], ""
            confidence = max(confidence, 0.5 + 0.5 * confidence)
        if not text:
            return
        if not self.beyond:
            self._joint *= confidence
            self._length += len(text)
            if self._joint >= self._floor and self._length <= MAX_TEXT:
                self._pieces.append(Piece(kind, text, source, self._joint))
                return
        self.beyond += text
        if not self._pieces or len(self.beyond) >= BEYOND or self._length > MAX_TEXT:
            raise Stop
