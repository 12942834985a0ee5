"""The sidecar worker: predicts in the background, and is never waited for and never fails anyone."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from ooospec_agents.catalog import Catalog
from ooospec_agents.hint import Hint
from ooospec_agents.privacy import told
from ooospec_agents.runtime import background
from ooospec_agents.sidecar import prompts
from ooospec_agents.sidecar.backend import Completion, SidecarBackend, SidecarError
from ooospec_agents.sidecar.breaker import CircuitBreaker
from ooospec_agents.sidecar.client import CompletionsClient
from ooospec_agents.sidecar.wave import MANY, SlotFilter, run_wave

MAX_PREPARED = 256
"""Catalogs remembered as warmed."""
SILENT_S = 2.0
"""Seconds without an answer, of waves in a row whose requests ended meanwhile, that count as one failure."""
_CLOSE_S = 1.0
"""Seconds that cancelled waves get to end."""

T = TypeVar("T")

_log = logging.getLogger(__name__)


class _Heard:
    """A backend that notes when it last answered."""

    def __init__(self, backend: SidecarBackend, clock: Callable[[], float]) -> None:
        self._backend, self._clock = backend, clock
        self.last = clock()

    async def complete(self, prompts: Sequence[str], max_tokens: int) -> list[Completion]:
        completions = await self._backend.complete(prompts, max_tokens)
        self.last = self._clock()
        return completions

    async def trained(self) -> bool:
        return await self._backend.trained()

    async def aclose(self) -> None:
        await self._backend.aclose()


class SidecarWorker:
    """Runs waves; the same class in the target's server and in a client's process. Safe across event loops.

    Args:
        backend: Completes the prompts.
        deadline_s: Seconds after which a wave is given up.
        max_waves: Waves at once; a request beyond that gets no hint, since a late one would be worth little.
        many: See `run_wave`.
        only: Which slots are asked for; all where None.
        breaker: Holds waves back while the sidecar fails.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        backend: SidecarBackend,
        *,
        deadline_s: float = 10.0,
        max_waves: int = 8,
        many: int = MANY,
        only: SlotFilter | None = None,
        breaker: CircuitBreaker | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._backend = backend
        self._deadline_s = deadline_s
        self._max_waves = max_waves
        self._many = many
        self._only = only
        self._breaker = breaker or CircuitBreaker()
        self._clock = clock
        self._lock = threading.Lock()
        self._patience_s = SILENT_S
        self._silent_s = 0.0
        self._running = 0
        self._closed = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._prepared: OrderedDict[str, None] = OrderedDict()
        self._said: set[str] = set()
        self.counts: Counter[str] = Counter()
        """What became of the waves: "hint", "nothing", "busy", "open", "late", "silent", kinds of `SidecarError`."""

    @property
    def resting(self) -> bool:
        """Whether the sidecar failed so often that it is left alone now; a prediction would be None."""
        return self._breaker.open

    def prepare(self, catalog: Catalog) -> None:
        """Have the server compute a catalog's shared prefix, in the background, once a catalog."""
        with self._lock:
            if not catalog.functions or catalog.id in self._prepared:
                return
            self._prepared[catalog.id] = None
            if len(self._prepared) > MAX_PREPARED:
                self._prepared.popitem(last=False)
        self._start(self._warm(catalog))

    async def predict(
        self, catalog: Catalog, messages: Sequence[Any], *, named: str = "", no_call_allowed: bool = True
    ) -> Hint | None:
        """The hint for a request, or None where there is none to be had now. Never raises.

        Args:
            catalog: The functions bound to the request.
            messages: The conversation as chat messages.
            named: The function that the request forces, or "".
            no_call_allowed: Whether the target may answer in text.
        """
        heard = _Heard(self._backend, self._clock)
        wave = self._wave(heard, catalog, messages, named, no_call_allowed)
        return await self._guarded(wave, heard)

    def submit(
        self,
        catalog: Catalog,
        messages: Sequence[Any],
        callback: Callable[[Hint], None],
        *,
        named: str = "",
        no_call_allowed: bool = True,
    ) -> Future[None] | None:
        """Predict in the background: on the running loop, else on the process's background loop.

        Args:
            catalog: The functions bound to the request.
            messages: The conversation as chat messages.
            callback: Called with the hint on that loop, if there is one; must be quick.
            named: The function that the request forces, or "".
            no_call_allowed: Whether the target may answer in text.

        Returns:
            A future to `cancel()` once the hint is of no use any more; None where the worker is closed.
        """

        async def run() -> None:
            hint = await self.predict(catalog, messages, named=named, no_call_allowed=no_call_allowed)
            if hint is None:
                return
            try:
                callback(hint)
            except Exception as error:
                self._say("callback", f"A hint could not be delivered: {told(error)}")

        return self._start(run())

    async def aclose(self) -> None:
        """Give up all waves and close the connections; later predictions are None."""
        with self._lock:
            self._closed = True
            tasks = list(self._tasks)
        here = asyncio.get_running_loop()
        own = [task for task in tasks if task.get_loop() is here and task is not asyncio.current_task()]
        for task in tasks:
            if task in own:
                task.cancel()
            elif not task.get_loop().is_closed():
                task.get_loop().call_soon_threadsafe(task.cancel)
        if own:
            await asyncio.wait(own, timeout=_CLOSE_S)
        await self._backend.aclose()

    def _start(self, work: Coroutine[Any, Any, None]) -> Future[None] | None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            loop = background.get()
        try:
            if not self._closed:
                return asyncio.run_coroutine_threadsafe(work, loop)
        except RuntimeError as error:
            self._say("loop", f"The sidecar's work could not be started: {error}")
        work.close()
        return None

    async def _warm(self, catalog: Catalog) -> None:
        heard = _Heard(self._backend, self._clock)

        async def wave() -> None:
            example = not await heard.trained()
            await heard.complete([prompts.prefix(catalog, example=example)], 1)

        await self._guarded(wave(), heard)

    async def _wave(
        self, backend: SidecarBackend, catalog: Catalog, messages: Sequence[Any], named: str, no_call_allowed: bool
    ) -> Hint | None:
        hint = await run_wave(
            backend,
            catalog,
            messages,
            named=named,
            no_call_allowed=no_call_allowed,
            only=self._only,
            many=self._many,
        )
        self.counts["nothing" if hint is None else "hint"] += 1
        return hint

    async def _guarded(self, work: Coroutine[Any, Any, T], heard: _Heard) -> T | None:
        """The work's result, or None: too busy, held back by the breaker, late, or failed."""
        task = asyncio.current_task()
        with self._lock:
            busy = self._running >= self._max_waves
            allowed = not self._closed and not busy and self._breaker.allow()
            if allowed:
                self._running += 1
                if task is not None:
                    self._tasks.add(task)
            else:
                self.counts["busy" if busy else "open"] += 1
        if not allowed:
            work.close()
            return None
        try:
            async with asyncio.timeout(self._deadline_s):
                result = await work
        except TimeoutError:
            self._failed("late", f"Sidecar {self._name} took longer than {self._deadline_s} s")
        except SidecarError as error:
            self._failed(error.kind, str(error))
        except Exception as error:
            self._failed("fault", f"Predicting with sidecar {self._name} failed: {told(error)}")
        except BaseException:
            self._abandoned(heard)
            raise
        else:
            self._worked()
            return result
        finally:
            with self._lock:
                self._running -= 1
                if task is not None:
                    self._tasks.discard(task)
        return None

    @property
    def _name(self) -> str:
        return repr(getattr(self._backend, "url", type(self._backend).__name__))

    def _failed(self, kind: str, message: str) -> None:
        self.counts[kind] += 1
        if kind == "refused":
            # The server is well, this one request is not.
            self._breaker.success()
        else:
            self._breaker.failure()
        self._say(kind, f"{message}. Requests go on without hints.")

    def _abandoned(self, heard: _Heard) -> None:
        """A wave's request ended first. A sidecar that hangs is known by many such waves without an answer."""
        with self._lock:
            self._silent_s += self._clock() - heard.last
            silent_s = self._silent_s
            failed = silent_s >= self._patience_s and not self._closed
            if failed:
                self._silent_s = 0.0
        if failed:
            self._failed("silent", f"Sidecar {self._name} gave no answer for {silent_s:.1f} s, and requests ended")
        else:
            self._breaker.release()

    def _worked(self) -> None:
        self._silent_s = 0.0
        self._breaker.success()
        if self._said:
            self._said.clear()
            _log.info("Sidecar %s answers again.", self._name)

    def _say(self, kind: str, message: str) -> None:
        """Log once, until it works again."""
        if kind not in self._said:
            self._said.add(kind)
            _log.warning("%s", message)


def from_url(url: str, model: str | None = None, api_key: str | None = None, **options: Any) -> SidecarWorker:
    """A worker for the completions server at an address.

    Args:
        url: The server's address, with or without `/v1`.
        model: Its model or adapter; None: the adapter "ooospec" if the server has it, else its first model.
        api_key: Its key, if it wants one.
        **options: Passed on to `SidecarWorker`.

    Raises:
        ValueError: `url` is no http address.
    """
    return SidecarWorker(CompletionsClient(url, model, api_key), **options)
