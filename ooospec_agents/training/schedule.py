"""The schedule of a run: where it stands in its requests and in its time, and when it is to stop."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator
from types import FrameType

from ooospec_agents.training.checkpoint import Progress
from ooospec_agents.training.layout import Part
from ooospec_agents.training.rows import Example
from ooospec_agents.training.settings import Settings
from ooospec_agents.training.stream import STAGES, Stream


class Signals:
    """While it is entered: whether SIGTERM or SIGINT asked to stop, and whether the process was paused (SIGCONT)."""

    stop = False
    paused = False

    def __enter__(self) -> Signals:
        kinds = (signal.SIGTERM, signal.SIGINT, signal.SIGCONT)
        self._before = {kind: signal.signal(kind, self._note) for kind in kinds}
        return self

    def __exit__(self, *_: object) -> None:
        for kind, handler in self._before.items():
            signal.signal(kind, handler)

    def _note(self, kind: int, frame: FrameType | None) -> None:
        if kind == signal.SIGCONT:
            self.paused = True
        else:
            self.stop = True


class Run:
    """Where a run stands in its stream and in its time."""

    def __init__(self, stream: Stream, settings: Settings, minutes: float | None, progress: Progress) -> None:
        self.signals = Signals()
        self._stream, self._settings, self._progress = stream, settings, progress
        self._limit = None if minutes is None else minutes * 60
        self._sizes = [stream.size(stage) for stage in STAGES]
        self._began, self._last = 0.0, 0.0

    def watch(self) -> None:
        """A batch begins."""
        self.signals.paused = False
        self._began = time.monotonic()

    def count(self) -> None:
        """A batch ended: count its time; one that was paused counts as long as the batch before it."""
        took = self._last if self.signals.paused else time.monotonic() - self._began
        self._last = took
        self._progress.seconds += took

    def fraction(self) -> float:
        """How much of the run is done, from 0 to 1, by requests or by time, whichever is further."""
        done = sum(self._sizes[: self._progress.stage]) + self._progress.number
        by_count = done / max(sum(self._sizes), 1)
        if self._limit is None:
            return by_count
        # Skipping what a limited run has no time for is not progress: time alone counts, until all is seen.
        return 1.0 if by_count >= 1.0 else min(self._progress.seconds / self._limit, 1.0)

    def steps(self, lay_out: Callable[[Example], Part]) -> Iterator[list[Part]]:
        """One optimiser step's requests at a time, until the stream, the time or the user ends it."""
        parts: list[Part] = []
        for index in range(self._progress.stage, len(STAGES)):
            if index != self._progress.stage:
                self._progress.stage, self._progress.number = index, 0
            for number, example in self._stream.stage(STAGES[index], self._progress.number):
                if self.signals.stop or self._over(index):
                    break
                self._progress.number = number + 1
                part = lay_out(example)
                if len(part.ids) <= self._settings.max_tokens and part.targets:
                    parts.append(part)
                if len(parts) == self._settings.requests_per_step:
                    yield parts
                    parts = []
            if self.signals.stop:
                return
        if parts:
            yield parts

    def _over(self, stage: int) -> bool:
        """Whether the stage's share of a limited run is used up."""
        if self._limit is None:
            return False
        more = any(self._sizes[stage + 1 :])
        return self._progress.seconds >= self._limit * (self._settings.gold_share if more else 1.0)


def rate(fraction: float, settings: Settings) -> float:
    """The learning rate: a short rise, then a cosine down to a twentieth."""
    if fraction < settings.warmup:
        return settings.learning_rate * (0.05 + 0.95 * fraction / settings.warmup)
    fall = (fraction - settings.warmup) / (1 - settings.warmup)
    return settings.learning_rate * (0.05 + 0.95 * (1 + math.cos(math.pi * fall)) / 2)
