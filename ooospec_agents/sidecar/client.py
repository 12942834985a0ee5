"""The client of a completions server (vLLM, or another that speaks OpenAI's `/v1/completions`)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from ooospec_agents.http_library import httpx
from ooospec_agents.privacy import debugging, told
from ooospec_agents.sidecar.backend import Completion, SidecarError

ADAPTER = "ooospec"
"""The name under which `ooospec serve sidecar` serves an adapter."""
TOP = 5
"""Likeliest tokens asked for at each position."""
CONNECT_S = 3.0
"""Seconds to wait for a connection."""
READ_S = 60.0
"""Seconds to wait for an answer; whoever calls has a shorter deadline of its own."""

RENEWED_AFTER = 32
"""Cancelled requests after which a loop gets a new pool: for some of them httpcore (1.0.9; its issue 1093) never gives
back the connection's place in the pool, until none is left and every request times out."""


@dataclass
class _Pool:
    """One loop's connections, the requests under way on them and the requests that were cancelled."""

    client: httpx.AsyncClient
    active: int = 0
    cancelled: int = 0


class CompletionsClient:
    """Completes prompts on a server; safe to use from several event loops.

    Args:
        url: The server's address, with or without `/v1`.
        model: The model or adapter; None: the adapter "ooospec" if the server has it, else its first model.
        api_key: Sent as a bearer token where given.

    Raises:
        ValueError: `url` is no http address.
    """

    def __init__(self, url: str, model: str | None = None, api_key: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            msg = f"sidecar {url!r} is no http address: pass one like 'http://localhost:8001'"
            raise ValueError(msg)
        self.url = url.rstrip("/").removesuffix("/v1")
        self._model = model
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        # A connection belongs to the loop that opened it.
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, _Pool] = WeakKeyDictionary()
        self._closing: set[asyncio.Task[None]] = set()
        self._lock = threading.Lock()

    async def complete(self, prompts: Sequence[str], max_tokens: int) -> list[Completion]:
        """Complete every prompt greedily up to a newline, in one call (see `SidecarBackend`)."""
        model = await self._find_model()
        body = {
            "model": model,
            "prompt": list(prompts),
            "max_tokens": max_tokens,
            "temperature": 0.0,
            "stop": ["\n"],
            "logprobs": TOP,
        }
        data = await self._call("POST", "/v1/completions", model, body)
        try:
            choices = sorted(data["choices"], key=lambda choice: choice["index"])
            completions = [_completion(choice) for choice in choices]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._garbage(f"its answer has no completions ({told(error)})") from error
        if len(completions) != len(prompts):
            raise self._garbage(f"{len(completions)} completions came for {len(prompts)} prompts")
        return completions

    async def trained(self) -> bool:
        """Whether the model is an adapter of ours, by its name (see `SidecarBackend`)."""
        return (await self._find_model()).startswith(ADAPTER)

    async def aclose(self) -> None:
        """Close the connections, each on its own loop."""
        with self._lock:
            pools = dict(self._pools)
            self._pools.clear()
        for loop, pool in pools.items():
            if loop is asyncio.get_running_loop():
                await pool.client.aclose()
            elif loop.is_running():
                asyncio.run_coroutine_threadsafe(pool.client.aclose(), loop)

    def _pool(self) -> _Pool:
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._pools:
                timeout = httpx.Timeout(READ_S, connect=CONNECT_S)
                self._pools[loop] = _Pool(httpx.AsyncClient(headers=self._headers, timeout=timeout))
            return self._pools[loop]

    async def _send(self, method: str, url: str, body: Mapping[str, Any] | None) -> httpx.Response:
        pool = self._pool()
        pool.active += 1
        try:
            return await pool.client.request(method, url, json=body)
        except asyncio.CancelledError:
            pool.cancelled += 1
            raise
        finally:
            pool.active -= 1
            if pool.cancelled >= RENEWED_AFTER:
                self._retire(pool)

    def _retire(self, pool: _Pool) -> None:
        """New requests get a new pool; this one is closed with its last request."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._pools.get(loop) is pool:
                del self._pools[loop]
        if not pool.active:
            task = loop.create_task(pool.client.aclose())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def _find_model(self) -> str:
        if self._model is not None:
            return self._model
        data = await self._call("GET", "/v1/models", "")
        try:
            names = [model["id"] for model in data["data"]]
            self._model = ADAPTER if ADAPTER in names else str(names[0])
        except (KeyError, TypeError, IndexError) as error:
            raise self._garbage(f"its list of models is empty or unreadable ({told(error)})") from error
        return self._model

    async def _call(self, method: str, path: str, model: str, body: Mapping[str, Any] | None = None) -> Any:
        try:
            response = await self._send(method, self.url + path, body)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            what = str(error) or type(error).__name__
            msg = f"Sidecar at {self.url!r} does not answer ({what}): start it with `ooospec serve sidecar`"
            raise SidecarError("down", msg) from error
        if response.status_code != 200:
            raise self._refusal(response, model)
        try:
            return response.json()
        except ValueError as error:
            raise self._garbage("its answer is not JSON") from error

    def _garbage(self, what: str) -> SidecarError:
        msg = f"Sidecar at {self.url!r} is no completions server, {what}: check the address"
        return SidecarError("garbage", msg)

    def _refusal(self, response: httpx.Response, model: str) -> SidecarError:
        status, text = response.status_code, response.text[:300]
        said = f"Sidecar at {self.url!r} answered {status}"
        quoted = f": {text!r}" if debugging() else ""  # servers quote the request that they refuse
        if status == 404 and "model" in text:
            advice = "start it with `ooospec serve sidecar` (`--adapter` for a trained one) or name its model"
            return SidecarError("model", f"{said} for model {model!r}: {advice}")
        if status in (404, 405):
            return SidecarError("url", f"{said} to {response.request.url.path!r}: no completions server is there")
        if status in (401, 403):
            return SidecarError("key", f"{said}: pass its API key")
        if 400 <= status < 500 and status != 429:
            return SidecarError("refused", f"{said}{quoted}")
        return SidecarError("server", f"{said}{quoted}")


def _completion(choice: Mapping[str, Any]) -> Completion:
    text = choice["text"]
    if not isinstance(text, str):
        msg = f"text {text!r}"
        raise TypeError(msg)
    logprobs = choice.get("logprobs") or {}
    own = [float(value) for value in logprobs.get("token_logprobs") or () if value is not None]
    tokens = tuple(str(token) for token in logprobs.get("tokens") or ())
    top = tuple(dict(one or {}) for one in logprobs.get("top_logprobs") or ())
    return Completion(text.split("\n", 1)[0], tuple(own), tokens, top)
