import random

import pytest

from ooospec_agents.bench.stats import ratio_of_totals, two_sample_p


def test_the_ratio_is_that_of_the_totals() -> None:
    ratio = ratio_of_totals([1.0, 9.0], [1.0, 3.0])
    assert ratio.value == 2.5
    # The resamples are (1, 1), (9, 9) and mixed ones: ratios 1, 3 and 2.5.
    assert (ratio.low, ratio.high) == (1.0, 3.0)


def test_equal_pairs_have_no_spread() -> None:
    ratio = ratio_of_totals([2.0] * 10, [1.0] * 10)
    assert (ratio.low, ratio.value, ratio.high) == (2.0, 2.0, 2.0)


def test_unequal_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="2 and 1"):
        ratio_of_totals([1.0, 2.0], [1.0])


def test_one_distribution_passes_and_two_do_not() -> None:
    rng = random.Random(1)
    first, second = (["red" if rng.random() < 0.5 else "blue" for _ in range(200)] for _ in range(2))
    other = ["red" if rng.random() < 0.8 else "blue" for _ in range(200)]
    assert two_sample_p(first, second) > 0.05
    assert two_sample_p(first, other) < 0.001
