"""`make demo`: a LangGraph agent on stock vLLM and on ours, the same turns on both, in a live view.

One plain run records the agent's messages. Then every turn of it is put to both servers, one after the other,
the order alternating, each through the same agent with only the chat model's class swapped. So both do the
same work, and the second plain run also tells which outputs this machine repeats at all. Prompt KV is warmed
on both before a turn is timed. Where memory does not hold both servers, stock vLLM does all turns first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage
from rich.console import Console
from rich.live import Live
from rich.table import Table

from ooospec_agents.bench.demo_agent import Side, Turn, turns_of
from ooospec_agents.bench.demo_tasks import TASKS, TOOLS, Task
from ooospec_agents.bench.requests import LIMITS
from ooospec_agents.bench.rest import Rest
from ooospec_agents.bench.servers import Setup, SidecarSetup, fits, ours, sidecar, stock
from ooospec_agents.bench.summary import save
from ooospec_agents.bench.timeline import Picture, draw
from ooospec_agents.sidecar.adapters import adapter_for

Show = Callable[[], None]
"""Draws the table anew."""


@dataclass
class TaskResult:
    """A task's turns on both sides.

    `turns` are the first plain run's: what the model was sent, as messages and as a request body, and the token
    ids that it answered.
    """

    task: Task
    state: str = "waiting"
    turns: list[tuple[Sequence[AnyMessage], dict[str, Any]]] = field(default_factory=list)
    recorded: list[list[int]] = field(default_factory=list)
    plain: list[Turn] = field(default_factory=list)
    ours: list[Turn] = field(default_factory=list)

    @property
    def plain_s(self) -> float:
        """Model seconds on stock vLLM."""
        return sum(turn.seconds for turn in self.plain)

    @property
    def ours_s(self) -> float:
        """Model seconds on ours."""
        return sum(turn.seconds for turn in self.ours)

    def to_json(self) -> dict[str, Any]:
        """The task's row of the result file."""
        plain_ids = [turn.token_ids for turn in self.plain]
        return {
            "task": self.task.name,
            "derived": self.task.derived,
            "turns": len(self.plain),
            "plain_s": self.plain_s,
            "ours_s": self.ours_s,
            "identical": [turn.token_ids for turn in self.ours] == plain_ids,
            "reproducible": self.recorded == plain_ids,
            "same_prompts": [t.prompt_token_ids for t in self.plain] == [t.prompt_token_ids for t in self.ours],
            "tokens": sum(len(ids) for ids in plain_ids),
            "steps_plain": sum(turn.steps for turn in self.plain),
            "steps_ours": sum(turn.steps for turn in self.ours),
            "hints_used": sum(bool(t.report and t.report["hint"]["used"]) for t in self.ours),
        }


def record(result: TaskResult, plain: Side, show: Show) -> None:
    """Let the agent do the task on the plain side, and keep its turns."""
    result.state = "plain run"
    show()
    first = len(plain.wire.answers)
    conversation = plain.run(result.task)
    result.turns = list(zip(turns_of(conversation), plain.wire.requests[first:], strict=False))
    result.recorded = [answer["choices"][0].get("token_ids") or [] for answer in plain.wire.answers[first:]]


def time_turn(result: TaskResult, number: int, side: Side, turns: list[Turn], show: Show) -> None:
    """Put one recorded turn to a side, and time it."""
    result.state = f"turn {number + 1}, {'plain' if turns is result.plain else 'ours'}"
    show()
    turns.append(side.turn(result.turns[number][0]))


def run_task(result: TaskResult, plain: Side, own: Side, client: httpx.Client, show: Show) -> None:
    """Record the task on the plain side, then time each of its turns on both."""
    record(result, plain, show)
    rest = Rest()
    for number, (_, body) in enumerate(result.turns):
        warm(client, plain, body)
        warm(client, own, body, {"ooospec": "off"})
        sides = [(plain, result.plain), (own, result.ours)]
        rest.after()
        for side, turns in sides if number % 2 == 0 else sides[::-1]:
            rest.before()
            time_turn(result, number, side, turns, show)
            rest.after()
    result.state = "done"
    show()


def run_plain(results: Sequence[TaskResult], plain: Side, client: httpx.Client, show: Show) -> None:
    """Record and time all tasks on the plain side."""
    for result in results:
        record(result, plain, show)
        for number, (_, body) in enumerate(result.turns):
            warm(client, plain, body)
            time_turn(result, number, plain, result.plain, show)


def run_ours(results: Sequence[TaskResult], own: Side, client: httpx.Client, show: Show) -> None:
    """Time the recorded turns of all tasks on our side."""
    for result in results:
        for number, (_, body) in enumerate(result.turns):
            warm(client, own, body, {"ooospec": "off"})
            time_turn(result, number, own, result.ours, show)
        result.state = "done"
        show()


def warm(client: httpx.Client, side: Side, body: dict[str, Any], xargs: dict[str, Any] | None = None) -> None:
    """Have a server prefill this prompt. With "off", ours neither drafts nor learns from it, and starts no wave."""
    short = {**body, "max_tokens": 1, "max_completion_tokens": 1, "stream": False}
    short |= {"vllm_xargs": xargs} if xargs else {}
    client.post(f"{side.url}/v1/chat/completions", json=short).raise_for_status()


def news(results: Sequence[TaskResult], told: dict[str, str]) -> list[str]:
    """A line for each task whose state is not the one told last; keeps what is told."""
    changed = [result for result in results if told.get(result.task.name) != result.state]
    told.update((result.task.name, result.state) for result in changed)
    return [f"{result.task.name}: {result.state}" for result in changed]


def table_of(results: Sequence[TaskResult]) -> Table:
    """The live view, and in the end the table."""
    table = Table(title="The same agent turns on stock vLLM and on ours", title_justify="left")
    for name, justify in (
        ("task", "left"),
        ("", "left"),
        ("plain", "right"),
        ("ours", "right"),
        ("ratio", "right"),
    ):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for name in ("steps", "identical", "speed"):
        table.add_column(name, justify="right" if name == "steps" else "left")
    for result in results:
        row = result.to_json()
        timed = bool(result.plain and result.ours)
        ratio = result.plain_s / result.ours_s if timed else 0.0
        table.add_row(
            result.task.name + (" *" if result.task.derived else ""),
            result.state if result.state != "done" else "",
            f"{result.plain_s:.2f} s" if result.plain else "",
            f"{result.ours_s:.2f} s" if result.ours else "",
            f"{ratio:.2f}x" if timed else "",
            f"{row['steps_plain']} / {row['steps_ours']}" if timed else "",
            ("yes" if row["identical"] else "no" if row["reproducible"] else "no (nor plain)")
            if result.state == "done"
            else "",
            "#" * round(4 * ratio),
        )
    plain_s, ours_s = sum(r.plain_s for r in results), sum(r.ours_s for r in results)
    if ours_s:
        table.add_section()
        table.add_row("all", "", f"{plain_s:.2f} s", f"{ours_s:.2f} s", f"{plain_s / ours_s:.2f}x")
    table.caption = "* needs a value that stands nowhere in the conversation"
    return table


def picture_of(results: Sequence[TaskResult], client: httpx.Client, url: str, model: str) -> Picture | None:
    """The turn that shows most: a hint was used and many tokens came out; else the longest with a report."""
    best: tuple[tuple[bool, int], TaskResult, Turn, Turn] | None = None
    for result in results:
        for plain, own in zip(result.plain, result.ours, strict=True):
            if own.report:
                rank = (bool(own.report["hint"]["used"]), len(own.token_ids))
                if best is None or rank > best[0]:
                    best = (rank, result, plain, own)
    if best is None or best[3].report is None:
        return None
    _, result, plain, own = best
    report = best[3].report
    tokens = [
        client.post(f"{url}/detokenize", json={"model": model, "tokens": [token]}).raise_for_status().json()["prompt"]
        for token in own.token_ids
    ]
    return Picture.of_report(result.task.name, tokens, report, own.seconds, plain.seconds, plain.steps)


def accelerated_chat(**settings: Any) -> BaseChatModel:
    """`ChatOoOSpec`, once it knows its target: without waiting, only the very first request would have no report."""
    from langchain_ooospec import ChatOoOSpec

    model = ChatOoOSpec(**settings)
    model.bind_tools(TOOLS)
    model.wait_until_known()
    return model


app = typer.Typer(add_completion=False)


@app.command()
def main(
    target: Annotated[str, typer.Option(help="Target model: name or folder.")] = "Qwen2.5-Coder-1.5B-Instruct",
    sidecar_model: Annotated[str, typer.Option("--sidecar", help="Sidecar model.")] = "SmolLM2-135M-Instruct",
    adapter: Annotated[str | None, typer.Option(help="LoRA adapter of the sidecar, or none.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for demo.json and timeline.png.")] = Path("out"),
    limit: Annotated[int, typer.Option(help="Tasks to run.")] = len(TASKS),
    dtype: str = "",
    cores: str = "0-1",
    sidecar_cores: str = "",
    together: Annotated[
        bool | None,
        typer.Option(
            "--together/--apart",
            help="Both servers at once, turn by turn, or one after the other; else as memory allows.",
        ),
    ] = None,
) -> None:
    """Run the demo; takes some minutes on two cores."""
    from langchain_openai import ChatOpenAI

    console = Console()
    results = [TaskResult(task) for task in TASKS[:limit]]
    setup = Setup(target, dtype=dtype, cores=cores)
    beside = SidecarSetup(sidecar_model, adapter_for(sidecar_model, adapter), sidecar_cores)
    logs = out / "logs"
    together = fits(setup) if together is None else together
    if not together:
        console.print("Too little memory for both servers at once: stock vLLM does all turns first, then ours.")
    with ExitStack() as stack:
        client = stack.enter_context(httpx.Client(timeout=600, limits=LIMITS))
        live = Live(table_of(results), console=console, refresh_per_second=4)

        told = {result.task.name: result.state for result in results}

        def show() -> None:
            live.update(table_of(results))
            for line in news(results, told):
                if not console.is_terminal:  # there is no live view in a file or a pipe
                    console.print(line)

        with ExitStack() as first:
            with console.status("starting stock vLLM (a minute or so) ..."):
                plain_server = (stack if together else first).enter_context(stock(setup, logs))
            plain = stack.enter_context(Side(ChatOpenAI, plain_server.url, plain_server.model))
            if not together:
                with live:
                    run_plain(results, plain, client, show)
        with console.status("starting the sidecar and ours (a minute or two) ..."):
            helper = stack.enter_context(sidecar(beside, logs))
            our_server = stack.enter_context(ours(setup, logs, helper))
        own = stack.enter_context(Side(accelerated_chat, our_server.url, our_server.model))
        live = Live(table_of(results), console=console, refresh_per_second=4)
        with live:
            if together:
                for result in results:
                    run_task(result, plain, own, client, show)
            else:
                run_ours(results, own, client, show)
        picture = picture_of(results, client, our_server.url, our_server.model)
    if picture:
        draw(picture, out / "timeline.png")
    rows = [result.to_json() for result in results]
    speedup = sum(row["plain_s"] for row in rows) / sum(row["ours_s"] for row in rows)
    save(
        out / "demo.json",
        "demo",
        {
            "target": target,
            "sidecar": beside.label,
            "dtype": setup.dtype_used,
            "together": together,
            "speedup": speedup,
            "tasks": rows,
        },
    )
    repeated = [row for row in rows if row["reproducible"]]
    console.print(
        f"{speedup:.2f}x; token ids identical in {sum(row['identical'] for row in repeated)} of the "
        f"{len(repeated)} tasks that stock vLLM itself repeats. "
        f"Wrote {out / 'demo.json'} and {out / 'timeline.png'}."
    )


if __name__ == "__main__":
    app()
