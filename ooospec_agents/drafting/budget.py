"""How much draft pays for itself: the price of a verification step, measured while serving."""

from __future__ import annotations

DEFAULT_PRICE = 0.07
"""Price of one more token in a step, in steps of one token, until it was measured."""
ENOUGH = 12
"""Steps observed before the measured price is believed."""
MEMORY = 0.99
"""Weight that an observation keeps when the next one comes."""
OUTLIER = 3.0
"""A step this many times slower than expected says something of the machine's other work, not of its tokens."""
MARGIN = 1.3
"""Probabilities are guesses too: a token must be likelier than its price by this factor."""
FLOOR_BOUNDS = (0.02, 0.6)


class Budget:
    """Learns what a step costs by its tokens (a line: base and slope), and from that which tokens are worth drafting.

    One for all requests of a worker.
    """

    def __init__(self) -> None:
        """Know nothing yet."""
        self._weight = self._tokens = self._seconds = self._tokens2 = self._product = 0.0
        self._count = 0
        self._rows = 1
        self._floor = self._price_to_floor(DEFAULT_PRICE)

    @property
    def floor(self) -> float:
        """Joint probability under which a token is not worth its place in the step."""
        return self._floor

    def observe(self, tokens: int, seconds: float, rows: int = 1) -> None:
        """Take note of a step that verified `tokens` tokens of `rows` requests in `seconds`."""
        line = self._line()
        if line is not None and seconds > OUTLIER * (line[0] + line[1] * tokens):
            return
        self._count += 1
        self._rows = rows
        for name, value in (
            ("_weight", 1.0),
            ("_tokens", tokens),
            ("_seconds", seconds),
            ("_tokens2", tokens * tokens),
            ("_product", tokens * seconds),
        ):
            setattr(self, name, getattr(self, name) * MEMORY + value)
        line = self._line()
        if line is not None:
            base, slope = line
            self._floor = self._price_to_floor(slope / (base / rows + slope))

    def _line(self) -> tuple[float, float] | None:
        """Seconds of a step without tokens, and seconds of each token; None while they cannot be told apart."""
        if self._count < ENOUGH:
            return None
        spread = self._weight * self._tokens2 - self._tokens**2
        if spread <= self._weight:
            return None
        slope = (self._weight * self._product - self._tokens * self._seconds) / spread
        base = (self._seconds - slope * self._tokens) / self._weight
        return (base, max(slope, 0.0)) if base > 0 else None

    @staticmethod
    def _price_to_floor(price: float) -> float:
        low, high = FLOOR_BOUNDS
        return min(max(MARGIN * price, low), high)
