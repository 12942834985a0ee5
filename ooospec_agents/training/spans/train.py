"""Training a span predictor: `ooospec train --predictor span`."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from ooospec_agents.predictor import model
from ooospec_agents.predictor.encoder import Encoder, interact
from ooospec_agents.predictor.pieces import Pieces
from ooospec_agents.training import checkpoint
from ooospec_agents.training.checkpoint import Progress
from ooospec_agents.training.schedule import Signals
from ooospec_agents.training.spans.examples import SpanExample, SpanStream, build
from ooospec_agents.training.spans.loss import Reader, choice_logits, losses
from ooospec_agents.training.spans.settings import SpanSettings
from ooospec_agents.training.traces import (
    DataError,
    evaluation_functions,
    file_digest,
    read_requests,
    read_traces,
    refuse_evaluation_calls,
)

SAVE_SECONDS = 120.0
"""Time between two saves."""
LOST_STEP_SECONDS = 60.0
"""A step that took longer was paused, and does not count as time trained."""


def train(
    base: Path,
    requests: Path,
    traces: Path | None,
    evaluation: Path,
    out: Path,
    settings: SpanSettings,
    dev: Path | None = None,
    minutes: float | None = None,
    start: Path | None = None,
    console: Console | None = None,
) -> Progress:
    """Train a span predictor, or go on where a stopped run in `out` was.

    SIGTERM or Ctrl-C saves and ends early; a killed run goes on from its last save.

    Args:
        base: Folder of a BERT.
        requests: Requests with the data sets' references, JSON Lines.
        traces: The target's calls of some of these requests; they are the right answer where they are.
        evaluation: Evaluation sets, whose functions must not be called by what is trained on.
        out: Folder of the predictor.
        settings: How to train.
        dev: Requests on which figures are shown at every save.
        minutes: Time to train, pauses left out; None: all passes of the settings.
        start: Folder of a trained predictor to begin with; None: begin with the BERT alone.
        console: Where to show progress.

    Raises:
        DataError: A file cannot be trained on, or `out` holds a run on other data or with other settings.
    """
    console = console or Console()
    torch.manual_seed(settings.seed)
    pieces = Pieces(base)
    stream = _stream(requests, traces, evaluation, pieces, settings)
    record = _record(requests, traces, evaluation, settings)
    resuming = (out / checkpoint.RESUME).is_file()
    if resuming:
        _same_run(out, record)
    encoder = model.from_bert(base, settings.lower, settings.dropout)
    if start is not None:
        encoder.load_state_dict(model.load(start).state_dict())
        record["started_from"] = file_digest(start / model.WEIGHTS)
    parameters = trainable(encoder)
    optimiser = _optimiser(encoder, parameters, settings)
    progress = checkpoint.load_state(out, parameters, optimiser) if resuming else Progress()
    reader, shown = Reader(encoder), _examples(dev, pieces, settings) if dev else []
    out.mkdir(parents=True, exist_ok=True)

    def save() -> None:
        model.save(encoder, base, out)
        checkpoint.write_record(out, {**record, "base": settings.base}, progress)
        checkpoint.save_state(out, progress, parameters, optimiser)
        if shown:
            figures = dev_figures(encoder, reader, shown)
            console.print(" ".join(f"{name} {value:.3f}" for name, value in figures.items()))

    batch: list[SpanExample] = []
    saved = progress.seconds
    limit = None if minutes is None else minutes * 60
    with Signals() as signals:
        began = time.monotonic()
        for number, example in stream.read(progress.number):
            batch.append(example)
            progress.number = number + 1
            if len(batch) < settings.requests_per_step and progress.number < stream.size:
                continue
            done = progress.number / stream.size if limit is None else progress.seconds / limit
            loss = _step(encoder, reader, batch, optimiser, parameters, settings, min(done, 1.0))
            now = time.monotonic()
            progress.seconds += now - began if now - began < LOST_STEP_SECONDS else 0.0
            began = now
            progress.steps += 1
            progress.requests += len(batch)
            progress.tokens += sum(one.tokens for one in batch)
            progress.curve.append((progress.seconds, 0, loss))
            batch = []
            if progress.seconds - saved >= SAVE_SECONDS:
                save()
                saved, began = progress.seconds, time.monotonic()
                recent = [point[2] for point in progress.curve[-50:]]
                console.print(
                    f"step {progress.steps}, {progress.requests} requests ({done:.0%}) in {progress.seconds:.0f} s, "
                    f"loss {sum(recent) / len(recent):.3f}"
                )
            if signals.stop or (limit is not None and progress.seconds >= limit):
                break
        save()
    if signals.stop:
        console.print(f"Stopped and saved in {out}: the same command goes on from here.")
    else:
        (out / checkpoint.RESUME).unlink()
    return progress


def trainable(encoder: Encoder) -> dict[str, torch.nn.Parameter]:
    """What is trained: upper layers and heads. The rest is frozen by this call."""
    frozen = ("words.", "places.", "norm.", *(f"layers.{index}." for index in range(encoder.shape.lower)))
    for name, parameter in encoder.named_parameters():
        parameter.requires_grad_(not name.startswith(frozen))
    return {name: parameter for name, parameter in encoder.named_parameters() if parameter.requires_grad}


def dev_figures(encoder: Encoder, reader: Reader, examples: Sequence[SpanExample]) -> dict[str, float]:
    """Shares right: functions, what becomes of slots, and of slots with a span those whose ends are both right."""
    encoder.eval()
    with torch.no_grad():
        figures = _figures(encoder, reader, examples)
    encoder.train()
    return figures


def _figures(encoder: Encoder, reader: Reader, examples: Sequence[SpanExample]) -> dict[str, float]:
    right: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for start in range(0, len(examples), 8):
        batch = examples[start : start + 8]
        ready = reader(batch)
        for example, one, (talk, queries) in zip(batch, ready, interact(encoder, ready), strict=True):
            slots = len(example.slots)
            if example.chosen is not None:
                logits = choice_logits(encoder, talk, queries[slots:])[:-1]
                asked["function"] += 1
                right["function"] += int(logits.argmax()) == example.chosen
            for index, label in enumerate(example.slots):
                kind = int(encoder.outcome(queries[index].flatten()).argmax())
                asked["outcome"] += 1
                right["outcome"] += kind == label.kind
                if label.parts:
                    near = torch.tensor(example.near[index])
                    starts = encoder.starts(queries[index, 0], encoder.offers(0, talk, one.memories[index]), near)
                    first = starts.argmax()[None]
                    begun = torch.cat([talk, one.memories[index]])[first]
                    offers = encoder.offers(1, talk, one.memories[index])
                    last = encoder.ends(queries[index, 1], begun, first >= len(talk), offers)[0].argmax()
                    place = int(first), int(last)
                    asked["span"] += 1
                    right["span"] += any(place in places for places in label.parts)
    return {name: right[name] / max(asked[name], 1) for name in ("function", "outcome", "span")}


def _step(
    encoder: Encoder,
    reader: Reader,
    batch: Sequence[SpanExample],
    optimiser: torch.optim.Optimizer,
    parameters: dict[str, torch.nn.Parameter],
    settings: SpanSettings,
    done: float,
) -> float:
    encoder.train()
    share = _share(done, settings.warmup)
    for group in optimiser.param_groups:
        group["lr"] = group["highest"] * share
    loss = losses(encoder, batch, reader(batch))["total"]
    loss.backward()
    torch.nn.utils.clip_grad_norm_(parameters.values(), settings.clip)
    optimiser.step()
    optimiser.zero_grad()
    return float(loss.detach())


def _share(done: float, warmup: float) -> float:
    """Part of the highest rate: a short rise, then a cosine down to a fiftieth."""
    if done < warmup:
        return 0.02 + 0.98 * done / warmup
    return 0.02 + 0.98 * (1 + math.cos(math.pi * (done - warmup) / (1 - warmup))) / 2


def _optimiser(
    encoder: Encoder, parameters: dict[str, torch.nn.Parameter], settings: SpanSettings
) -> torch.optim.Optimizer:
    groups = []
    for prefix, rate in (("layers.", settings.learning_rate), ("", settings.head_rate)):
        mine = [one for name, one in parameters.items() if name.startswith("layers.") == bool(prefix)]
        groups.append({"params": mine, "lr": rate, "highest": rate})
    return torch.optim.AdamW(groups, betas=(0.9, 0.98), weight_decay=settings.weight_decay)


def _examples(dev: Path, pieces: Pieces, settings: SpanSettings) -> list[SpanExample]:
    import random

    built = (build(one, pieces, random.Random(0), settings, habits=True) for one in read_requests(dev))
    return [one for one in built if one is not None and one.tokens <= settings.max_tokens]


def _same_run(out: Path, record: dict[str, Any]) -> None:
    earlier = checkpoint.read_record(out)
    for what, name in (("inputs", "on other files"), ("settings", "with other settings")):
        if earlier.get(what) != json.loads(json.dumps(record[what])):
            msg = f"{str(out)!r} holds a run {name}: give another folder, or remove it to start anew."
            raise DataError(msg)


def _stream(
    requests: Path, traces: Path | None, evaluation: Path, pieces: Pieces, settings: SpanSettings
) -> SpanStream:
    names = evaluation_functions(evaluation)
    asked = read_requests(requests)
    refuse_evaluation_calls(requests, ((one.id, one.calls) for one in asked), names)
    found = read_traces(traces) if traces else {}
    ids = {one.id for one in asked}
    # A file of traces may cover other requests too, the evaluation sets' among them: those are not used.
    used = {request_id: calls for request_id, calls in found.items() if request_id in ids}
    if traces:
        refuse_evaluation_calls(traces, used.items(), names)
    stream = SpanStream(asked, used, pieces, settings)
    if not stream.size:
        msg = f"{str(requests)!r} holds nothing to train on: no request in it has an answer."
        raise DataError(msg)
    return stream


def _record(requests: Path, traces: Path | None, evaluation: Path, settings: SpanSettings) -> dict[str, Any]:
    sets = sorted(evaluation.glob("*.jsonl")) if evaluation.is_dir() else [evaluation]
    return {
        "inputs": {"requests": file_digest(requests), "traces": file_digest(traces) if traces else None},
        "decontaminated_against": {file.name: file_digest(file) for file in sets},
        "settings": asdict(settings),
        "versions": {"torch": torch.__version__},
    }
