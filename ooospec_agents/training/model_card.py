"""The model card of an adapter: what it is, what it was trained on and how, and what it gets right.

Written by `python -m ooospec_agents.training.model_card --adapter FOLDER`; a test checks that the shipped adapter's
card is what its files say. Report cards come from `ooospec evaluate --json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ooospec_agents.training.card import percent

CARD = "README.md"
REPORT = "report_card.json"
"""In the adapter's folder: its own report card, and those it is compared with, by name."""
FIGURES = {
    "function_accuracy": "function",
    "function_accuracy_multi": "function, of several",
    "slot_exact": "values exact",
    "null_exact": "nulls",
    "call_exact": "whole calls",
}
_TEXT = """\
# A sidecar's adapter for {base}

It answers, in short prompts that share their beginning, which function a target will call next, and with which value
each argument will be filled. It is no chat model, and it is judged by what a target calls, not by what would be right.

## Data and licences

- Base model: Apache-2.0. This adapter: Apache-2.0.
- Requests and references: BFCL v4, Seal-Tools and API-Bank (level 3), all Apache-2.0; in English, but for names.
- Traces: what Qwen2.5-Coder-1.5B-Instruct (Apache-2.0) called for a part of these requests, greedily, where a call was
  required of it.
- No function that the evaluation sets bind or call is called in what it was trained on: training refuses such files.

| file | SHA-256 |
|---|---|
{files}

## Recipe

LoRA of rank {rank} on every linear layer, AdamW at {rate:g} (cosine), {batch} requests a step: {steps} steps,
{requests} requests, {tokens:,} tokens in {minutes:.0f} minutes on {where} ({dtype}). References first, then traces; a
request's prefix once and all its questions after it, values swapped and tools renamed at random.

## Report card

On {asked} requests of {sets} held-out sets, against what Qwen2.5-Coder-1.5B-Instruct called. As when serving, the words
that a function shares with the conversation are weighed into the choice of it.

{table}

Values said with a confidence of 0.9 or more: {said} of all, right in {right}. Expected calibration error: {error:.2f}.

| type | values | exact | leading part |
|---|---|---|---|
{kinds}
"""
PRIVATE = ("worst_errors", "wave_ms_p50")
"""What a report card has that the shipped one has not: lines of the evaluation data, and one machine's speed."""


def render(record: Mapping[str, Any], reports: Mapping[str, Mapping[str, Any]]) -> str:
    """The card as Markdown.

    Args:
        record: The adapter's `training.json`.
        reports: Report cards by name, the adapter's own as "adapter".
    """
    settings, progress, own = record["settings"], record["progress"], reports["adapter"]
    files = record["inputs"] | {f"held out: {name}": sha for name, sha in record["decontaminated_against"].items()}
    sure, kinds = own["calibration"], own["by_slot_type"].items()
    return _TEXT.format(
        base=record["base"],
        files="\n".join(f"| {name} | `{digest}` |" for name, digest in files.items()),
        rank=settings["rank"],
        rate=settings["learning_rate"],
        batch=settings["requests_per_step"],
        steps=progress["steps"],
        requests=progress["requests"],
        tokens=progress["tokens"],
        minutes=progress["seconds"] / 60,
        where="a GPU" if record["hardware"]["device"] == "cuda" else "two CPU cores",
        dtype=record["hardware"]["dtype"],
        asked=own["requests"],
        sets=len(own["by_source"]),
        table="\n".join(_table(_rows(own, reports))),
        said=percent(sure["sure_share"]),
        right=percent(sure["sure_right"]),
        error=sure["expected_error"],
        kinds="\n".join(
            f"| {kind} | {row['valued_slots']} | {percent(row['slot_exact'])} | {percent(row['leading'])} |"
            for kind, row in kinds
            if row["valued_slots"]
        ),
    )


def _rows(own: Mapping[str, Any], reports: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield "**this adapter**", own
    yield from ((f"- {source}", figures) for source, figures in own["by_source"].items())
    yield from ((name, report) for name, report in reports.items() if name != "adapter")
    yield from ((name.replace("_", "-"), figures) for name, figures in own["baselines"].items())


def _table(rows: Iterator[tuple[str, Mapping[str, Any]]]) -> Sequence[str]:
    titles = ["", "requests", *FIGURES.values()]
    head = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    return head + [
        f"| {name} | {row.get('requests', '')} | " + " | ".join(percent(row[key]) for key in FIGURES) + " |"
        for name, row in rows
    ]


app = typer.Typer(add_completion=False)


@app.command()
def main(
    adapter: Annotated[Path, typer.Option(help="The adapter's folder, where its card is written.")],
    report: Annotated[Path | None, typer.Option(help="Its report card; by default the one it has.")] = None,
    beside: Annotated[
        list[str] | None, typer.Option(help="NAME=FILE: another report card on the same requests, to compare with.")
    ] = None,
) -> None:
    """Write an adapter's model card."""
    path = adapter / REPORT
    if report is not None:
        named = {"adapter": report} | {one.partition("=")[0]: Path(one.partition("=")[2]) for one in beside or []}
        read = {name: json.loads(file.read_text(encoding="utf-8")) for name, file in named.items()}
        kept = {name: {k: v for k, v in card.items() if k not in PRIVATE} for name, card in read.items()}
        path.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (adapter / CARD).write_text(card_of(adapter), encoding="utf-8")


def card_of(adapter: Path) -> str:
    """The card that an adapter's own files make.

    Raises:
        OSError: It has no record of its training or no report card.
    """
    record = json.loads((adapter / "training.json").read_text(encoding="utf-8"))
    return render(record, json.loads((adapter / REPORT).read_text(encoding="utf-8")))


if __name__ == "__main__":
    app()
