"""The expected tokens beyond what one draft proposes, so that a target that agrees need not be thought about again."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from ooospec_agents.drafting.budget import Budget
from ooospec_agents.drafting.piece import Piece

ENOUGH = 12
"""Tokens that a plan must still hold to be gone on with, unless it reaches the output's end: a new one has more."""


class Draft(NamedTuple):
    """Draft tokens, and the source of each."""

    tokens: list[int]
    sources: list[str]


class Plan(NamedTuple):
    """Expected tokens, in pieces.

    Attributes:
        tokens: Ids of all that is expected.
        sources: The source of each token.
        ends: Tokens up to the end of each piece, rising.
        joint: Probability that all up to that end is right, falling.
        to_end: Whether the output is expected to end there.
    """

    tokens: list[int]
    sources: list[str]
    ends: list[int]
    joint: list[float]
    to_end: bool

    @staticmethod
    def of(
        pieces: Sequence[Piece], tokens: list[int], lengths: Sequence[int], stop: int | None = None, beyond: int = 0
    ) -> Plan:
        """The plan of pieces.

        Args:
            pieces: At least one.
            tokens: Ids of their texts joined, and of so much of what follows as the tokenizer may join to them.
            lengths: Characters of each token.
            stop: The id that ends the output, if the pieces reach that far.
            beyond: Characters behind the pieces; a token that begins there is no part of the plan.
        """
        starts = list(accumulate(lengths, initial=0))
        if beyond:
            tokens = tokens[: bisect_left(starts, starts[-1] - beyond)]
        del starts[len(tokens) :]
        sources: list[str] = []
        ends: list[int] = []
        at = 0
        for piece in pieces:
            at += len(piece.text)
            ends.append(bisect_left(starts, at))  # a token belongs to the piece in which it begins
            sources += [piece.source] * (ends[-1] - len(sources))
        if stop is not None:
            tokens = [*tokens, stop]
        # What begins behind all pieces (the output's end, an empty token) is the last one's.
        sources += [pieces[-1].source] * (len(tokens) - len(sources))
        ends[-1] = len(tokens)
        return Plan(tokens, sources, ends, [piece.confidence for piece in pieces], stop is not None)

    def draft(self, limit: int, budget: Budget) -> Draft:
        """What of it to propose now, at most `limit` tokens."""
        limit = budget.within(min(limit, budget.best_length(self.ends, self.joint)))
        return Draft(self.tokens[:limit], self.sources[:limit])

    def after(self, done: int) -> Plan | None:
        """What is left when the first `done` tokens came true; None where that is too little to go on with."""
        left = len(self.tokens) - done
        if left < (1 if self.to_end else ENOUGH):
            return None
        at = bisect_right(self.ends, done)  # the first piece that is not over
        before = self.joint[at - 1] if at else 1.0
        begun = done > (self.ends[at - 1] if at else 0)
        sure = self.joint[at] / before
        known = before * sure / (0.5 + 0.5 * sure) if begun else before
        return Plan(
            self.tokens[done:],
            self.sources[done:],
            [end - done for end in self.ends[at:]],
            [joint / known for joint in self.joint[at:]],
            self.to_end,
        )
