"""The price of a step, learned from steps."""

import pytest

from ooospec_agents.drafting.budget import DEFAULT_PRICE, ENOUGH, MARGIN, Budget


def serve(budget: Budget, base: float, slope: float, steps: int = 200, rows: int = 1) -> None:
    for step in range(steps):
        tokens = 1 + step * 7 % 41
        budget.observe(tokens, base + slope * tokens, rows)


def test_before_enough_steps_the_default_holds() -> None:
    budget = Budget()
    serve(budget, 1.0, 0.5, steps=ENOUGH - 1)
    assert budget.floor == pytest.approx(MARGIN * DEFAULT_PRICE)


def test_the_price_is_found() -> None:
    budget = Budget()
    serve(budget, 0.1, 0.01)
    assert budget.floor == pytest.approx(MARGIN * 0.01 / 0.11)


def test_a_machine_where_tokens_cost_whole_steps_drafts_only_what_is_sure() -> None:
    budget = Budget()
    serve(budget, 0.0001, 0.1)
    assert budget.floor == 0.6


def test_tokens_that_cost_nothing_are_drafted_freely() -> None:
    budget = Budget()
    serve(budget, 0.1, 0.0)
    assert budget.floor == 0.02


def test_in_a_batch_a_saved_step_is_worth_less() -> None:
    budget = Budget()
    serve(budget, 0.1, 0.01, rows=5)
    assert budget.floor == pytest.approx(MARGIN * 0.01 / 0.03)


@pytest.mark.parametrize(
    ("price", "joint", "length"),
    [
        (0.1, [0.99, 0.98, 0.97], 30),
        (0.1, [0.99, 0.8, 0.79], 30),
        (0.1, [0.99, 0.6, 0.59], 10),  # 20 tokens more cost 2 steps, and save 1 + 2 in 60 of 100
        (0.01, [0.99, 0.3, 0.29], 30),
        (0.0, [0.2, 0.1, 0.05], 30),
    ],
)
def test_the_length_that_takes_the_least_time(price: float, joint: list[float], length: int) -> None:
    assert Budget(price).best_length([10, 20, 30], joint) == length


def test_an_uncertain_value_is_still_drafted_where_little_hangs_on_it() -> None:
    budget = Budget(0.1)
    assert budget.best_length([20, 24, 25], [0.98, 0.55, 0.54]) == 25
    assert budget.best_length([20, 24, 54], [0.98, 0.55, 0.54]) == 20


def test_nothing_to_draft_is_no_length() -> None:
    assert Budget().best_length([], []) == 0


def test_a_step_held_up_by_other_work_is_not_counted() -> None:
    budget = Budget()
    serve(budget, 0.1, 0.01)
    floor = budget.floor
    budget.observe(1, 60.0)
    assert budget.floor == floor


def test_steps_of_one_length_tell_no_price() -> None:
    budget = Budget()
    for _ in range(100):
        budget.observe(1, 0.1)
    assert budget.floor == pytest.approx(MARGIN * DEFAULT_PRICE)
