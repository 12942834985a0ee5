"""The examples run as they stand, against a scripted target."""

import subprocess
import sys
from pathlib import Path

import pytest

from ooospec_agents.testing import oblige
from ooospec_agents.testing.fixtures import SidecarMaker, TargetMaker

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *arguments: str) -> str:
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_openai_client(scripted_target: TargetMaker) -> None:
    out = run("openai_client.py", "--base-url", scripted_target(oblige).base_url)
    assert 'convert_currency {"amount": 250.0' in out
    assert "report: {}" in out


def test_openai_client_with_a_sidecar_and_a_plain_target(
    scripted_target: TargetMaker, scripted_sidecar: SidecarMaker
) -> None:
    target, sidecar = scripted_target(oblige, plugin=False), scripted_sidecar()
    out = run("openai_client.py", "--base-url", target.base_url, "--sidecar", sidecar.url)
    assert "report: none (the target has no plugin)" in out


def test_langchain_agent(scripted_target: TargetMaker) -> None:
    target = scripted_target(oblige)
    out = run("langchain_agent.py", "--base-url", target.base_url)
    assert "find_trains" in out
    assert "08:05, 10:05 and 14:35" in out
    assert [body["messages"][-1]["role"] for body in target.chats] == ["user", "tool"]


@pytest.mark.parametrize("name", ["openai_client.py", "langchain_agent.py"])
def test_help(name: str) -> None:
    assert "--base-url" in run(name, "--help")
