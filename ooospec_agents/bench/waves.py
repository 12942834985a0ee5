"""The sidecar as if on a device of its own: its answers and delays, recorded while it runs alone, are replayed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import httpx

from ooospec_agents.bench.data import Item
from ooospec_agents.bench.requests import post_hint
from ooospec_agents.catalog import Catalog
from ooospec_agents.hint import Hint
from ooospec_agents.runtime import spawn
from ooospec_agents.sidecar import prompts
from ooospec_agents.sidecar.backend import SidecarBackend
from ooospec_agents.sidecar.wave import MANY, run_wave


@dataclass(frozen=True)
class RecordedWave:
    """What the sidecar said of one request, and how long it took.

    Attributes:
        hint: The hint's JSON text; "" where there was none.
        delay_s: Seconds from the wave's start to its hint.
    """

    hint: str
    delay_s: float

    def to_json(self) -> dict[str, Any]:
        """The wave as JSON data; `RecordedWave(**data)` reads it back."""
        return asdict(self)


class SidecarProbe:
    """Asks a sidecar as a target's server would: warmed with tools and earlier turns, never with the last message.

    Args:
        backend: The sidecar.
        required: Whether the target must call something.
    """

    def __init__(self, backend: SidecarBackend, *, required: bool) -> None:
        self._backend = backend
        self._required = required

    def warm(self, item: Item) -> None:
        """Have the sidecar keep what it may know before the request: tools, and the turns before the last message."""
        catalog = Catalog.from_tools(item.tools)
        if catalog.functions:
            spawn(self._prefill(catalog, item.messages[:-1])).result()

    def wave(self, item: Item) -> RecordedWave:
        """Ask for one request, and time it.

        Raises:
            SidecarError: The sidecar failed; that the request has no hint would be a figure of its own.
        """
        catalog = Catalog.from_tools(item.tools)
        began = time.perf_counter()
        hint = spawn(self._ask(catalog, item.messages)).result()
        return RecordedWave(hint.to_json() if hint is not None else "", time.perf_counter() - began)

    def close(self) -> None:
        """Close the connections."""
        spawn(self._backend.aclose()).result()

    async def _ask(self, catalog: Catalog, messages: list[dict[str, Any]]) -> Hint | None:
        return await run_wave(self._backend, catalog, messages, no_call_allowed=not self._required, many=MANY)

    async def _prefill(self, catalog: Catalog, earlier: list[dict[str, Any]]) -> None:
        text = prompts.prefix(catalog, example=not await self._backend.trained())
        if any(message.get("role") == "user" for message in earlier):
            text += prompts.conversation(earlier)
        await self._backend.complete([text], 1)


@contextmanager
def posted_after(client: httpx.Client, url: str, request_id: str, wave: RecordedWave | None) -> Iterator[None]:
    """Post a recorded hint to a target while a request runs in the block, as long after its start as it took."""
    if wave is None or not wave.hint:
        yield
        return
    hint = Hint.parse(wave.hint)
    timer = threading.Timer(wave.delay_s, post_hint, (client, url, request_id, hint.to_json().encode()))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
