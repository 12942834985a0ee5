"""The command line of training, run as `ooospec train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ooospec_agents.training.settings import PRESETS


def main(
    requests: Annotated[Path, typer.Option(help="Requests with the data sets' references, JSON Lines.")],
    evaluation: Annotated[Path, typer.Option("--eval", help="Evaluation sets: their functions are refused.")],
    out: Annotated[Path, typer.Option(help="Folder of the adapter; a stopped run there goes on.")],
    traces: Annotated[Path | None, typer.Option(help="The target's calls of these requests.")] = None,
    base: Annotated[str | None, typer.Option(help="Base model: a folder or a name; by default the preset's.")] = None,
    preset: Annotated[str, typer.Option(help=f"Settings: {', '.join(PRESETS)}.")] = "smollm2-135m",
    minutes: Annotated[float | None, typer.Option(help="Time to train; by default all passes.")] = None,
    start: Annotated[Path | None, typer.Option(help="An adapter (or a predictor) to begin with.")] = None,
    predictor: Annotated[str, typer.Option(help="What to train: sidecar or span.")] = "sidecar",
    dev: Annotated[Path | None, typer.Option(help="Requests to choose and calibrate by (span only).")] = None,
) -> None:
    """Train a sidecar's adapter, or a span predictor, on the references and on what the target really called."""
    if predictor not in ("sidecar", "span"):
        msg = f"no predictor {predictor!r}: choose sidecar or span"
        raise typer.BadParameter(msg)
    if predictor == "span":
        _train_span(requests, evaluation, out, traces, base, minutes, start, dev)
        return
    if preset not in PRESETS:
        msg = f"no preset {preset!r}: choose one of {', '.join(PRESETS)}"
        raise typer.BadParameter(msg)
    from ooospec_agents.training.train import train
    from ooospec_agents.weights import resolve

    settings = PRESETS[preset]
    try:
        folder = resolve(base or settings.base)
        train(folder, requests, traces, evaluation, out, settings, minutes=minutes, start=start)
    except (ValueError, OSError) as error:
        typer.echo(f"ooospec: {error}", err=True)
        raise typer.Exit(1) from None


def _train_span(
    requests: Path,
    evaluation: Path,
    out: Path,
    traces: Path | None,
    base: str | None,
    minutes: float | None,
    start: Path | None,
    dev: Path | None,
) -> None:
    from ooospec_agents.training.spans.settings import SpanSettings
    from ooospec_agents.training.spans.train import train as train_span
    from ooospec_agents.weights import WeightsError, resolve

    settings = SpanSettings()
    try:
        folder = resolve(base or settings.base)
        train_span(folder, requests, traces, evaluation, out, settings, dev=dev, minutes=minutes, start=start)
    except (ValueError, OSError, WeightsError) as error:
        typer.echo(f"ooospec: {error}", err=True)
        raise typer.Exit(1) from None


if __name__ == "__main__":
    typer.run(main)
