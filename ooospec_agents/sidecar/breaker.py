"""A circuit breaker: what fails again and again is left alone for a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class CircuitBreaker:
    """Closed at first; open after `failures` in a row; after `cooldown_s` one trial decides. Thread-safe.

    Args:
        failures: Failures in a row that open it.
        cooldown_s: Seconds that it stays open before a trial.
        clock: Monotonic seconds.
    """

    def __init__(
        self, failures: int = 3, cooldown_s: float = 15.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limit = failures
        self._cooldown_s = cooldown_s
        self._clock = clock
        self._lock = threading.Lock()
        self._failed = 0
        self._closed_until = 0.0
        self._trial = False

    def allow(self) -> bool:
        """Whether to try now. Each True is to be followed by `success`, `failure` or `release`."""
        with self._lock:
            if self._failed < self._limit:
                return True
            if self._trial or self._clock() < self._closed_until:
                return False
            self._trial = True
            return True

    def success(self) -> None:
        """It worked: close."""
        with self._lock:
            self._failed, self._trial = 0, False

    def failure(self) -> None:
        """It failed: open, if often enough."""
        with self._lock:
            self._failed, self._trial = self._failed + 1, False
            self._closed_until = self._clock() + self._cooldown_s

    def release(self) -> None:
        """It was given up before it could show anything."""
        with self._lock:
            self._trial = False

    @property
    def open(self) -> bool:
        """Whether calls are held back now."""
        with self._lock:
            return self._failed >= self._limit and self._clock() < self._closed_until
