"""A soak: many requests of all kinds for a long time; no error, no lost or swapped hint, memory, handles, threads flat.

`make soak MINUTES=60` runs it against the real plugin over a scripted engine, `--target` against a real one started for
it with a scripted sidecar, `--url` against a server that runs.
"""

from __future__ import annotations

import asyncio
import re
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import httpx
import typer

from ooospec_agents.bench.soak_traffic import Traffic, at_once, levels, record
from ooospec_agents.bench.summary import save
from ooospec_agents.process import LaunchPlan, serving
from ooospec_agents.testing.sidecar import ScriptedSidecar

GROWTH = 1.1
"""A process that uses more than this many times what it used before is growing."""
CYCLE = 5
"""Samples that hold each number of requests at a time once: fewer tell nothing, as more requests hold more files."""
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


@dataclass(frozen=True)
class Extent:
    """How much is asked for.

    Attributes:
        minutes: Longest time.
        requests: Most requests; 0: as many as the time allows.
        most: Most requests at a time.
        max_tokens: Of an answer.
    """

    minutes: float
    requests: int
    most: int
    max_tokens: int = 256


async def soak(
    url: str, pid: int, model: str, api_key: str, extent: Extent, *, real: bool, note: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Make requests until the time or the number is reached; the figures, which `note` gets after each block, too."""
    headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
    connections = extent.most + 4
    limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
    block = min(BLOCK, max(extent.requests // 20, 10)) if extent.requests else BLOCK
    async with httpx.AsyncClient(base_url=url, headers=headers, limits=limits, timeout=600, trust_env=False) as client:
        recorded = await record(client, model, PROMPTS, extent.max_tokens) if real else None
        traffic = Traffic(client, model, recorded, extent.max_tokens)
        counts = traffic.counts
        began = time.monotonic()
        samples: list[Usage] = []
        figures: dict[str, Any] = {}
        for level in levels(extent.most):
            left = extent.requests - counts["requests"] if extent.requests else block
            if time.monotonic() - began > extent.minutes * 60 or left <= 0:
                break
            await at_once(traffic, level, min(block, left))
            if pid and (not samples or counts["requests"] <= min(WARM, extent.requests // 4 or WARM)):
                samples = [usage(pid)]
            elif pid:
                samples.append(usage(pid))
            figures = _figures(traffic, (time.monotonic() - began) / 60, samples)
            figures |= {"at_once": extent.most, "target": model if real else ""}
            note(figures)
    return figures


def _figures(traffic: Traffic, minutes: float, samples: list[Usage]) -> dict[str, Any]:
    counts = traffic.counts
    answered = counts["identical"] + counts["different"]
    figures: dict[str, Any] = {
        "requests": counts["requests"],
        "errors": counts["errors"],
        "identical": round(counts["identical"] / answered, 6) if answered else None,
        "minutes": round(minutes, 2),
        "counts": dict(sorted(counts.items())),
        "problems": traffic.problems,
    }
    if samples:
        for name, value in asdict(samples[0]).items():
            start, end = (name.removesuffix("_mb") + suffix for suffix in ("_start", "_end"))
            unit = "_mb" if name.endswith("_mb") else ""
            figures |= {f"{start}{unit}": value, f"{end}{unit}": asdict(samples[-1])[name]}
            figures[name] = [asdict(sample)[name] for sample in samples[:: max(len(samples) // 50, 1)]]
        figures["growing"] = growing(samples)
    return figures


def growing(samples: Sequence[Usage]) -> list[str]:
    """What is not flat: its mean in the last quarter of the samples exceeds that in the second by more than a tenth."""
    quarter = len(samples) // 4
    if quarter < CYCLE:
        return []
    early, late = ([asdict(sample) for sample in part] for part in (samples[quarter : 2 * quarter], samples[-quarter:]))
    return [name for name in early[0] if mean(one[name] for one in late) > GROWTH * mean(one[name] for one in early)]


def main(
    minutes: Annotated[float, typer.Option(help="Longest time.")] = 60.0,
    requests: Annotated[int, typer.Option(help="Most requests; 0: as many as the time allows.")] = 0,
    most: Annotated[int, typer.Option("--at-once", help="Most requests at a time.")] = 16,
    out: Annotated[Path, typer.Option(help="File of the figures.")] = Path("out/soak.json"),
    url: Annotated[str, typer.Option(help="A server that runs; without one, a scripted one is started.")] = "",
    pid: Annotated[int, typer.Option(help="Its process on this machine, so that memory is measured.")] = 0,
    model: Annotated[str, typer.Option(help="Its model.")] = "scripted",
    api_key: Annotated[str, typer.Option(envvar="OPENAI_API_KEY", help="Its key.")] = "",
    target: Annotated[str, typer.Option(help="A model to start a real server with.")] = "",
    max_tokens: Annotated[int, typer.Option(help="Most tokens of an answer.")] = 256,
) -> None:
    """Run a soak and write its figures; fails if anything was wrong."""
    log = out.with_suffix(".log")
    extent = Extent(minutes, requests, most, max_tokens)
    with ExitStack() as stack:
        real = bool(url or target)
        if target:
            sidecar = stack.enter_context(ForgetfulSidecar(says_order))
            model, url = target.rpartition("/")[2], f"http://127.0.0.1:{_free_port()}"
            pid = stack.enter_context(serving(real_plan(target, model, url, sidecar.url), f"{url}/health", 600, log))
        elif not url:
            sidecar = stack.enter_context(ForgetfulSidecar(says_order))
            url = f"http://127.0.0.1:{_free_port()}"
            words = ["--port", url.rpartition(":")[2], "--sidecar", sidecar.url, "--step-ms", "2"]
            plan = LaunchPlan([sys.executable, "-m", "ooospec_agents.testing.plugin_target", *words])
            pid = stack.enter_context(serving(plan, f"{url}/health", 120, log))
        figures = asyncio.run(
            soak(url, pid, model, api_key, extent, real=real, note=lambda found: save(out, "soak", found))
        )
    typer.echo("\n".join(f"{name}: {value}" for name, value in figures.items()))
    wrong = ("errors", "different", "hints lost", "hints swapped", "reports missing")
    if figures.get("growing") or any(figures["counts"].get(name) for name in wrong):
        raise typer.Exit(1)


def real_plan(target: str, name: str, url: str, sidecar: str) -> LaunchPlan:
    """The command of a real server with a scripted sidecar."""
    from ooospec_agents.vllm_plugin.launch import plan_target
    from ooospec_agents.weights import resolve

    extra = ["--served-model-name", name, "--max-model-len", "2048"]
    port = int(url.rpartition(":")[2])
    return plan_target(str(resolve(target)), port=port, sidecar=sidecar, sidecar_model="scripted", extra_args=extra)


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
