"""One background event loop for callers that have none."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

_STOP_S = 2.0
"""Seconds that tasks get to end at exit."""


class BackgroundLoop:
    """An event loop in a daemon thread, started at first use and again after a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def get(self) -> asyncio.AbstractEventLoop:
        """The running loop; use `asyncio.run_coroutine_threadsafe` with it."""
        with self._lock:
            if self._loop is None or self._loop.is_closed():
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_run, args=(self._loop,), name="ooospec-loop", daemon=True)
                self._thread.start()
            return self._loop

    def stop(self) -> None:
        """Cancel what runs, wait a moment for it and end the thread. A later `get` starts a new one."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None or loop.is_closed():
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_STOP_S)

    def forget(self) -> None:
        """Drop the loop without touching it: in a forked child its thread does not exist."""
        self._lock = threading.Lock()
        self._loop = self._thread = None


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.wait(tasks, timeout=_STOP_S / 2))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


background = BackgroundLoop()
"""The process's one background loop."""

atexit.register(background.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=background.forget)


def spawn(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Run a coroutine on the background loop; `result()` of what is returned waits for it."""
    return asyncio.run_coroutine_threadsafe(work, background.get())
