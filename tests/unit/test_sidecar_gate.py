"""The wave gate, fed with waves of known cost and gain."""

from typing import Any

import pytest

from ooospec_agents.sidecar.gate import TRIED_EVERY, TRIED_FIRST, TRIED_SELDOM, WaveGate


def report(hint_tokens: int, step_ms: float = 100.0) -> dict[str, Any]:
    return {
        "accepted": {"hint": hint_tokens, "schema": 9},
        "timeline": [[step_ms * step, 1, 0, 0] for step in range(4)],
    }


def test_the_first_waves_always_run() -> None:
    gate = WaveGate()
    for _ in range(TRIED_FIRST):
        assert gate.allow()
        gate.record(5.0, report(0))
    assert not gate.allow()


def test_waves_that_gain_go_on() -> None:
    gate = WaveGate()
    for _ in range(50):
        assert gate.allow()
        gate.record(0.5, report(10))
    assert gate.saved_s == pytest.approx(0.5)
    assert gate.lost_s == pytest.approx(0.3)


def test_a_shut_gate_still_tries_and_opens_again() -> None:
    gate = WaveGate()
    for _ in range(TRIED_FIRST):
        gate.record(1.0, report(0))
    assert [gate.allow() for _ in range(TRIED_EVERY)] == [False] * (TRIED_EVERY - 1) + [True]
    for _ in range(3):
        gate.record(0.1, report(40))
    assert gate.allow()


def test_a_report_without_steps_saved_nothing() -> None:
    gate = WaveGate()
    gate.record(1.0, {"accepted": {"hint": 3}, "timeline": [[0.0, 5, 0, 0]]})
    gate.record(1.0, {})
    assert gate.saved_s == 0.0


def test_trials_that_lose_time_get_rarer_and_one_that_gains_brings_them_back() -> None:
    gate = WaveGate()
    for _ in range(TRIED_FIRST):
        gate.record(1e6, report(0))

    def turned_away() -> int:
        count = 0
        while not gate.allow():
            count += 1
        return count

    between = []
    for _ in range(7):
        between.append(turned_away() + 1)
        gate.record(1.0, report(0))
    assert between == [20, 40, 80, 160, 320, 320, 320]
    assert between[-1] == TRIED_SELDOM
    gate.record(0.1, report(40))
    assert turned_away() + 1 == TRIED_EVERY
