"""Whether a request that ends makes room for another."""

from __future__ import annotations

from collections import deque

import pytest

from ooospec_agents.drafting.flow import KEPT, UNKNOWN, Flow


def names(start: int, count: int) -> list[str]:
    return [f"r{number}" for number in range(start, start + count)]


def test_before_any_has_ended_nothing_is_known() -> None:
    flow = Flow()
    for count in (1, 2, 3, 3):
        flow.step(names(0, count))
    assert flow.share == UNKNOWN


def test_requests_that_came_at_once_are_followed_by_none() -> None:
    flow = Flow()
    for burst in range(4):
        for left in range(16, 0, -1):
            flow.step(names(16 * burst, left))
    assert flow.share < 0.05


def test_in_a_steady_flow_each_is_followed() -> None:
    flow = Flow()
    batch = deque(names(0, 16))
    for number in range(16, 120):
        batch.popleft()
        flow.step(list(batch))
        batch.append(f"r{number}")
        flow.step(list(batch))
        flow.step(list(batch))
    assert flow.share > 0.98


def test_a_place_that_is_taken_in_the_step_in_which_it_is_left_counts() -> None:
    flow = Flow()
    flow.step(["a", "b"])
    flow.step(["b", "c"])
    assert flow.share == pytest.approx(UNKNOWN * KEPT + 1 - KEPT)


def test_one_request_after_the_other_says_nothing_of_batches() -> None:
    flow = Flow()
    for number in range(20):
        flow.step([f"r{number}"])
    assert flow.share == UNKNOWN


def test_a_batch_of_which_most_are_gone_for_good_counts_before_it_is_over() -> None:
    flow = Flow()
    flow.step(names(0, 16))
    flow.step(names(0, 2))
    assert flow.share < UNKNOWN


def test_more_that_come_than_have_gone_are_not_counted() -> None:
    flow = Flow()
    flow.step(["a"])
    flow.step([*names(0, 8), "a"])
    assert flow.share == UNKNOWN
