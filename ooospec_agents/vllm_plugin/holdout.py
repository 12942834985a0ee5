"""The holdout: a share of requests served undrafted, so that the gain is measured in production.

Where drafting loses time for some minutes, it switches itself off; the share is then served drafted, as a trial, and
drafting comes back once the trials gain.
"""

from __future__ import annotations

import logging
import math
import random
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Literal

Group = Literal["drafted", "holdout"]

HOLDOUT = "OOOSPEC_HOLDOUT"
"""Environment variable with the share, from 0 to 0.5."""
MAX_SHARE = 0.5
MIN_REQUESTS = 20
"""Requests of each group before there is an opinion."""
MAX_REQUESTS = 2000
"""Requests of a group that are remembered."""
WINDOW_S = 1800.0
"""Seconds that a request is remembered."""
PATIENCE_S = 300.0
"""Seconds that a loss, or a gain while switched off, must last."""
MIN_TOKENS = 8
"""Shorter outputs say little of seconds a token."""

logger = logging.getLogger("vllm.ooospec_agents")


def read_share(text: str) -> float:
    """A share from "2%" or "0.02".

    Raises:
        ValueError: It is no share from 0 to 50 %.
    """
    number, percent, _ = text.strip().partition("%")
    try:
        share = float(number) / (100.0 if percent else 1.0)
    except ValueError:
        share = math.nan
    if not 0.0 <= share <= MAX_SHARE:
        msg = f"holdout {text!r} is no share from 0 to {MAX_SHARE:.0%}: pass something like 2%"
        raise ValueError(msg)
    return share


class _Seen:
    """The newest requests of one group: logarithms of seconds a token, with running sums."""

    def __init__(self) -> None:
        self._logs: deque[tuple[float, float]] = deque()
        self._sum = self._squares = 0.0

    def __len__(self) -> int:
        return len(self._logs)

    def add(self, now: float, value: float) -> None:
        self._logs.append((now, value))
        self._sum += value
        self._squares += value * value
        while len(self._logs) > MAX_REQUESTS:
            self._drop()

    def expire(self, now: float) -> None:
        while self._logs and now - self._logs[0][0] > WINDOW_S:
            self._drop()

    @property
    def mean(self) -> float:
        return self._sum / len(self._logs)

    @property
    def error2(self) -> float:
        """The squared standard error of the mean."""
        return max(self._squares / len(self._logs) - self.mean**2, 0.0) / (len(self._logs) - 1)

    def _drop(self) -> None:
        _, value = self._logs.popleft()
        self._sum -= value
        self._squares -= value * value


class Holdout:
    """Chooses by chance which requests are drafted, and compares both groups.

    Args:
        share: Share of requests in the smaller group.
        clock: Monotonic seconds.
        chance: Numbers from 0 to 1.

    Attributes:
        share: As given.
        off: Whether drafting has switched itself off.
    """

    def __init__(
        self,
        share: float = 0.0,
        *,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.share = share
        self.off = False
        self._clock = clock
        self._chance = chance
        self._since: float | None = None
        self._seen: dict[Group, _Seen] = {}
        self._forget()

    def group(self) -> Group:
        """The group of the next request."""
        chosen = self._chance() < self.share
        return "drafted" if chosen == self.off else "holdout"

    def record(self, group: Group, report: Mapping[str, Any]) -> None:
        """Learn from the report of a request that was put into a group."""
        seconds, tokens = decoding(report)
        if tokens < MIN_TOKENS or seconds <= 0.0 or not self.share:
            return
        now = self._clock()
        self._seen[group].add(now, math.log(seconds / tokens))
        for seen in self._seen.values():
            seen.expire(now)
        self._judge(now)

    def gain(self) -> tuple[float, float] | None:
        """How much faster a token is drafted than not (geometric means), and the standard error as a factor."""
        drafted, held = self._seen["drafted"], self._seen["holdout"]
        if min(len(drafted), len(held)) < MIN_REQUESTS:
            return None
        return math.exp(held.mean - drafted.mean), math.exp(math.sqrt(drafted.error2 + held.error2))

    def __len__(self) -> int:
        """Requests remembered."""
        return sum(map(len, self._seen.values()))

    def _judge(self, now: float) -> None:
        found = self.gain()
        if found is None:
            return
        gain, error = found
        against = gain / error > 1.0 if self.off else gain * error < 1.0
        if not against:
            self._since = None
            return
        self._since = now if self._since is None else self._since
        if now - self._since >= PATIENCE_S:
            self.off = not self.off
            said = "off: it was" if self.off else "on again: it would be"
            logger.warning("ooospec: drafting is %s %.2fx for %.0f minutes", said, gain, PATIENCE_S / 60)
            self._forget()

    def _forget(self) -> None:
        self._since = None
        self._seen = {"drafted": _Seen(), "holdout": _Seen()}


def decoding(report: Mapping[str, Any]) -> tuple[float, int]:
    """Seconds and tokens between a request's first step and the last one listed: prefill and queue left out."""
    timeline = report.get("timeline") or []
    if len(timeline) < 2:
        return 0.0, 0
    first, last = timeline[0], timeline[-1]
    return (last[0] - first[0]) / 1e3, int(last[1] - first[1])
