"""Target and sidecar together: started, looked at, and stopped together."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ooospec_agents.process import LaunchError, LaunchPlan, serving

POLL_S = 0.5
START_S = 900.0
"""How long a server may take to start: weights may have to be loaded from a slow disk, kernels be compiled."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Server:
    """A server to be kept running.

    Attributes:
        name: What it is called in messages.
        plan: Its command.
        url: Its address.
    """

    name: str
    plan: LaunchPlan
    url: str


def keep_up(
    target: Server,
    sidecar: Server | None,
    check: Callable[[], bool],
    say: Say,
    *,
    logs: Path | None = None,
    start_s: float = START_S,
) -> int:
    """Start both, check them, wait until the target ends or the user ends us, and stop both.

    A sidecar that ends is said once, and the target serves on without its hints.

    Args:
        target: The target.
        sidecar: The sidecar, or None.
        check: Looks at both once they run; whether all is well.
        say: Tells the user.
        logs: Folder of the servers' logs; None: a temporary one.
        start_s: Seconds that each may take to start.

    Returns:
        The exit status: 0 where the user ended it, 1 where a server did or the check found a problem.

    Raises:
        LaunchError: A server did not start; nothing of them runs any more.
    """
    try:
        return _keep_up([server for server in (sidecar, target) if server is not None], check, say, logs, start_s)
    except KeyboardInterrupt:
        say("stopped")
        return 0


def _keep_up(servers: Sequence[Server], check: Callable[[], bool], say: Say, logs: Path | None, start_s: float) -> int:
    folder = Path(tempfile.mkdtemp(prefix="ooospec-")) if logs is None else logs
    target = servers[-1]
    running: dict[str, int] = {}
    with ExitStack() as stack:
        for server in servers:
            log = folder / f"{server.name}.log"
            for note in server.plan.notes:
                say(note)
            say(f"starting the {server.name} at {server.url} (log: {log})")
            running[server.name] = stack.enter_context(serving(server.plan, f"{server.url}/health", start_s, log))
        if not check():
            say("something is wrong, see above; all is stopped")
            return 1
        say(f"ready: {target.url}/v1; Ctrl-C stops {'both' if len(servers) > 1 else 'it'}")
        return _watch(running, target.name, say, folder)


def _watch(running: dict[str, int], target: str, say: Say, folder: Path) -> int:
    while True:
        for name in [name for name, pid in running.items() if has_ended(pid)]:
            if name == target:
                say(f"the target has ended; see {folder / f'{name}.log'}")
                return 1
            say(f"the {name} has ended, the target serves on without its hints; see {folder / f'{name}.log'}")
            del running[name]
        time.sleep(POLL_S)


def has_ended(pid: int) -> bool:
    """Whether a child of ours is over; it is left to be waited for."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def refuse_same_port(target_port: int, sidecar_port: int) -> None:
    """Refuse to start two servers on one port.

    Raises:
        LaunchError: The ports are the same.
    """
    if target_port == sidecar_port:
        msg = f"target and sidecar cannot both listen on port {target_port}: pass another --sidecar-port"
        raise LaunchError(msg)
