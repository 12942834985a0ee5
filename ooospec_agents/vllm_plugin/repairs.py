"""Two faults of vLLM that stop speculation, each tested for at start and repaired only where it is there.

1. On the CPU the kernel that spreads sampling parameters over a batch's draft tokens writes into a copy, so
   temperature, top_k and top_p of every row are read from uninitialised memory as soon as one request of the
   batch is sampled, greedy rows included. Repaired through vLLM's own kernel registry.
2. While one row is within k tokens of `max_model_len`, no row's drafter is asked and zeros are drafted for
   all: on the CPU the engine dies of it, on a GPU each row verifies k wrong tokens a step. The limit is meant
   for draft models with a context of their own; the proposer here has none, and it clips its drafts itself.
   Repaired by one attribute.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal

NO_REPAIR_VARIABLE = "OOOSPEC_NO_REPAIR"
"""Environment variable that leaves the faults in when it is "1": for tests that show what the repairs are
for."""
EXPAND_KERNEL = "vllm.v1.sample.rejection_sampler.expand_kernel"
"""vLLM's name of the kernel that spreads sampling parameters."""

State = Literal["absent", "repaired", "left in", "failed"]


@dataclass(frozen=True)
class Repair:
    """What was found and done about one fault.

    Attributes:
        fault: Short name of the fault.
        state: "absent": vLLM is right; "repaired"; "left in": as asked by `OOOSPEC_NO_REPAIR`; "failed": it
        is there.
        detail: What went wrong, where the repair failed.
    """

    fault: str
    state: State
    detail: str = ""

    @property
    def blocks_drafting(self) -> bool:
        """Whether drafting would make wrong output or kill the engine."""
        return self.state == "failed"


def repair_all(runner: Any) -> list[Repair]:
    """Test for both faults in this worker process and repair what is there. Never raises."""
    return [repair_sampling(runner.device.type), repair_length_limit(runner)]


def repair_sampling(device_type: str) -> Repair:
    """Test for the first fault, and repair it. Never raises."""
    fault = "sampling parameters"
    if device_type != "cpu":
        return Repair(fault, "absent")
    try:
        if sampling_is_right():
            return Repair(fault, "absent")
        if os.environ.get(NO_REPAIR_VARIABLE) == "1":
            return Repair(fault, "left in")
        from vllm.triton_utils.dispatcher import register_kernels

        register_kernels({EXPAND_KERNEL: _expand})
        if sampling_is_right():
            return Repair(fault, "repaired")
        return Repair(fault, "failed", "the registered kernel is not used")
    except Exception as error:
        return Repair(fault, "failed", f"{type(error).__name__}: {error}")


def sampling_is_right() -> bool:
    """Whether vLLM spreads sampling parameters over draft tokens correctly on the CPU."""
    import torch
    from vllm.v1.sample.rejection_sampler import expand_batch_to_tokens

    ends = torch.tensor([2, 5, 6], dtype=torch.int32)
    for dtype, values in ((torch.float32, [0.75, 0.0, 1.5]), (torch.int32, [7, 0, 1_234_567])):
        spread = expand_batch_to_tokens(torch.tensor(values, dtype=dtype), ends, 6, replace_from=0, replace_to=3)
        first, _, last = values
        if spread.tolist() != [first, first, 3, 3, 3, last]:
            return False
    return True


def repair_length_limit(runner: Any) -> Repair:
    """Test a model runner for the second fault, and repair it. Never raises."""
    fault = "length limit"
    try:
        if _asks_at_the_limit(runner):
            return Repair(fault, "absent")
        if os.environ.get(NO_REPAIR_VARIABLE) == "1":
            return Repair(fault, "left in")
        # One more than the longest row and its drafts, which the scheduler clips to `max_model_len` in any
        # case.
        runner.effective_drafter_max_model_len = runner.max_model_len + runner.num_spec_tokens + 1
        if _asks_at_the_limit(runner):
            return Repair(fault, "repaired")
        return Repair(fault, "failed", "the attribute is not looked at")
    except Exception as error:
        return Repair(fault, "failed", f"{type(error).__name__}: {error}")


def _asks_at_the_limit(runner: Any) -> bool:
    return bool(runner._input_fits_in_drafter(SimpleNamespace(max_seq_len=runner.max_model_len)))


def _expand(
    output: Any,
    input: Any,
    cu_num_tokens: Any,
    replace_from: Any,
    replace_to: Any,
    MAX_NUM_TOKENS: Any = None,
) -> None:
    """Write each row's value once per draft token of the row; `cu_num_tokens` holds the rows' ends."""
    import torch

    ends = cu_num_tokens.long()
    counts = torch.diff(ends, prepend=torch.zeros(1, dtype=torch.long))
    values = torch.where(input == replace_from, torch.full_like(input, replace_to), input)
    output.copy_(torch.repeat_interleave(values, counts))
