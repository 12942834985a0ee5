"""Starts what is measured: stock vLLM and ours with the same flags, and the sidecar."""

from __future__ import annotations

import math
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ooospec_agents.process import LaunchPlan, serving
from ooospec_agents.processor import multiplies_bfloat16
from ooospec_agents.sidecar import launch as sidecar_launch
from ooospec_agents.sidecar.adapters import adapter_for
from ooospec_agents.sidecar.client import ADAPTER
from ooospec_agents.vllm_plugin.launch import LEXICAL, on_cpu, plan_stock, plan_target
from ooospec_agents.weights import default_cache, resolve

HOST = "127.0.0.1"
READY_WITHIN_S = 300.0
SERVED_NAME = "target"
PROCESSES_GIB = 3.0
"""Memory of a server's three processes without weights and KV."""
SIDECAR_GIB = 4.5
"""Memory of the default sidecar's server."""
PROMPTED_NAME = "prompted"
"""What a sidecar without an adapter answers to: the adapter's name would claim that it was trained."""


@dataclass(frozen=True)
class Server:
    """A running server: its root URL, the model name that it answers to, and its process (0: not ours to know)."""

    url: str
    model: str
    pid: int = 0

    def cpu_s(self) -> float:
        """Seconds of processor time that its processes have used so far; 0.0 where that cannot be read."""
        return sum(_cpu_s(file, self.pid) for file in Path("/proc").glob("[0-9]*/stat")) if self.pid else 0.0


@dataclass(frozen=True)
class Setup:
    """What stock and ours have in common, so that only the drafting differs.

    Attributes:
        model: Model name or folder.
        dtype: vLLM's `--dtype`; "" leaves the launcher's choice.
        cores: Cores of each target, as in `VLLM_CPU_OMP_THREADS_BIND`; "" leaves vLLM's choice.
        kv_gib: KV cache of each server in GiB.
        max_model_len: vLLM's `--max-model-len`.
        gpu: `CUDA_VISIBLE_DEVICES`; "" leaves it.
        extra: Further flags of vLLM.
    """

    model: str
    dtype: str = ""
    cores: str = "0-1"
    kv_gib: int = 1
    max_model_len: int = 4096
    gpu: str = ""
    extra: tuple[str, ...] = ()

    @property
    def dtype_used(self) -> str:
        """The number format that the servers compute in, for the record."""
        if not self.dtype and not on_cpu():
            return "auto"
        return self.dtype or ("bfloat16" if multiplies_bfloat16() else "float32")

    def flags(self) -> list[str]:
        """Flags of vLLM that both servers get."""
        return [
            "--served-model-name", SERVED_NAME, "--max-model-len", str(self.max_model_len), "--max-num-seqs", "8",
            *(["--dtype", self.dtype] if self.dtype else []), *self.extra,
        ]  # fmt: skip

    def environment(self) -> dict[str, str]:
        """Environment that both servers get."""
        bind = {"VLLM_CPU_OMP_THREADS_BIND": self.cores} if self.cores else {}
        placed = {"CUDA_VISIBLE_DEVICES": self.gpu} if self.gpu else {}
        return {"VLLM_CPU_KVCACHE_SPACE": str(self.kv_gib), "VLLM_NO_USAGE_STATS": "1", **bind, **placed}


@dataclass(frozen=True)
class SidecarSetup:
    """The sidecar of a run.

    Attributes:
        model: Model name or folder.
        adapter: Folder of its LoRA adapter, or None.
        cores: Its cores; "" leaves it where the launcher puts it.
        gpu: `CUDA_VISIBLE_DEVICES`; "" leaves it.
        extra: Further flags of vLLM.
    """

    model: str
    adapter: str | None = None
    cores: str = ""
    gpu: str = ""
    extra: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What results call it."""
        name = Path(self.model).name
        if self.adapter is None:
            return name
        return f"{name} + {'its adapter' if self.adapter == adapter_for(self.model) else Path(self.adapter).name}"


@contextmanager
def stock(
    setup: Setup, logs: Path, name: str = "stock", speculation: Mapping[str, Any] | None = None
) -> Iterator[Server]:
    """A stock vLLM server; with `speculation` (a `--speculative-config`) one that uses vLLM's own drafter."""
    port = free_port()
    extra = setup.flags()
    if speculation:
        extra += ["--per-request-spec-decode-metrics", "summary"]
    plan = plan_stock(str(resolve(setup.model)), host=HOST, port=port, speculative_config=speculation, extra_args=extra)
    with _running(plan, setup, port, logs / f"{name}.log") as pid:
        yield Server(f"http://{HOST}:{port}", SERVED_NAME, pid)


@contextmanager
def ours(
    setup: Setup,
    logs: Path,
    helper: Server | None = None,
    *,
    predictor: str = LEXICAL,
    allow_replay: bool = False,
    environment: dict[str, str] | None = None,
    name: str = "ours",
) -> Iterator[Server]:
    """Our server, with the sidecar `helper` in server mode if one is given, and with a predictor's folder."""
    port = free_port()
    plan = plan_target(
        str(resolve(setup.model)),
        host=HOST,
        port=port,
        sidecar=helper.url if helper else None,
        sidecar_model=helper.model if helper else None,
        sidecar_api_key=None,
        predictor=predictor,
        allow_replay=allow_replay,
        extra_args=setup.flags(),
    )
    plan = replace(plan, env={**plan.env, **(environment or {})})
    with _running(plan, setup, port, logs / f"{name}.log") as pid:
        yield Server(f"http://{HOST}:{port}", SERVED_NAME, pid)


@contextmanager
def sidecar(setup: SidecarSetup, logs: Path) -> Iterator[Server]:
    """A sidecar server, as `ooospec serve sidecar` starts it."""
    port = free_port()
    name = ADAPTER if setup.adapter else PROMPTED_NAME
    extra = [*([] if setup.adapter else ["--served-model-name", name]), *setup.extra]
    plan = sidecar_launch.plan_sidecar(str(resolve(setup.model)), setup.adapter, default_cache(), port, HOST, extra)
    place = Setup(setup.model, cores=setup.cores, gpu=setup.gpu)
    with _running(plan, place, port, logs / "sidecar.log") as pid:
        yield Server(f"http://{HOST}:{port}", name, pid)


def fits(setup: Setup, helper: bool = True) -> bool:
    """Whether this machine has the memory for stock vLLM and ours at once, and for a sidecar beside them."""
    return 2 * server_gib(setup) + (SIDECAR_GIB if helper else 0) < free_gib()


def server_gib(setup: Setup) -> float:
    """Memory that one target server takes, in GiB, as measured on CPUs."""
    stored = sum(file.stat().st_size for file in resolve(setup.model).glob("*.safetensors")) / 2**30
    # Stored in two bytes a weight; the layers' packed copies and freed originals add about a quarter.
    weights = stored * (2 if setup.dtype_used == "float32" else 1) * 1.25
    return weights + setup.kv_gib + PROCESSES_GIB


def free_gib() -> float:
    """Memory that is free now, in GiB; endless where that cannot be read."""
    try:
        words = Path("/proc/meminfo").read_text(encoding="utf-8").split()
    except OSError:
        return math.inf
    return int(words[words.index("MemAvailable:") + 1]) / 2**20


def free_port() -> int:
    """A port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@contextmanager
def _running(plan: LaunchPlan, setup: Setup, port: int, log: Path) -> Iterator[int]:
    log.parent.mkdir(parents=True, exist_ok=True)
    plan = replace(plan, env={**plan.env, **setup.environment()})
    with serving(plan, f"http://{HOST}:{port}/health", READY_WITHIN_S, log) as pid:
        yield pid


def _cpu_s(stat: Path, session: int) -> float:
    """Processor seconds of one process, if it is of this session (a server and all that it started are one)."""
    try:
        fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    if int(fields[3]) != session:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
