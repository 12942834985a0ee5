"""Servers that are kept running for a while: real processes, small ones."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from ooospec_agents.process import LaunchError, LaunchPlan, serving

SERVER = """
import http.server, os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open(sys.argv[2], "w").write(f"{child.pid} {os.environ['GREETING']}")
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_server_runs_inside_the_block_and_nothing_of_it_after(tmp_path: Path) -> None:
    port, note, folder = free_port(), tmp_path / "note", tmp_path / "private"
    plan = LaunchPlan(
        [sys.executable, "-c", SERVER, str(port), str(note)], {"GREETING": "hi"}, private_folders=(str(folder),)
    )
    url = f"http://127.0.0.1:{port}/health"
    with serving(plan, url, timeout=30, log=tmp_path / "log") as pid:
        assert httpx.get(url, trust_env=False).status_code == 200
        child, greeting = note.read_text().split()
        assert greeting == "hi"
        assert folder.stat().st_mode & 0o777 == 0o700
        assert is_running(pid)
        assert is_running(int(child))
    deadline = time.monotonic() + 10
    while is_running(int(child)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(pid)
    assert not is_running(int(child))
    assert not folder.exists()


def test_server_that_ends_is_reported_with_its_log(tmp_path: Path) -> None:
    plan = LaunchPlan([sys.executable, "-c", "print('no weights'); raise SystemExit(3)"])
    with (
        pytest.raises(LaunchError, match=r"(?s)status 3.*no weights"),
        serving(plan, f"http://127.0.0.1:{free_port()}/", timeout=30, log=tmp_path / "log"),
    ):
        pass


def test_server_that_does_not_answer_is_ended(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    with (
        pytest.raises(LaunchError, match="did not answer"),
        serving(LaunchPlan([sys.executable, "-c", code]), f"http://127.0.0.1:{free_port()}/", timeout=3),
    ):
        pass
    assert not is_running(int(note.read_text()))


def test_missing_program_is_named() -> None:
    plan = LaunchPlan(["/no/such/program"])
    with pytest.raises(LaunchError, match="'/no/such/program'"), serving(plan, "http://127.0.0.1:9/"):
        pass
    with pytest.raises(LaunchError, match="'/no/such/program'"):
        plan.run()


def test_terminated_parent_leaves_nothing_behind(tmp_path: Path) -> None:
    note, port = tmp_path / "note", free_port()
    code = f"""
import sys, time
from ooospec_agents.process import LaunchPlan, serving
plan = LaunchPlan([sys.executable, "-c", {SERVER!r}, "{port}", {str(note)!r}], {{"GREETING": "hi"}})
with serving(plan, "http://127.0.0.1:{port}/") as pid:
    print(pid, flush=True)
    time.sleep(600)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        server = int(parent.stdout.readline())
        parent.terminate()
        assert parent.wait(30) == 143
    assert not is_running(server)


def test_run_replaces_the_process() -> None:
    inner = "import os; print(os.getpid(), os.environ['A'])"
    code = (
        "import sys; from ooospec_agents.process import LaunchPlan; "
        f"LaunchPlan([sys.executable, '-c', {inner!r}], {{'A': 'b'}}, notes=('note',)).run()"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = process.communicate(timeout=60)
    assert (out, err) == (f"{process.pid} b\n", "ooospec: note\n")
