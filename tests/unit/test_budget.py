"""The price of a step, learned from steps."""

import pytest

from ooospec_agents.drafting.budget import DEFAULT_PRICE, ENOUGH, LOOK_AGAIN, LOOK_TOKENS, MARGIN, NOTHING, Budget


def floor_of(price: float) -> float:
    """The probability of which the odds are MARGIN times those of the price."""
    odds = MARGIN * price / (1 - price)
    return odds / (1 + odds)


def serve(budget: Budget, base: float, slope: float, steps: int = 200, rows: int = 1) -> None:
    budget.serve(rows)
    for step in range(steps):
        tokens = 1 + step * 7 % 41
        budget.observe(tokens, base + slope * tokens)


def test_before_enough_steps_the_default_holds() -> None:
    budget = Budget()
    serve(budget, 1.0, 0.5, steps=ENOUGH - 1)
    assert budget.floor == pytest.approx(floor_of(DEFAULT_PRICE))


def test_the_price_is_found() -> None:
    budget = Budget()
    serve(budget, 0.1, 0.01)
    assert budget.floor == pytest.approx(floor_of(0.01 / 0.11))


def test_where_tokens_cost_whole_steps_nothing_is_drafted_but_now_and_then_what_is_sure() -> None:
    budget = Budget()
    serve(budget, 0.0001, 0.1)
    floors = []
    for _ in range(2 * LOOK_AGAIN):
        budget.serve(1)
        floors.append(budget.floor)
    assert floors.count(0.95) == 2
    assert floors.count(NOTHING) == 2 * LOOK_AGAIN - 2
    assert NOTHING > 1


def test_a_step_that_looks_again_drafts_few_tokens_of_all_its_requests() -> None:
    budget = Budget()
    serve(budget, 0.0001, 0.1, rows=16)
    drafted = []
    for _ in range(2 * LOOK_AGAIN):
        budget.serve(16)
        drafted.append([budget.within(6) for _ in range(16) if budget.floor <= 1])
    assert [sum(step) for step in drafted if step] == [LOOK_TOKENS] * 2
    assert all(taken > 0 for step in drafted for taken in step)


def test_where_tokens_are_worth_their_price_no_step_is_held_back() -> None:
    budget = Budget()
    serve(budget, 0.1, 0.001, rows=2)
    assert [budget.within(100) for _ in range(4)] == [100] * 4


def test_steps_of_many_requests_have_a_price_of_their_own() -> None:
    budget = Budget()
    serve(budget, 0.1, 0.01, rows=1)
    alone = budget.price
    serve(budget, 0.001, 0.1, rows=16)
    assert alone == pytest.approx(0.01 / 0.11)
    budget.serve(16, followed=1.0)
    assert budget.price == pytest.approx(0.1 / (0.001 / 16 + 0.1))
    budget.serve(1)
    assert budget.price == pytest.approx(alone)


def test_a_number_of_requests_that_is_new_is_priced_as_the_nearest_smaller_one() -> None:
    budget = Budget()
    serve(budget, 0.1, 0.02, rows=2)
    serve(budget, 0.1, 0.05, rows=16)
    budget.serve(4, followed=1.0)
    assert budget.price == pytest.approx(0.02 / (0.1 / 4 + 0.02))
    budget.serve(1)
    assert budget.price == pytest.approx(0.02 / 0.12)


def test_where_a_step_has_no_base_a_token_costs_a_whole_step() -> None:
    budget = Budget()
    for step in range(200):
        tokens = 16 + step * 7 % 41
        budget.observe(tokens, 0.01 * tokens * tokens)
    assert budget.price == 1.0


def test_tokens_that_cost_nothing_are_drafted_freely() -> None:
    budget = Budget()
    serve(budget, 0.1, 0.0)
    assert budget.floor == 0.02


def test_in_a_batch_a_saved_step_is_worth_less() -> None:
    budget = Budget()
    serve(budget, 0.1, 0.01, rows=4)
    budget.serve(4, followed=1.0)
    assert budget.floor == pytest.approx(floor_of(0.01 / (0.1 / 4 + 0.01)))
    budget.serve(4, followed=0.0)
    assert budget.floor == pytest.approx(floor_of(0.01 / (0.1 / 4 + 0.01)))


def test_beside_a_request_that_cannot_be_drafted_and_ends_last_a_saved_step_is_worth_less() -> None:
    budget = Budget()
    serve(budget, 0.1, 0.01, rows=4)
    budget.serve(4, followed=0.0, outlasted=True)
    assert budget.price == pytest.approx(0.01 / (0.1 / 16 + 0.01))
    budget.serve(4, followed=1.0, outlasted=True)
    assert budget.price == pytest.approx(0.01 / (0.1 / 4 + 0.01))
    budget.serve(1, outlasted=True)
    assert budget.price == pytest.approx(0.01 / 0.11)


def test_where_nobody_follows_a_token_is_not_moved_from_cheap_steps_into_dear_ones() -> None:
    budget = Budget()
    serve(budget, 0.1, 0.002, rows=1)
    serve(budget, 0.01, 0.01, rows=16)
    budget.serve(16, followed=0.0)
    assert budget.price == 1.0
    budget.serve(16, followed=1.0)
    assert budget.price == pytest.approx(0.01 / (0.01 / 16 + 0.01))


def test_before_anything_is_measured_a_batch_drafts_less() -> None:
    budget = Budget(0.1)
    budget.serve(9, followed=0.0)
    assert budget.price == pytest.approx(0.1 / (0.9 / 9 + 0.1))


def test_when_the_batch_shrinks_steps_are_worth_more_at_once() -> None:
    budget = Budget()
    serve(budget, 0.1, 0.01, rows=16)
    crowded = budget.price
    budget.serve(1)
    assert crowded == pytest.approx(0.01 / (0.1 / 16 + 0.01))
    assert budget.floor == pytest.approx(floor_of(0.01 / 0.11))


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
    assert budget.floor == pytest.approx(floor_of(DEFAULT_PRICE))


def test_what_was_measured_holds_while_steps_are_all_alike() -> None:
    budget = Budget()
    serve(budget, 0.1, 0.01)
    for _ in range(2000):
        budget.observe(1, 0.11)
    assert budget.floor == pytest.approx(floor_of(0.01 / 0.11))
