"""The circuit breaker, by a clock of its own."""

from __future__ import annotations

from ooospec_agents.sidecar.breaker import CircuitBreaker


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def opened() -> tuple[CircuitBreaker, Clock]:
    clock = Clock()
    breaker = CircuitBreaker(failures=2, cooldown_s=10.0, clock=clock)
    breaker.failure()
    assert breaker.allow()
    breaker.failure()
    return breaker, clock


def test_opens_after_failures_in_a_row() -> None:
    breaker, _ = opened()
    assert breaker.open
    assert not breaker.allow()


def test_a_success_between_keeps_it_closed() -> None:
    breaker = CircuitBreaker(failures=2)
    breaker.failure()
    breaker.success()
    breaker.failure()
    assert breaker.allow()


def test_one_trial_after_a_while() -> None:
    breaker, clock = opened()
    clock.now = 110.0
    assert [breaker.allow(), breaker.allow()] == [True, False]


def test_trial_that_works_closes() -> None:
    breaker, clock = opened()
    clock.now = 110.0
    breaker.allow()
    breaker.success()
    assert [breaker.allow(), breaker.allow()] == [True, True]


def test_trial_that_fails_opens_again() -> None:
    breaker, clock = opened()
    clock.now = 110.0
    breaker.allow()
    breaker.failure()
    clock.now = 119.0
    assert not breaker.allow()
    clock.now = 120.0
    assert breaker.allow()


def test_trial_given_up_allows_another() -> None:
    breaker, clock = opened()
    clock.now = 110.0
    breaker.allow()
    breaker.release()
    assert breaker.allow()
