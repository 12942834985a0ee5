"""The predictor's worker: one thread of its own, which no request waits for and whose faults reach none."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

from ooospec_agents.catalog import Catalog
from ooospec_agents.hint import Hint
from ooospec_agents.privacy import told, trace

MAX_WAITING = 8
"""Requests that wait for the thread, at most; one beyond them gets no hint, since it would come late."""

_log = logging.getLogger(__name__)


class Predictor(Protocol):
    """Predicts one request at a time."""

    def prepare(self, catalog: Catalog) -> None:
        """Do ahead what does not depend on a request."""

    def predict(
        self, catalog: Catalog, messages: Sequence[Any], *, named: str = "", no_call_allowed: bool = True
    ) -> Hint | None:
        """The hint for a request, or None."""


class PredictorWorker:
    """Runs a predictor in a thread; its `prepare` and `submit` are those of the sidecar's worker.

    Args:
        load: Makes the predictor, in the thread.
    """

    def __init__(self, load: Callable[[], Predictor]) -> None:
        self._pool = ThreadPoolExecutor(1, "ooospec-predictor")
        self._lock = threading.Lock()
        self._waiting = 0
        self._predictor: Predictor | None = None
        self._said: set[str] = set()
        self.counts: Counter[str] = Counter()
        """What became of the requests: "hint", "nothing", "busy", "fault"."""
        self._pool.submit(self._load, load)

    @property
    def resting(self) -> bool:
        """Whether it is left alone for now, as a sidecar that failed is: never."""
        return False

    def prepare(self, catalog: Catalog) -> None:
        """Read a catalog's texts, in the background."""
        if catalog.functions:
            self._start(lambda predictor: predictor.prepare(catalog))

    async def predict(
        self, catalog: Catalog, messages: Sequence[Any], *, named: str = "", no_call_allowed: bool = True
    ) -> Hint | None:
        """The hint for a request, or None where there is none to be had; see `SidecarWorker.predict`. Never raises."""
        found: list[Hint] = []

        def work(predictor: Predictor) -> None:
            hint = predictor.predict(catalog, messages, named=named, no_call_allowed=no_call_allowed)
            self.counts["nothing" if hint is None else "hint"] += 1
            found.extend([] if hint is None else [hint])

        future = self._start(work)
        if future is not None:
            await asyncio.wait([asyncio.wrap_future(future)])
        return found[0] if found else None

    def submit(
        self,
        catalog: Catalog,
        messages: Sequence[Any],
        callback: Callable[[Hint], None],
        *,
        named: str = "",
        no_call_allowed: bool = True,
    ) -> Future[None] | None:
        """Predict in the background; see `SidecarWorker.submit`.

        The callback is called on the running loop; where there is none, in the worker's thread.

        Returns:
            A future to `cancel()` once the hint is of no use; None where too many requests wait.
        """
        try:
            loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            loop = None

        def deliver(hint: Hint) -> None:
            try:
                callback(hint)
            except Exception as error:
                self._fault("callback", error)

        def work(predictor: Predictor) -> None:
            hint = predictor.predict(catalog, messages, named=named, no_call_allowed=no_call_allowed)
            self.counts["nothing" if hint is None else "hint"] += 1
            if hint is None:
                return
            if loop is None:
                deliver(hint)
            elif not loop.is_closed():
                loop.call_soon_threadsafe(deliver, hint)

        return self._start(work)

    async def aclose(self) -> None:
        """Give up what waits; a prediction that runs ends by itself within a moment."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _load(self, load: Callable[[], Predictor]) -> None:
        try:
            self._predictor = load()
        except Exception as error:
            self._fault("load", error)

    def _start(self, work: Callable[[Predictor], None]) -> Future[None] | None:
        with self._lock:
            if self._waiting >= MAX_WAITING:
                self.counts["busy"] += 1
                return None
            self._waiting += 1
        try:
            future = self._pool.submit(self._run, work)
        except RuntimeError:  # closed
            with self._lock:
                self._waiting -= 1
            return None
        future.add_done_callback(self._done)
        return future

    def _run(self, work: Callable[[Predictor], None]) -> None:
        if self._predictor is None:
            return
        try:
            work(self._predictor)
        except Exception as error:
            self._fault("predict", error)

    def _done(self, future: Future[None]) -> None:
        with self._lock:
            self._waiting -= 1

    def _fault(self, kind: str, error: Exception) -> None:
        self.counts["fault"] += 1
        if kind not in self._said:
            self._said.add(kind)
            shown = f"{error}" if kind == "load" else told(error)
            message = "The span predictor failed (%s: %s). Requests go on without its hints."
            _log.warning(message, kind, shown, exc_info=error if kind == "load" else trace(error))
