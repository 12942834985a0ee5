"""Settings of a training run, and a preset for each base model that we train."""

from __future__ import annotations

from dataclasses import dataclass

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""All linear layers of a block (after "LoRA Without Regret", Thinking Machines 2025)."""


@dataclass(frozen=True)
class Settings:
    """How an adapter is trained.

    Attributes:
        base: The base model's hub name, written into the adapter.
        rank: LoRA's rank.
        alpha: LoRA's scaling times the rank.
        learning_rate: The highest rate; it rises over `warmup` of the run and falls as a cosine.
        warmup: Part of the run.
        dropout: LoRA's dropout.
        weight_decay: AdamW's.
        requests_per_step: Requests that an optimiser step averages over.
        gold_epochs: Passes over the data sets' references, before the traces.
        trace_epochs: Passes over the target's traces.
        gold_share: Part of a run of limited time that the references get at most.
        max_tokens: Longer requests are passed over.
        max_values: Valued slots asked of one request, at most.
        max_nulls: Null slots asked of one request, at most.
        clip: Largest norm of the gradient.
        seed: Seeds order, augmentation and weights.
    """

    base: str
    rank: int
    alpha: int
    learning_rate: float
    warmup: float = 0.05
    dropout: float = 0.0
    weight_decay: float = 0.0
    requests_per_step: int = 8
    gold_epochs: int = 1
    trace_epochs: int = 3
    gold_share: float = 0.3
    max_tokens: int = 1024
    max_values: int = 8
    max_nulls: int = 2
    clip: float = 1.0
    seed: int = 0


PRESETS = {
    "smollm2-135m": Settings(
        "HuggingFaceTB/SmolLM2-135M-Instruct",
        rank=16,
        alpha=32,
        learning_rate=1e-3,
        requests_per_step=4,
        gold_share=0.25,
        max_tokens=512,
    ),
    "qwen3-0.6b": Settings(
        "Qwen/Qwen3-0.6B",
        rank=32,
        alpha=64,
        learning_rate=1e-4,
        dropout=0.05,
        weight_decay=0.01,
        requests_per_step=5,
        trace_epochs=1,
        max_tokens=2048,
        max_nulls=8,
    ),
}
"""By name. "qwen3-0.6b" has the settings of OoO-Spec's sidecar; its steps of 32 prompts are about five requests."""
