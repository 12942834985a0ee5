"""The base model with adapters on it: loading, the loss at answers only, and the adapter's files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from ooospec_agents.processor import multiplies_bfloat16
from ooospec_agents.sidecar.adapters import WEIGHTS
from ooospec_agents.training.layout import Encode
from ooospec_agents.training.pack import Packed
from ooospec_agents.training.settings import PROJECTIONS, Settings


def fitting_device() -> tuple[torch.device, torch.dtype]:
    """Where to compute, and in which precision: bfloat16 wherever the hardware multiplies it."""
    if torch.cuda.is_available():
        return torch.device("cuda"), torch.bfloat16
    # Without such instructions bfloat16 on a CPU is tens of times slower than float32. oneDNN, where it emulates them
    # (AVX-512 without BF16), says that it supports them all the same.
    fast = torch.ops.mkldnn._is_mkldnn_bf16_supported() and multiplies_bfloat16()
    return torch.device("cpu"), torch.bfloat16 if fast else torch.float32


def load_base(folder: Path, device: torch.device, dtype: torch.dtype) -> tuple[Any, Encode, Any]:
    """The base model, its encoder without special tokens, and its tokenizer."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="sdpa").to(device)
    tokenizer = AutoTokenizer.from_pretrained(folder)

    def encode(text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False)
        return ids

    return model, encode, tokenizer


def add_adapter(model: Any, settings: Settings) -> Any:
    """The model with a fresh adapter, trainable, in float32."""
    torch.manual_seed(settings.seed)
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules=list(PROJECTIONS),
        task_type="CAUSAL_LM",
    )
    adapted = get_peft_model(model, config)
    for parameter in trainable(adapted).values():
        parameter.data = parameter.data.float()
    return adapted


def load_adapter(model: Any, folder: Path) -> Any:
    """The model with a trained adapter, not trainable."""
    return PeftModel.from_pretrained(model, folder)


def start_from(adapted: Any, folder: Path) -> None:
    """Put a trained adapter's weights into a fresh one of the same shape."""
    state = {name: value.float() for name, value in load_file(folder / WEIGHTS).items()}
    set_peft_model_state_dict(adapted, state)


def trainable(model: Any) -> dict[str, torch.nn.Parameter]:
    """The adapter's parameters by name."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def answer_loss(model: Any, packed: Packed) -> torch.Tensor:
    """Weighted sum of the answer tokens' negative logarithms of probability, in nats.

    Logits are computed where an answer is predicted, nowhere else.
    """
    logits = answer_logits(model, packed).float()
    losses = torch.nn.functional.cross_entropy(logits, packed.targets, reduction="none")
    return (losses * packed.weights).sum()


def answer_logits(model: Any, packed: Packed) -> torch.Tensor:
    """Logits of the N tokens that are predicted, [N, vocabulary]."""
    causal = model.get_base_model() if isinstance(model, PeftModel) else model
    hidden = causal.model(
        input_ids=packed.ids, attention_mask=packed.mask, position_ids=packed.positions, use_cache=False
    ).last_hidden_state
    logits: torch.Tensor = causal.lm_head(hidden[0, packed.predict])
    return logits


def save_adapter(model: Any, base: str, folder: Path) -> None:
    """Write the adapter in bfloat16, as any peft or vLLM reads it; each file is replaced as a whole."""
    state: Mapping[str, torch.Tensor] = get_peft_model_state_dict(model)
    folder.mkdir(parents=True, exist_ok=True)
    weights = folder / WEIGHTS
    partial = folder / ".adapter_model.partial"
    save_file({name: value.to(torch.bfloat16).contiguous().cpu() for name, value in state.items()}, partial)
    os.replace(partial, weights)
    config = model.peft_config["default"]
    config.base_model_name_or_path = base
    config.inference_mode = True
    config.save_pretrained(str(folder))
    config.inference_mode = False
