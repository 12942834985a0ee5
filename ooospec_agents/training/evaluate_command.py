"""The command line of the report card, run as `ooospec evaluate`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ooospec_agents.predictor.folder import PredictorError, find
from ooospec_agents.sidecar.backend import SidecarBackend, SidecarError
from ooospec_agents.training.settings import PRESETS
from ooospec_agents.training.traces import Request


def main(
    requests: Annotated[Path, typer.Option(help="Requests with right answers: a file, or a folder of such.")],
    sidecar: Annotated[str | None, typer.Option(help="URL of a sidecar; by default one in this process.")] = None,
    sidecar_model: Annotated[str | None, typer.Option(help="Its model; by default the one that it serves.")] = None,
    base: Annotated[str, typer.Option(help="Base model of the sidecar in this process.")] = PRESETS[
        "smollm2-135m"
    ].base,
    adapter: Annotated[str | None, typer.Option(help="Its adapter, or none; by default the package's.")] = None,
    predictor: Annotated[str, typer.Option(help="What to score: sidecar or span.")] = "sidecar",
    folder: Annotated[Path | None, typer.Option(help="A span predictor; by default the shipped one.")] = None,
    limit: Annotated[int | None, typer.Option(help="Requests to ask, a fixed sample; by default all.")] = None,
    auto: Annotated[bool, typer.Option(help='The target was free to call nothing (`tool_choice: "auto"`).')] = False,
    json_out: Annotated[Path | None, typer.Option("--json", help="File for the figures.")] = None,
) -> None:
    """Compare a predictor's hints with what the target really called."""
    from ooospec_agents.training.evaluate import evaluate, requests_of, show, write

    if predictor not in ("sidecar", "span"):
        msg = f"no predictor {predictor!r}: choose sidecar or span"
        raise typer.BadParameter(msg)
    console = Console()
    try:
        asked = requests_of(requests, limit)
        if predictor == "span":
            card = _span_card(folder, asked, console, required=not auto)
        else:
            card = evaluate(_backend(sidecar, sidecar_model, base, adapter), asked, console, required=not auto)
    except (ValueError, OSError, SidecarError, PredictorError) as error:
        typer.echo(f"ooospec: {error}", err=True)
        raise typer.Exit(1) from None
    show(card, console, name=predictor)
    if json_out is not None:
        write(card, json_out)


def _span_card(folder: Path | None, asked: list[Request], console: Console, *, required: bool) -> dict[str, Any]:
    chosen = find(folder)
    from ooospec_agents.predictor.predictor import SpanPredictor
    from ooospec_agents.training.spans.evaluate import evaluate

    return evaluate(SpanPredictor.from_folder(chosen), asked, console, required=required)


def _backend(url: str | None, model: str | None, base: str, adapter: str | None) -> SidecarBackend:
    if url is not None:
        from ooospec_agents.sidecar.client import CompletionsClient

        return CompletionsClient(url, model, os.environ.get("OOOSPEC_SIDECAR_API_KEY"))
    from ooospec_agents.sidecar.adapters import adapter_for
    from ooospec_agents.training.local import LocalBackend
    from ooospec_agents.weights import resolve

    folder = adapter_for(base, adapter)
    return LocalBackend(resolve(base), Path(folder) if folder else None)


if __name__ == "__main__":
    typer.run(main)
