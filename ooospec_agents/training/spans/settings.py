"""Settings of a span predictor's training."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SpanSettings:
    """How a span predictor is trained.

    Attributes:
        base: The encoder's hub name, written into the record.
        learning_rate: The encoder's highest rate; it rises over `warmup` of the run and falls as a cosine.
        head_rate: The heads' highest rate.
        warmup: Part of the run.
        weight_decay: AdamW's.
        lower: Layers that are left as they are; what they make of a text is computed once.
        dropout: Of each layer's outputs.
        requests_per_step: Requests that an optimiser step averages over.
        passes: Passes over all requests, with the target's call where there is one, else the reference.
        trace_passes: Passes over the traces alone, after them.
        max_tokens: Longer requests are passed over.
        max_slots: Slots asked of one request, at most.
        max_functions: Functions to choose from, at most.
        clip: Largest norm of the gradient.
        seed: Seeds order, augmentation and weights.
    """

    base: str = "sentence-transformers/all-MiniLM-L6-v2"
    learning_rate: float = 2e-4
    head_rate: float = 1e-3
    warmup: float = 0.04
    weight_decay: float = 0.01
    dropout: float = 0.1
    lower: int = 3
    requests_per_step: int = 8
    passes: int = 2
    trace_passes: int = 2
    max_tokens: int = 900
    max_slots: int = 8
    max_functions: int = 6
    clip: float = 1.0
    seed: int = 0
