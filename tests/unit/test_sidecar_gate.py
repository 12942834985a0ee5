"""The wave gate, fed with waves of known cost and gain."""

from typing import Any

import pytest

from ooospec_agents.sidecar.gate import TRIED_EVERY, TRIED_SELDOM, WaveGate


def report(hint_tokens: int, step_ms: float = 100.0) -> dict[str, Any]:
    return {
        "accepted": {"hint": hint_tokens, "schema": 9},
        "timeline": [[step_ms * step, 1, 0, 0] for step in range(4)],
    }


def turned_away(gate: WaveGate) -> int:
    """Requests until the next wave, that one included."""
    count = 1
    while not gate.allow():
        count += 1
    return count


def test_no_wave_runs_before_one_was_tried() -> None:
    assert turned_away(WaveGate()) == TRIED_EVERY


def test_waves_that_gain_go_on() -> None:
    gate = WaveGate()
    gate.record(0.5, report(10))
    for _ in range(50):
        assert gate.allow()
        gate.record(0.5, report(10))
    assert gate.saved_s == pytest.approx(0.5)
    assert gate.lost_s == pytest.approx(0.3)


def test_a_shut_gate_still_tries_and_opens() -> None:
    gate = WaveGate()
    gate.record(1.0, report(0))
    assert turned_away(gate) == 2 * TRIED_EVERY
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
    between = []
    for _ in range(7):
        between.append(turned_away(gate))
        gate.record(1e6, report(0))
    assert between == [20, 40, 80, 160, 320, 320, 320]
    assert between[-1] == TRIED_SELDOM
    gate.record(0.1, report(40))
    assert turned_away(gate) == TRIED_EVERY
