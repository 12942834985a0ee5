"""Calibration: from what the encoder says of itself to how often it is right, measured on held-out requests."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Isotonic:
    """A curve that never falls, between points; `xs` rise strictly.

    Attributes:
        xs: Raw confidences.
        ys: How often answers of that confidence are right.
    """

    xs: tuple[float, ...] = (0.0, 1.0)
    ys: tuple[float, ...] = (0.0, 1.0)

    def __call__(self, raw: float) -> float:
        """The calibrated confidence."""
        if raw <= self.xs[0]:
            return self.ys[0]
        if raw >= self.xs[-1]:
            return self.ys[-1]
        right = bisect.bisect_right(self.xs, raw)
        low, high = self.xs[right - 1], self.xs[right]
        share = (raw - low) / (high - low)
        return self.ys[right - 1] + share * (self.ys[right] - self.ys[right - 1])


IDENTITY = Isotonic()


def fit(raw: Sequence[float], right: Sequence[bool], least: int = 8) -> Isotonic:
    """The curve that fits best among those that never fall (pool adjacent violators), over groups of `least` answers.

    Args:
        raw: Confidences.
        right: Whether each answer was right.
        least: Answers a point stands for, at least; with fewer in all the identity is returned.
    """
    pairs = sorted(zip(raw, right, strict=True))
    if len(pairs) < 2 * least:
        return IDENTITY
    groups = [pairs[at : at + least] for at in range(0, len(pairs) - least + 1, least)]
    groups[-1] = pairs[(len(groups) - 1) * least :]
    # One answer right and one wrong are added to each group: nothing is certain after eight answers.
    pools = [[sum(x for x, _ in group), float(sum(y for _, y in group)), float(len(group))] for group in groups]
    merged: list[list[float]] = []
    for pool in pools:
        merged.append(pool)
        while len(merged) > 1 and merged[-2][1] / merged[-2][2] >= merged[-1][1] / merged[-1][2]:
            last = merged.pop()
            merged[-1] = [one + other for one, other in zip(merged[-1], last, strict=True)]
    xs = [total / count for total, _, count in merged]
    ys = [(hits + 1) / (count + 2) for _, hits, count in merged]
    points: list[tuple[float, float]] = []
    for x, y in zip(xs, ys, strict=True):
        if not points or x > points[-1][0]:
            points.append((x, max(y, points[-1][1] if points else 0.0)))
    return Isotonic(tuple(x for x, _ in points), tuple(y for _, y in points)) if len(points) > 1 else IDENTITY
