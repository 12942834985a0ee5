"""Quiet cores for each server: vLLM's processes watch for more work for a second after their last step."""

from __future__ import annotations

import time
from collections.abc import Callable

WATCH_S = 1.2
"""Seconds after an answer in which a server may still take a core: vLLM's `shm_broadcast` spins for one."""


class Rest:
    """Waits, before a server is asked, until the others have gone to sleep; else whoever comes second is the slower.

    Args:
        clock: Monotonic seconds.
        sleep: Waits that many seconds.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], object] = time.sleep
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._answered: dict[str, float] = {}

    def before(self, server: str) -> None:
        """Wait until no other server watches for work."""
        others = [at for name, at in self._answered.items() if name != server]
        left = max(others, default=self._clock() - WATCH_S) + WATCH_S - self._clock()
        if left > 0:
            self._sleep(left)

    def after(self, server: str) -> None:
        """A server has answered just now."""
        self._answered[server] = self._clock()
