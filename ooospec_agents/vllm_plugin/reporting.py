"""Puts the report of a request into its response, whole or streamed, and leaves every other byte alone."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol

from ooospec_agents.vllm_plugin.accelerator import Ticket
from ooospec_agents.vllm_plugin.faults import Faults

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]

_DONE = b"data: [DONE]"


class Reporter(Protocol):
    """Who knows the report; `Accelerator` does."""

    faults: Faults

    async def report(self, ticket: Ticket) -> dict[str, Any] | None:
        """The report of a request that is over, or None."""


def reporting_send(send: Send, reporter: Reporter, ticket: Ticket) -> Send:
    """A `send` that adds the report under the key "ooospec".

    A JSON response gets it as its last key. A stream gets one more chunk before `[DONE]`, with the `id`,
    `object`, `created` and `model` of the others and no choices. Other responses, like errors, pass.
    """
    return _Response(send, reporter, ticket).send


class _Response:
    def __init__(self, send: Send, reporter: Reporter, ticket: Ticket) -> None:
        self._send = send
        self._reporter = reporter
        self._ticket = ticket
        self._start: Message | None = None  # of a JSON response: its length is not known before its end
        self._body = b""
        self._streams = False
        self._first: dict[str, Any] | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200:
            kind = dict(message.get("headers", ())).get(b"content-type", b"")
            self._streams = kind.startswith(b"text/event-stream")
            if kind.startswith(b"application/json"):
                self._start = message
                return
        elif message["type"] == "http.response.body":
            if self._start is not None:
                self._body += message.get("body", b"")
                if not message.get("more_body", False):
                    await self._send_whole(self._start, self._body)
                return
            if self._streams:
                message = {**message, "body": await self._with_chunk(message.get("body", b""))}
        await self._send(message)

    async def _send_whole(self, start: Message, body: bytes) -> None:
        report = await self._report()
        if report is not None and body.startswith(b"{") and body.endswith(b"}") and len(body) > 2:
            body = body[:-1] + b',"ooospec":' + _dump(report) + b"}"
            headers = [(name, value) for name, value in start["headers"] if name != b"content-length"]
            start = {**start, "headers": [*headers, (b"content-length", str(len(body)).encode())]}
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def _with_chunk(self, body: bytes) -> bytes:
        if self._first is None and body.startswith(b"data: {"):
            self._first = _read_chunk(body)
        # JSON has no raw line breaks, so this is never text of the model.
        at = 0 if body.startswith(_DONE) else body.find(b"\n" + _DONE) + 1
        if self._first is None or (at == 0 and not body.startswith(_DONE)):
            return body
        report = await self._report()
        if report is None:
            return body
        chunk = {name: self._first.get(name) for name in ("id", "object", "created", "model")}
        chunk |= {"choices": [], "ooospec": report}
        return body[:at] + b"data: " + _dump(chunk) + b"\n\n" + body[at:]

    async def _report(self) -> dict[str, Any] | None:
        try:
            return await self._reporter.report(self._ticket)
        except Exception as error:
            self._reporter.faults.swallow("report", error)
            return None


def _read_chunk(body: bytes) -> dict[str, Any] | None:
    try:
        chunk = json.loads(body.partition(b"\n")[0].removeprefix(b"data: "))
    except ValueError:
        return None
    return chunk if isinstance(chunk, dict) and chunk.get("object") == "chat.completion.chunk" else None


def _dump(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")
