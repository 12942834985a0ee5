"""The local road between API process and worker: ZeroMQ sockets over ipc, in a folder for this user alone.

ZeroMQ's I/O thread receives, and both sides read what is there when they pass by; only `foresight.py` waits for it.
Sending never blocks: what does not fit is dropped and counted, and a request without it is
served as if we were absent.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from zmq.constants import Flag, SocketOption, SocketType
from zmq.error import ZMQError
from zmq.sugar.context import Context

from ooospec_agents.drafting.guesses import LexicalGuesses
from ooospec_agents.drafting.request import RequestSpec
from ooospec_agents.hint import Hint
from ooospec_agents.privacy import told
from ooospec_agents.vllm_plugin.messages import (
    LOGGER,
    SENDER_CATALOGS,
    CatalogStore,
    GuessesMessage,
    HintMessage,
    Mail,
    MessageError,
    Open,
    Report,
    decode,
    encode_guesses,
    encode_hint,
    encode_open,
    encode_report,
)
from ooospec_agents.vllm_plugin.sockets import (
    SOCKET_DIR_VARIABLE,
    ChannelError,
    address,
    has_mail,
    make_socket,
    socket_dir,
    worker_address,
)

__all__ = ["SOCKET_DIR_VARIABLE", "ApiChannel", "ChannelError", "WorkerInbox", "WorkerOutbox", "worker_address"]

MAX_DRAINED = 256
"""Messages read at once; the rest waits for the next engine step."""
MAX_AGE_S = 600.0
"""Age from which a message is not worth reading any more: its request is long over."""
MAX_REPORTS = 1024
"""Reports kept in an API process until somebody asks for them."""
MAX_REPLY_ADDRESSES = 64
"""API processes that a worker talks to."""

logger = logging.getLogger(LOGGER)


class WorkerInbox:
    """What API processes sent to this worker. Never raises: a socket that cannot be made is an empty inbox.

    Attributes:
        fault: Why the inbox is out of use, or "".
        dropped: Messages that could not be read or were too old.
    """

    def __init__(self, address: str) -> None:
        """Listen at an `ipc://` address."""
        self.fault = ""
        self.dropped = 0
        self._catalogs = CatalogStore()
        self._context: Any = None
        self._socket: Any = None
        try:
            self._context = Context()
            self._socket = make_socket(self._context, SocketType.PULL)
            self._socket.bind(address)
        except Exception as error:
            self.fault = f"cannot listen at {address!r}: {error}"
            logger.warning("ooospec: %s; requests are served without drafts", self.fault)
            self.close()

    def mail(self, most: int | None = None) -> list[Mail]:
        """Everything that has come, oldest first, at most `most` messages (`MAX_DRAINED`). Does not wait."""
        most = MAX_DRAINED if most is None else most
        if self._socket is None:
            return []
        messages: list[Mail] = []
        try:
            # Asking for the events first costs a tenth of a failed receive, and most steps find nothing.
            while len(messages) < most and has_mail(self._socket):
                self._read(self._socket.recv(Flag.NOBLOCK), messages)
        except ZMQError as error:
            if error.errno != errno.EAGAIN:
                self._count(error)
        except Exception as error:
            self._count(error)
        return messages

    def fileno(self) -> int:
        """A file descriptor that can be read when something may have come; another thread may wait for it."""
        return int(self._socket.getsockopt(SocketOption.FD))

    def close(self) -> None:
        """Stop listening. May be called twice."""
        if self._socket is not None:
            self._socket.close(linger=0)
        if self._context is not None:
            self._context.term()
        self._socket = self._context = None

    def _read(self, data: bytes, messages: list[Mail]) -> None:
        try:
            message = decode(data, self._catalogs)
        except MessageError as error:
            self._count(error)
            return
        if isinstance(message, Report) or time.monotonic() - message.sent_at > MAX_AGE_S:
            self.dropped += 1
            return
        messages.append(message)

    def _count(self, error: Exception) -> None:
        self.dropped += 1
        if self.dropped == 1:
            logger.warning("ooospec: a message was dropped: %s (further ones are only counted)", told(error))


class WorkerOutbox:
    """The way back to the API processes, one socket for each. Never blocks, never raises.

    Attributes:
        dropped: Reports that could not be sent.
    """

    def __init__(self) -> None:
        """An outbox that is connected to nobody yet."""
        self.dropped = 0
        self._context: Any = None
        self._sockets: OrderedDict[str, Any] = OrderedDict()

    def prepare(self, address: str) -> None:
        """Connect ahead of the first report, so that it leaves without that delay."""
        try:
            self._connect(address)
        except Exception:
            self.dropped += 1

    def send(self, address: str, body: Mapping[str, Any]) -> bool:
        """Send one report (a body with its "id") to the API process at `address`; whether it left."""
        try:
            report = Report(str(body["id"]), body)
            self._connect(address).send(encode_report(report), Flag.NOBLOCK)
        except Exception as error:
            self.dropped += 1
            if self.dropped == 1:
                logger.warning("ooospec: a report was dropped: %s (further ones are only counted)", told(error))
            return False
        return True

    def close(self) -> None:
        """Close all sockets. May be called twice."""
        for socket in self._sockets.values():
            socket.close(linger=0)
        self._sockets.clear()
        if self._context is not None:
            self._context.term()
        self._context = None

    def _connect(self, address: str) -> Any:
        socket = self._sockets.get(address)
        if socket is not None:
            self._sockets.move_to_end(address)
            return socket
        # A report says what was asked for and written: it goes to no address outside our own folder.
        if not address.startswith(f"ipc://{socket_dir()}/"):
            msg = f"reply address {address!r} is not in the folder of the sockets"
            raise ChannelError(msg)
        if self._context is None:
            self._context = Context()
        socket = make_socket(self._context, SocketType.PUSH)
        socket.connect(address)
        self._sockets[address] = socket
        while len(self._sockets) > MAX_REPLY_ADDRESSES:
            self._sockets.popitem(last=False)[1].close(linger=0)
        return socket


class ApiChannel:
    """One API process's end: sends requests and hints to all local workers, keeps the reports that come back.

    A request runs on one data-parallel rank, and which one is not known here: every rank is told, and the
    others never see the request's id. All methods belong to one thread; they work under any event loop.

    Attributes:
        reply_address: Where this process receives reports.
        dropped: Messages that could not be sent or read.
        on_news: Called with what a worker tells of itself along with a report.
    """

    def __init__(self, ranks: Sequence[int] = (0,)) -> None:
        """Connect to the workers of these data-parallel ranks, the local ones.

        Raises:
            ChannelError: The folder of the sockets cannot be used.
        """
        self.dropped = 0
        self.on_news: Callable[[Mapping[str, Any]], None] | None = None
        self.reply_address = address(f"api-{os.getpid()}-{secrets.token_hex(4)}")
        self._context: Any = Context()
        self._workers: list[Any] = []
        self._sent: list[OrderedDict[str, None]] = [OrderedDict() for _ in ranks]
        self._reports: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._catalogs = CatalogStore(0)
        self._inbox: Any = None
        try:
            for rank in ranks:
                socket = make_socket(self._context, SocketType.PUSH)
                self._workers.append(socket)
                socket.connect(worker_address(rank))
            self._inbox = make_socket(self._context, SocketType.PULL)
            self._inbox.bind(self.reply_address)
        except ZMQError as error:
            self.close()
            msg = f"cannot use the sockets in {SOCKET_DIR_VARIABLE}: {error}"
            raise ChannelError(msg) from error

    def open(self, spec: RequestSpec) -> bool:
        """Tell the workers of a request, before it is sent to the engine; whether a worker was told.

        `spec.reply_to` is filled in where it is empty. Never raises and never blocks.
        """
        self._receive()
        message = Open(spec if spec.reply_to else replace(spec, reply_to=self.reply_address))
        reached = [self._open(index, message) for index in range(len(self._workers))]
        return any(reached)

    def hint(self, request_id: str, hint: Hint) -> bool:
        """Hand a hint to the workers; whether a worker got it. Never raises and never blocks."""
        return self._tell(lambda: encode_hint(HintMessage(request_id, hint)))

    def guesses(self, request_id: str, guesses: LexicalGuesses) -> bool:
        """Hand guesses to the workers; whether a worker got them. Never raises and never blocks."""
        return self._tell(lambda: encode_guesses(GuessesMessage(request_id, guesses)))

    def take_report(self, request_id: str) -> dict[str, Any] | None:
        """The newest report of a request if one has come; it is forgotten here. Never waits."""
        self._receive()
        return self._reports.pop(request_id, None)

    async def report(self, request_id: str, timeout: float) -> dict[str, Any] | None:
        """The newest report of a request, waiting at most `timeout` seconds for it."""
        deadline = time.monotonic() + timeout
        while (report := self.take_report(request_id)) is None and time.monotonic() < deadline:
            await asyncio.sleep(0.001)
        return report

    def sizes(self) -> dict[str, int]:
        """How much is kept, by store."""
        return {"reports": len(self._reports), "sent_catalogs": max(map(len, self._sent), default=0)}

    def _without_news(self, body: Mapping[str, Any]) -> dict[str, Any]:
        report = dict(body)
        news = report.pop("worker", None)
        if news is not None and self.on_news is not None:
            try:
                self.on_news(news)
            except Exception as error:
                self._count(error)
        return report

    def close(self) -> None:
        """Close all sockets. May be called twice."""
        for socket in [*self._workers, self._inbox]:
            if socket is not None:
                socket.close(linger=0)
        self._workers = []
        self._inbox = None
        if self._context is not None:
            self._context.term()
        self._context = None

    def _tell(self, encode: Callable[[], bytes]) -> bool:
        try:
            data = encode()
        except MessageError as error:
            self._count(error)
            return False
        reached = [self._send(socket, data) for socket in self._workers]
        return any(reached)

    def _open(self, index: int, message: Open) -> bool:
        sent = self._sent[index]
        catalog_id = message.spec.catalog.id
        try:
            data = encode_open(message, with_catalog=not catalog_id or catalog_id not in sent)
        except MessageError as error:
            self._count(error)
            return False
        if not self._send(self._workers[index], data):
            return False
        if catalog_id:
            sent[catalog_id] = None
            sent.move_to_end(catalog_id)
            while len(sent) > SENDER_CATALOGS:
                sent.popitem(last=False)
        return True

    def _send(self, socket: Any, data: bytes) -> bool:
        try:
            socket.send(data, Flag.NOBLOCK)
        except ZMQError as error:
            self._count(error)
            return False
        return True

    def _receive(self) -> None:
        while self._inbox is not None and has_mail(self._inbox):
            try:
                message = decode(self._inbox.recv(Flag.NOBLOCK), self._catalogs)
            except (MessageError, ZMQError) as error:
                self._count(error)
                continue
            if not isinstance(message, Report):
                self.dropped += 1
                continue
            self._reports[message.id] = self._without_news(message.body)
            self._reports.move_to_end(message.id)
            while len(self._reports) > MAX_REPORTS:
                self._reports.popitem(last=False)

    def _count(self, error: Exception) -> None:
        self.dropped += 1
        if self.dropped == 1:
            logger.warning("ooospec: a message was dropped: %s (further ones are only counted)", told(error))
