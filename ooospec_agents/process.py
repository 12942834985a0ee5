"""Commands that start servers: shown as shell text, run in place of this process, or kept for a while."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

POLL_S = 0.25
STOP_S = 10.0
"""How long a server may take to stop before it is killed."""
LOG_TAIL = 30
"""Lines of a server's log shown when it does not start."""


class LaunchError(RuntimeError):
    """A server cannot be started. The message says why and what to do."""


@dataclass(frozen=True)
class LaunchPlan:
    """A command and what it adds to the environment.

    Attributes:
        argv: The command; `argv[0]` is a program that can be executed.
        env: Environment variables that the command needs on top of the caller's.
        private_folders: Folders that must exist, with mode 0700, before it runs; `serving` removes them.
        notes: What the user should know before it runs, one sentence each.
    """

    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)
    private_folders: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def shell(self) -> str:
        """The plan as POSIX shell text, one option a line, for a terminal or a container's script."""
        lines = [f"mkdir -p -m 700 {shlex.quote(folder)} &&" for folder in self.private_folders]
        lines += [f"{name}={shlex.quote(value)}" for name, value in self.env.items()]
        lines.append(shlex.quote(self.argv[0]))
        for word in self.argv[1:]:
            if word.startswith("--"):
                lines.append(shlex.quote(word))
            else:
                lines[-1] += " " + shlex.quote(word)
        return " \\\n  ".join(lines)

    def print(self) -> None:
        """Write the shell text to standard output."""
        print(self.shell())

    def run(self) -> None:
        """Become this command: it replaces the current process, so signals and exit status are its own.

        Raises:
            LaunchError: The program cannot be executed.
        """
        for note in self.notes:
            print(f"ooospec: {note}", file=sys.stderr)
        self.make_folders()
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            os.execvpe(self.argv[0], self.argv, {**os.environ, **self.env})
        except OSError as error:
            msg = f"cannot run {self.argv[0]!r}: {error.strerror}"
            raise LaunchError(msg) from error

    def make_folders(self) -> None:
        """Make the private folders that are missing."""
        for folder in self.private_folders:
            os.makedirs(folder, mode=0o700, exist_ok=True)


@contextmanager
def serving(plan: LaunchPlan, ready_url: str, timeout: float = 300.0, log: Path | None = None) -> Iterator[int]:
    """Keep a server running inside a `with` block; gives its process id once it answers.

    The server runs in a session of its own, and everything in it is ended with the block.

    Args:
        plan: The command.
        ready_url: An address that answers 200 once the server can be used, such as `http://127.0.0.1:8000/health`.
        timeout: Seconds that the start may take.
        log: File for the server's output; None: `server.log` in a temporary folder.

    Raises:
        LaunchError: The server ended, or did not answer in time; with the end of its log.
    """
    path = log if log is not None else Path(tempfile.mkdtemp(prefix="ooospec-")) / "server.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    plan.make_folders()
    with path.open("wb") as output:
        try:
            process = subprocess.Popen(
                plan.argv,
                env={**os.environ, **plan.env},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            msg = f"cannot run {plan.argv[0]!r}: {error.strerror}"
            raise LaunchError(msg) from error
        try:
            with _exit_on_sigterm():
                _wait_until_ready(process, ready_url, timeout, path)
                yield process.pid
        finally:
            _stop(process)
            for folder in plan.private_folders:
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _exit_on_sigterm() -> Iterator[None]:
    """Let SIGTERM unwind the stack, so that `finally` ends what was started; by default it would not run."""

    def leave(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if ours:
        signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _wait_until_ready(process: subprocess.Popen[bytes], ready_url: str, timeout: float, log: Path) -> None:
    deadline = time.monotonic() + timeout
    with httpx.Client(timeout=5.0, trust_env=False) as client:
        while time.monotonic() < deadline:
            if (status := process.poll()) is not None:
                msg = f"the server ended with status {status} before it was ready; {_tail(log)}"
                raise LaunchError(msg)
            try:
                if client.get(ready_url).status_code == httpx.codes.OK:
                    return
            except httpx.HTTPError:
                pass
            time.sleep(POLL_S)
    msg = f"the server did not answer at {ready_url!r} within {timeout:g} s; {_tail(log)}"
    raise LaunchError(msg)


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-LOG_TAIL:]
    return f"the end of {str(log)!r}:\n" + "\n".join(lines)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the process and everything in its session: politely, then at once."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_S)
    # Workers may outlive the process that started them.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
