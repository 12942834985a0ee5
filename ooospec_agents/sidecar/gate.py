"""The wave gate: where sidecar and target share their cores, a wave must gain the target more time than it takes."""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import Any

TRIED_EVERY, TRIED_SELDOM = 20, 320
"""While the gate is shut, as it is at first, one request in so many still has its wave, so that better days are
noticed: the first number, twice as many after each such wave that lost time, at most the second."""
WEIGHT = 0.2
"""Weight of the newest wave in the averages."""
LOST_SHARE = 0.6
"""Seconds that a target loses to a second of a wave on the same cores."""
SAVED_SHARE = 0.5
"""Steps saved by an accepted token of a hint; other sources would have found some of them."""


class WaveGate:
    """Decides request by request whether to run a wave, from what waves took and what their hints saved.

    It is shut until a wave has gained: on two cores, waves of the shipped sidecar took more than their hints saved, and
    whoever sends a few requests only should not pay for finding that out.
    """

    def __init__(self) -> None:
        """Shut, as no wave was seen."""
        self.lost_s = 0.0
        """Seconds that a wave costs the target, on average."""
        self.saved_s = 0.0
        """Seconds that its hint saves the target, on average."""
        self._waves = 0
        self._turned_away = 0
        self._tried_every = TRIED_EVERY

    def allow(self) -> bool:
        """Whether the next request shall have its wave."""
        if self._waves and self.saved_s >= self.lost_s:
            return True
        self._turned_away += 1
        if self._turned_away < self._tried_every:
            return False
        self._turned_away = 0
        return True

    def record(self, wave_s: float, report: dict[str, Any]) -> None:
        """Learn from a request that had a wave.

        Args:
            wave_s: Seconds from the wave's start to its hint, or to the request's end where no hint came.
            report: The request's report.
        """
        saved = report.get("accepted", {}).get("hint", 0) * SAVED_SHARE * _step_s(report)
        share = WEIGHT if self._waves else 1.0
        self._waves += 1
        gained = saved >= wave_s * LOST_SHARE
        self._tried_every = TRIED_EVERY if gained else min(2 * self._tried_every, TRIED_SELDOM)
        self.lost_s += share * (wave_s * LOST_SHARE - self.lost_s)
        self.saved_s += share * (saved - self.saved_s)


def _step_s(report: dict[str, Any]) -> float:
    """Seconds of a step of the request, the first one (prefill) left out; 0.0 where it had no other."""
    times = [entry[0] for entry in report.get("timeline", [])]
    gaps = [(after - before) / 1e3 for before, after in pairwise(times)]
    return median(gaps) if gaps else 0.0
