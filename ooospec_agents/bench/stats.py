"""Ratios of total times with bootstrap intervals."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """A ratio with the ends of its 95 % bootstrap interval."""

    value: float
    low: float
    high: float


def ratio_of_totals(baseline: Sequence[float], method: Sequence[float], draws: int = 2000, seed: int = 0) -> Ratio:
    """Total of `baseline` over total of `method`, pairs resampled together (percentile bootstrap).

    Args:
        baseline: Seconds of each request under the method compared with.
        method: Seconds of the same requests, in the same order.
        draws: Bootstrap samples.
        seed: Of the resampling, so that the same times always give the same interval.

    Raises:
        ValueError: The two differ in length or are empty.
    """
    if len(baseline) != len(method) or not baseline:
        msg = f"need as many times of both methods and at least one, got {len(baseline)} and {len(method)}"
        raise ValueError(msg)
    rng = random.Random(seed)
    indices = range(len(baseline))
    ratios = []
    for _ in range(draws):
        sample = rng.choices(indices, k=len(baseline))
        ratios.append(sum(baseline[i] for i in sample) / sum(method[i] for i in sample))
    ratios.sort()
    return Ratio(sum(baseline) / sum(method), ratios[int(0.025 * draws)], ratios[min(int(0.975 * draws), draws - 1)])


def two_sample_p(first: Sequence[str], second: Sequence[str], draws: int = 2000, seed: int = 0) -> float:
    """Permutation p-value of the two-sample chi-square statistic: are both drawn from one distribution?

    Categories seen fewer than five times in both together are merged into one.
    """
    counts: dict[str, int] = {}
    for outcome in (*first, *second):
        counts[outcome] = counts.get(outcome, 0) + 1
    names = sorted({outcome if n >= 5 else "" for outcome, n in counts.items()})
    code = {outcome: names.index(outcome if n >= 5 else "") for outcome, n in counts.items()}
    pooled = [code[outcome] for outcome in (*first, *second)]
    observed = _chi_square(pooled, len(first), len(names))
    rng = random.Random(seed)
    extreme = 0
    for _ in range(draws):
        rng.shuffle(pooled)
        extreme += _chi_square(pooled, len(first), len(names)) >= observed - 1e-12
    return (extreme + 1) / (draws + 1)


def _chi_square(pooled: Sequence[int], split: int, categories: int) -> float:
    first, total = [0] * categories, [0] * categories
    for position, category in enumerate(pooled):
        total[category] += 1
        first[category] += position < split
    share = split / len(pooled)
    return sum(
        (first[c] - total[c] * share) ** 2 / (total[c] * share * (1 - share)) for c in range(categories) if total[c]
    )
