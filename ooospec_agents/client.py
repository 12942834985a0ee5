"""What every client integration shares: ask the target who it is, tag requests, and send hints of a sidecar.

Everything here happens in the background or in memory: no request waits for it, and nothing of it raises.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections import OrderedDict
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ooospec_agents.catalog import Catalog
from ooospec_agents.chat_request import forced_function, messages_of
from ooospec_agents.hint import MAX_HINT_BYTES
from ooospec_agents.http_library import httpx
from ooospec_agents.runtime import background
from ooospec_agents.target_status import STATUS_TIMEOUT_S, Faults, StatusBoard, TargetStatus

if TYPE_CHECKING:
    from ooospec_agents.predictor.worker import PredictorWorker
    from ooospec_agents.sidecar.worker import SidecarWorker

HINT_TIMEOUT_S = 5.0
"""Longest wait for the target to take a hint, in seconds: later it would be useless."""
MAX_PENDING = 64
"""Most hints on their way at a time, for one target; requests beyond it go without."""
MAX_PREPARED = 256
"""Most catalogs remembered as prepared, for one target."""

SPAN = "span"
"""In place of a sidecar's URL: the span predictor, which needs no server but torch in the client's process."""

_HINTED_METHODS = (None, "ooospec")


@dataclass(frozen=True)
class SidecarSettings:
    """A sidecar of the client's own. With `url` None the target's server asks its own, if it has one.

    Attributes:
        url: The sidecar's base URL, or `SPAN` for the span predictor in this process, or None.
        model: The model (or adapter) to ask for, or None for the sidecar's first.
        api_key: The sidecar's key, or None.
    """

    url: str | None = None
    model: str | None = None
    api_key: str | None = None


@dataclass(frozen=True)
class _Connection:
    """What belongs to one event loop: the HTTP client, and the lock under which the status is asked for."""

    loop: asyncio.AbstractEventLoop
    http: httpx.AsyncClient
    asking: asyncio.Lock


class TargetClient:
    """One target, as this process knows it. Thread-safe; all that waits runs on the background loop.

    Args:
        base_url: What an OpenAI client takes as `base_url`, such as "http://localhost:8000/v1".
        sidecar: The client's own sidecar, if it has one.

    Attributes:
        faults: What went wrong, by kind: "status", "plugin", "drafting", "prepare", "hint", "pending".
    """

    def __init__(self, base_url: str, sidecar: SidecarSettings | None = None) -> None:
        self.faults = Faults()
        self._base = base_url.rstrip("/")
        self._sidecar = sidecar or SidecarSettings()
        self._status = StatusBoard(self._base, self.faults, plugin_expected=self._sidecar.url is not None)
        self._lock = threading.Lock()
        self._asking = False
        self._pending = 0
        self._prepared: OrderedDict[str, None] = OrderedDict()
        self._connected: _Connection | None = None
        self._worker: SidecarWorker | PredictorWorker | None = None

    @property
    def pending(self) -> int:
        """Hints on their way now."""
        return self._pending

    def prepare(self, tools: Sequence[Any], headers: Mapping[str, str]) -> None:
        """Get ready for requests with these tools, in the background: ask the target, warm both servers.

        Args:
            tools: OpenAI tools, as a request would carry them.
            headers: The HTTP headers that the target asks for.
        """
        self._in_background(self._prepare(list(tools), dict(headers)), "prepare")

    def wait(self, timeout_s: float) -> bool:
        """Wait until the target's status is known. For scripts and tests: requests never need it.

        Returns:
            Whether the target is known to have the plugin.
        """
        return self._status.wait(timeout_s)

    def xargs(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, Any] | None:
        """The `vllm_xargs` to send with a chat request, the user's own included, and a hint set on its way.

        Args:
            body: The JSON body of a chat or Responses request. It is only read.
            headers: The HTTP headers that the target asks for.

        Returns:
            The merged `vllm_xargs`, or None to send the request as it is: no tools, or a target that is not
            known to have the plugin (others may refuse the field).
        """
        tools, given = body.get("tools"), body.get("vllm_xargs")
        if not isinstance(tools, list) or not tools or not isinstance(given, Mapping | None):
            return None
        status = self._known(dict(headers))
        if not status.plugin:
            return None
        user = dict(given or {})
        ours: dict[str, Any] = {"ooospec_report": 1}
        if status.drafting and self._wants_hint(body, user):
            request_id = str(user.get("ooospec_id") or uuid.uuid4().hex)
            if self._start_hint(request_id, body, dict(headers)):
                ours["ooospec_id"] = request_id
        return {**ours, **user}

    async def aclose(self) -> None:
        """Close the connections. The client can go on being used."""
        worker, self._worker = self._worker, None
        connected, self._connected = self._connected, None
        if worker is not None:
            await worker.aclose()
        if connected is not None and connected.loop is asyncio.get_running_loop():
            await connected.http.aclose()

    def _wants_hint(self, body: Mapping[str, Any], user: Mapping[str, Any]) -> bool:
        asked = self._sidecar.url is not None and body.get("tool_choice") != "none"
        readable = isinstance(body.get("messages", body.get("input")), list | str)
        resting = self._worker is not None and self._worker.resting
        return (
            asked and readable and not resting and user.get("ooospec") in _HINTED_METHODS and "ooospec_hint" not in user
        )

    def _known(self, headers: dict[str, str]) -> TargetStatus:
        """What is known now; starts asking where that is nothing, or old."""
        with self._lock:
            status = self._status.now
            if status.fresh or self._asking:
                return status
            self._asking = True
        if not self._in_background(self._ask(headers), "status"):
            self._asking = False
        return status

    async def _ask(self, headers: dict[str, str]) -> None:
        connection = self._connection()
        try:
            await self._status.ask(connection.http, connection.asking, headers)
        finally:
            self._asking = False

    async def _prepare(self, tools: list[Any], headers: dict[str, str]) -> None:
        await self._ask(headers)
        catalog = Catalog.from_tools(tools)
        if not self._status.now.plugin or not catalog.functions or catalog.id in self._prepared:
            return
        self._prepared[catalog.id] = None
        while len(self._prepared) > MAX_PREPARED:
            self._prepared.popitem(last=False)
        if self._sidecar.url is not None:
            self._sidecar_worker().prepare(catalog)
        await self._post("prepare", headers, json={"tools": tools}, timeout=STATUS_TIMEOUT_S)

    def _start_hint(self, request_id: str, body: Mapping[str, Any], headers: dict[str, str]) -> bool:
        with self._lock:
            if self._pending >= MAX_PENDING:
                self.faults.add("pending", "%d hints for %r on their way: some are left out", MAX_PENDING, self._base)
                return False
            self._pending += 1
        # The lists are copied: the caller may go on using its own once the request is answered.
        choice = body.get("tool_choice")
        work = self._hint(request_id, list(body["tools"]), list(messages_of(body)), choice, headers)
        started = self._in_background(work, "hint")
        if not started:
            self._done()
        return started

    async def _hint(
        self, request_id: str, tools: list[Any], messages: list[Any], choice: Any, headers: dict[str, str]
    ) -> None:
        try:
            named = forced_function(choice)
            catalog, may_answer = Catalog.from_tools(tools), choice != "required" and not named
            worker = self._sidecar_worker()
            hint = await worker.predict(catalog, messages, named=named, no_call_allowed=may_answer)
            if hint is None:
                return
            text = hint.to_json().encode("utf-8", "replace")
            if len(text) > MAX_HINT_BYTES:
                message = "Hint of %d bytes dropped: at most %d are sent"
                self.faults.add("hint", message, len(text), MAX_HINT_BYTES)
                return
            json_headers = {**headers, "Content-Type": "application/json"}
            await self._post(f"hints/{request_id}", json_headers, content=text, timeout=HINT_TIMEOUT_S)
        finally:
            self._done()

    def _done(self) -> None:
        with self._lock:
            self._pending -= 1

    async def _post(self, route: str, headers: dict[str, str], **request: Any) -> None:
        url = f"{self._base}/ooospec/{route}"
        response = await self._connection().http.post(url, headers=headers, **request)
        if response.status_code >= 400:
            kind = route.partition("/")[0].removesuffix("s")
            self.faults.add(kind, "%r answered %d: %s", url, response.status_code, response.text[:200])

    def _sidecar_worker(self) -> SidecarWorker | PredictorWorker:
        """The worker; made on the background loop, when first needed. Imported by those who have a sidecar."""
        if self._worker is None and self._sidecar.url == SPAN:
            from ooospec_agents.predictor.folder import find, loader
            from ooospec_agents.predictor.worker import PredictorWorker

            self._worker = PredictorWorker(loader(find()))
        elif self._worker is None:
            from ooospec_agents.sidecar.worker import from_url

            self._worker = from_url(self._sidecar.url or "", self._sidecar.model, self._sidecar.api_key)
        return self._worker

    def _connection(self) -> _Connection:
        """The connection of the running loop (another one after a fork)."""
        loop = asyncio.get_running_loop()
        if self._connected is None or self._connected.loop is not loop:
            # Without TLS there is nothing to verify, and loading the certificates takes long.
            http = httpx.AsyncClient(verify=not self._base.startswith("http://"))
            self._connected = _Connection(loop, http, asyncio.Lock())
        return self._connected

    def _in_background(self, work: Coroutine[Any, Any, None], kind: str) -> bool:
        task = self._guarded(work, kind)
        try:
            asyncio.run_coroutine_threadsafe(task, background.get())
        except Exception as problem:
            task.close()
            work.close()
            self.faults.add(kind, "Acceleration of %r: no background loop: %r", self._base, problem)
            return False
        return True

    async def _guarded(self, work: Coroutine[Any, Any, None], kind: str) -> None:
        try:
            await work
        except Exception as problem:
            self.faults.add(kind, "Acceleration of %r: %s failed: %r", self._base, kind, problem)
