"""Target and sidecar kept up together: real processes, small ones."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ooospec_agents.process import LaunchError, LaunchPlan
from ooospec_agents.up import Server, keep_up, refuse_same_port

SERVER = """
import http.server, os, sys
open(sys.argv[2], "w").write(str(os.getpid()))
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
UP = """
import signal, sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a job in the background has not
from ooospec_agents.process import LaunchPlan
from ooospec_agents.up import Server, keep_up
code, folder, well = sys.argv[1], Path(sys.argv[2]), sys.argv[3] == "well"
def server(name, port):
    return Server(name, LaunchPlan([sys.executable, "-c", code, port, str(folder / name)]), f"http://127.0.0.1:{port}")
def say(text):
    print(text, flush=True)
sys.exit(keep_up(server("target", sys.argv[4]), server("sidecar", sys.argv[5]), lambda: well, say, logs=folder, start_s=60))
"""


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Up:
    """Both servers, kept up by a process of their own."""

    def __init__(self, folder: Path, *, well: bool = True) -> None:
        self.folder = folder
        words = [UP, SERVER, str(folder), "well" if well else "ill", str(free_port()), str(free_port())]
        self.process = subprocess.Popen(
            [sys.executable, "-c", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.said: list[str] = []

    def until(self, pattern: str) -> str:
        """Read what is said until a line matches."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line)
            if re.search(pattern, line):
                return line
        raise AssertionError("".join(self.said))

    def pid(self, name: str) -> int:
        return int((self.folder / name).read_text())

    def end(self) -> int:
        assert self.process.stdout is not None
        self.said += self.process.stdout.readlines()
        self.process.stdout.close()
        return self.process.wait(30)

    def gone(self) -> bool:
        deadline = time.monotonic() + 15
        while any(is_running(self.pid(name)) for name in ("target", "sidecar")) and time.monotonic() < deadline:
            time.sleep(0.05)
        return not any(is_running(self.pid(name)) for name in ("target", "sidecar"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "terminated"])
def test_both_are_started_and_both_are_stopped(tmp_path: Path, number: signal.Signals) -> None:
    up = Up(tmp_path)
    up.until("ready: http://127.0.0.1")
    assert is_running(up.pid("target"))
    assert is_running(up.pid("sidecar"))
    up.process.send_signal(number)
    assert up.end() == (0 if number == signal.SIGINT else 128 + number)
    assert up.gone()


def test_the_sidecar_may_end_and_the_target_may_not(tmp_path: Path) -> None:
    up = Up(tmp_path)
    up.until("ready")
    os.kill(up.pid("sidecar"), signal.SIGKILL)
    up.until("sidecar has ended, the target serves on")
    assert is_running(up.pid("target"))
    os.kill(up.pid("target"), signal.SIGKILL)
    up.until("target has ended")
    assert up.end() == 1
    assert up.gone()


def test_nothing_is_left_where_the_check_finds_a_problem(tmp_path: Path) -> None:
    up = Up(tmp_path, well=False)
    up.until("something is wrong")
    assert up.end() == 1
    assert up.gone()


def test_a_target_that_does_not_start_stops_the_sidecar(tmp_path: Path) -> None:
    port, note = free_port(), tmp_path / "sidecar"
    sidecar = Server(
        "sidecar", LaunchPlan([sys.executable, "-c", SERVER, str(port), str(note)]), f"http://127.0.0.1:{port}"
    )
    target = Server("target", LaunchPlan([sys.executable, "-c", "raise SystemExit(3)"]), "http://127.0.0.1:9")
    with pytest.raises(LaunchError, match="status 3"):
        keep_up(target, sidecar, lambda: True, lambda text: None, logs=tmp_path, start_s=60)
    assert not is_running(int(note.read_text()))


def test_two_servers_on_one_port_are_refused() -> None:
    with pytest.raises(LaunchError, match="cannot both listen on port 8000"):
        refuse_same_port(8000, 8000)
    refuse_same_port(8000, 8001)
