"""The predictor's thread: nobody waits for it, and its faults reach nobody."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

from ooospec_agents.catalog import Catalog
from ooospec_agents.hint import Hint
from ooospec_agents.predictor.worker import MAX_WAITING, PredictorWorker

TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}
CATALOG = Catalog.from_tools([TOOL])
HINT = Hint.of_call("f", {})


class Scripted:
    """Answers with a hint once it may, or fails."""

    def __init__(self, fault: bool = False) -> None:
        self.fault = fault
        self.may = threading.Event()
        self.may.set()
        self.prepared: list[str] = []

    def prepare(self, catalog: Catalog) -> None:
        self.prepared.append(catalog.id)

    def predict(
        self, catalog: Catalog, messages: Sequence[Any], *, named: str = "", no_call_allowed: bool = True
    ) -> Hint | None:
        self.may.wait(10)
        if self.fault:
            raise RuntimeError("broken")
        return HINT if messages else None


async def test_the_hint_is_delivered_on_the_loop_that_asked() -> None:
    worker = PredictorWorker(Scripted)
    got: asyncio.Queue[tuple[Hint, threading.Thread]] = asyncio.Queue()
    worker.submit(CATALOG, ["hi"], lambda hint: got.put_nowait((hint, threading.current_thread())))
    hint, thread = await asyncio.wait_for(got.get(), 10)
    assert hint == HINT
    assert thread is threading.current_thread()
    await worker.aclose()


async def test_a_hint_can_be_waited_for() -> None:
    worker = PredictorWorker(Scripted)
    assert await worker.predict(CATALOG, ["hi"]) == HINT
    assert await worker.predict(CATALOG, []) is None
    await worker.aclose()
    assert await worker.predict(CATALOG, ["hi"]) is None


def test_without_a_loop_it_is_delivered_in_the_thread() -> None:
    worker = PredictorWorker(Scripted)
    got: list[Hint] = []
    future = worker.submit(CATALOG, ["hi"], got.append)
    assert future is not None
    future.result(10)
    assert got == [HINT]
    nothing = worker.submit(CATALOG, [], got.append)
    assert nothing is not None
    nothing.result(10)
    assert worker.counts == {"hint": 1, "nothing": 1}
    asyncio.run(worker.aclose())


def test_too_many_requests_go_without() -> None:
    scripted = Scripted()
    scripted.may.clear()
    worker = PredictorWorker(lambda: scripted)
    futures = [worker.submit(CATALOG, ["hi"], lambda hint: None) for _ in range(MAX_WAITING + 1)]
    assert [future is None for future in futures] == [False] * MAX_WAITING + [True]
    scripted.may.set()
    for future in futures[:-1]:
        assert future is not None
        future.result(10)
    assert worker.submit(CATALOG, ["hi"], lambda hint: None) is not None
    asyncio.run(worker.aclose())


def test_a_fault_reaches_nobody() -> None:
    worker = PredictorWorker(lambda: Scripted(fault=True))
    got: list[Hint] = []
    future = worker.submit(CATALOG, ["hi"], got.append)
    assert future is not None
    assert future.result(10) is None
    assert (got, worker.counts["fault"]) == ([], 1)
    asyncio.run(worker.aclose())


def test_a_predictor_that_cannot_be_loaded_hints_nothing() -> None:
    def load() -> Scripted:
        raise OSError("no such folder")

    worker = PredictorWorker(load)
    future = worker.submit(CATALOG, ["hi"], lambda hint: None)
    assert future is not None
    assert future.result(10) is None
    assert worker.counts == {"fault": 1}
    asyncio.run(worker.aclose())


def test_a_closed_worker_takes_nothing() -> None:
    worker = PredictorWorker(Scripted)
    asyncio.run(worker.aclose())
    assert worker.submit(CATALOG, ["hi"], lambda hint: None) is None


def test_catalogs_are_prepared_in_the_background() -> None:
    scripted = Scripted()
    worker = PredictorWorker(lambda: scripted)
    worker.prepare(CATALOG)
    worker.prepare(Catalog())
    future = worker.submit(CATALOG, [], lambda hint: None)
    assert future is not None
    future.result(10)
    assert scripted.prepared == [CATALOG.id]
    asyncio.run(worker.aclose())
