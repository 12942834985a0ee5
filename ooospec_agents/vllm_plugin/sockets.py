"""The ZeroMQ sockets of the local road, in a folder that only this user may enter."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from zmq.constants import PollEvent, SocketOption

from ooospec_agents.vllm_plugin.messages import MAX_MESSAGE_BYTES

SOCKET_DIR_VARIABLE = "OOOSPEC_SOCKET_DIR"
"""Environment variable naming the folder of the sockets; the launcher sets it, every process inherits it."""
MAX_PATH_BYTES = 107
"""Longest path of a Unix socket."""
MAX_QUEUED = 512
"""Messages that may wait at each end: a data-parallel rank that has nothing to do never reads them."""


class ChannelError(RuntimeError):
    """The local sockets cannot be used. The message says why and what to do."""


def socket_dir() -> Path:
    """The folder of the sockets.

    Raises:
        ChannelError: The variable is not set, or the folder is not one that only this user may enter.
    """
    name = os.environ.get(SOCKET_DIR_VARIABLE, "")
    if not name:
        msg = f"{SOCKET_DIR_VARIABLE} is not set: start the server with `ooospec serve target`"
        raise ChannelError(msg)
    path = Path(name)
    try:
        status = path.stat()
    except OSError as error:
        msg = f"{SOCKET_DIR_VARIABLE}={name!r} cannot be used ({error.strerror}): create it with mode 0700"
        raise ChannelError(msg) from None
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        msg = f"{SOCKET_DIR_VARIABLE}={name!r} must be a folder of this user with mode 0700"
        raise ChannelError(msg)
    return path


def worker_address(dp_rank: int) -> str:
    """Where the worker of that data-parallel rank listens.

    Raises:
        ChannelError: The folder cannot be used, or its path is too long for a socket.
    """
    return address(f"worker-{dp_rank}")


def address(name: str) -> str:
    path = socket_dir() / name
    if len(os.fsencode(path)) > MAX_PATH_BYTES:
        msg = f"{SOCKET_DIR_VARIABLE}: {str(path)!r} is longer than the {MAX_PATH_BYTES} bytes of a socket"
        raise ChannelError(msg)
    return f"ipc://{path}"


def make_socket(context: Any, kind: int) -> Any:
    socket = context.socket(kind)
    socket.setsockopt(SocketOption.LINGER, 0)
    socket.setsockopt(SocketOption.RCVHWM, MAX_QUEUED)
    socket.setsockopt(SocketOption.SNDHWM, MAX_QUEUED)
    socket.setsockopt(SocketOption.MAXMSGSIZE, MAX_MESSAGE_BYTES)
    return socket


def has_mail(socket: Any) -> bool:
    return bool(socket.getsockopt(SocketOption.EVENTS) & PollEvent.POLLIN)
