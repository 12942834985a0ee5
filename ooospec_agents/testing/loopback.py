"""A small HTTP server on loopback for scripted answers: one thread a connection, standard library only."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from ooospec_agents.testing.script import Received

DONE = "[DONE]"


class Break(Exception):
    """Raised inside an answer: close the connection here."""


@dataclass(frozen=True)
class Answer:
    """An HTTP answer: JSON, literal text, or server-sent events where `events` is given."""

    status: int = 200
    json: Any = None
    text: str | None = None
    events: Iterable[Any] | None = field(default=None, repr=False)


def error(status: int, message: str) -> Answer:
    """An error body as OpenAI-compatible servers send it."""
    return Answer(status, {"error": {"message": message, "type": "BadRequestError", "code": status}})


def models(names: Iterable[str]) -> Answer:
    """The list of models that a server serves."""
    return Answer(json={"object": "list", "data": [{"id": name, "object": "model"} for name in names]})


class LoopbackServer:
    """Serves `respond` on a free port of 127.0.0.1 while the context lasts, and records what it received.

    Attributes:
        requests: Every request received, in order.
        port: Where it listens; 0: on a free port, chosen at the start.
    """

    def __init__(self) -> None:
        self.requests: list[Received] = []
        self.port = 0
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def respond(self, request: Received) -> Answer:
        """Answer one request. Called from the connection's thread."""
        raise NotImplementedError

    @property
    def url(self) -> str:
        """The server's root, without a path."""
        if self._server is None:
            msg = f"{type(self).__name__} is not running: use it as a context manager"
            raise RuntimeError(msg)
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def base_url(self) -> str:
        """What an OpenAI client takes as `base_url`."""
        return f"{self.url}/v1"

    def bodies(self, path: str) -> list[Any]:
        """The bodies received at that path, in order."""
        return [request.body for request in list(self.requests) if request.path == path]

    def wait_for(self, happened: Callable[[], bool], timeout_s: float = 5.0) -> bool:
        """Wait until something happened, at most `timeout_s` seconds; whether it did."""
        end = time.monotonic() + timeout_s
        while not happened():
            if time.monotonic() > end:
                return False
            time.sleep(0.005)
        return True

    def __enter__(self) -> Self:
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is None or self._thread is None:
            return
        self._server.shutdown()
        self._server.server_close()
        self._server.close_connections()
        self._thread.join()
        self._server = None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, scripted: LoopbackServer) -> None:
        super().__init__(("127.0.0.1", scripted.port), _Handler)
        self.scripted = scripted
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is no news here."""

    def close_connections(self) -> None:
        with self._lock:
            open_now = list(self._connections)
        for connection in open_now:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: tests read `requests`."""

    def _serve(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            body = json.loads(raw) if raw else None
        except ValueError:
            body = None
        headers = {name.lower(): value for name, value in self.headers.items()}
        received = Received(self.command, self.path.partition("?")[0], headers, body)
        self.server.scripted.requests.append(received)
        try:
            answer = self.server.scripted.respond(received)
            if answer.events is None:
                self._send(answer)
            else:
                self._stream(iter(answer.events))
        except (Break, BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_DELETE = _serve

    def _send(self, answer: Answer) -> None:
        payload = answer.text if answer.text is not None else json.dumps(answer.json)
        data = payload.encode("utf-8", "surrogatepass")
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Iterator[Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            text = event if isinstance(event, str) else json.dumps(event)
            data = f"data: {text}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
