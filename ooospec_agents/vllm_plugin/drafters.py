"""How a row gets its drafter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ooospec_agents.drafting.budget import Budget
from ooospec_agents.drafting.drafter import Drafter
from ooospec_agents.drafting.memory import Stores
from ooospec_agents.drafting.request import RequestSpec
from ooospec_agents.vllm_plugin.row import Drafts
from ooospec_agents.vllm_plugin.tokens import FastTokenCodec

MakeDrafter = Callable[[RequestSpec, str, Sequence[int]], Drafts]
"""Makes the drafter of a request from what was announced of it, the name of its LoRA, and its stop ids."""


def real_drafters(model_config: Any, budget: Budget) -> MakeDrafter:
    """Drafters over the model's tokenizer, with one store for all that this worker learns.

    Raises:
        CodecError: The model's tokenizer cannot be used.
    """
    codec = FastTokenCodec.of_model(model_config)
    # The first use of a tokenizer costs milliseconds; better now than in the first request's step.
    codec.decode(codec.encode('{"name": "warm", "arguments": {}}'))
    stores = Stores()

    def make(spec: RequestSpec, lora: str, stops: Sequence[int]) -> Drafts:
        return Drafter(spec, codec, stores, lora=lora, stop_ids=stops, budget=budget)

    return make
