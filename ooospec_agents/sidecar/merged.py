"""A base model with an adapter's weights added to its own: the same answers without the adapter's extra work.

On a CPU vLLM gathers an adapter's weights anew for each token of a prompt, which takes longer than the model itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import filelock

from ooospec_agents.sidecar.adapters import WEIGHTS

KEPT = 2
"""Merged copies of one base model that stay in the cache; the one unused longest is removed first."""
_PREFIX = "base_model.model."


class MergeError(RuntimeError):
    """An adapter cannot be merged. The message says why."""


def merged(base: Path, adapter: Path, cache: Path) -> Path:
    """The folder of a base model with an adapter merged into it, made once and kept in the cache.

    Args:
        base: Folder of the base model, with its weights in safetensors.
        adapter: Folder of a LoRA adapter of peft's.
        cache: Where merged copies are kept.

    Raises:
        MergeError: They do not fit together, or the adapter is of a kind that is not known here.
        OSError: A file cannot be read or written.
    """
    files = sorted(base.glob("*.safetensors"))
    if not files:
        msg = f"{str(base)!r} has no weights in safetensors"
        raise MergeError(msg)
    known = hashlib.sha256((adapter / WEIGHTS).read_bytes())
    known.update((adapter / "adapter_config.json").read_bytes())
    for file in files:
        known.update(f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}".encode())
    name = f"{base.resolve().name}-merged-"
    folder = cache / (name + known.hexdigest()[:12])
    cache.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(cache / f".{name}lock"):
        if not folder.is_dir():
            # Inside the cache, so that the last step is a rename on one file system.
            with tempfile.TemporaryDirectory(prefix=f".making-{name}", dir=cache) as making:
                made = Path(making) / "merged"
                made.mkdir()
                _merge(files, adapter, made)
                _copy_rest(base, made)
                os.replace(made, folder)
        os.utime(folder)
        others = sorted(cache.glob(f"{name}*"), key=lambda path: path.stat().st_mtime)
        for unused in others[:-KEPT]:
            shutil.rmtree(unused, ignore_errors=True)
    return folder


def _merge(files: list[Path], adapter: Path, out: Path) -> None:
    """Write the base's weights with the adapter's added, file by file."""
    import torch
    from safetensors.torch import load_file, save_file

    deltas, scale = load_file(adapter / WEIGHTS), _scale(json.loads((adapter / "adapter_config.json").read_text()))
    left = {key.removesuffix(".lora_A.weight") for key in deltas if key.endswith(".lora_A.weight")}
    if len(deltas) != 2 * len(left):
        msg = f"{str(adapter)!r} has more than LoRA's two matrices a layer"
        raise MergeError(msg)
    for file in files:
        weights = load_file(file)
        for key, weight in weights.items():
            layer = _PREFIX + key.removesuffix(".weight")
            if layer not in left:
                continue
            a, b = deltas[f"{layer}.lora_A.weight"].float(), deltas[f"{layer}.lora_B.weight"].float()
            if (b.shape[0], a.shape[1]) != tuple(weight.shape):
                msg = f"{str(adapter)!r} was made for another base model: {key} is {tuple(weight.shape)} here"
                raise MergeError(msg)
            weights[key] = torch.addmm(weight.float(), b, a, alpha=scale).to(weight.dtype)
            left.discard(layer)
        save_file(weights, out / file.name, metadata={"format": "pt"})
    if left:
        msg = f"{str(adapter)!r} was made for another base model: no {min(left)!r} here"
        raise MergeError(msg)


def _scale(config: Mapping[str, Any]) -> float:
    for unknown in ("use_dora", "fan_in_fan_out", "rank_pattern", "alpha_pattern", "modules_to_save"):
        if config.get(unknown):
            msg = f"the adapter uses {unknown!r}"
            raise MergeError(msg)
    rank, alpha = config["r"], config["lora_alpha"]
    return float(alpha / rank**0.5 if config.get("use_rslora") else alpha / rank)


def _copy_rest(base: Path, out: Path) -> None:
    """Configuration and tokenizer."""
    for file in base.iterdir():
        if file.is_file() and file.suffix in (".json", ".jinja", ".txt", ".model"):
            shutil.copy(file, out)
