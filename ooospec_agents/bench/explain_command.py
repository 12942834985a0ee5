"""The command line of `ooospec explain`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ooospec_agents.bench.data import DataError
from ooospec_agents.bench.explain import (
    Run,
    causes_table,
    explain,
    explain_as,
    show_request,
    slots_table,
    to_json,
)
from ooospec_agents.bench.methods import UnknownMethod, method_named
from ooospec_agents.bench.redraft import WIDTH, Redrafter, codec_of
from ooospec_agents.drafting.budget import DEFAULT_PRICE
from ooospec_agents.weights import WeightsError, resolve


def main(
    run: Annotated[Path, typer.Argument(help="Raw .jsonl of a run.")],
    data: Annotated[
        list[Path] | None, typer.Option(help="The run's requests, where the file does not hold them itself.")
    ] = None,
    method: Annotated[list[str] | None, typer.Option(help="Methods of the run; by default all.")] = None,
    as_method: Annotated[
        str, typer.Option("--as", help="Take the plain outputs and draft them by this method (degraded:P is one).")
    ] = "",
    tool_choice: Annotated[str, typer.Option(help="With --as: only the plain outputs under this one.")] = "",
    growing: Annotated[bool, typer.Option(help="With --as: one store for all, in the run's order.")] = False,
    dataset: Annotated[str, typer.Option(help="Only this data set.")] = "",
    model: Annotated[str, typer.Option(help="Whose tokenizer; by default the run's target.")] = "",
    worst: Annotated[int, typer.Option(help="Requests shown step by step, those with the most steps first.")] = 3,
    item: Annotated[str, typer.Option(help="Show only the request with this id.")] = "",
    width: Annotated[int, typer.Option(help="Most tokens drafted a step.")] = WIDTH,
    price: Annotated[
        float, typer.Option(help="Cost of one more token in a step, in steps of one, until recorded times tell it.")
    ] = DEFAULT_PRICE,
    json_out: Annotated[Path | None, typer.Option("--json", help="File for every step.")] = None,
) -> None:
    """Say what every step of a recorded run was spent on, by source, and show the worst requests."""
    console = Console(highlight=False, soft_wrap=True)
    try:
        read = Run.read(run)
        items = [one for one in read.items(data or []) if dataset in ("", one.dataset) and item in ("", one.id)]
        codec, stops = codec_of(resolve(model or str(read.options.get("model", ""))))
        redrafter = Redrafter(codec, stops, width, price)
        if as_method:
            plain = read.as_drafted(items, method_named(as_method), tool_choice, cold=not growing)
            explained = explain_as(plain, redrafter, as_method)
        else:
            explained = explain(read, items, redrafter)
    except (DataError, WeightsError, UnknownMethod, FileNotFoundError) as error:
        typer.echo(f"ooospec: {error}", err=True)
        raise typer.Exit(1) from None
    names = [name for name in dict.fromkeys(one.method for one in explained) if not method or name in method]
    for name in names:
        mine = [one for one in explained if one.method == name]
        console.print(causes_table(mine, price))
        console.print(slots_table(mine))
        for one in sorted(mine, key=lambda one: -len(one.steps))[: 1 if item else worst]:
            show_request(one, console)
        console.print()
    if not names:
        console.print("No row of this run can be explained: pass its own --data, or --as METHOD for plain outputs.")
    for name, count in read.unknown.items():
        console.print(f"{count} rows of {name!r} are left out: the run did not record what their hints said.")
    if json_out is not None:
        json_out.write_text(json.dumps(to_json(explained), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
