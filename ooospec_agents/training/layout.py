"""The layout of one request's tokens: what its questions share stands once, all questions after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ooospec_agents.training.rows import Example

Encode = Callable[[str], list[int]]
"""Text to token ids, no special tokens added."""


@dataclass(frozen=True)
class Part:
    """One request's tokens, all questions after the shared ones.

    Attributes:
        ids: Token ids.
        positions: Each token's position, as the server would number it.
        segments: 0 for shared tokens, the question's number from 1 for the others.
        targets: For each trained token: where it is predicted (the index before it), its id, its weight.
    """

    ids: list[int]
    positions: list[int]
    segments: list[int]
    targets: list[tuple[int, int, float]]


def lay_out(example: Example, encode: Encode) -> Part:
    """One request's tokens. Parts are tokenized one by one: prompts end where tokenizers do not merge."""
    ids = encode(example.shared)
    shared = len(ids)
    positions, segments = list(range(shared)), [0] * shared
    targets: list[tuple[int, int, float]] = []
    for number, row in enumerate(example.rows, 1):
        question, answer = encode(row.question), encode(row.answer)
        start = len(ids)
        # The last token is predicted only: nothing comes after it.
        block = question + answer[:-1]
        ids += block
        positions += range(shared, shared + len(block))
        segments += [number] * len(block)
        first = start + len(question) - 1
        targets += [(first + offset, token, row.weight) for offset, token in enumerate(answer)]
    return Part(ids, positions, segments, targets)
