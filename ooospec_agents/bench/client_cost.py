"""What the clients cost where they bring nothing: time to import, and time added to a request.

Run with: python -m ooospec_agents.bench.client_cost --out docs/results/client-cost.json

No model is needed: the target is a scripted one in a process of its own. Every figure is of pairs taken by turns, stock
first and ours first by turns too.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

NOWHERE = "http://127.0.0.1:9"
IMPORT = "import time; began = time.process_time(); import {module}; print(time.process_time() - began)"
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
    """Milliseconds of both, and of their differences, over so many pairs after one that does not count."""
    stock(), ours()
    before: list[float] = []
    after: list[float] = []
    for number in range(pairs):
        for measure in (stock, ours) if number % 2 == 0 else (ours, stock):
            (before if measure is stock else after).append(measure() * 1000)
    added = [ours_ms - stock_ms for stock_ms, ours_ms in zip(before, after, strict=True)]
    return {
        "pairs": pairs,
        "stock_ms": round(statistics.median(before), 3),
        "ours_ms": round(statistics.median(after), 3),
        "added_ms": round(statistics.median(added), 3),
        "added_ms_quartiles": [round(value, 3) for value in statistics.quantiles(added, n=4)[::2]],
    }


def import_cost(pairs: int) -> dict[str, Any]:
    """`langchain_ooospec` against `langchain_openai`, each in a fresh interpreter; processor time."""

    def seconds(module: str) -> float:
        command = [sys.executable, "-c", IMPORT.format(module=module)]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    return paired(lambda: seconds("langchain_openai"), lambda: seconds("langchain_ooospec"), pairs)


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


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/client-cost.json"))
    parser.add_argument("--imports", type=int, default=15, help="pairs of imports")
    parser.add_argument("--requests", type=int, default=400, help="pairs of requests, for each state of the servers")
    arguments = parser.parse_args()
    result = {
        "command": "python -m ooospec_agents.bench.client_cost",
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in ("openai", "langchain-openai")},
        "import": import_cost(arguments.imports),
        "request": {
            "target without the plugin": added_latency(arguments.requests, plugin=False, sidecar=None),
            "target with the plugin, no sidecar": added_latency(arguments.requests, plugin=True, sidecar=None),
            "target with the plugin, sidecar down": added_latency(arguments.requests, plugin=True, sidecar=NOWHERE),
        },
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(result, indent=2) + "\n", "utf-8")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
