"""The targets that this process knows, shared by all clients and models in it."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections import OrderedDict

from ooospec_agents.client import SidecarSettings, TargetClient
from ooospec_agents.runtime import background

MAX_TARGETS = 64
"""Most targets remembered; the one unused longest is forgotten first."""
_CLOSE_S = 1.0

_targets: OrderedDict[tuple[str, SidecarSettings, str], TargetClient] = OrderedDict()
_targets_lock = threading.Lock()


def target_client(base_url: str, sidecar: SidecarSettings, api_key: str = "") -> TargetClient:
    """The process's client of one target. Equal arguments give the same one: what it knows, all know."""
    key = (base_url.rstrip("/"), sidecar, api_key)
    with _targets_lock:
        if key not in _targets:
            _targets[key] = TargetClient(base_url, sidecar)
        _targets.move_to_end(key)
        found = _targets[key]
        forgotten = [_targets.popitem(last=False)[1] for _ in range(len(_targets) - MAX_TARGETS)]
    for target in forgotten:
        asyncio.run_coroutine_threadsafe(target.aclose(), background.get())
    return found


def close_targets() -> None:
    """Close the connections to all targets and sidecars; runs at exit, and later requests open new ones."""
    with _targets_lock:
        targets = list(_targets.values())
        _targets.clear()
    if not targets:
        return

    async def close() -> None:
        await asyncio.gather(*(target.aclose() for target in targets), return_exceptions=True)

    try:
        asyncio.run_coroutine_threadsafe(close(), background.get()).result(_CLOSE_S)
    except Exception:
        # At exit nothing is left to be saved; the sockets go with the process.
        return


def _forget() -> None:
    """In a forked child nothing of the parent's connections, locks and unfinished work is of use."""
    global _targets_lock
    _targets_lock = threading.Lock()
    _targets.clear()


# Registered after the background loop's own, so it runs before it.
atexit.register(close_targets)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
