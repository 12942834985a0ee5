"""Two API servers before one engine: both reach it, reports come back to the right one, and `/metrics` adds both up."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ooospec_agents.hint import Hint
from ooospec_agents.process import serving
from ooospec_agents.vllm_plugin.launch import plan_target
from ooospec_agents.weights import resolve

pytestmark = [pytest.mark.e2e, pytest.mark.long]

REQUESTS = 12
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "find_order",
            "parameters": {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]},
        },
    }
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    extra = ["--served-model-name", "target", "--max-model-len", "1024", "--api-server-count", "2"]
    plan = plan_target(str(resolve("SmolLM2-135M-Instruct")), port=port, extra_args=extra)
    address, log = f"http://127.0.0.1:{port}", tmp_path_factory.mktemp("target") / "log"
    with serving(plan, f"{address}/health", timeout=900, log=log):
        yield address, log


def total(metrics: str, name: str) -> float:
    """A metric added up over its labels."""
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", metrics, re.MULTILINE))


def test_both_servers_reach_the_engine_and_are_counted_together(server: tuple[str, Path]) -> None:
    url, log = server
    assert log.read_text(errors="replace").count("ooospec: drafting is on for tool calls") == 2
    for number in range(REQUESTS):
        # A client of its own for each: the kernel hands connections to one server or the other.
        with httpx.Client(base_url=url, timeout=300, trust_env=False) as client:
            name = f"order-{number}"
            posted = client.put(f"/v1/ooospec/hints/{name}", content=Hint.of_call("find_order", {"order": 7}).to_json())
            assert posted.status_code == 202
            body: dict[str, Any] = {
                "model": "target",
                "messages": [{"role": "user", "content": "Find order 7."}],
                "tools": TOOLS,
                "tool_choice": "required",
                "temperature": 0,
                "max_tokens": 32,
                "vllm_xargs": {"ooospec_id": name, "ooospec_report": 1},
            }
            answer = client.post("/v1/chat/completions", json=body).json()
            assert answer["ooospec"]["hint"]["arrived"], json.dumps(answer["ooospec"])
    metrics = httpx.get(f"{url}/metrics", trust_env=False, timeout=60).text
    assert total(metrics, "ooospec_hints_received_total") == REQUESTS
    assert total(metrics, "ooospec_requests_total") == REQUESTS
    assert total(metrics, "ooospec_draft_tokens_total") > 0
    assert total(metrics, "ooospec_drafting") == 1
