"""How a row gets its drafter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ooospec_agents.drafting.budget import Budget
from ooospec_agents.drafting.drafter import Drafter, TokenCodec
from ooospec_agents.drafting.memory import Stores
from ooospec_agents.drafting.request import RequestSpec
from ooospec_agents.vllm_plugin.row import Drafts
from ooospec_agents.vllm_plugin.tokens import FastTokenCodec

MakeDrafter = Callable[[RequestSpec, str, Sequence[int]], Drafts]
"""Makes the drafter of a request from what was announced of it, the name of its LoRA, and its stop ids."""


class Drafters:
    """Makes drafters over one tokenizer, with one store for all that this worker learns.

    Args:
        codec: The target's tokenizer.
        budget: How long drafts may be.

    Attributes:
        stores: What was learned.
    """

    def __init__(self, codec: TokenCodec, budget: Budget) -> None:
        self.stores = Stores()
        self._codec = codec
        self._budget = budget

    def __call__(self, spec: RequestSpec, lora: str, stops: Sequence[int]) -> Drafter:
        """The drafter of a request."""
        return Drafter(spec, self._codec, self.stores, lora=lora, stop_ids=stops, budget=self._budget)

    def ahead(self, spec: RequestSpec, lora: str, stops: Sequence[int]) -> Drafter:
        """The drafter of a request that may never begin: until it does, the stores know nothing of it."""
        return Drafter(spec, self._codec, self.stores, lora=lora, stop_ids=stops, budget=self._budget, ahead=True)


def real_drafters(model_config: Any, budget: Budget) -> Drafters:
    """Drafters over the model's tokenizer, with one store for all that this worker learns.

    Raises:
        CodecError: The model's tokenizer cannot be used.
    """
    codec = FastTokenCodec.of_model(model_config)
    # The first use of a tokenizer costs milliseconds; better now than in the first request's step.
    codec.decode(codec.encode('{"name": "warm", "arguments": {}}'))
    return Drafters(codec, budget)
