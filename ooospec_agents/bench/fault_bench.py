"""A target under a fault, and what is noted of it."""

from __future__ import annotations

import asyncio
import json
import logging
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from ooospec_agents.hint import Hint
from ooospec_agents.sidecar.worker import SidecarWorker
from ooospec_agents.testing.plugin_target import PluginTarget, plugin_target, scripted_output

STEP_S = 0.02
"""Seconds of a scripted step: a drafted request then takes about a tenth of a second."""
ANSWERS = {"Which tool": " 0", "value of city": " Ulm"}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]


@dataclass
class Outcome:
    """What was seen under a fault.

    Attributes:
        fault: Its name.
        requests: Requests made.
        identical: How many had the output of a server without us.
        added_ms: Median time added to a request, against the same server without the fault; None where it has no sense.
        breaker: What the circuit breaker did.
        log_lines: Warnings logged in all.
        counters: What was counted.
    """

    fault: str
    requests: int = 0
    identical: int = 0
    added_ms: float | None = None
    breaker: str = ""
    log_lines: int = 0
    counters: dict[str, int] = field(default_factory=dict)


class Bench:
    """A target under a fault, and one client.

    Args:
        target: The target.
        outcome: Where what happens is noted.
    """

    def __init__(self, target: PluginTarget, outcome: Outcome) -> None:
        self.target = target
        self.outcome = outcome
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(target.app), base_url="http://target")

    async def ask(self, city: str = "Ulm", **xargs: Any) -> float:
        """One request; its seconds."""
        body = request(city, ooospec_report=1, **xargs)
        began = time.perf_counter()
        answer = (await self.client.post("/v1/chat/completions", json=body)).json()
        took = time.perf_counter() - began
        self.outcome.requests += 1
        if (answer.get("ooospec") or {}).get("hint", {}).get("used"):
            self.outcome.counters["hints used"] = self.outcome.counters.get("hints used", 0) + 1
        self.outcome.identical += answer["choices"][0]["message"]["content"] == scripted_output(body)
        return took

    async def hint(self, request_id: str, city: str = "Ulm") -> None:
        """Post a hint."""
        text = Hint.of_call("get_weather", {"city": city}).to_json()
        await self.client.put(f"/v1/ooospec/hints/{request_id}", content=text)

    @property
    def sidecar(self) -> SidecarWorker:
        """The server's sidecar worker."""
        worker = self.target.plugin.accelerator._sidecar
        assert worker is not None
        return worker

    def count(self) -> None:
        """Note what was counted in both processes' parts."""
        proposer, accelerator = self.target.engine.proposer, self.target.plugin.accelerator
        found = {
            "faults": sum(accelerator.faults.counts.values()) + proposer.status()["faults"],
            "invalid drafts": self.target.engine.invalid,
            "hints late": proposer._waiting.late,
            "hints unclaimed": proposer._waiting.unclaimed,
        }
        self.outcome.counters |= {name: count for name, count in found.items() if count}
        if accelerator._sidecar is not None:
            kinds = {kind: count for kind, count in accelerator._sidecar.counts.items() if count}
            self.outcome.counters |= {f"waves: {kind}": count for kind, count in kinds.items()}


def request(city: str, **xargs: Any) -> dict[str, Any]:
    """A chat request that is answered with a call."""
    messages = [{"role": "user", "content": "The weather, please.\n" + json.dumps({"city": city})}]
    body = {"model": "m", "messages": messages, "tools": TOOLS, "tool_choice": "required"}
    return {**body, "vllm_xargs": xargs} if xargs else body


@contextmanager
def counted_lines(outcome: Outcome) -> Iterator[None]:
    """Count warnings of ours meanwhile."""

    class Counter(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            outcome.log_lines += record.levelno >= logging.WARNING

    handler, loggers = Counter(), [logging.getLogger(name) for name in ("ooospec_agents", "vllm")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


@asynccontextmanager
async def under(outcome: Outcome, sidecar: str | None = None) -> AsyncIterator[Bench]:
    """A target, and what is noted of it."""
    with counted_lines(outcome):
        async with plugin_target(sidecar=sidecar, step_s=STEP_S) as target:
            bench = Bench(target, outcome)
            yield bench
            await bench.client.aclose()
            bench.count()


async def usual(requests: int) -> float:
    """Median seconds of a request without a fault and without a sidecar."""
    async with under(Outcome("")) as bench:
        await bench.ask()
        return statistics.median([await bench.ask() for _ in range(requests)])


async def hang_up(target: PluginTarget, body: dict[str, Any]) -> None:
    """Ask for a stream and leave after its first piece."""
    got = asyncio.Event()
    messages = [{"type": "http.request", "body": json.dumps({**body, "stream": True}).encode(), "more_body": False}]

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop()
        await got.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.body":
            got.set()

    head = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http"}
    path = {"path": "/v1/chat/completions", "raw_path": b"/v1/chat/completions", "root_path": "", "query_string": b""}
    await target.app({**head, **path, "headers": [], "server": ("target", 80), "client": ("client", 1)}, receive, send)
