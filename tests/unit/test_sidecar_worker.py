"""The worker never raises, never piles up, and leaves a failing sidecar alone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import pytest

from ooospec_agents.catalog import Catalog, Function, Slot
from ooospec_agents.hint import Hint
from ooospec_agents.runtime import spawn
from ooospec_agents.sidecar import prompts
from ooospec_agents.sidecar.backend import Completion, SidecarError
from ooospec_agents.sidecar.breaker import CircuitBreaker
from ooospec_agents.sidecar.worker import SidecarWorker, from_url

CATALOG = Catalog((Function("weather", slots=(Slot("city", ("string",)),)), Function("stop")), "worker")
MESSAGES = [{"role": "user", "content": "Weather in Oslo?"}]


class Backend:
    """Answers at once, fails, or waits until it is let go."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.prompts: list[str] = []
        self.gate: asyncio.Event | None = None
        self.started = 0
        self.closed = False

    async def complete(self, prompts: Sequence[str], max_tokens: int) -> list[Completion]:
        self.started += 1
        self.prompts += prompts
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        return [Completion(" 0" if "Which" in prompt else " Oslo") for prompt in prompts]

    async def trained(self) -> bool:
        return True

    async def aclose(self) -> None:
        self.closed = True


async def test_predicts() -> None:
    hint = await SidecarWorker(Backend()).predict(CATALOG, MESSAGES, no_call_allowed=True)
    assert hint is not None
    assert hint.calls[0].slots["city"].value == "Oslo"


@pytest.mark.parametrize("error", [SidecarError("down", "Nobody."), RuntimeError("odd")])
async def test_failure_is_no_hint_and_one_log_line(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    worker = SidecarWorker(Backend(error))
    with caplog.at_level(logging.WARNING):
        hints = [await worker.predict(CATALOG, MESSAGES) for _ in range(2)]
    assert hints == [None, None]
    assert len(caplog.records) == 1


async def test_breaker_holds_waves_back() -> None:
    backend = Backend(SidecarError("down", "Nobody."))
    worker = SidecarWorker(backend, breaker=CircuitBreaker(failures=2))
    for _ in range(5):
        await worker.predict(CATALOG, MESSAGES)
    assert backend.started == 2
    assert worker.counts == {"down": 2, "open": 3}


async def test_refused_request_does_not_open_the_breaker() -> None:
    backend = Backend(SidecarError("refused", "Too long."))
    worker = SidecarWorker(backend, breaker=CircuitBreaker(failures=2))
    for _ in range(5):
        await worker.predict(CATALOG, MESSAGES)
    assert backend.started == 5


async def test_log_says_when_it_works_again_and_then_complains_anew(caplog: pytest.LogCaptureFixture) -> None:
    backend = Backend(SidecarError("down", "Nobody."))
    worker = SidecarWorker(backend)
    with caplog.at_level(logging.INFO):
        await worker.predict(CATALOG, MESSAGES)
        backend.error = None
        await worker.predict(CATALOG, MESSAGES)
        backend.error = SidecarError("down", "Nobody again.")
        await worker.predict(CATALOG, MESSAGES)
    levels = [record.levelname for record in caplog.records if record.name.startswith("ooospec")]
    assert levels == ["WARNING", "INFO", "WARNING"]


async def test_late_wave_is_given_up() -> None:
    backend = Backend()
    backend.gate = asyncio.Event()
    worker = SidecarWorker(backend, deadline_s=0.01)
    assert await worker.predict(CATALOG, MESSAGES) is None
    assert worker.counts == {"late": 1}


async def test_no_more_than_max_waves() -> None:
    backend = Backend()
    backend.gate = asyncio.Event()
    worker = SidecarWorker(backend, max_waves=2)
    waves = [asyncio.create_task(worker.predict(CATALOG, MESSAGES)) for _ in range(3)]
    await asyncio.sleep(0)
    backend.gate.set()
    hints = await asyncio.gather(*waves)
    assert [hint is None for hint in hints] == [False, False, True]
    assert (await worker.predict(CATALOG, MESSAGES)) is not None


async def test_cancelled_caller_is_no_failure() -> None:
    backend = Backend()
    backend.gate = asyncio.Event()
    worker = SidecarWorker(backend, max_waves=1, breaker=CircuitBreaker(failures=1))
    task = asyncio.create_task(worker.predict(CATALOG, MESSAGES))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    backend.gate.set()
    assert await worker.predict(CATALOG, MESSAGES) is not None


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


async def abandon(worker: SidecarWorker, clock: Clock, after_s: float) -> None:
    """A wave whose request ends after a while."""
    task = asyncio.create_task(worker.predict(CATALOG, MESSAGES))
    for _ in range(5):
        await asyncio.sleep(0)
    clock.now += after_s
    task.cancel()
    await asyncio.wait([task])


@pytest.mark.parametrize(("lasting_s", "waves"), [(0.5, 8), (2.5, 2)])
async def test_hanging_sidecar_is_left_alone_although_every_request_ends_first(
    lasting_s: float, waves: int, caplog: pytest.LogCaptureFixture
) -> None:
    clock, backend = Clock(), Backend()
    backend.gate = asyncio.Event()
    worker = SidecarWorker(backend, breaker=CircuitBreaker(2, 1000.0, clock), clock=clock)
    for _ in range(20):
        await abandon(worker, clock, lasting_s)
    assert backend.started == waves  # four seconds of silence, or two waves of more than two
    assert worker.counts == {"silent": 2, "open": 20 - waves}
    assert len(caplog.records) == 1


async def test_an_answer_between_ends_the_silence() -> None:
    clock, backend = Clock(), Backend()
    worker = SidecarWorker(backend, breaker=CircuitBreaker(failures=1, clock=clock), clock=clock)
    for _ in range(20):
        backend.gate = asyncio.Event()
        await abandon(worker, clock, 1.5)
        backend.gate.set()
        assert await worker.predict(CATALOG, MESSAGES) is not None


async def test_closing_is_no_silence() -> None:
    clock, backend = Clock(), Backend()
    backend.gate = asyncio.Event()
    worker = SidecarWorker(backend, clock=clock)
    task = asyncio.create_task(worker.predict(CATALOG, MESSAGES))
    await asyncio.sleep(0)
    clock.now += 60
    await worker.aclose()
    assert task.cancelled()
    assert worker.counts == {}


async def test_submit_calls_back() -> None:
    hints: list[Hint] = []
    future = SidecarWorker(Backend()).submit(CATALOG, MESSAGES, hints.append)
    assert future is not None
    await asyncio.wrap_future(future)
    assert [hint.calls[0].name for hint in hints] == ["weather"]


def test_submit_without_a_loop() -> None:
    hints: list[Hint] = []
    future = SidecarWorker(Backend()).submit(CATALOG, MESSAGES, hints.append)
    assert future is not None
    future.result(10)
    assert [hint.calls[0].name for hint in hints] == ["weather"]


async def test_callback_that_raises_is_swallowed() -> None:
    def callback(hint: Hint) -> None:
        raise RuntimeError(hint.source)

    future = SidecarWorker(Backend()).submit(CATALOG, MESSAGES, callback)
    assert future is not None
    await asyncio.wrap_future(future)


async def test_prepare_warms_a_catalog_once() -> None:
    backend = Backend()
    worker = SidecarWorker(backend)
    for _ in range(3):
        worker.prepare(CATALOG)
    for _ in range(5):
        await asyncio.sleep(0)
    assert backend.prompts == [prompts.prefix(CATALOG)]


class Endless(Backend):
    """Never answers, on whatever loop."""

    async def complete(self, prompts: Sequence[str], max_tokens: int) -> list[Completion]:
        self.started += 1
        await asyncio.sleep(3600)
        return []


async def test_close_ends_waves_here_and_elsewhere() -> None:
    backend = Endless()
    worker = SidecarWorker(backend, deadline_s=3600)
    here = asyncio.create_task(worker.predict(CATALOG, MESSAGES))
    there = spawn(worker.predict(CATALOG, MESSAGES))
    while backend.started < 2:
        await asyncio.sleep(0.001)
    await worker.aclose()
    assert here.cancelled()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wrap_future(there)
    assert backend.closed


async def test_closed_worker_predicts_nothing() -> None:
    worker = SidecarWorker(Backend())
    await worker.aclose()
    assert await worker.predict(CATALOG, MESSAGES) is None
    assert worker.submit(CATALOG, MESSAGES, print) is None


def test_one_worker_over_several_loops() -> None:
    worker = SidecarWorker(Backend())
    hints = [asyncio.run(worker.predict(CATALOG, MESSAGES)) for _ in range(2)]
    assert None not in hints


@pytest.mark.parametrize("url", ["", "localhost:8001", "ftp://localhost", "http://"])
def test_address_must_be_http(url: str) -> None:
    with pytest.raises(ValueError, match="no http address"):
        from_url(url)
