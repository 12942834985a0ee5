"""Quiet cores for each request: vLLM's processes watch for more work for a second after their last step."""

from __future__ import annotations

import time
from collections.abc import Callable

WATCH_S = 1.2
"""Seconds after an answer in which a server may still take a core: vLLM's `shm_broadcast` spins for one."""


class Rest:
    """Waits, before a request is timed, until all servers sleep: else who comes second is slowed by who came first.

    The server that is asked sleeps, too: it would else be awake where it was the last one asked, and only there.

    Args:
        clock: Monotonic seconds.
        sleep: Waits that many seconds.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], object] = time.sleep
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._answered = clock() - WATCH_S

    def before(self) -> None:
        """Wait until no server watches for work."""
        left = self._answered + WATCH_S - self._clock()
        if left > 0:
            self._sleep(left)

    def after(self) -> None:
        """A server has answered just now."""
        self._answered = self._clock()
