"""What a run leaves behind: where it stands, so that it can go on, and its loss curve."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from ooospec_agents.files import replacing

RESUME = "trainer.pt"
"""File that holds the optimiser; a finished run has none."""
RECORD = "training.json"
"""File that says what the adapter was trained on, and how."""


@dataclass
class Progress:
    """How far a run is.

    Attributes:
        stage: Index of the stage.
        number: Number of the stage's next request.
        steps: Optimiser steps made.
        requests: Requests trained on.
        tokens: Tokens computed.
        seconds: Time trained, pauses left out.
        curve: For each step: seconds, stage's index, loss in nats a weighted answer token.
    """

    stage: int = 0
    number: int = 0
    steps: int = 0
    requests: int = 0
    tokens: int = 0
    seconds: float = 0.0
    curve: list[tuple[float, int, float]] = field(default_factory=list)


def save_state(folder: Path, progress: Progress, parameters: dict[str, Any], optimiser: Any) -> None:
    """Write what resuming needs; the file is replaced as a whole."""
    state = {
        "progress": asdict(progress),
        "adapter": {name: value.detach().cpu() for name, value in parameters.items()},
        "optimiser": optimiser.state_dict(),
    }
    with replacing(folder / RESUME) as partial:
        torch.save(state, partial)


def load_state(folder: Path, parameters: dict[str, Any], optimiser: Any) -> Progress:
    """Put a saved run's adapter and optimiser back, and say how far it was."""
    state = torch.load(folder / RESUME, map_location="cpu", weights_only=True)
    with torch.no_grad():
        for name, value in state["adapter"].items():
            parameters[name].copy_(value)
    optimiser.load_state_dict(state["optimiser"])
    saved = state["progress"]
    saved["curve"] = [tuple(point) for point in saved["curve"]]
    return Progress(**saved)


def read_record(folder: Path) -> dict[str, Any]:
    """The record of an adapter's training, or {} where there is none."""
    path = folder / RECORD
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return record


def write_record(folder: Path, record: dict[str, Any], progress: Progress) -> None:
    """Write the record, the losses as a table and as a picture."""
    figures = {key: value for key, value in asdict(progress).items() if key != "curve"}
    _replace(folder / RECORD, json.dumps({**record, "progress": figures}, indent=2) + "\n")
    with (folder / "loss.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["step", "seconds", "stage", "loss"])
        for step, (seconds, stage, loss) in enumerate(progress.curve, 1):
            writer.writerow([step, f"{seconds:.1f}", stage, f"{loss:.4f}"])
    if progress.curve:
        _draw(folder / "loss.png", progress.curve)


def _replace(path: Path, text: str) -> None:
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")


def _draw(path: Path, curve: list[tuple[float, int, float]]) -> None:
    from matplotlib.figure import Figure

    losses = [loss for _, _, loss in curve]
    window = max(len(losses) // 20, 1)
    smooth = [sum(losses[max(i - window, 0) : i + 1]) / (i + 1 - max(i - window, 0)) for i in range(len(losses))]
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(range(1, len(losses) + 1), losses, color="0.8", label="each step")
    axes.plot(range(1, len(losses) + 1), smooth, color="C0", label=f"mean of {window + 1}")
    border = next((step for step, (_, stage, _) in enumerate(curve, 1) if stage > 0), None)
    if border is not None:
        axes.axvline(border, color="C1", linestyle="--", label="traces from here")
    axes.set(xlabel="step", ylabel="loss, nats a weighted answer token", yscale="log")
    axes.legend()
    figure.savefig(path, dpi=120)
