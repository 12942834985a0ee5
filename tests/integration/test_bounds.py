"""Every store is filled beyond its size. A smaller size holds less: it is this bound, and no other, that holds."""

from __future__ import annotations

import asyncio
import concurrent.futures
import importlib
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("zmq")
pytest.importorskip("prometheus_client")

from ooospec_agents import bounds, targets
from ooospec_agents.catalog import Catalog, Function
from ooospec_agents.client import SidecarSettings, TargetClient
from ooospec_agents.drafting.budget import Budget
from ooospec_agents.drafting.cursor import Cursor
from ooospec_agents.drafting.memory import Memory, Stores
from ooospec_agents.drafting.request import RequestSpec
from ooospec_agents.drafting.sources import functions as ranked
from ooospec_agents.formats import FLAT
from ooospec_agents.hint import Hint
from ooospec_agents.predictor.worker import PredictorWorker
from ooospec_agents.sidecar.worker import SidecarWorker
from ooospec_agents.testing.engine import CharacterCodec
from ooospec_agents.vllm_plugin import channel
from ooospec_agents.vllm_plugin import foresight as foresight_module
from ooospec_agents.vllm_plugin.accelerator import Accelerator
from ooospec_agents.vllm_plugin.channel import ApiChannel, WorkerInbox, WorkerOutbox, worker_address
from ooospec_agents.vllm_plugin.drafters import Drafters
from ooospec_agents.vllm_plugin.foresight import Foresight
from ooospec_agents.vllm_plugin.holdout import Holdout
from ooospec_agents.vllm_plugin.messages import CatalogStore, HintMessage, Open
from ooospec_agents.vllm_plugin.waiting import WaitingRoom

DOCS = Path(__file__).parents[2] / "docs"
HINT = Hint.of_call("f", {"a": 1})
TIMELINE = {"timeline": [[0.0, 1, 0, 0], [9.0, 10, 0, 0]]}


@pytest.fixture(autouse=True)
def _sockets(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="ooo") as name:
        monkeypatch.setenv("OOOSPEC_SOCKET_DIR", name)
        yield


def catalog(number: int) -> Catalog:
    return Catalog(functions=(Function(f"f{number}"),), id=f"c{number}")


def tools(number: int) -> list[Any]:
    return [{"type": "function", "function": {"name": f"f{number}"}}]


def catalogs(count: int) -> int:
    ours = Accelerator()
    for number in range(count):
        ours.prepare(tools(number))
    return len(ours._catalogs)


async def guessing(count: int) -> int:
    ours = Accelerator()
    ours._guesser = SimpleNamespace(submit=lambda *call: concurrent.futures.Future())  # type: ignore[assignment]
    for number in range(count):
        ours._start_guesses(RequestSpec(id=str(number), catalog=catalog(number)))
    return ours._guessing


async def reports(count: int) -> int:
    api, outbox = ApiChannel(), WorkerOutbox()
    for number in range(count):
        outbox.send(api.reply_address, {"id": str(number)})
        # Read in between: the queue between both has a bound of its own.
        await api.report("none", 0.0)
    await api.report(str(count - 1), 5.0)
    outbox.send(api.reply_address, {"id": str(count - 1)})
    while api.take_report("none") is None and str(count - 1) not in api._reports:
        await asyncio.sleep(0.001)
    kept = api.sizes()["reports"]
    outbox.close()
    api.close()
    return kept


def sent_catalogs(count: int) -> int:
    inbox, api = WorkerInbox(worker_address(0)), ApiChannel()
    for number in range(count):
        api.open(RequestSpec(id=str(number), catalog=catalog(number)))
    kept = api.sizes()["sent_catalogs"]
    api.close()
    inbox.close()
    return kept


def queue(count: int) -> int:
    """Nobody reads; what one end takes is at most its own queue, and not twice the size with the system's."""
    api = ApiChannel()
    kept = sum(api.hint(str(number), HINT) for number in range(count))
    api.close()
    return kept


def holdout(count: int) -> int:
    kept = Holdout(0.5)
    for _ in range(count):
        kept.record("drafted", TIMELINE)
    return len(kept)


class Backend:
    """A sidecar that never answers."""

    async def complete(self, prompts: Any, max_tokens: int) -> Any:
        await asyncio.sleep(3600)

    async def trained(self) -> bool:
        await asyncio.sleep(3600)
        return False

    async def aclose(self) -> None:
        pass


async def warmed(count: int) -> int:
    worker = SidecarWorker(Backend())
    for number in range(count):
        worker.prepare(catalog(number))
    kept = len(worker._prepared)
    await worker.aclose()
    return kept


async def waves(count: int) -> int:
    worker = SidecarWorker(Backend())
    futures = [worker.submit(catalog(number), [], lambda hint: None) for number in range(count)]
    await asyncio.sleep(0.05)
    kept = worker._running
    assert worker.counts["busy"] == count - kept
    await worker.aclose()
    assert all(futures)
    return kept


def predicting(count: int) -> int:
    import threading

    hold = threading.Event()
    worker = PredictorWorker(lambda: hold.wait() and None)  # type: ignore[arg-type,return-value]
    kept = [worker.submit(catalog(number), [], lambda hint: None) for number in range(count)]
    hold.set()
    asyncio.run(worker.aclose())
    return sum(future is not None for future in kept)


def encoded(count: int) -> int:
    predictor = pytest.importorskip("ooospec_agents.predictor.predictor")
    made = predictor.SpanPredictor(None, SimpleNamespace(function=None), None)
    for number in range(count):
        made._functions(Catalog(id=f"c{number}"))
    return len(made._prepared)


def worker_catalogs(count: int) -> int:
    store = CatalogStore()
    for number in range(count):
        store.put(catalog(number))
    return len(store._catalogs)


def waiting(count: int) -> int:
    room = WaitingRoom(lambda: 0.0)
    for number in range(count):
        room.open(Open(RequestSpec(id=str(number))))
    return room.sizes()["waiting"]


def early_hints(count: int) -> int:
    room = WaitingRoom(lambda: 0.0)
    for number in range(count):
        room.hint(HintMessage(str(number), HINT))
    kept = room.sizes()["early_hints"]
    assert room.unclaimed == count - kept
    return kept


@contextmanager
def a_foresight() -> Iterator[Foresight]:
    """On a socket, of drafters that are never asked."""
    inbox = WorkerInbox(worker_address(0))
    foresight = Foresight(inbox, Drafters(CharacterCodec(), Budget()).ahead, lambda where, error: None)
    yield foresight
    foresight.close()
    inbox.close()


def ahead(count: int) -> int:
    with a_foresight() as foresight:
        for number in range(count):
            foresight._open(Open(RequestSpec(id=str(number), method="toolspec")))
        return len(foresight)


def begun(count: int) -> int:
    with a_foresight() as foresight:
        for number in range(count):
            foresight.take(Open(RequestSpec(id=str(number))), "", ())
        return len(foresight._begun)


def mail(count: int) -> int:
    api = ApiChannel()
    with a_foresight() as foresight:
        for number in range(count):
            assert api.hint(str(number), HINT)
        while len(foresight._mail) < min(count, foresight_module.MAX_MAIL):
            time.sleep(0.001)
        time.sleep(0.05)
        kept = len(foresight._mail)
    api.close()
    return kept


def finished(count: int) -> int:
    room = WaitingRoom(lambda: 0.0)
    for number in range(count):
        room.close(str(number))
    return room.sizes()["finished"]


def reply_addresses(count: int) -> int:
    outbox = WorkerOutbox()
    for number in range(count):
        outbox.prepare(channel.address(f"api-{number}"))
    kept = len(outbox._sockets)
    assert outbox.dropped == 0
    outbox.close()
    return kept


def drained(count: int) -> int:
    inbox, api = WorkerInbox(worker_address(0)), ApiChannel()
    for number in range(count):
        assert api.hint(str(number), HINT)
    while not channel.has_mail(inbox._socket):
        pass
    read: list[int] = []
    while sum(read) < count:
        read.append(len(inbox.mail()))
    api.close()
    inbox.close()
    return max(read)


def memories(count: int) -> int:
    stores = Stores()
    for number in range(count):
        stores.memory((f"tenant {number}",), FLAT)
    return len(stores)


def learned(*outputs: str, ended: bool = True) -> Memory:
    memory = Memory(FLAT)
    for output in outputs:
        cursor = Cursor(memory.style.copy())
        cursor.feed(output)
        memory.learn(cursor, ended)
    return memory


def call(name: str, value: str = "x") -> str:
    return f'{{"name": "{name}", "arguments": {{"a": "{value}"}}}}'


def functions(count: int) -> int:
    memory = learned(*(call(f"f{number}") for number in range(count)))
    assert len(memory._orders) == len(memory._calls)
    return len(memory._calls)


def history(count: int) -> int:
    return len(learned(*(call("f", str(number)) for number in range(count)))._calls["f"])


def values(count: int) -> int:
    """The longest value kept; `repr` puts two quotes around it."""
    kept = (learned(call("f", "x" * length))._calls["f"][0] for length in range(count))
    return max(len(repr(found["a"])) for found in kept if found)


def names(count: int) -> int:
    return len(learned(*(call(f"f{number}") for number in range(count)))._names)


def openings(count: int) -> int:
    memory = learned(*(" " * number + call("f") + "\n" * (number % 63) for number in range(count)))
    assert len(memory.endings) == len(memory.openings)
    return len(memory.openings)


def texts(count: int) -> int:
    return len(learned(*(f"I call number {number}: " for number in range(count))).texts)


def trust(count: int) -> int:
    memory = Memory(FLAT)
    for number in range(count):
        memory.judge("hint", f"kind {number}", 0.5, True)
    return len(memory._trust)


def words(count: int) -> int:
    ranked._known.clear()
    for number in range(count):
        ranked._known_of(catalog(number))
    return len(ranked._known)


def known_targets(count: int) -> int:
    for number in range(count):
        targets.target_client(f"http://127.0.0.1:1/{number}", SidecarSettings())
    kept = len(targets._targets)
    targets.close_targets()
    return kept


async def prepared(count: int) -> int:
    client = TargetClient("http://127.0.0.1:1/v1")

    async def nothing(*values: Any, **more: Any) -> None:
        pass

    client._ask = client._post = nothing  # type: ignore[method-assign,assignment]
    client._status.now = SimpleNamespace(plugin=True)  # type: ignore[assignment]
    for number in range(count):
        await client._prepare(tools(number), {})
    return len(client._prepared)


def pending(count: int) -> int:
    client = TargetClient("http://127.0.0.1:1/v1")

    def never(work: Any, kind: str) -> bool:
        work.close()
        return True

    client._in_background = never  # type: ignore[method-assign]
    for number in range(count):
        client._start_hint(str(number), {"tools": tools(number), "messages": []}, {})
    return client.pending


def models(count: int) -> int:
    middleware = pytest.importorskip("langchain_ooospec.middleware")
    made = middleware.OoOSpecMiddleware()

    class Model(middleware.BaseChatOpenAI):  # type: ignore[misc,name-defined]
        pass

    requests = [SimpleNamespace(model=Model.model_construct(), override=lambda model: model) for _ in range(count)]
    made._sidecar = {}
    for request in requests:
        made._accelerated(request)
    return len(made._twins)


FILLS: dict[str, Callable[[int], Any]] = {
    fill.__name__: fill
    for fill in (
        *(catalogs, guessing, reports, sent_catalogs, queue, holdout, warmed, waves, predicting, encoded),
        *(
            worker_catalogs,
            waiting,
            early_hints,
            ahead,
            begun,
            mail,
            finished,
            reply_addresses,
            drained,
            memories,
            functions,
            history,
        ),
        *(values, names, openings, texts, trust, words, prepared, pending, models),
    )
} | {"targets": known_targets}
SMALL = (9, 12)


def test_every_store_is_filled() -> None:
    assert {bound.name for bound in bounds.STORES} == set(FILLS)


@pytest.mark.parametrize("bound", bounds.STORES, ids=lambda bound: bound.name)
async def test_a_store_keeps_its_size(bound: bounds.Bound, monkeypatch: pytest.MonkeyPatch) -> None:
    async def filled(count: int) -> int:
        fill = FILLS[bound.name]
        found = fill(count) if asyncio.iscoroutinefunction(fill) else await asyncio.to_thread(fill, count)
        return int(await found if asyncio.iscoroutine(found) else found)

    file, constant = bound.where
    if isinstance(constant, int):
        assert await filled(constant + 20) == constant
        return
    name = file.removeprefix("integrations/").removesuffix(".py").replace("/", ".")
    if bound.name == "encoded":
        pytest.importorskip("torch")
    module = importlib.import_module(name)
    for small in SMALL:
        monkeypatch.setattr(module, constant, small)
        if bound.name == "sent_catalogs":
            monkeypatch.setattr(channel, constant, small)  # which imports the name
        assert await filled(small + 30) == small


@pytest.mark.parametrize("wait", [0.0, 1000.0], ids=["young", "old"])
def test_what_is_old_goes(wait: float) -> None:
    now = 0.0
    room = WaitingRoom(lambda: now)
    room.open(Open(RequestSpec(id="a")))
    room.hint(HintMessage("b", HINT))
    now = wait
    room.expire()
    kept = int(not wait)
    assert room.sizes() == {"waiting": kept, "early_hints": kept, "finished": 0}


def test_the_page_is_up_to_date() -> None:
    assert (DOCS / "bounds.md").read_text(encoding="utf-8") == bounds.render()


def test_a_bound_of_no_constant_would_be_seen() -> None:
    with pytest.raises(LookupError, match=r"has no constant NOWHERE"):
        bounds.size(bounds.Bound("x", "y", ("ooospec_agents/hint.py", "NOWHERE")))
