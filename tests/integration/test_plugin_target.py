"""The real plugin over a scripted engine: what a target shows of itself, and the switches that turn drafting off."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("prometheus_client")
pytest.importorskip("zmq")

from ooospec_agents.testing.fixtures import SidecarMaker
from ooospec_agents.testing.plugin_target import PluginTarget, plugin_target, scripted_output
from ooospec_agents.vllm_plugin import accelerator
from ooospec_agents.vllm_plugin.launch import plan_target

KEY = "k"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]


def chat(city: str, **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "The weather, please.\n" + json.dumps({"city": city})}]
    return {"model": "m", "messages": messages, "tools": TOOLS, "tool_choice": "required", **more}


def client_of(target: PluginTarget) -> httpx.AsyncClient:
    headers = {"authorization": f"Bearer {KEY}"}
    return httpx.AsyncClient(transport=httpx.ASGITransport(target.app), base_url="http://target", headers=headers)


async def ask(client: httpx.AsyncClient, body: dict[str, Any]) -> dict[str, Any]:
    """The report of a request whose output was the script's."""
    asked = {**body, "vllm_xargs": {**body.get("vllm_xargs", {}), "ooospec_report": 1}}
    answer = (await client.post("/v1/chat/completions", json=asked)).json()
    assert answer["choices"][0]["message"]["content"] == scripted_output(body)
    report: dict[str, Any] = answer["ooospec"]
    return report


async def counts(client: httpx.AsyncClient) -> dict[str, float]:
    lines = (await client.get("/metrics")).text.splitlines()
    pairs = [line.rpartition(" ") for line in lines if line.startswith("ooospec_")]
    return {name: float(value) for name, _, value in pairs if "_created" not in name}


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take longer than a report's usual moment."""
    monkeypatch.setattr(accelerator, "REPORT_GRACE_S", 5.0)


@pytest.fixture
async def target() -> AsyncIterator[PluginTarget]:
    async with plugin_target(api_key=KEY) as running:
        yield running


@pytest.fixture
async def client(target: PluginTarget) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(target) as made:
        yield made


async def test_a_request_is_drafted_and_counted(client: httpx.AsyncClient) -> None:
    before = await counts(client)
    report = await ask(client, chat("Bonn"))
    after = await counts(client)

    def more(name: str) -> float:
        return after[name] - before.get(name, 0.0)

    assert report["steps"] < report["tokens"] / 4
    assert "worker" not in report
    assert more('ooospec_requests_total{served="drafted"}') == 1
    assert more("ooospec_output_tokens_total") == report["tokens"]
    assert more("ooospec_steps_total") == report["steps"]
    for source, count in report["accepted"].items():
        assert more(f'ooospec_accepted_tokens_total{{source="{source}"}}') == count
    assert after['ooospec_store_entries{process="worker-0",store="memories"}'] == 1
    assert after["ooospec_drafting"] == 1


async def test_a_request_without_a_report_is_counted_too(client: httpx.AsyncClient) -> None:
    before = await counts(client)
    body = chat("Bonn")
    answer = (await client.post("/v1/chat/completions", json=body)).json()
    after = await counts(client)
    assert "ooospec" not in answer
    assert (
        after["ooospec_output_tokens_total"] - before["ooospec_output_tokens_total"] == len(scripted_output(body)) + 1
    )


async def test_hints_of_a_sidecar_are_counted(scripted_sidecar: SidecarMaker) -> None:
    sidecar = scripted_sidecar({"Which tool": " 0", "value of city": " Ulm"})
    async with plugin_target(api_key=KEY, sidecar=sidecar.url, step_s=0.05) as target, client_of(target) as client:
        before = await counts(client)
        await ask(client, chat("Ulm"))  # the first wave waits for its connection
        report = await ask(client, chat("Ulm"))
        after = await counts(client)
    name = 'ooospec_hints_received_total{source="sidecar"}'
    assert report["hint"]["said"]["calls"][0]["slots"]["city"]["value"] == "Ulm"
    assert after[name] - before.get(name, 0.0) >= 1


async def test_held_out_requests_are_served_undrafted_and_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OOOSPEC_HOLDOUT", "0.5")
    async with plugin_target(api_key=KEY, step_s=0.001) as target, client_of(target) as client:
        before = await counts(client)
        reports = [await ask(client, chat(f"Town {number}")) for number in range(60)]
        after = await counts(client)
        status = (await client.get("/v1/ooospec/status")).json()["holdout"]
    held = [report for report in reports if report.get("holdout")]
    assert 5 < len(held) < 55
    assert {report["method"] for report in held} == {"off"}
    assert all(report["steps"] == report["tokens"] for report in held)
    assert all(report["steps"] < report["tokens"] for report in reports if report not in held)
    name = 'ooospec_requests_total{served="holdout"}'
    assert after[name] - before.get(name, 0.0) == len(held)
    assert after['ooospec_decode_tokens_total{group="holdout"}'] > 0
    assert (status["share"], status["requests"], status["switched_off"]) == (0.5, 60, False)


async def test_a_request_with_a_method_of_its_own_is_in_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OOOSPEC_HOLDOUT", "0.5")
    async with plugin_target(api_key=KEY) as target, client_of(target) as client:
        wish = {"vllm_xargs": {"ooospec": "ooospec"}}
        reports = [await ask(client, chat(f"Town {number}", **wish)) for number in range(20)]
    assert {report["method"] for report in reports} == {"ooospec"}


async def test_a_request_can_switch_drafting_off(client: httpx.AsyncClient) -> None:
    report = await ask(client, chat("Bonn", vllm_xargs={"ooospec": "off"}))
    assert (report["method"], report["drafted"], report["steps"]) == ("off", {}, report["tokens"])


async def test_the_environment_can_switch_drafting_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OOOSPEC_OFF", "1")
    async with plugin_target(api_key=KEY) as target, client_of(target) as client:
        body = chat("Bonn", vllm_xargs={"ooospec_report": 1})
        answer = (await client.post("/v1/chat/completions", json=body)).json()
        status = (await client.get("/v1/ooospec/status")).json()
        shown = await counts(client)
    assert answer["choices"][0]["message"]["content"] == scripted_output(body)
    assert "ooospec" not in answer
    assert (status["drafting"], status["reason"]) == (False, "OOOSPEC_OFF is set")
    assert shown["ooospec_drafting"] == 0
    assert target.engine.steps == len(scripted_output(body)) + 1


@pytest.mark.parametrize(("value", "off"), [("1", True), ("0", False)])
def test_a_switched_off_target_starts_as_plain_vllm(monkeypatch: pytest.MonkeyPatch, value: str, off: bool) -> None:
    monkeypatch.setenv("OOOSPEC_OFF", value)
    plan = plan_target("some/model")
    assert ("--speculative-config" in plan.argv) is not off
    assert any("OOOSPEC_OFF is set" in note for note in plan.notes) is off


def test_a_bad_share_is_refused_before_the_start() -> None:
    with pytest.raises(ValueError, match=r"pass something like 2%"):
        plan_target("some/model", holdout="most")
    assert plan_target("some/model", holdout="2%").env["OOOSPEC_HOLDOUT"] == "0.02"


PROCESS = """
from ooospec_agents.vllm_plugin.holdout import Holdout
from ooospec_agents.vllm_plugin.metrics import process_metrics
metrics = process_metrics()
metrics.request("drafted")
metrics.worker({"rank": 0, "new": {"hint late": 2}, "sizes": {"rows": 7}})
metrics.process(sizes={"catalogs": 1}, faults={"middleware": 1}, drafting=True, holdout=Holdout())
"""
READER = """
from prometheus_client import CollectorRegistry, generate_latest, multiprocess
registry = CollectorRegistry()
multiprocess.MultiProcessCollector(registry)
print(generate_latest(registry).decode())
"""


def test_several_api_servers_are_shown_as_one(tmp_path: Path) -> None:
    env = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}

    def run(code: str) -> str:
        return subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True, text=True).stdout

    run(PROCESS)
    run(PROCESS)
    shown = run(READER).splitlines()
    assert 'ooospec_requests_total{served="drafted"} 2.0' in shown
    assert 'ooospec_hints_dropped_total{why="late"} 4.0' in shown
    assert 'ooospec_faults_total{process="api",where="middleware"} 2.0' in shown
    assert 'ooospec_store_entries{process="worker-0",store="rows"} 7.0' in shown
