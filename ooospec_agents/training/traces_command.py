"""The command line of collecting a teacher's calls, run as `ooospec traces`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, cast, get_args

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ooospec_agents.training import teacher as asking
from ooospec_agents.training.teacher import Tally, Teacher, ToolChoice
from ooospec_agents.training.traces import (
    Request,
    evaluation_functions,
    read_requests,
    refuse_evaluation_calls,
)


def main(
    url: Annotated[str, typer.Option("--teacher", help="URL of the server whose model is to be predicted.")],
    requests: Annotated[Path, typer.Option(help="Requests to ask, JSON Lines.")],
    out: Annotated[Path, typer.Option(help="File of the traces; those that it has are not asked again.")],
    evaluation: Annotated[
        Path | None, typer.Option("--eval", help="Evaluation sets: what calls their functions is refused.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The teacher's model; by default the first.")] = None,
    tool_choice: Annotated[str, typer.Option(help="auto or required.")] = "required",
    max_tokens: Annotated[int, typer.Option(help="New tokens of an answer, at most.", min=1)] = 512,
    parallel: Annotated[int, typer.Option(help="Requests at once.", min=1)] = 4,
    limit: Annotated[int | None, typer.Option(help="Requests of the file to ask, from its start.", min=1)] = None,
    api_key: Annotated[str, typer.Option(envvar="OPENAI_API_KEY", help="The teacher's key.")] = "",
) -> None:
    """Ask a server every request and write down what it calls: what a sidecar learns from."""
    if tool_choice not in get_args(ToolChoice):
        msg = f"no tool choice {tool_choice!r}: choose auto or required"
        raise typer.BadParameter(msg)
    console, url = Console(), url.rstrip("/").removesuffix("/v1")
    try:
        asked = read_requests(requests)[:limit]
        forbidden = evaluation_functions(evaluation) if evaluation else frozenset()
        refuse_evaluation_calls(requests, ((one.id, one.calls) for one in asked), forbidden)
        known = asking.answered(out)
        open_ones = [one for one in asked if one.id not in known]
        chosen = model or asyncio.run(asking.first_model(url, api_key))
        teacher = Teacher(url, chosen, cast(ToolChoice, tool_choice), max_tokens, api_key, parallel)
        tally = _collect(teacher, open_ones, len(asked), out, forbidden, console)
    except (ValueError, OSError) as error:
        typer.echo(f"ooospec: {error}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo(f"ooospec: stopped; {str(out)!r} has what came, and the same command goes on.", err=True)
        raise typer.Exit(130) from None
    _show(tally, console)
    if tally.failed:
        raise typer.Exit(1)


def _collect(
    teacher: Teacher, requests: list[Request], of: int, out: Path, forbidden: frozenset[str], console: Console
) -> Tally:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("a", encoding="utf-8") as file, Progress(*columns, console=console) as bar:
        task = bar.add_task(teacher.model, total=of, completed=of - len(requests))
        return asyncio.run(asking.collect(teacher, requests, file, forbidden, lambda: bar.advance(task)))


def _show(tally: Tally, console: Console) -> None:
    ends = tally.ends
    console.print(
        f"{ends.get('tool_calls', 0)} with calls, {ends.get('stop', 0)} without, "
        f"{ends.get('length', 0)} cut off (not trained on)."
    )
    if unread := ends.get("unread", 0):
        console.print(
            f"{unread} look like calls that the server did not read (not trained on): does its --tool-call-parser fit?"
        )
    if tally.refused:
        console.print(f"{tally.refused} called a function of the evaluation sets and were left out.")
    if tally.failed:
        console.print(f"{tally.failed} failed, the first with {tally.problem}", markup=False)
        console.print("The same command asks them again.")


if __name__ == "__main__":
    typer.run(main)
