"""The holdout: who is drafted, what is compared, and when drafting switches itself off and on."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from ooospec_agents.vllm_plugin.holdout import MIN_REQUESTS, PATIENCE_S, WINDOW_S, Group, Holdout, decoding, read_share


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def report(ms_a_token: float, tokens: int = 11) -> dict[str, Any]:
    return {"timeline": [[5.0, 1, 0, 0], [5.0 + ms_a_token * (tokens - 1), tokens, 0, 0]]}


def feed(holdout: Holdout, clock: Clock, *, drafted_ms: float, holdout_ms: float, minutes: float) -> None:
    """Requests of both groups, a pair each five seconds, times a little apart so that there is an error to judge by."""
    groups: tuple[tuple[Group, float], ...] = (("drafted", drafted_ms), ("holdout", holdout_ms))
    for number in range(int(minutes * 12)):
        for group, ms in groups:
            holdout.record(group, report(ms * (1.05 if number % 2 else 0.95)))
        clock.now += 5.0


@pytest.mark.parametrize(("text", "share"), [("2%", 0.02), ("0.02", 0.02), (" 50 %", 0.5), ("0", 0.0)])
def test_a_share_is_read(text: str, share: float) -> None:
    assert read_share(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "two", "51%", "-1%", "2", "nan"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"pass something like 2%"):
        read_share(text)


def test_the_share_is_held_out() -> None:
    numbers = iter([0.0, 0.019, 0.02, 0.9])
    holdout = Holdout(0.02, chance=lambda: next(numbers))
    assert [holdout.group() for _ in range(4)] == ["holdout", "holdout", "drafted", "drafted"]


def test_prefill_and_queue_do_not_count() -> None:
    assert decoding({"timeline": [[900.0, 1, 0, 0], [950.0, 6, 5, 4], [1000.0, 11, 5, 4]]}) == (pytest.approx(0.1), 10)
    assert decoding({"timeline": [[900.0, 1, 0, 0]]}) == (0.0, 0)
    assert decoding({}) == (0.0, 0)


def test_the_gain_is_the_ratio_of_seconds_a_token() -> None:
    clock = Clock()
    holdout = Holdout(0.02, clock=clock)
    feed(holdout, clock, drafted_ms=10, holdout_ms=30, minutes=(MIN_REQUESTS - 1) / 12)
    assert holdout.gain() is None
    feed(holdout, clock, drafted_ms=10, holdout_ms=30, minutes=2)
    found = holdout.gain()
    assert found is not None
    assert found[0] == pytest.approx(3.0, rel=0.01)


def test_old_requests_are_forgotten() -> None:
    clock = Clock()
    holdout = Holdout(0.02, clock=clock)
    feed(holdout, clock, drafted_ms=10, holdout_ms=30, minutes=5)
    clock.now += WINDOW_S + 1
    holdout.record("drafted", report(10))
    assert len(holdout) == 1


def test_a_lasting_loss_switches_off_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    holdout = Holdout(0.02, clock=clock, chance=lambda: 0.5)
    with caplog.at_level(logging.WARNING):
        feed(holdout, clock, drafted_ms=13, holdout_ms=10, minutes=PATIENCE_S / 60 + 2)
    assert holdout.off
    assert holdout.group() == "holdout"
    assert [record.getMessage() for record in caplog.records] == [
        "ooospec: drafting is off: it was 0.77x for 5 minutes"
    ]


@pytest.mark.parametrize(("drafted_ms", "minutes"), [(13, 4), (10, 20), (4, 20)], ids=["short", "no loss", "gain"])
def test_it_stays_on_otherwise(drafted_ms: float, minutes: float) -> None:
    clock = Clock()
    holdout = Holdout(0.02, clock=clock)
    feed(holdout, clock, drafted_ms=drafted_ms, holdout_ms=10, minutes=minutes)
    assert not holdout.off


def test_trials_bring_drafting_back() -> None:
    clock, numbers = Clock(), iter([0.01, 0.5])
    holdout = Holdout(0.02, clock=clock, chance=lambda: next(numbers))
    holdout.off = True
    assert [holdout.group(), holdout.group()] == ["drafted", "holdout"]
    feed(holdout, clock, drafted_ms=5, holdout_ms=10, minutes=PATIENCE_S / 60 + 2)
    assert not holdout.off


def test_without_a_share_nothing_is_remembered() -> None:
    holdout = Holdout()
    holdout.record("drafted", report(10))
    assert (len(holdout), holdout.group()) == (0, "drafted")
