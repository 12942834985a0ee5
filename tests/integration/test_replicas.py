"""Two replicas in processes of their own behind a round-robin proxy, one sidecar: every hint finds its request."""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("prometheus_client")
pytest.importorskip("zmq")

from ooospec_agents.process import LaunchPlan, serving
from ooospec_agents.testing import Received, ScriptedSidecar
from ooospec_agents.testing.loopback import Answer, LoopbackServer
from ooospec_agents.testing.plugin_target import scripted_output

REQUESTS = 24
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]


class RoundRobin(LoopbackServer):
    """Hands requests to the replicas by turns."""

    def __init__(self, replicas: list[str]) -> None:
        super().__init__()
        self.turns: list[str] = []
        self._next = itertools.cycle(replicas)
        self.client = httpx.Client(trust_env=False, timeout=60)

    def respond(self, request: Received) -> Answer:
        replica = next(self._next)
        self.turns.append(replica)
        answer = self.client.request(request.method, replica + request.path, json=request.body)
        return Answer(answer.status_code, text=answer.text)


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def knows_the_town(prompt: str) -> str:
    """The sidecar reads the town where it stands in the conversation."""
    if "Which tool" in prompt[-300:]:
        return " 0"
    return " " + re.findall(r"town-\d+", prompt)[-1]


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[RoundRobin]:
    with ExitStack() as stack:
        sidecar = stack.enter_context(ScriptedSidecar(knows_the_town))
        replicas = []
        for number in range(2):
            port = free_port()
            words = ["--port", str(port), "--sidecar", sidecar.url, "--step-ms", "60"]
            plan = LaunchPlan([sys.executable, "-m", "ooospec_agents.testing.plugin_target", *words])
            url = f"http://127.0.0.1:{port}"
            stack.enter_context(serving(plan, f"{url}/health", 120, tmp_path / f"replica-{number}.log"))
            replicas.append(url)
        balancer = stack.enter_context(RoundRobin(replicas))
        stack.callback(balancer.client.close)
        yield balancer


def request(town: str) -> dict[str, Any]:
    # The target writes what the JSON says, and the sidecar reads what the text says.
    content = f"Weather in {town}, please.\n" + json.dumps({"city": town})
    messages = [{"role": "user", "content": content}]
    wishes = {"ooospec_report": 1}
    return {"model": "m", "messages": messages, "tools": TOOLS, "tool_choice": "required", "vllm_xargs": wishes}


def test_every_hint_finds_its_request(proxy: RoundRobin) -> None:
    with httpx.Client(base_url=proxy.url, trust_env=False, timeout=60) as client, ThreadPoolExecutor(4) as pool:

        def ask(town: str) -> dict[str, Any]:
            body = request(town)
            answer = client.post("/v1/chat/completions", json=body).json()
            assert answer["choices"][0]["message"]["content"] == scripted_output(body)
            report: dict[str, Any] = answer["ooospec"]
            return report

        for warm in range(4):
            ask(f"town-{warm}")
        towns = [f"town-{100 + number}" for number in range(REQUESTS)]
        reports = list(pool.map(ask, towns))
    said = [report["hint"]["said"]["calls"][0]["slots"]["city"]["value"] for report in reports]
    assert said == towns
    assert [report["hint"]["arrived"] for report in reports] == [True] * REQUESTS
    assert {proxy.turns.count(replica) for replica in set(proxy.turns)} == {(REQUESTS + 4) // 2}
