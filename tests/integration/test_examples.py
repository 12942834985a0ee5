"""The examples run as they stand, against a scripted target."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ooospec_agents.testing import Reply, oblige
from ooospec_agents.testing.fixtures import SidecarMaker, TargetMaker

EXAMPLES = Path(__file__).parents[2] / "examples"
SHOWN: dict[str, tuple[str, ...]] = {
    "openai_client.py": ('convert_currency {"amount": 250.0', "report: {}"),
    "server_mode.py": ('send_mail {"to": "ann@example.com", "subject": "meeting"', "report: {}"),
    "langchain_agent.py": ("find_trains", "08:05, 10:05 and 14:35"),
    "langgraph_graph.py": ("tools: A room in Oslo for 3 nights", "tools: A room in Bergen for 2 nights"),
    "structured_extraction.py": ("number='AB' sender='Fjell AS' pieces=3 total=1200.0", "number='CD'"),
    "multi_agent.py": ("ask_geographer", "Galdhøpiggen"),
    "agents_sdk.py": ('{"source": "NOK", "target": "EUR"}', "tool_call_output_item: 1 NOK = 11.7 EUR"),
    "pydantic_ai_agent.py": ("Forecast(city='Oslo', degrees=17)",),
}


def run(name: str, *arguments: str) -> str:
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def willing(body: dict[str, Any]) -> Reply:
    """Obliges; where an agent has a tool for its answer, that one is called once another was."""
    tools = [tool for tool in body.get("tools") or [] if tool["function"]["name"] == "final_result"]
    asked = {**body, "tools": tools, "tool_choice": "required"} if tools else body
    return oblige(asked)


def test_every_example_is_here() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
def test_it_runs(scripted_target: TargetMaker, name: str) -> None:
    target = scripted_target(willing)
    out = run(name, "--base-url", target.base_url)
    assert [text for text in SHOWN[name] if text not in out] == [], out
    assert all(body["tools"] for body in target.chats)
    chats = [request for request in target.requests if request.path == "/v1/chat/completions"]
    assert all(request.headers["x-ooospec-report"] == "1" for request in chats), "some were not accelerated"


def test_the_quick_start_of_the_readme_runs(scripted_target: TargetMaker, tmp_path: Path) -> None:
    section = (EXAMPLES.parent / "README.md").read_text("utf-8").partition("## Quick start\n")[2].partition("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.S)
    target = scripted_target(oblige)
    assert "http://127.0.0.1:8000/v1" in code
    script = tmp_path / "quick_start.py"
    script.write_text(code.replace("http://127.0.0.1:8000/v1", target.base_url), "utf-8")
    assert ": sunny" in run(str(script))
    assert [body["tools"][0]["function"]["name"] for body in target.chats] == ["get_weather"] * 2


def test_with_a_sidecar_and_a_plain_target(scripted_target: TargetMaker, scripted_sidecar: SidecarMaker) -> None:
    target, sidecar = scripted_target(oblige, plugin=False), scripted_sidecar()
    out = run("openai_client.py", "--base-url", target.base_url, "--sidecar", sidecar.url)
    assert "report: none (the target has no plugin)" in out


def test_help() -> None:
    assert "--base-url" in run("server_mode.py", "--help")
