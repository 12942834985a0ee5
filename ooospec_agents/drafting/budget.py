"""How much draft pays for itself: the price of a verification step, measured while serving."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ooospec_agents.drafting.flow import UNKNOWN

DEFAULT_PRICE = 0.07
"""Price of one more token in a step, in steps of one token, until it was measured."""
ENOUGH = 12
"""Steps observed before the measured price is believed."""
MEMORY = 0.99
"""Weight that an observation keeps when the next one comes."""
OUTLIER = 3.0
"""A step this many times slower than expected says something of the machine's other work, not of its tokens."""
MARGIN = 1.3
"""Probabilities are guesses too: a token's odds must be better than its price's by this factor."""
FLOOR_BOUNDS = (0.02, 0.95)
NOTHING = 1.01
"""A floor under which everything is."""
LOOK_AGAIN = 16
"""Steps of which one drafts what is all but certain at any price: steps that are all alike tell no price."""
SIZES = 12
"""Sizes of batches whose steps have a price each; the last one takes all that are larger."""
LOOK_TOKENS = 8
"""Tokens that such a step drafts for all its requests together: enough to tell the price, and no more to pay it for."""
SURE = 0.93
"""A piece this likely to follow the one before is no place to ask whether to stop before or after it."""


@dataclass
class Line:
    """Seconds of a step by its tokens, fitted to the steps that were observed last.

    Attributes:
        base: Seconds of a step that has no tokens, or what they are in the unit of `slope`.
        slope: Seconds of one more token.
        measured: Whether both were, and are not only assumed.
    """

    base: float
    slope: float
    measured: bool = False
    _count: int = 0
    _weight: float = 0.0
    _tokens: float = 0.0
    _seconds: float = 0.0
    _tokens2: float = 0.0
    _product: float = 0.0

    def observe(self, tokens: int, seconds: float) -> None:
        """Take note of a step."""
        if self.measured and seconds > OUTLIER * (self.base + self.slope * tokens):
            return
        self._count += 1
        self._weight = self._weight * MEMORY + 1.0
        self._tokens = self._tokens * MEMORY + tokens
        self._seconds = self._seconds * MEMORY + seconds
        self._tokens2 = self._tokens2 * MEMORY + tokens * tokens
        self._product = self._product * MEMORY + tokens * seconds
        spread = self._weight * self._tokens2 - self._tokens**2
        if self._count < ENOUGH or spread <= self._weight:
            return  # too few, or too much alike, to tell base and slope apart
        slope = (self._weight * self._product - self._tokens * self._seconds) / spread
        base = (self._seconds - slope * self._tokens) / self._weight
        if base <= 0:  # tokens cost more, the more there are: none of them is free
            base, slope = 0.0, self._seconds / self._tokens
        self.base, self.slope, self.measured = base, max(slope, 0.0), True


class Budget:
    """Learns what a step costs by its tokens (a line: base and slope), and from that which tokens are worth drafting.

    One for all requests of a worker. Steps of few and of many requests have a line each: one more token is nearly
    free while the processor waits for the weights, and costs all its work once it does not.

    Args:
        price: Of one more token in a step of one request, in steps of one token, until it was measured.
    """

    def __init__(self, price: float = DEFAULT_PRICE) -> None:
        self._assumed = Line(1.0 - price, price)
        # All of them from the start: another thread reads them while the engine's observes.
        self._lines = tuple(Line(1.0 - price, price) for _ in range(SIZES))
        self._rows, self._followed, self._outlasted = 1, UNKNOWN, False
        self._steps = self._looked = 0

    def serve(self, rows: int, followed: float = UNKNOWN, *, outlasted: bool = False) -> None:
        """A step is drafted for now.

        Args:
            rows: Its requests.
            followed: Share of requests that are followed by another when they end (`Flow.share`).
            outlasted: Whether for some of them nothing could be drafted, so that these will end last.
        """
        self._rows, self._followed, self._outlasted = rows, followed, outlasted
        self._steps += 1
        self._looked = 0

    @property
    def price(self) -> float:
        """Price of one more token in the step, in what it saves if it is right; 1 where it saves no more than it costs.

        It saves its place in a later step, and each of n requests 1/n of that step. Where another takes the place of a
        request that ends, later steps are like this one. Where none comes they have fewer requests, whose tokens cost
        less, and are over when the slowest is: rarely one that is drafted, if there are others.
        """
        line, alone = self._line(), self._rows == 1
        share = line.base / self._rows
        slowest = share / self._rows if self._outlasted else share
        steady, burst = share + line.slope, slowest + (line.slope if alone else self._least_slope())
        gain = steady * self._followed + burst * (1 - self._followed)
        return min(line.slope / gain, 1.0) if gain > 0 else 1.0

    @property
    def floor(self) -> float:
        """Joint probability under which a token is not worth its place in the step; above 1: none is."""
        low, high = FLOOR_BOUNDS
        price = self.price
        floor = max(MARGIN * price / (1 + (MARGIN - 1) * price), low)
        if floor <= high:
            return floor
        return NOTHING if self._steps % LOOK_AGAIN or self._looked >= LOOK_TOKENS else high

    def within(self, limit: int) -> int:
        """How many of `limit` tokens a request may draft now, however likely they are; they are taken to be drafted."""
        if self.floor < FLOOR_BOUNDS[1]:
            return limit
        limit = min(limit, LOOK_TOKENS - self._looked)
        self._looked += limit
        return limit

    def best_length(self, ends: Sequence[int], joint: Sequence[float]) -> int:
        """How many tokens of a draft to propose now, that the whole takes the least time.

        To stop before something uncertain costs one more step if it is right. To go on costs it and all tokens after
        it if it is wrong, while a step that ends there shows its first token, and with it whether it is right, for
        nothing. What was right is kept either way.

        Args:
            ends: Tokens up to the end of each piece of the draft, rising.
            joint: Probability that all up to that end is right, falling.
        """
        if not ends:
            return 0
        price = self.price
        stops = [(0, 1.0, 1.0)]
        for at in range(len(ends) - 1):
            before = joint[at - 1] if at else 1.0
            beside_doubt = joint[at + 1] < SURE * joint[at] or joint[at] < SURE * before
            if ends[at] > stops[-1][0] and beside_doubt:
                stops.append((ends[at], joint[at], joint[at + 1] / joint[at]))
        stops.append((ends[-1], joint[-1], 0.0))
        best = last = len(stops) - 1
        if last == 1:
            return stops[1][0]
        left = [0.0] * (last + 1)
        for at in range(last - 1, -1, -1):
            tokens, sure, starts_right = stops[at]
            least = math.inf
            for to in range(at + 1, last + 1):
                cost = starts_right * (1 + price * (stops[to][0] - tokens)) + stops[to][1] / sure * left[to]
                if cost < least:
                    least, best = cost, to
            left[at] = least
        return stops[best][0]

    def observe(self, tokens: int, seconds: float) -> None:
        """Take note of the step that was served last: `tokens` tokens, of all its requests together, in `seconds`."""
        self._lines[self._size()].observe(tokens, seconds)

    def _size(self) -> int:
        """Which line is that of steps with so many requests: 1, 2 to 3, 4 to 7, and so on."""
        return min(self._rows.bit_length(), SIZES) - 1

    def _least_slope(self) -> float:
        """Seconds of a token in steps of no more requests than now, where it is cheapest."""
        fewer = [line.slope for line in self._lines[: self._size() + 1] if line.measured]
        return min(fewer, default=self._line().slope)

    def _line(self) -> Line:
        """The line of steps with about as many requests: of as many, else of fewer, else of more."""
        size = self._size()
        nearest = [*reversed(self._lines[: size + 1]), *self._lines[size + 1 :]]
        return next((line for line in nearest if line.measured), self._assumed)
