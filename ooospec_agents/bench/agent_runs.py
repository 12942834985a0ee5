"""Whole LangGraph tasks with executed tools, on stock vLLM and on ours: wall time split into target, tools and rest.

"target" is the time of the requests on the wire, "tools" that inside the tools, "rest" what is left: the graph, the
chat model and the client. Each side does each task once, so nothing was seen before; greedy, so both do the same work
wherever the outputs are the same, and the result says where they are not.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer
from langchain_core.callbacks import BaseCallbackHandler
from rich.console import Console
from rich.table import Table

from ooospec_agents.bench.demo import accelerated_chat
from ooospec_agents.bench.demo_agent import Side
from ooospec_agents.bench.demo_tasks import TASKS, Task
from ooospec_agents.bench.servers import Setup, SidecarSetup, fits, ours, sidecar, stock
from ooospec_agents.bench.stats import ratio_of_totals
from ooospec_agents.bench.summary import save
from ooospec_agents.sidecar.adapters import adapter_for


class ToolClock(BaseCallbackHandler):
    """Adds up the time inside tools; of tools that run at once, the time that any of them runs."""

    def __init__(self) -> None:
        """Nothing has run yet."""
        self.seconds = 0.0
        self.calls = 0
        self._running: set[UUID] = set()
        self._since = 0.0

    def on_tool_start(self, *_: Any, run_id: UUID, **__: Any) -> None:
        """A tool begins."""
        if not self._running:
            self._since = time.perf_counter()
        self._running.add(run_id)
        self.calls += 1

    def on_tool_end(self, *_: Any, run_id: UUID, **__: Any) -> None:
        """A tool has answered."""
        self._running.discard(run_id)
        if not self._running:
            self.seconds += time.perf_counter() - self._since

    def on_tool_error(self, *_: Any, run_id: UUID, **__: Any) -> None:
        """A tool has failed."""
        self.on_tool_end(run_id=run_id)


@dataclass(frozen=True)
class AgentRun:
    """One whole task on one side.

    Attributes:
        wall_s: From the user's question to the agent's answer.
        target_s: Of that, waiting for the target.
        tools_s: Of that, inside tools.
        turns: Calls of the model.
        tool_calls: Calls of tools.
        steps: Steps of the target.
        token_ids: Output ids of each turn.
    """

    wall_s: float
    target_s: float
    tools_s: float
    turns: int
    tool_calls: int
    steps: int
    token_ids: list[list[int]]

    @property
    def rest_s(self) -> float:
        """What is neither target nor tools."""
        return self.wall_s - self.target_s - self.tools_s

    def to_json(self) -> dict[str, Any]:
        """The run as data, without its tokens."""
        return {**{k: v for k, v in asdict(self).items() if k != "token_ids"}, "rest_s": self.rest_s}


def run_task(side: Side, task: Task) -> AgentRun:
    """Let an agent do a task, and time its parts."""
    first, clock = len(side.wire.answers), ToolClock()
    began = time.perf_counter()
    side.run(task, [clock])
    wall = time.perf_counter() - began
    answers = side.wire.answers[first:]
    ids = [answer["choices"][0].get("token_ids") or [] for answer in answers]
    reports = [answer.get("ooospec") or {} for answer in answers]
    steps = sum(report.get("steps") or len(own) for report, own in zip(reports, ids, strict=True))
    return AgentRun(wall, sum(side.wire.seconds[first:]), clock.seconds, len(answers), clock.calls, steps, ids)


def result_of(tasks: Sequence[Task], plain: Sequence[AgentRun], own: Sequence[AgentRun]) -> dict[str, Any]:
    """The ratio of total wall times, where the time goes on both sides, and each task."""
    ratio = ratio_of_totals([run.wall_s for run in plain], [run.wall_s for run in own])
    rows = [
        {"task": task.name, "identical": a.token_ids == b.token_ids, "plain": a.to_json(), "ours": b.to_json()}
        for task, a, b in zip(tasks, plain, own, strict=True)
    ]
    totals = {
        name: {part: sum(run.to_json()[part] for run in runs) for part in ("wall_s", "target_s", "tools_s", "rest_s")}
        for name, runs in (("plain", plain), ("ours", own))
    }
    return {
        "speedup": ratio.value,
        "speedup_low": ratio.low,
        "speedup_high": ratio.high,
        "totals": totals,
        "rows": rows,
    }


def table_of(result: dict[str, Any]) -> Table:
    """Where the time goes, side by side."""
    table = Table(title="Whole tasks, seconds", title_justify="left")
    table.add_column("")
    for name in ("wall", "target", "tools", "rest"):
        table.add_column(name, justify="right")
    for side, parts in result["totals"].items():
        table.add_row(side, *(f"{parts[part]:.2f}" for part in ("wall_s", "target_s", "tools_s", "rest_s")))
    interval = f"[{result['speedup_low']:.2f}, {result['speedup_high']:.2f}]"
    table.caption = f"{result['speedup']:.2f}x {interval} over {len(result['rows'])} tasks"
    return table


def main(
    target: Annotated[str, typer.Option(help="Target model: name or folder.")] = "Qwen2.5-Coder-1.5B-Instruct",
    sidecar_model: Annotated[str, typer.Option("--sidecar", help="Sidecar model; '' for none.")] = "",
    adapter: Annotated[str | None, typer.Option(help="LoRA adapter of the sidecar, or none.")] = None,
    limit: Annotated[int, typer.Option(help="Tasks to run.")] = len(TASKS),
    out: Annotated[Path, typer.Option(help="Result JSON.")] = Path("out/agents.json"),
    dtype: str = "",
    cores: str = "0-1",
    sidecar_cores: str = "",
    logs: Path = Path("out/logs"),
) -> None:
    """Run whole agent tasks on stock vLLM and on ours, and say where the time goes."""
    from langchain_openai import ChatOpenAI

    setup, tasks = Setup(target, dtype=dtype, cores=cores), TASKS[:limit]
    beside = SidecarSetup(sidecar_model, adapter_for(sidecar_model, adapter), sidecar_cores)
    plain: list[AgentRun] = []
    own: list[AgentRun] = []
    together = fits(setup, helper=bool(sidecar_model))
    with ExitStack() as stack:
        with ExitStack() as first:
            server = (stack if together else first).enter_context(stock(setup, logs))
            side = (stack if together else first).enter_context(Side(ChatOpenAI, server.url, server.model))
            if not together:
                plain += [run_task(side, task) for task in tasks]
        helper = None
        if sidecar_model:
            helper = stack.enter_context(sidecar(beside, logs))
        server = stack.enter_context(ours(setup, logs, helper))
        fast = stack.enter_context(Side(accelerated_chat, server.url, server.model))
        for number, task in enumerate(tasks):
            if not together:
                own.append(run_task(fast, task))
                continue
            order = [(side, plain), (fast, own)]
            for one, runs in order if number % 2 == 0 else order[::-1]:
                runs.append(run_task(one, task))
    result = result_of(tasks, plain, own)
    order_said = "task by task" if together else "one server after the other, for want of memory"
    label = beside.label if sidecar_model else None
    facts = {"target": target, "dtype": setup.dtype_used, "cores": cores, "servers": order_said, "sidecar": label}
    save(out, "agents", facts | result)
    Console().print(table_of(result))


if __name__ == "__main__":
    typer.run(main)
