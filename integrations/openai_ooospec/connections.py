"""HTTP clients by event loop: a connection cannot be used from another loop than its own."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator
from functools import cache
from typing import Any

import openai

from ooospec_agents.http_library import httpx


class LoopConnections:
    """One HTTP client for each event loop, closed when its loop shuts down or when this is let go of.

    Args:
        first: The client for the first loop that asks, and for callers outside of any loop.
    """

    def __init__(self, first: Any | None = None) -> None:
        self._first = first
        self._adopted = first is None
        self._clients: dict[asyncio.AbstractEventLoop, tuple[Any, AsyncGenerator[None]]] = {}

    def current(self) -> Any | None:
        """The running loop's client; outside of a loop the first one."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return self._first
        if loop not in self._clients:
            for closed in [known for known in list(self._clients) if known.is_closed()]:
                del self._clients[closed]
            client = openai.DefaultAsyncHttpxClient(verify=_certificates()) if self._adopted else self._first
            self._adopted = True
            self._clients[loop] = (client, _until_shutdown(self._clients, loop, client))
        return self._clients[loop][0]


@cache
def _certificates() -> ssl.SSLContext:
    """Loaded once: doing it for each loop would hold up each loop's first request."""
    return httpx.create_ssl_context()


def _until_shutdown(
    clients: dict[asyncio.AbstractEventLoop, Any], loop: asyncio.AbstractEventLoop, client: Any
) -> AsyncGenerator[None]:
    """A started generator that closes the client: a loop ends its generators before it closes, and lost ones too."""

    async def lifetime() -> AsyncGenerator[None]:
        try:
            yield
        finally:
            clients.pop(loop, None)
            await client.aclose()

    generator = lifetime()
    try:
        # One step, up to the `yield`: from here on the running loop knows the generator.
        generator.__anext__().send(None)
    except StopIteration:
        return generator
    return generator


shared = LoopConnections()
"""For clients that nobody closes: models come and go, connections stay with their loop."""
