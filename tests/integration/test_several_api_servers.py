"""Several API servers and several engines: every engine is told by every server, and `/metrics` adds all up."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("prometheus_client")
pytest.importorskip("zmq")

from prometheus_client import CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector

from ooospec_agents.bench.fault_bench import request
from ooospec_agents.hint import Hint
from ooospec_agents.testing.engine import ScriptedEngine
from ooospec_agents.testing.plugin_target import PARSER, PluginTarget, scripted_output
from ooospec_agents.vllm_plugin import accelerator
from ooospec_agents.vllm_plugin.endpoint import local_ranks
from ooospec_agents.vllm_plugin.sockets import SOCKET_DIR_VARIABLE

PAIRS = [(server, engine) for server in range(2) for engine in range(2)]


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerator, "REPORT_GRACE_S", 5.0)


@asynccontextmanager
async def servers(flags: dict[str, int]) -> AsyncIterator[tuple[list[PluginTarget], list[ScriptedEngine]]]:
    """Two API servers, with these flags of vLLM's, over two data-parallel engines."""
    first = flags.get("data_parallel_start_rank", 0)
    engines = [ScriptedEngine(dp_rank=first + number) for number in range(2)]
    both = [PluginTarget(engines[0]) for _ in range(2)]
    try:
        for server in both:
            args = Namespace(tool_call_parser=PARSER, **flags)
            await server.plugin.init_state(server, server._fastapi.state, args)
        yield both, engines
    finally:
        for server in both:
            await server.plugin.accelerator.aclose()
        for engine in engines:
            engine.close()


async def ask(server: PluginTarget, town: str) -> dict[str, Any] | None:
    """A request whose hint was posted to the same server; its report."""
    transport = httpx.ASGITransport(server.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://target") as client:
        hint = Hint.of_call("get_weather", {"city": town}).to_json()
        await client.put(f"/v1/ooospec/hints/{town}", content=hint)
        body = request(town, ooospec_id=town, ooospec_report=1)
        answer = (await client.post("/v1/chat/completions", json=body)).json()
    assert answer["choices"][0]["message"]["content"] == scripted_output(body)
    report: dict[str, Any] | None = answer.get("ooospec")
    return report


@pytest.mark.parametrize(
    ("flags", "reached"),
    [
        pytest.param({"data_parallel_size": 2}, PAIRS, id="all"),
        pytest.param(
            {"data_parallel_size": 4, "data_parallel_size_local": 2, "data_parallel_start_rank": 2},
            PAIRS,
            id="later ranks",
        ),
        pytest.param({"data_parallel_size": 1}, [(0, 0), (1, 0)], id="told of one only"),
    ],
)
async def test_every_server_tells_every_engine(
    flags: dict[str, int], reached: list[tuple[int, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setenv(SOCKET_DIR_VARIABLE, str(tmp_path))
    monkeypatch.setattr(accelerator, "REPORT_GRACE_S", 0.5 if flags["data_parallel_size"] == 1 else 5.0)
    found = []
    async with servers(flags) as (both, engines):
        for server, engine in PAIRS:
            both[server].engine = engines[engine]  # vLLM's own load balancing chooses it
            report = await ask(both[server], f"town-{server}-{engine}")
            if report is not None and report["hint"]["used"]:
                found.append((server, engine))
    assert found == reached


@pytest.mark.parametrize(
    ("flags", "ranks"),
    [
        ({}, [0]),
        ({"size": 2, "size_local": None, "rank": None, "start_rank": None}, [0, 1]),
        ({"size": 4, "rank": 3}, [3]),
        ({"size": 4, "size_local": 2, "start_rank": 2}, [2, 3]),
    ],
)
def test_the_ranks_behind_a_server_follow_from_its_flags(flags: dict[str, int | None], ranks: list[int]) -> None:
    args = Namespace(**{f"data_parallel_{name}": value for name, value in flags.items()})
    assert list(local_ranks(args)) == ranks


PROGRAM = """
import sys
from ooospec_agents.vllm_plugin.holdout import Holdout
from ooospec_agents.vllm_plugin.metrics import process_metrics

metrics, kept = process_metrics(), int(sys.argv[1])
metrics.hint("sidecar")
metrics.report({"drafted": {"hint": 5}, "accepted": {"hint": kept}}, hinted=True)
metrics.worker({"rank": 0, "new": {"hint late": 1}, "sizes": {"rows": kept}})
holdout = Holdout(0.1)
holdout.off = kept == 4
metrics.process(sizes={}, faults={}, drafting=True, holdout=holdout)
"""


@pytest.mark.parametrize("together", [True, False], ids=["one folder", "a folder each"])
def test_metrics_of_all_servers_are_added_up(tmp_path: Path, together: bool) -> None:
    for kept in ("3", "4"):
        folder = tmp_path / ("all" if together else kept)
        folder.mkdir(exist_ok=True)
        environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(folder)}
        subprocess.run([sys.executable, "-c", PROGRAM, kept], env=environment, check=True, timeout=120)
    registry = CollectorRegistry()
    MultiProcessCollector(registry, str(folder))  # type: ignore[no-untyped-call]
    value = registry.get_sample_value
    assert value("ooospec_hints_received_total", {"source": "sidecar"}) == (2 if together else 1)
    assert value("ooospec_draft_tokens_total", {"source": "hint"}) == (10 if together else 5)
    assert value("ooospec_accepted_tokens_total", {"source": "hint"}) == (7 if together else 4)
    assert value("ooospec_hints_dropped_total", {"why": "late"}) == (2 if together else 1)
    assert value("ooospec_store_entries", {"process": "worker-0", "store": "rows"}) == 4  # the newest news
    assert value("ooospec_drafting") == 0  # one of them has switched itself off
