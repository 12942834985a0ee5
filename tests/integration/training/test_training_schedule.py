"""The learning rate, and time that does not count while a run is paused."""

import os
import signal
from dataclasses import replace

import pytest

pytest.importorskip("torch")

from ooospec_agents.training.checkpoint import Progress
from ooospec_agents.training.schedule import Run, rate
from ooospec_agents.training.settings import PRESETS
from ooospec_agents.training.stream import Stream
from ooospec_agents.training.traces import Call, Request

SETTINGS = replace(PRESETS["smollm2-135m"], learning_rate=1.0, warmup=0.5, gold_epochs=2, trace_epochs=3)
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {}}}
REQUESTS = [Request(name, "s", (), (TOOL,), (Call("weather", {}),)) for name in ("a", "b")]


@pytest.mark.parametrize(("fraction", "expected"), [(0.0, 0.05), (0.25, 0.525), (0.5, 1.0), (0.75, 0.525), (1.0, 0.05)])
def test_the_rate_rises_and_falls(fraction: float, expected: float) -> None:
    assert rate(fraction, SETTINGS) == pytest.approx(expected)


def test_a_stage_has_all_its_passes() -> None:
    stream = Stream(REQUESTS, {"a": (Call("weather", {}),)}, SETTINGS)
    assert (stream.size("gold"), stream.size("traces")) == (4, 3)


def run(progress: Progress, minutes: float | None) -> Run:
    return Run(Stream(REQUESTS, {}, SETTINGS), SETTINGS, minutes, progress)


def test_without_a_limit_the_requests_say_how_far_a_run_is() -> None:
    assert run(Progress(number=1, seconds=1e6), None).fraction() == 0.25


def test_with_a_limit_the_time_says_it() -> None:
    assert run(Progress(number=1, seconds=30.0), 1.0).fraction() == 0.5


def test_a_paused_batch_counts_as_the_one_before_it() -> None:
    progress = Progress()
    resumed = run(progress, 1.0)
    with resumed.signals:
        resumed.watch()
        resumed.count()
        before = progress.seconds
        resumed.watch()
        os.kill(os.getpid(), signal.SIGCONT)
        resumed.count()
    assert progress.seconds == 2 * before > 0.0
