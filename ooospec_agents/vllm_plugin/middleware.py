"""Between vLLM's key check and its chat route: announces requests to the worker, adds reports to answers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from ooospec_agents.hint import REPORT_HEADER
from ooospec_agents.vllm_plugin.accelerator import Accelerator, Ticket
from ooospec_agents.vllm_plugin.reporting import reporting_send

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

PATHS = frozenset({"/v1/chat/completions", "/v1/responses"})
MAX_BODY_BYTES = 4 * 1024 * 1024
"""Larger bodies pass untouched: reading one a second time would hold up all other requests."""


class Middleware:
    """Pure ASGI. Whatever goes wrong here is counted, and the request goes on as it came."""

    def __init__(self, app: App, accelerator: Accelerator) -> None:
        """Wrap an app."""
        self._app = app
        self._accelerator = accelerator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "lifespan":
            try:
                await self._app(scope, receive, send)
            finally:
                await self._accelerator.aclose()
            return
        if not _is_ours(scope) or not self._accelerator.drafting:
            await self._app(scope, receive, send)
            return
        messages, body = await _read(receive)
        ticket: Ticket | None = None
        if body is not None and _may_concern_us(body):
            try:
                ticket, changed = self._begin(body, scope)
            except Exception as error:
                self._accelerator.faults.swallow("middleware", error)
            else:
                if changed is not None:
                    scope = _with_length(scope, len(changed))
                    messages = [{"type": "http.request", "body": changed, "more_body": False}]
        receive = _replay(messages, receive)
        if ticket is None:
            await self._app(scope, receive, send)
            return
        try:
            if ticket.wants_report:
                send = reporting_send(send, self._accelerator, ticket)
            await self._app(scope, receive, send)
        finally:
            self._accelerator.finish(ticket)

    def _begin(self, raw: bytes, scope: Scope) -> tuple[Ticket | None, bytes | None]:
        """The ticket, if the request was announced, and the body to send on, if it was changed."""
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError):
            return None, None  # vLLM's to answer
        if not isinstance(body, dict):
            return None, None
        asked = any(name == REPORT_HEADER.encode("ascii") for name, _ in scope["headers"])
        ticket = self._accelerator.begin(body, self._accelerator.tenant(scope["headers"]), wants_report=asked)
        if ticket is None and b"ooospec" not in raw and b"\\u00" not in raw:
            return None, None
        return ticket, json.dumps(body, separators=(",", ":")).encode("ascii")


def _is_ours(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] != "POST":
        return False
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", "")) in PATHS


def _may_concern_us(body: bytes) -> bool:
    """Whether tools or wishes may be in there; a plain chat is not parsed a second time.

    JSON may spell any letter as an escape. A name spelled so must not slip through: only we may set ids.
    """
    return b'"tools"' in body or b"ooospec" in body or b"\\u00" in body


async def _read(receive: Receive) -> tuple[list[Message], bytes | None]:
    """The messages of a request's body, and the body; None if it is cut short or too large."""
    messages: list[Message] = []
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        messages.append(message)
        if message["type"] != "http.request":
            return messages, None
        piece = message.get("body", b"")
        pieces.append(piece)
        size += len(piece)
        if size > MAX_BODY_BYTES:
            return messages, None
        if not message.get("more_body", False):
            return messages, b"".join(pieces)


def _replay(messages: list[Message], receive: Receive) -> Receive:
    """Gives the messages that were read already, then what comes (a disconnect, for one)."""
    waiting = messages[::-1]

    async def replayed() -> Message:
        return waiting.pop() if waiting else await receive()

    return replayed


def _with_length(scope: Scope, length: int) -> Scope:
    headers = [(name, str(length).encode() if name == b"content-length" else value) for name, value in scope["headers"]]
    return {**scope, "headers": headers}
