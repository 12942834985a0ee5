"""Training a sidecar's adapter: `ooospec train`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from ooospec_agents.sidecar.adapters import WEIGHTS
from ooospec_agents.training import checkpoint, model
from ooospec_agents.training.checkpoint import Progress
from ooospec_agents.training.layout import Part, lay_out
from ooospec_agents.training.pack import pack
from ooospec_agents.training.schedule import Run, rate
from ooospec_agents.training.settings import Settings
from ooospec_agents.training.stream import STAGES, Stream
from ooospec_agents.training.traces import (
    DataError,
    evaluation_functions,
    file_digest,
    read_requests,
    read_traces,
    refuse_evaluation_calls,
)

SAVE_SECONDS = 300.0
"""Time between two saves."""
CPU_TOKENS = 512
"""Tokens computed at a time on a CPU; a longer request goes alone."""
GPU_TOKENS = 8192
"""Tokens computed at a time on a GPU."""


def train(
    base: Path,
    requests: Path,
    traces: Path | None,
    evaluation: Path,
    out: Path,
    settings: Settings,
    minutes: float | None = None,
    start: Path | None = None,
    console: Console | None = None,
) -> Progress:
    """Train an adapter, or go on where a stopped run in `out` was.

    SIGTERM or Ctrl-C saves and ends early; the adapter is usable then, and the run can be resumed.

    Args:
        base: Folder of the base model.
        requests: Requests with the data sets' references, JSON Lines.
        traces: The target's calls of some of these requests; None: references only.
        evaluation: Evaluation sets, whose functions must not be called by what is trained on.
        out: Folder of the adapter.
        settings: How to train.
        minutes: Time to train, pauses left out; None: all passes of the settings.
        start: Folder of an adapter to begin with, of the same base and rank; None: begin with none.
        console: Where to show progress.

    Raises:
        DataError: A file cannot be trained on, or `out` holds a run on other data or with other settings.
    """
    console = console or Console()
    stream = _stream(requests, traces, evaluation, settings)
    record = _record(requests, traces, evaluation, settings)
    resuming = (out / checkpoint.RESUME).is_file()
    if resuming:
        earlier = checkpoint.read_record(out)
        for what, name in (("inputs", "on other files"), ("settings", "with other settings")):
            if earlier.get(what) != json.loads(json.dumps(record[what])):
                msg = f"{str(out)!r} holds a run {name}: give another folder, or remove it to start anew."
                raise DataError(msg)
    device, dtype = model.fitting_device()
    bare, encode, _ = model.load_base(base, device, dtype)
    adapted = model.add_adapter(bare, settings).train()
    if start is not None:
        model.start_from(adapted, start)
        record["started_from"] = file_digest(start / WEIGHTS)
    parameters = model.trainable(adapted)
    optimiser = torch.optim.AdamW(
        parameters.values(), lr=settings.learning_rate, betas=(0.9, 0.99), weight_decay=settings.weight_decay
    )
    progress = checkpoint.load_state(out, parameters, optimiser) if resuming else Progress()
    record["hardware"] = {"device": device.type, "dtype": str(dtype).removeprefix("torch.")}
    run = Run(stream, settings, minutes, progress)

    def save() -> None:
        model.save_adapter(adapted, settings.base, out)
        checkpoint.write_record(out, {**record, "base": settings.base}, progress)
        checkpoint.save_state(out, progress, parameters, optimiser)

    console.print(f"{len(parameters)} adapter tensors, {device.type}, {record['hardware']['dtype']}")
    room = GPU_TOKENS if device.type == "cuda" else CPU_TOKENS
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with run.signals, Bar(*columns, console=console) as bar:
        task = bar.add_task("training", total=1.0)
        bar.update(task, completed=run.fraction())
        saved = progress.seconds
        out.mkdir(parents=True, exist_ok=True)
        for parts in run.steps(lambda example: lay_out(example, encode)):
            learning_rate = rate(run.fraction(), settings)
            for group in optimiser.param_groups:
                group["lr"] = learning_rate
            total = sum(weight for part in parts for _, _, weight in part.targets)
            loss = 0.0
            for batch in _batches(parts, room):
                run.watch()
                packed = pack(batch, dtype, device)
                share = model.answer_loss(adapted, packed) / total
                share.backward()
                loss += share.item()
                progress.tokens += packed.ids.shape[1]
                run.count()
            torch.nn.utils.clip_grad_norm_(parameters.values(), settings.clip)
            optimiser.step()
            optimiser.zero_grad()
            progress.steps += 1
            progress.requests += len(parts)
            progress.curve.append((progress.seconds, progress.stage, loss))
            speed = progress.tokens / max(progress.seconds, 1e-9)
            text = f"{STAGES[progress.stage]}: step {progress.steps}, loss {loss:.3f}, {speed:.0f} tokens/s"
            bar.update(task, completed=run.fraction(), description=text)
            if progress.seconds - saved >= SAVE_SECONDS:
                save()
                saved = progress.seconds
                console.print(text)
        save()
    if run.signals.stop:
        console.print(f"Stopped and saved in {out}: the same command goes on from here.")
    else:
        (out / checkpoint.RESUME).unlink()
    return progress


def _batches(parts: list[Part], room: int) -> Iterator[list[Part]]:
    """Parts together as long as they fit into `room` tokens."""
    batch: list[Part] = []
    for part in parts:
        if batch and sum(len(one.ids) for one in batch) + len(part.ids) > room:
            yield batch
            batch = []
        batch.append(part)
    if batch:
        yield batch


def _stream(requests: Path, traces: Path | None, evaluation: Path, settings: Settings) -> Stream:
    names = evaluation_functions(evaluation)
    asked = read_requests(requests)
    refuse_evaluation_calls(requests, ((one.id, one.calls) for one in asked), names)
    found = read_traces(traces) if traces else {}
    ids = {one.id for one in asked}
    # A file of traces may cover other requests too, the evaluation sets' among them: those are not used.
    used = {request_id: calls for request_id, calls in found.items() if request_id in ids}
    if traces:
        refuse_evaluation_calls(traces, used.items(), names)
    stream = Stream(asked, used, settings)
    if not any(stream.size(stage) for stage in STAGES):
        msg = f"{str(requests)!r} holds nothing to train on: no request in it has an answer."
        raise DataError(msg)
    return stream


def _record(requests: Path, traces: Path | None, evaluation: Path, settings: Settings) -> dict[str, Any]:
    inputs = {"requests": file_digest(requests), "traces": file_digest(traces) if traces else None}
    sets = sorted(evaluation.glob("*.jsonl")) if evaluation.is_dir() else [evaluation]
    held_out = {file.name: file_digest(file) for file in sets}
    versions = {"torch": torch.__version__, "threads": os.environ.get("OMP_NUM_THREADS", "")}
    return {
        "inputs": inputs,
        "decontaminated_against": held_out,
        "settings": asdict(settings),
        "versions": versions,
    }
