"""Progress of a long run: what was done, and the time that is left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable


class TimeLeft:
    """Counts answers, and foretells the end from what they took so far in this session.

    Args:
        total: Answers that the whole run has.
        done: Of them, those that an earlier session made.
        clock: Monotonic seconds.
    """

    def __init__(self, total: int, done: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        self.total = total
        self.done = done
        self._clock = clock
        self._first = done
        self._began = clock()

    def count(self) -> str:
        """One answer more; what to say of it, such as "[7/40, 12 min left]"."""
        self.done += 1
        took = (self._clock() - self._began) / (self.done - self._first)
        return f"[{self.done}/{self.total}, {minutes(took * (self.total - self.done))} left]"

    def say(self, line: str) -> None:
        """Print a line; lines of answers with the count before them."""
        head = "" if line.startswith("filling") else self.count() + " "
        print(f"{head}{line}", file=sys.stderr, flush=True)


def minutes(seconds: float) -> str:
    """A duration as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
