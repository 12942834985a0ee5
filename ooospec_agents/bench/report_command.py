"""The command line of `ooospec report`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ooospec_agents.bench.data import DataError
from ooospec_agents.bench.explain import Run
from ooospec_agents.bench.redraft import codec_of
from ooospec_agents.bench.report import render, run_data
from ooospec_agents.weights import WeightsError, resolve


def main(
    results: Annotated[list[Path], typer.Argument(help="Result .json files, each with its raw .jsonl beside it.")],
    out: Annotated[Path, typer.Option(help="Page to write.")] = Path("out/report.html"),
    data: Annotated[list[Path] | None, typer.Option(help="Requests that a raw file does not hold itself.")] = None,
) -> None:
    """Write the report of one or several runs."""
    runs = []
    try:
        for path in results:
            raw = Run.read(path.with_suffix(".jsonl"))
            result = json.loads(path.read_text(encoding="utf-8")) if path.suffix == ".json" else {}
            codec, _ = codec_of(resolve(str(raw.options.get("model", ""))))
            runs.append(run_data(result, raw, raw.items(data or []), codec.decode))
    except (DataError, WeightsError, OSError, ValueError) as error:
        typer.echo(f"ooospec: {error}", err=True)
        raise typer.Exit(1) from None
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(render(runs), encoding="utf-8")
    typer.echo(out)


if __name__ == "__main__":
    typer.run(main)
