"""Curves from raw confidence to how often an answer is right."""

import random

from hypothesis import given
from hypothesis import strategies as st

from ooospec_agents.predictor.calibration import IDENTITY, Isotonic, fit

ANSWERS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=16, max_size=200)


@given(ANSWERS)
def test_the_curve_never_falls_and_stays_a_probability(answers: list[tuple[float, bool]]) -> None:
    curve = fit([raw for raw, _ in answers], [right for _, right in answers])
    said = [curve(step / 50) for step in range(51)]
    assert said == sorted(said)
    assert said[0] >= 0.0
    assert said[-1] <= 1.0


def test_answers_that_are_too_sure_of_themselves_are_brought_down() -> None:
    rng = random.Random(0)
    raw = [rng.random() for _ in range(4000)]
    curve = fit(raw, [rng.random() < sure / 2 for sure in raw], least=100)
    assert abs(curve(0.9) - 0.45) < 0.08
    assert abs(curve(0.2) - 0.10) < 0.08


def test_too_few_answers_change_nothing() -> None:
    assert fit([0.1, 0.9], [True, True]) == IDENTITY
    assert IDENTITY(0.37) == 0.37


def test_between_points_the_curve_is_straight() -> None:
    curve = Isotonic((0.2, 0.6), (0.1, 0.5))
    assert curve(0.4) == 0.30000000000000004
    assert (curve(0.0), curve(1.0)) == (0.1, 0.5)
