"""The price of a step by its tokens, for one large shape with random weights: what the same drafts would bring there.

Acceptance is a matter of texts and is the same on any machine; what a step costs is not. A GPU is bound by memory at
small batches, so that a step of sixteen tokens costs hardly more than one of one. This measures it with transformers
alone (no vLLM, no weights to fetch), and reckons the decoding time of a recorded run's steps at those prices.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

from ooospec_agents.bench.explain import Run
from ooospec_agents.bench.requests import Answer
from ooospec_agents.bench.summary import NOT_METHODS, save

SHAPES: Mapping[str, Mapping[str, int]] = {
    "tiny": {
        "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 512,
    },
    "8b": {
        "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
    },
    "32b": {
        "hidden_size": 5120, "intermediate_size": 25600, "num_hidden_layers": 64, "num_attention_heads": 64,
        "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
    },
}  # fmt: skip
"""Shapes by name; "8b" and "32b" are those of Qwen3-8B and Qwen3-32B."""
COUNTS = (1, 2, 4, 8, 16, 24, 32, 41, 64)
"""Tokens in a step."""


def measure(
    shape: Mapping[str, int], device: str, context: int, counts: Sequence[int] = COUNTS, repeats: int = 20
) -> dict[int, float]:
    """Median seconds of a forward pass over so many tokens, behind a KV cache of `context` tokens.

    Args:
        shape: Members of a `Qwen3Config`.
        device: A torch device, such as "cuda".
        context: Tokens in the cache.
        counts: Tokens in a step.
        repeats: Passes timed for each count.
    """
    import torch
    from transformers import DynamicCache, Qwen3Config, Qwen3ForCausalLM

    kind = torch.bfloat16 if device.startswith("cuda") else torch.float32
    config = Qwen3Config(**shape)
    with torch.device(device):
        model = Qwen3ForCausalLM(config).to(kind).eval()

    def wait() -> None:
        if device.startswith("cuda"):
            torch.cuda.synchronize()

    found: dict[int, float] = {}
    with torch.inference_mode():
        cache = DynamicCache(config=config)
        model(torch.zeros((1, context), dtype=torch.long, device=device), past_key_values=cache, use_cache=True)
        for count in counts:
            ids = torch.zeros((1, count), dtype=torch.long, device=device)
            times = []
            for number in range(repeats + 3):  # the first few warm up
                wait()
                began = time.perf_counter()
                model(ids, past_key_values=cache, use_cache=True)
                wait()
                times += [time.perf_counter() - began] if number >= 3 else []
                cache.crop(-count)
            found[count] = median(times)
    return found


def price_of(tokens: int, prices: Mapping[int, float]) -> float:
    """Seconds of a step of so many tokens, between the two counts measured next to it."""
    known = sorted(prices)
    if tokens <= known[0]:
        return prices[known[0]]
    for low, high in pairwise(known):
        if tokens <= high:
            share = (tokens - low) / (high - low)
            return prices[low] + share * (prices[high] - prices[low])
    return prices[known[-1]] * tokens / known[-1]


def projected(rows: Sequence[Mapping[str, Any]], prices: Mapping[int, float]) -> dict[str, float]:
    """By method: how many times faster its recorded steps decode at these prices than one token a step."""
    plain: dict[str, float] = {}
    mine: dict[str, float] = {}
    for row in rows:
        timeline = ((row.get("answer") or {}).get("report") or {}).get("timeline")
        if row.get("method") in NOT_METHODS or not timeline:
            continue
        method, answer = str(row["method"]), Answer(**row["answer"])
        steps = timeline[1:]  # the first token comes with the prefill
        plain[method] = plain.get(method, 0.0) + (len(answer.token_ids) - 1) * price_of(1, prices)
        mine[method] = mine.get(method, 0.0) + sum(price_of(1 + int(drafted), prices) for _, _, drafted, _ in steps)
    return {method: plain[method] / mine[method] for method in plain if mine[method]}


def main(
    shape: Annotated[str, typer.Option(help=f"One of {', '.join(SHAPES)}.")] = "8b",
    device: Annotated[str, typer.Option(help="Torch device.")] = "cuda",
    context: Annotated[int, typer.Option(help="Tokens in the KV cache.")] = 1024,
    repeats: Annotated[int, typer.Option(help="Passes timed for each count.")] = 20,
    run: Annotated[list[Path] | None, typer.Option(help="Raw .jsonl of runs whose steps are priced.")] = None,
    out: Annotated[Path, typer.Option(help="Result JSON.")] = Path("out/step-price.json"),
) -> None:
    """Measure what a step costs by its tokens, and what recorded drafts would bring at that price."""
    if shape not in SHAPES:
        msg = f"{shape!r} is no shape: use one of {', '.join(SHAPES)}."
        raise typer.BadParameter(msg)
    prices = measure(SHAPES[shape], device, context, repeats=repeats)
    brings = {path.stem: projected(Run.read(path).rows, prices) for path in run or []}
    relative = {str(count): seconds / prices[1] for count, seconds in prices.items()}
    facts = {"shape": shape, "device": _device_name(device), "context": context}
    save(
        out,
        "step_price",
        {**facts, "ms": {str(c): s * 1e3 for c, s in prices.items()}, "relative": relative, "brings": brings},
    )
    typer.echo(json.dumps({"relative": relative, "brings": brings}, indent=1))


def _device_name(device: str) -> str:
    import torch

    return str(torch.cuda.get_device_name()) if device.startswith("cuda") else device


if __name__ == "__main__":
    typer.run(main)
