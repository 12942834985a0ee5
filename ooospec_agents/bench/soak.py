"""A soak: many requests of all kinds for a long time; no error, no lost or swapped hint, memory, handles, threads flat.

`make soak MINUTES=60` runs it against the real plugin over a scripted engine, and `--url` against a server that runs.
"""

from __future__ import annotations

import asyncio
import re
import socket
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer

from ooospec_agents.bench.soak_traffic import Traffic, at_once, levels, record
from ooospec_agents.bench.summary import save
from ooospec_agents.process import LaunchPlan, serving
from ooospec_agents.testing.sidecar import ScriptedSidecar

BLOCK = 200
"""Requests made at one level before the next."""
WARM = 1000
"""Requests after which stores are as full as they get, more or less, and memory is first measured."""
PROMPTS = [f"Please {verb} order {number}." for number in (1201, 77, 40513) for verb in ("find", "cancel", "return")]


@dataclass(frozen=True)
class Usage:
    """What a process and its children use."""

    rss_mb: float
    files: int
    threads: int


def usage(pid: int) -> Usage:
    """Of a process on this machine and all below it."""
    rss = files = threads = 0
    for one in _tree(pid):
        try:
            status = Path(f"/proc/{one}/status").read_text()
            files += sum(1 for _ in Path(f"/proc/{one}/fd").iterdir())
        except OSError:
            continue
        rss += _field(status, "VmRSS")
        threads += _field(status, "Threads")
    return Usage(round(rss / 1024, 1), files, threads)


def _field(status: str, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+)", status, re.MULTILINE)
    return int(found[1]) if found else 0


def _tree(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        try:
            children = Path(f"/proc/{one}/task/{one}/children").read_text()
        except OSError:
            continue
        found += [int(child) for child in children.split()]
    return found


def says_order(prompt: str) -> str:
    """The scripted sidecar's answer: the first function, and the order that the conversation names."""
    question = prompt[-400:]
    if "Which tool" in question:
        return " 0"
    orders = re.findall(r"order-\d+", prompt)
    return f" {orders[-1]}" if orders and "value of order" in question else " null"


async def soak(
    url: str, pid: int, model: str, api_key: str, *, minutes: float, requests: int, most: int, real: bool
) -> dict[str, Any]:
    """Make requests until the time or the number is reached; the figures."""
    headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
    limits = httpx.Limits(max_connections=most + 4, max_keepalive_connections=most + 4)
    async with httpx.AsyncClient(base_url=url, headers=headers, limits=limits, timeout=600, trust_env=False) as client:
        recorded = await record(client, model, PROMPTS) if real else None
        traffic = Traffic(client, model, recorded)
        began = time.monotonic()
        samples: list[Usage] = []
        for level in levels(most):
            done = traffic.counts["requests"]
            if time.monotonic() - began > minutes * 60 or (requests and done >= requests):
                break
            await at_once(traffic, level, min(BLOCK, requests - done) if requests else BLOCK)
            if pid and (not samples or traffic.counts["requests"] <= WARM):
                samples = [usage(pid)]
            elif pid:
                samples.append(usage(pid))
        took = time.monotonic() - began
    counts = traffic.counts
    answered = counts["identical"] + counts["different"]
    figures: dict[str, Any] = {
        "requests": counts["requests"],
        "errors": counts["errors"],
        "identical": round(counts["identical"] / answered, 6) if answered else None,
        "minutes": round(took / 60, 2),
        "at_once": most,
        "scripted": not real,
        "counts": dict(sorted(counts.items())),
        "problems": traffic.problems,
    }
    if samples:
        for name, value in asdict(samples[0]).items():
            start, end = (name.removesuffix("_mb") + suffix for suffix in ("_start", "_end"))
            unit = "_mb" if name.endswith("_mb") else ""
            figures |= {f"{start}{unit}": value, f"{end}{unit}": asdict(samples[-1])[name]}
        figures["rss_mb"] = [sample.rss_mb for sample in samples[:: max(len(samples) // 50, 1)]]
    return figures


def main(
    minutes: Annotated[float, typer.Option(help="Longest time.")] = 60.0,
    requests: Annotated[int, typer.Option(help="Most requests; 0: as many as the time allows.")] = 0,
    most: Annotated[int, typer.Option("--at-once", help="Most requests at a time.")] = 16,
    out: Annotated[Path, typer.Option(help="File of the figures.")] = Path("out/soak.json"),
    url: Annotated[str, typer.Option(help="A server that runs; without one, a scripted one is started.")] = "",
    pid: Annotated[int, typer.Option(help="Its process on this machine, so that memory is measured.")] = 0,
    model: Annotated[str, typer.Option(help="Its model.")] = "scripted",
    api_key: Annotated[str, typer.Option(envvar="OPENAI_API_KEY", help="Its key.")] = "",
) -> None:
    """Run a soak and write its figures; fails if anything was wrong."""
    with ExitStack() as stack:
        real = bool(url)
        if not real:
            sidecar = stack.enter_context(ForgetfulSidecar(says_order))
            url = f"http://127.0.0.1:{_free_port()}"
            words = ["--port", url.rpartition(":")[2], "--sidecar", sidecar.url, "--step-ms", "2"]
            plan = LaunchPlan([sys.executable, "-m", "ooospec_agents.testing.plugin_target", *words])
            pid = stack.enter_context(serving(plan, f"{url}/health", 120, out.with_suffix(".log")))
        figures = asyncio.run(soak(url, pid, model, api_key, minutes=minutes, requests=requests, most=most, real=real))
    save(out, "soak", figures)
    typer.echo("\n".join(f"{name}: {value}" for name, value in figures.items()))
    wrong = ("errors", "different", "hints lost", "hints swapped", "reports missing")
    if any(figures["counts"].get(name) for name in wrong):
        raise typer.Exit(1)


class ForgetfulSidecar(ScriptedSidecar):
    """A scripted sidecar that keeps no record of what it was asked: an hour's would fill the memory."""

    def respond(self, request: Any) -> Any:
        """Answer one request."""
        self.requests.clear()
        return super().respond(request)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    typer.run(main)
