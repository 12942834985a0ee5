"""What the clients cost where they bring nothing: time to import, and time added to a request.

Run with: python -m ooospec_agents.bench.client_cost --out docs/results/client-cost.json

No model is needed: the target is a scripted one in a process of its own. Requests are paired and taken by turns.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from ooospec_agents.bench.summary import save

NOWHERE = "http://127.0.0.1:9"
IMPORT = """
import time
began = time.process_time()
import langchain_openai
between = time.process_time()
import langchain_ooospec
print(between - began, time.process_time() - began)
"""
TARGET = """
import sys
from ooospec_agents.testing import Call, Reply, ScriptedTarget
with ScriptedTarget(Reply(calls=(Call("f", {"x": 1}),)), plugin=sys.argv[1] == "plugin") as target:
    print(target.base_url, flush=True)
    sys.stdin.read()
"""
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": f"function_{number}",
            "description": "Does something with a text and a number.",
            "parameters": {
                "type": "object",
                "properties": {"text": {"type": "string"}, "number": {"type": "integer"}},
                "required": ["text"],
            },
        },
    }
    for number in range(8)
]
ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Go " * 500}], "tools": TOOLS}


def paired(stock: Callable[[], float], ours: Callable[[], float], pairs: int) -> dict[str, Any]:
    """Figures of both, by turns, over so many pairs after one that does not count."""
    stock(), ours()
    before: list[float] = []
    after: list[float] = []
    for number in range(pairs):
        for measure in (stock, ours) if number % 2 == 0 else (ours, stock):
            (before if measure is stock else after).append(measure())
    return _figures(before, after)


def import_cost(pairs: int) -> dict[str, Any]:
    """What `langchain_ooospec` adds to `langchain_openai`, in fresh interpreters; processor time.

    All is compiled before, as it is after an install.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def seconds() -> list[float]:
        command = [sys.executable, "-c", IMPORT]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        return [float(number) for number in done.stdout.split()]

    with tempfile.TemporaryDirectory() as compiled:
        environment["PYTHONPYCACHEPREFIX"] = compiled
        seconds()
        taken = [seconds() for _ in range(pairs)]
    return _figures([stock for stock, _ in taken], [ours for _, ours in taken])


def _figures(before: list[float], after: list[float]) -> dict[str, Any]:
    """Medians in milliseconds, and of the differences the quartiles, too; given are seconds."""
    added = [(ours - stock) * 1000 for stock, ours in zip(before, after, strict=True)]
    return {
        "pairs": len(added),
        "stock_ms": round(statistics.median(before) * 1000, 3),
        "ours_ms": round(statistics.median(after) * 1000, 3),
        "added_ms": round(statistics.median(added), 3),
        "added_ms_quartiles": [round(value, 3) for value in statistics.quantiles(added, n=4)[::2]],
    }


def added_latency(pairs: int, *, plugin: bool, sidecar: str | None) -> dict[str, Any]:
    """A request of our OpenAI client against one of the SDK's own, to the same scripted target."""
    import openai
    from openai_ooospec import OpenAI

    def seconds(client: openai.OpenAI) -> float:
        began = time.perf_counter()
        client.chat.completions.create(**ASK)
        return time.perf_counter() - began

    with (
        _target(plugin) as url,
        openai.OpenAI(base_url=url, api_key="none") as stock,
        OpenAI(base_url=url, api_key="none", sidecar=sidecar) as ours,
    ):
        ours.prepare(TOOLS)
        ours.wait_until_known()
        return paired(lambda: seconds(stock), lambda: seconds(ours), pairs)


@contextmanager
def _target(plugin: bool) -> Iterator[str]:
    command = [sys.executable, "-c", TARGET, "plugin" if plugin else "plain"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdin is None or process.stdout is None:
            msg = "a process without pipes"
            raise RuntimeError(msg)
        yield process.stdout.readline().strip()
        process.stdin.close()


app = typer.Typer(add_completion=False)


@app.command()
def main(
    out: Annotated[Path, typer.Option(help="File for the figures.")] = Path("out/client-cost.json"),
    imports: Annotated[int, typer.Option(help="Pairs of imports.")] = 15,
    requests: Annotated[int, typer.Option(help="Pairs of requests, for each state of the servers.")] = 400,
) -> None:
    """Measure what clients cost where they bring nothing."""
    rows = [
        ("import of langchain_ooospec, processor time", import_cost(imports)),
        ("request, target without the plugin", added_latency(requests, plugin=False, sidecar=None)),
        ("request, target with the plugin, no sidecar", added_latency(requests, plugin=True, sidecar=None)),
        ("request, sidecar down", added_latency(requests, plugin=True, sidecar=NOWHERE)),
    ]
    save(out, "client_cost", {"rows": [{"what": what, **figures} for what, figures in rows]})
    for what, figures in rows:
        typer.echo(f"{what}: {figures['added_ms']} ms more than {figures['stock_ms']} ms")


if __name__ == "__main__":
    app()
